"""Complex numbers as pairs of reals, and elements in reverse order: lanes load and store elements that are apart."""

import numpy as np
import pytest

from parki import engine
from parki.engine import TeamPolicy

TEXT = '''"""Products of complex numbers with reals in reverse order."""

import pykokkos as pk

real = pk.double


@pk.workunit
def turned(
    team: pk.TeamMember, z: pk.View2D[real], w: pk.View2D[real], g: pk.View1D[real], out: pk.View1D[real], n: int
):
    """z[r][j] = g[n - 1 - j] conj(z[r][j]) + i w[r][j]; out = g in reverse order."""
    r: int = team.league_rank()

    def mode(j: int):
        a: real = g[n - 1 - j]
        re: real = a * z[r][2 * j] - w[r][2 * j + 1]
        im: real = w[r][2 * j] - a * z[r][2 * j + 1]
        {stores}
        if r == 0:
            out[j] = g[n - 1 - j]

    pk.parallel_for(pk.TeamThreadRange(team, n), mode)
'''
PAIR = "z[r][2 * j] = re\n        z[r][2 * j + 1] = im"
OTHERS = {
    "the other way round": "z[r][2 * j + 1] = im\n        z[r][2 * j] = re",
    "what the first stores is read": "z[r][2 * j] = re\n        z[r][2 * j + 1] = im + 0.0 * z[r][2 * j]",
    "something between": "z[r][2 * j] = re\n        im = im + 0.0\n        z[r][2 * j + 1] = im",
    "added": "z[r][2 * j] += re - z[r][2 * j]\n        z[r][2 * j + 1] = im",
}
MACHINES = {"native": {}, "32 bytes": {"PARKI_VECTOR_BYTES": "32"}, "16 bytes": {"PARKI_VECTOR_BYTES": "16"}}


def made(folder, stores, **slots):
    path = folder / "turned.py"
    path.write_text(TEXT.replace("{stores}", stores), "utf-8")
    return engine.kernel(path, "turned", **slots)


def check(unit, real, n, rng, space="Serial"):
    dtype = {"double": np.complex128, "float": np.complex64}[real]
    z, w = ((rng.standard_normal((2, n + 3)) + 1j * rng.standard_normal((2, n + 3))).astype(dtype) for _ in range(2))
    g = rng.standard_normal(n).astype(z.real.dtype)
    exact = g[::-1] * z[:, :n].conj() + 1j * w[:, :n]
    beyond, out = z[:, n:].copy(), np.zeros(n, g.dtype)
    pairs = [a.view(g.dtype).reshape(2, -1) for a in (z, w)]
    engine.parallel_for(TeamPolicy(space, 2), unit, z=pairs[0], w=pairs[1], g=g, out=out, n=n)
    np.testing.assert_allclose(z[:, :n], exact, rtol=0, atol=20 * np.finfo(g.dtype).eps)
    np.testing.assert_array_equal(z[:, n:], beyond)
    np.testing.assert_array_equal(out, g[::-1])


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("machine", MACHINES)
def test_pairs_and_reverse_order(machine, real, tmp_path, rng, monkeypatch):
    for name, value in MACHINES[machine].items():
        monkeypatch.setenv(name, value)
    unit = made(tmp_path, PAIR, real=real)
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 31, 32, 40, 55):
        check(unit, real, n, rng)


@pytest.mark.parametrize("space", ["OpenMP", "GpuSim"])
def test_in_other_spaces(space, tmp_path, rng):
    check(made(tmp_path, PAIR), "double", 21, rng, space)


def test_how_they_are_stored_and_loaded(tmp_path):
    unit = made(tmp_path, PAIR)
    plain, checked = (unit.unit(unit.default_layouts(), checked)[0].source for checked in (False, True))
    assert plain.count("pk_store_pair(z") == 1
    assert "pk_load_back" in plain
    assert not any(name in plain for name in ("pk_store2", "pk_gather", "pk_scatter"))
    assert "pk_store_pair" not in checked  # checked builds run one lane at a time


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_pair(name, tmp_path, rng):
    unit = made(tmp_path, OTHERS[name])
    assert "pk_store_pair" not in unit.unit(unit.default_layouts(), False)[0].source
    check(unit, "double", 19, rng)
