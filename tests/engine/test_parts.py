"""Parts of launches: ranges of a league, each on one thread, give the same bits as the whole in any order."""

import itertools
import threading

import numpy as np
import pytest

from parki import engine
from parki.engine import LaunchError, RangePolicy, TeamPolicy
from parki.engine.run.spaces import Space
from tests.engine.launch_kernels import KERNELS

ADDING = '''import pykokkos as pk
real = pk.double


@pk.workunit
def tally(i: int, bin: pk.View1D[pk.int32], count: pk.View1D[pk.int64], total: pk.View1D[real]):
    """Add 1 to the count of a bin, and a whole number to its total."""
    pk.atomic_fetch_add(count, [bin[i]], 1)
    pk.atomic_fetch_add(total, [bin[i]], real(i % 7))
'''
SPACES = ("Serial", "OpenMP", "GpuSim")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """Return a function that gives a workunit by its name."""
    folder = tmp_path_factory.mktemp("parts")
    (folder / "mine.py").write_text(KERNELS)
    (folder / "adding.py").write_text(ADDING)
    return lambda name: engine.kernel(folder / ("adding.py" if name == "tally" else "mine.py"), name)


def ranges(n, rng, most=9):
    """Return ranges that cover 0 … n - 1, some of them empty, in random order."""
    cuts = np.sort(rng.integers(0, n + 1, size=most))
    edges = [0, *cuts.tolist(), n]
    found = [(a, b - a) for a, b in itertools.pairwise(edges)]
    return [found[i] for i in rng.permutation(len(found))]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("n", [1, 7, 1000, 9001])
def test_parts_of_a_range_give_the_whole(kernels, rng, space, n):
    if space == "GpuSim" and n > 1000:
        pytest.skip("slow")
    x, whole, parts = rng.random((n, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    args = {"x": x, "a": 1.5, "n": 3, "flag": True}
    engine.parallel_for(RangePolicy(space, n), kernels("scale"), y=whole, **args)
    launch = engine.prepare(RangePolicy(space, n), kernels("scale"), y=parts, **args)
    covered = np.zeros(n, int)
    for first, count in ranges(n, rng):
        parts[first : first + count] = np.nan
        launch.part(first, count).run()
        covered[first : first + count] += 1
        assert np.array_equal(parts[covered > 0], whole[covered > 0])
        assert not parts[covered == 0].any()
    assert (covered == 1).all()


@pytest.mark.parametrize("space", SPACES)
def test_parts_of_teams_with_scratch(kernels, rng, space):
    x = rng.random((37, 12))
    launch = engine.prepare(TeamPolicy(space, 37), kernels("reversed_by_scratch"), x=x, n=12, asked=12)
    expected = x[:, ::-1].copy()
    for first, count in ranges(37, rng):
        launch.part(first, count).run()
    assert np.array_equal(x, expected)


def test_workers_have_scratch_of_their_own(kernels, rng):
    x = rng.random((4000, 64))
    expected = x[:, ::-1].copy()
    space = Space("OpenMP", threads=1)  # the whole launch has scratch for one thread
    launch = engine.prepare(TeamPolicy(space, 4000), kernels("reversed_by_scratch"), x=x, n=64, asked=64)
    work = [ranges(1000, rng, 20) for _ in range(4)]

    def worker(number):
        parts = [launch.part(1000 * number + first, count) for first, count in work[number]]
        arena = np.empty(max(part.scratch_bytes for part in parts), np.uint8)
        for part in parts:
            part.take_scratch(arena)
            part.run()

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(x, expected)


@pytest.mark.parametrize("shared", [True, False])
def test_additions_are_atomic_where_parts_are_shared(kernels, rng, shared):
    n = 400_000
    bins = rng.integers(0, 3, n).astype(np.int32)
    count, total = np.zeros(3, np.int64), np.zeros(3)
    launch = engine.prepare(RangePolicy("Serial", n), kernels("tally"), bin=bins, count=count, total=total)
    parts = [launch.part(n // 4 * k, n // 4, shared=shared) for k in range(4)]
    if shared:
        threads = [threading.Thread(target=part.run) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        for part in parts:
            part.run()
    assert np.array_equal(count, np.bincount(bins))
    assert np.array_equal(total, np.bincount(bins, weights=np.arange(n) % 7))


def test_a_part_keeps_its_arguments(kernels):
    x, first, second = np.ones((4, 2)), np.zeros((4, 2)), np.zeros((4, 2))
    launch = engine.prepare(RangePolicy("Serial", 4), kernels("scale"), x=x, y=first, a=1.0, n=2, flag=False)
    part = launch.part(1, 2)
    launch.set(y=second, a=3.0)
    part.run()
    launch.run()
    assert first[:, 0].tolist() == [0, 1, 1, 0]
    assert second[:, 0].tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize(("first", "count"), [(-1, 2), (3, 2), (0, 5), (2, -1), (5, 0)])
def test_ranges_outside_are_refused(kernels, first, count):
    x, y = np.ones((4, 2)), np.zeros((4, 2))
    launch = engine.prepare(RangePolicy("Serial", 4), kernels("scale"), x=x, y=y, a=1.0, n=2, flag=False)
    with pytest.raises(LaunchError, match=r"scale: part .* expected teams in 0 … 3"):
        launch.part(first, count)


def test_accumulators_are_refused(kernels):
    launch = engine.prepare(RangePolicy("Serial", 4), kernels("total"), x=np.ones(4))
    with pytest.raises(LaunchError, match="total has an accumulator: expected a launch as a whole"):
        launch.part(0, 2)


def test_released_arguments_are_refused(kernels):
    x, y = np.ones((4, 2)), np.zeros((4, 2))
    launch = engine.prepare(RangePolicy("Serial", 4), kernels("scale"), x=x, y=y, a=1.0, n=2, flag=False)
    launch.release("y")
    with pytest.raises(LaunchError, match=r"scale: \['y'\] were released"):
        launch.part(0, 2)


def test_faults_of_a_part_are_its_own(kernels):
    x = np.zeros((3, 4))
    launch = engine.prepare(TeamPolicy("Serial", 3), kernels("reversed_by_scratch"), x=x, n=4, asked=0)
    part = launch.part(0, 1)
    with pytest.raises(LaunchError, match=r"declares .* bytes of scratch"):
        part.run()
    assert not launch._call._fault.any()
