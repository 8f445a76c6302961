"""Sizes of trees by the occupied boxes of points, and of samples: beside trees and their lists."""

import numpy as np
import pytest

from parki import pairs, samples
from parki.engine import Space
from parki.fmm import balance, params, representations
from parki.fmm.balance import Cloud, CloudSample
from parki.fmm.occupied_boxes import OccupiedBoxes, TreeSizes
from parki.trees import octlists, octree
from tests.methods.draws import SHAPES, two_groups

SERIAL, SIZES = Space("Serial"), (40, 90, 200)


def sample(x, y, most):
    """Return a sample of targets and sources."""
    clouds = [Cloud(x)] * 2 if x is y else [Cloud(x), Cloud(y)]
    return CloudSample.of(*clouds, most)


def counted(x, y, size, fill):
    """Return the pairs of particles, octets, and pairs of octets of a tree."""
    nodes = octree.build(y, None if x is y else x, size, SERIAL, fill=fill).nodes
    lists = octlists.lists(nodes).only
    near = nodes.targets.count[lists.u_t].astype(float) @ nodes.sources.count[lists.u_s]
    return near, len(nodes.octet_parent), len(lists.v_t)


@pytest.mark.parametrize("share", [1.0, 0.8, 0.64])
@pytest.mark.parametrize("shape", ["sphere", "plummer", "gaussian", "two groups"])
def test_boxes_are_those_of_the_tree(shape, share):
    x = SHAPES[shape](20_000, 3)
    boxes = sample(x, x, 1).boxes(share, SIZES[0])
    for size in SIZES:
        near, octets, pairs_of_octets = counted(x, x, size, None if share == 1 else 2 * share)
        found = boxes.sizes(size)
        assert found.octets == octets
        assert 0.5 < found.near / near < 2
        assert 0.5 < found.octet_pairs / pairs_of_octets < 2


def test_targets_apart_from_the_sources():
    x, y = samples.plummer(8000, 1), samples.sphere(15_000, 2)
    boxes = sample(x, y, 1).boxes(1.0, SIZES[0])
    for size in SIZES:
        near, octets, _ = counted(x, y, size, None)
        found = boxes.sizes(size)
        assert found.octets == octets
        assert 0.5 < found.near / near < 2


@pytest.mark.parametrize("shape", ["sphere", "plummer", "two groups"])
def test_a_sample_stands_for_all_points(shape):
    x = SHAPES[shape](100_000, 4)
    some, every = sample(x, x, 10), sample(x, x, 1)
    assert [some.points[0].shape, every.points[0].shape] == [(3, 10_000), (3, 100_000)]
    for size in (120, 300):
        found, right = (s.boxes(0.8, 60).sizes(size) for s in (some, every))
        assert found.near == pytest.approx(right.near, rel=0.3)
        assert found.octets == pytest.approx(right.octets, rel=0.2)
        assert found.octet_pairs == pytest.approx(right.octet_pairs, rel=0.3)


def test_a_tree_of_one_leaf():
    x = samples.plummer(50, 1)
    found = sample(x, x, 1).boxes(1.0, 100).sizes(100)
    assert (found.near, found.octets, found.octet_pairs) == (2500.0, 0.0, 0.0)


def test_equal_points_are_not_divided_for_ever():
    x = np.concatenate([np.zeros((3, 500)), samples.uniform(500, 1)], axis=1)
    boxes = OccupiedBoxes.of([x], [1.0], np.full(3, -1.0), 2.5, 10)
    assert boxes.level.max() == 20
    assert boxes.sizes(20).near >= 500**2


@pytest.mark.parametrize(("shape", "tolerance"), [("sphere", 1e-5), ("two groups", 1e-5), ("plummer", 1e-3)])
def test_the_choice_costs_little_more_than_the_best(shape, tolerance):
    x = SHAPES[shape](60_000, 5)
    order, cloud = params.order(tolerance), Cloud(x)
    goal = params.leaf_size("kifmm", order)
    coulomb = pairs.find("coulomb")
    costs = balance.costs(representations.find(coulomb), coulomb, order, "float64", "float64")
    choice = balance.leaves(cloud, cloud, goal, costs)

    def seconds(size, fill):
        near, octets, octet_pairs = counted(x, x, size, fill)
        return costs.of(TreeSizes(near, octets, octet_pairs, 0), cloud.n)

    tried = {(round(f * goal), None if share == 1 else 2 * share) for f in balance.FACTORS for share in balance.SHARES}
    assert (choice.size, choice.fill) in tried
    assert seconds(choice.size, choice.fill) <= 1.15 * min(seconds(*candidate) for candidate in tried)


def test_many_groups_far_apart_are_not_even():
    cloud = Cloud(two_groups(30_000, 1))
    assert not balance.leaves(cloud, cloud, 50, None).is_even
    assert balance.leaves(cloud, cloud, 50, None).fill is None
