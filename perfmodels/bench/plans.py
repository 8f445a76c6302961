"""Benchmark of making plans of treecodes and fast multipole sums: the units of `parki.perfmodels.ranks.planning`."""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from parki import fmm, samples, treecode
from parki.arrays import Array
from parki.engine import Space
from parki.perfmodels.bench.measure import Row, clock, row, turns
from parki.treecode import interactions
from parki.treecode.interactions import FarPairRule
from parki.treecode.steps import steps
from parki.trees import cluster, dual, octlists, octree
from parki.trees.bysource import ListsBySource

THETA, LEAF, BOX = 0.7, 336, 80  # MAC of the published treecodes; points of leaves of clusters and of octrees
RANKS = 32  # ranks to which points go
SMALL = 4  # points of a leaf, in trees whose nodes cost more than their points
PAIR = FarPairRule(9, False, (0, 1, 2, 3), 1.0, 1e-8, np.ones_like, np.ones_like)
TABLE = np.dtype(
    [("level", "i4"), ("leaf", "?"), ("begin", "i8"), ("count", "i8"), ("low", "f8", 3), ("high", "f8", 3)]
)


def plans(args: argparse.Namespace, space: Space) -> list[Row]:
    """Measure a unit of each kind of work on one core."""
    serial = Space("Serial")
    x = samples.uniform(args.n, seed=1)
    subset = np.ascontiguousarray(x[:, : max(1, args.n // 20)])
    nodes, octets = cluster.build(x, LEAF, serial).nodes, octree.build(x, None, BOX, serial).nodes
    small_nodes = cluster.build(subset, SMALL, serial).nodes
    pairs = dual.traverse(nodes, nodes, THETA)
    by_source, lists = ListsBySource.of(nodes, nodes, pairs), octlists.lists(octets).only
    table = np.zeros(max(1, small_nodes.n), TABLE)
    table["begin"] = np.random.default_rng(0).integers(0, 1 << 30, len(table))
    owner = np.random.default_rng(1).integers(0, RANKS, args.n)
    order = np.argsort(owner, kind="stable")
    n_pairs = len(pairs.far_t) + len(pairs.near_t)
    far = interactions.FarPairs(nodes, nodes, pairs, PAIR)  # the only call that makes kinds without lists
    entries = sum(len(a) for a in (lists.u_t, lists.w_t, lists.x_t, lists.v_t))
    runs: dict[str, tuple[Callable[[], object], float]] = {
        "point of a level, sorted": (lambda: cluster.build(x, LEAF, serial), _moved(nodes)),
        "node of a small tree": (lambda: cluster.build(subset, SMALL, serial), small_nodes.n),
        "pair of clusters, found": (lambda: dual.traverse(nodes, nodes, THETA), n_pairs),
        "pair of clusters, its kind": (lambda: far.choose(0.0), n_pairs),
        "pair of clusters, in lists": (lambda: interactions.build(by_source, PAIR), n_pairs),
        "entry of lists of an octree": (lambda: octlists.lists(octets), entries),
        "row of a table, merged": (lambda: np.concatenate([table, table])[np.argsort(table["begin"])], len(table)),
        "point, in the order of ranks": (lambda: np.argsort(owner, kind="stable"), args.n),
        "byte, gathered": (lambda: np.take(x, order, axis=1), x.nbytes),
    }
    measures = {title: (clock(run), count) for title, (run, count) in runs.items()}
    measures["point, in steps of a treecode"] = _steps(x), args.n
    measures["box, in steps of an octree"] = _prepared(x), octets.n
    times = turns([run for run, _ in measures.values()], args.repeat)
    return [
        row(title, times_of_run, max(count, 1), "units", threads=1)
        for (title, (_, count)), times_of_run in zip(measures.items(), times, strict=True)
    ]


def _steps(x: Array) -> Callable[[], float]:
    """Return a function that times placing a treecode's steps: its phase of lists without traversal and lists."""
    serial = Space("Serial")
    plan = treecode.plan("coulomb", x, x, theta=THETA, degree=8, leaf_size=LEAF, execution_space=serial)

    def measure() -> float:
        problem = plan.problem.with_points(x, x)
        structure = plan.method.arrange(problem, plan.chosen, plan.walltime)[1]  # one without cached tables
        return clock(lambda: steps(structure).steps.place(serial))()

    return measure


def _prepared(x: Array) -> Callable[[], float]:
    """Return a function that times preparing an FMM's steps, whose operators exist after the first time."""
    return lambda: fmm.plan("coulomb", x, x, order=6, leaf_size=BOX, execution_space="Serial").walltime.time["prepare"]


def _moved(nodes: cluster.ClusterNodes) -> float:
    """Return the number of points in all nodes that are split."""
    return float(nodes.count[~nodes.is_leaf].sum())


def table(rows: Sequence[Row]) -> str:
    """Return the nanoseconds of each unit, a line each."""
    return "\n".join(f"{r['what']:<32}{1e9 / r['rate']:>10.3g} ns" for r in rows)
