"""Random graphs of tasks, and their order by brute force."""

import numpy as np

from parki.tasks.graph import Graph, IntLists


def listed(lists):
    """Return lists of numbers as `IntLists`."""
    owner = np.repeat(np.arange(len(lists)), [len(some) for some in lists])
    return IntLists.of(owner, np.array([value for some in lists for value in some], int), len(lists))


def drawn(rng, tasks, data):
    """Return the data that random tasks read and write, as lists."""
    reads, writes = (
        [sorted(set(rng.integers(0, data, rng.integers(0, most)).tolist())) for _ in range(tasks)] for most in (4, 3)
    )
    return reads, writes


def graph(reads, writes, work=None):
    """Return tasks of one kind that read and write these data."""
    n = len(reads)
    work = np.ones(n) if work is None else np.asarray(work, float)
    number = np.arange(n, dtype=np.int32)
    data = 1 + max((value for some in (*reads, *writes) for value in some), default=0)
    kind = np.zeros(n, np.uint8)
    return Graph(["T"], kind, number, work, np.ones(n), listed(reads), listed(writes), np.ones(data), number / n)


def closure(before):
    """Return all tasks that must end before each one begins, from lists of direct predecessors."""
    made = []
    for some in before:
        made.append(set(some).union(*(made[other] for other in some)))
    return made


def by_hand(reads, writes):
    """Return the earlier tasks that touch a datum which the task or the earlier one writes."""
    sets = [(set(a), set(b)) for a, b in zip(reads, writes, strict=True)]
    return [
        [j for j in range(i) if sets[j][1] & (sets[i][0] | sets[i][1]) or sets[j][0] & sets[i][1]]
        for i in range(len(sets))
    ]
