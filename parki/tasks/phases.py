"""Phases of a graph: sets of tasks that run one after another if barriers separate them."""

import numpy as np

from parki.tasks.graph import Floats, Graph, Ints

#: Kinds in the order of phases; P2M runs with M2M, level by level.
ORDER = ("GATHER", "FILL", "M2M", "FFT", "M2L", "IFFT", "P2L", "M2P", "L2L", "L2P", "P2P", "ADD", "SCATTER")
UPWARD, DOWNWARD = ("P2M", "M2M"), "L2L"


def phases(graph: Graph) -> Ints:
    """Return the number of the phase of each task, from 0.

    M2M has a phase for each level, from the lowest one up, and L2L from the highest one down; each other kind of
    `ORDER` is one phase.  A task of another kind, such as a join, is in the last phase of the tasks that it waits for,
    and no task is in an earlier phase than a task that it waits for.
    """
    place = {name: i for i, name in enumerate(ORDER)} | dict.fromkeys(UPWARD, ORDER.index("M2M"))
    kind_places = np.array([place.get(name, 0) for name in graph.kinds])[graph.kind]
    key = kind_places * (2.0 * len(graph) + 2)
    up_tasks = _is_one_of(graph, UPWARD)
    key[up_tasks] += len(graph) - graph.rank(_is_one_of(graph, ("M2M",)))[up_tasks]
    down_tasks = _is_one_of(graph, (DOWNWARD,))
    key[down_tasks] += _since(graph, down_tasks)[down_tasks]
    return np.unique(_after_all(graph, key), return_inverse=True)[1].astype(np.int32)


def _is_one_of(graph: Graph, names: tuple[str, ...]) -> np.ndarray:
    return np.array([name in names for name in graph.kinds], bool)[graph.kind]


def _since(graph: Graph, weight: np.ndarray) -> Floats:
    """Return the weight of the heaviest path from the beginning to each task, including the task."""
    weights = weight.astype(float).tolist()
    for task in range(len(weights)):
        weights[task] += max([weights[predecessor] for predecessor in graph.before[task].tolist()], default=0.0)
    return np.array(weights)


def _after_all(graph: Graph, key: Floats) -> Floats:
    """Return the keys, each raised to the largest key of the tasks that the task waits for."""
    keys = key.tolist()
    for task in range(len(keys)):
        keys[task] = max([keys[task], *(keys[predecessor] for predecessor in graph.before[task].tolist())])
    return np.array(keys)
