"""Balance of near and far field: the part that is predicted to cost more is made smaller."""

from dataclasses import replace

import numpy as np
import pytest

from parki.ewald.choice import choose
from parki.ewald.choice.question import Question
from parki.ewald.kernels import KERNELS
from parki.perfmodels import select
from parki.perfmodels.machine import Costs

CUBE = (1.0, 1.0, 1.0)


def test_dearer_pairs_shorten_the_cutoff():
    cheap, dear = (
        choose.parameters(Question("laplace", CUBE, 50_000, 50_000, 1e-6), Costs(near=near)) for near in (1e-9, 2e-8)
    )
    assert dear.rc < 0.8 * cheap.rc
    assert np.prod(dear.grid) > np.prod(cheap.grid)


def test_predicted_seconds_add_up():
    costs = Costs(near=1e-9, near_overhead=1.0, target=0.0, fft=1e-8, spread=1e-9, gather=0.0, sparse=0.0)
    domain = select.Domain((1.0, 2.0, 5.0), 3, 1e-7)  # 224 of 2240 sources in a cube of side 1
    question = select.ModelledSum(KERNELS["laplace"], 1000, 2240, domain)
    args = {"question": question, "costs": costs}
    near = {"rc": 1.0, "points": 0.0, "P": 0}
    assert select.seconds(**args, **near) == pytest.approx(4 * np.pi / 3 * 224 * 1000 * 1e-9)
    assert select.seconds(**args, rc=0.0, points=1e6, P=0) == pytest.approx(2e-2)
    finer = args | {"question": replace(question, domain=select.Domain((1.0, 2.0, 5.0), 3, 1e-9))}
    assert select.seconds(**finer, **near) > select.seconds(**args, **near)
    rows = costs.rows("spread", 5)
    assert select.seconds(**args, rc=0.0, points=0.0, P=5) == pytest.approx(rows * 2240e-9)
    assert rows > 25
    parts = select.phases(**args, rc=1.0, points=1e6, P=5)
    assert select.seconds(**args, rc=1.0, points=1e6, P=5) == pytest.approx(sum(parts.values()))
    single = args | {"question": replace(question, itemsizes=(4, 4))}
    halves = select.phases(**single, rc=1.0, points=1e6, P=5)
    assert halves["near"] == pytest.approx(costs.single * parts["near"])
    assert halves["transform"] == pytest.approx(costs.single_fft * parts["transform"])
    mixed = args | {"question": replace(question, itemsizes=(8, 4))}
    far = select.phases(**mixed, rc=1.0, points=1e6, P=5)
    assert far == halves | {"near": parts["near"]}


def test_free_directions_cost_more():
    """Padding is paid for, and a cube of side rc holds fewer of the points of a thin box."""
    rc, grid, P = 0.5, np.array([64, 64, 64]), 8
    found = [select.Domain(CUBE, n).work(1 / 64, grid, P, rc) for n in (3, 2, 1, 0)]
    points, held = (np.array(values) for values in zip(*found, strict=True))
    assert (points[1:] > points[0]).all()
    assert (held[1:] > 0.9 * held[0]).all()
    thin = [select.Domain((1.0, 1.0, 0.1), n).crowd(1000, 0.3) for n in (3, 2)]
    assert thin[1] < thin[0] == pytest.approx(1000 * 0.3**3 / 0.1)
