"""Lower bounds of the time of a graph on a node: the area bound of its work, and its longest path.

In the area bound tasks do not wait, may be divided, and need no time for copies.  With class c of n_c units, where
task i takes t_ic seconds,

    minimise T   subject to   Σ_i α_ic t_ic ≤ n_c T  for all c,   Σ_c α_ic = 1  for all i,   α ≥ 0 .

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 4.4.
"""

import numpy as np

from parki.tasks.durations import Durations
from parki.tasks.graph import Floats, Graph
from parki.tasks.node import Node


def least_seconds(graph: Graph, durations: Durations, node: Node) -> float:
    """Return the larger of the area bound and the longest path, with each task at its least time."""
    core, device = durations.runs(node)
    seconds = np.minimum(np.where(core, durations.core, np.inf), np.where(device, durations.device, np.inf))
    return max(area_bound(durations, node), graph.critical_path(seconds))


def area_bound(durations: Durations, node: Node) -> float:
    """Return the area bound in seconds, by sorting.

    Devices get the tasks with the largest acceleration over cores, so many that both classes end at once; one task is
    divided between them.
    """
    core, device = durations.runs(node)
    sums = durations.core[core & ~device].sum(), durations.device[device & ~core].sum()
    tasks = np.flatnonzero(core & device)
    if not node.cores or not node.devices:
        return float(max(sums[0] / max(node.cores, 1), sums[1] / max(node.devices, 1)))
    tasks = tasks[np.argsort(-(durations.core[tasks] / np.maximum(durations.device[tasks], 1e-300)), kind="stable")]
    on_core, on_device = durations.core[tasks], durations.device[tasks]
    # seconds of both classes if devices do the first k tasks
    devices = (sums[1] + np.concatenate([[0.0], np.cumsum(on_device)])) / node.devices
    cores = (sums[0] + np.concatenate([np.cumsum(on_core[::-1])[::-1], [0.0]])) / node.cores
    k = int(np.searchsorted(devices >= cores, True))
    if k == 0:
        return float(devices[0])
    if k > len(tasks):
        return float(cores[-1])
    share = (cores[k - 1] - devices[k - 1]) / (on_core[k - 1] / node.cores + on_device[k - 1] / node.devices)
    return float(devices[k - 1] + share * on_device[k - 1] / node.devices)


def area_bound_by_program(durations: Durations, node: Node) -> float:
    """Return the area bound in seconds, as the solution of the linear program."""
    from scipy.optimize import linprog  # takes a fifth of a second, and most sums need no bound
    from scipy.sparse import block_diag, coo_array, eye_array, hstack

    classes = [(node.cores, durations.core), (node.devices, durations.device)]
    classes = [(count, seconds) for count, seconds in classes if count]
    n = len(durations.core)
    if not n:
        return 0.0
    scale = max(float(durations.least.sum()) / node.units, 1e-300)
    rows = [np.where(np.isfinite(seconds), seconds, 0.0)[None] / scale for _, seconds in classes]
    shares = hstack([block_diag(rows), coo_array([[-float(count)] for count, _ in classes])])
    equations = hstack([eye_array(n)] * len(classes) + [coo_array((n, 1))])
    upper_bounds = np.concatenate([*(_most(seconds) for _, seconds in classes), [np.inf]])
    solution = linprog(
        np.concatenate([np.zeros(n * len(classes)), [1.0]]), A_ub=shares, b_ub=np.zeros(len(classes)), A_eq=equations,
        b_eq=np.ones(n), bounds=np.column_stack([np.zeros(len(upper_bounds)), upper_bounds]), method="highs",
    )  # fmt: skip
    if not solution.success:
        raise RuntimeError(f"area bound: found {solution.message!r}, expected a solution")
    return float(solution.fun * scale)


def _most(seconds: Floats) -> Floats:
    """Return the largest share of each task that a class may do."""
    return np.where(np.isfinite(seconds), 1.0, 0.0)
