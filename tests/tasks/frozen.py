"""Frozen results of another simulator: graphs by their parameters, and the times of each policy.

`python -m tests.tasks.frozen FILE`, with the file of that simulator (a module with `Dag`, `Machine`, `simulate` and
`area_bound`), makes the results again.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

from parki.tasks import policy
from parki.tasks.node import Node
from tests.tasks.uniform import KINDS, Cut, Leaves

FILE = Path(__file__).parent / "data" / "schedules.json"
#: Seconds of a unit of work by kind: on a core of a server of 2019 and on devices, in double precision with expansions
#: of order 7 (models), and on the machine of RR-8513, whose devices run P2P and M2L only.
UNITS = {
    "xeon": (2.63e-07, 2.17e-05, 4.35e-05, 1.66e-05, 1.15e-09, 1.89e-05, 2.5e-07, 1.15e-09, 1.21e-09),
    "h200": (5.54e-10, 4.74e-08, 6.23e-08, 2.32e-08, 3.2e-12, 4.12e-08, 6.98e-10, 3.2e-12, 3.34e-12),
    "rtx4090": (7.03e-09, 3.71e-07, 7.86e-07, 5.16e-07, 3.53e-11, 3.69e-07, 7.71e-09, 3.53e-11, 3.84e-11),
    "x5650": (2.5e-07, 4e-05, 1e-09, 9.7e-05, 1e-08, 4e-05, 2.5e-07, 1e-08, 1.35e-08),
    "m2070": (None, None, 1e-10, 2e-05, None, None, None, None, 4.1e-10),
}
ONLY = {"m2070": ("M2L", "P2P")}  # kinds that a device has code for; all if the device is not named
#: Policies by their names in the other simulator.
NAMES = {"fifo": "fifo", "heteroprio": "heteroprio", "accel": "acceleration", "drain": "drain", "heft": "heft",
         "barriers": "phases"}  # fmt: skip
PCIE, NVLINK = 5e10, 3.5e11

#: Kind of points with a seed for lists W and X after a colon, points, depth, octets of a group, leaves of a part, core,
#: device, node.
CASES = [
    ("cube", 2000, 2, 1, 2, "xeon", "h200", {"cores": 1}),
    ("cube", 20000, 3, 8, 32, "xeon", "h200", {"cores": 3}),
    ("shell:7", 20000, 4, 8, 32, "xeon", "h200", {"cores": 16}),
    ("cube", 60000, 4, 16, 64, "xeon", "h200", {"cores": 7}),
    ("shell", 60000, 5, 32, 64, "xeon", "h200", {"cores": 64}),
    ("cube", 20000, 3, 4, 16, "xeon", "rtx4090", {"cores": 2, "devices": 1}),
    ("cube", 60000, 4, 16, 64, "xeon", "rtx4090", {"cores": 16, "devices": 1, "bandwidth": 2.4e10}),
    ("cube:7", 60000, 4, 4, 16, "xeon", "rtx4090", {"cores": 16, "devices": 1, "bandwidth": 2.4e10}),
    ("shell:7", 60000, 5, 8, 32, "xeon", "rtx4090", {"cores": 16, "devices": 1, "bandwidth": 2.4e10}),
    ("shell", 20000, 4, 4, 16, "xeon", "rtx4090", {"cores": 4, "devices": 2}),
    ("cube:7", 60000, 4, 8, 32, "xeon", "rtx4090", {"cores": 8, "devices": 3, "between": NVLINK}),
    ("cube", 20000, 3, 8, 32, "xeon", "h200", {"cores": 0, "devices": 1}),
    ("cube", 60000, 4, 16, 64, "xeon", "h200", {"cores": 64, "devices": 1}),
    ("cube", 60000, 4, 16, 32, "xeon", "h200", {"cores": 0, "devices": 4, "between": NVLINK}),
    ("shell:7", 60000, 5, 16, 64, "xeon", "h200", {"cores": 0, "devices": 4}),
    ("shell", 60000, 5, 8, 32, "xeon", "h200", {"cores": 5, "devices": 8, "between": NVLINK}),
    ("cube", 400000, 4, 32, 64, "x5650", "m2070", {"cores": 9, "devices": 3, "bandwidth": 5e9}),
    ("cube", 400000, 4, 64, 256, "x5650", "m2070", {"cores": 9, "devices": 3, "bandwidth": 5e9}),
    ("shell", 60000, 5, 16, 64, "x5650", "m2070", {"cores": 9, "devices": 3, "bandwidth": 5e9}),
    ("cube:7", 100000, 4, 4, 8, "xeon", "rtx4090", {"cores": 12, "devices": 2, "bandwidth": 2.4e10, "task": 5e-6}),
]  # fmt: skip


def unit(name):
    """Return the seconds of a unit of work of each kind, and the kinds that a machine has code for."""
    seconds = dict(zip(KINDS, UNITS[name], strict=True))
    allowed = ONLY.get(name, KINDS)
    return {kind: one for kind, one in seconds.items() if one is not None}, allowed


def made(kind, n, depth, octets, leaves, core, device, node):
    """Return graph, durations and node of a case."""
    kind, _, drawn = kind.partition(":")
    cut = Cut(getattr(Leaves, kind)(n, depth), octets, leaves, drawn=int(drawn) if drawn else None)
    graph = cut.graph()
    (on_core, _), (on_device, allowed) = unit(core), unit(device)
    durations = cut.durations(graph, on_core, on_device)
    durations.device[~np.isin(graph.kind, [KINDS.index(name) for name in allowed])] = np.inf
    return graph, durations, Node(**node)


def read():
    """Return the frozen cases: parameters, bound, and seconds, bytes and launches by policy."""
    return json.loads(FILE.read_text("utf-8"))


def frozen(other, case):
    """Return the results of the other simulator for a case."""
    graph, durations, node = made(*case)
    allowed = {KINDS[k]: "c" for k in range(len(KINDS)) if np.isinf(durations.device[graph.kind == k]).all()}
    names = [other.KINDS.index(name) for name in KINDS]
    kind, rows = np.array(names)[graph.kind], {"preds": graph.before, "reads": graph.reads}
    lists = {name: [some[i].tolist() for i in range(len(graph))] for name, some in rows.items()}
    level = _levels(graph)
    dag = other.Dag(
        kind, graph.group, durations.core, np.where(np.isinf(durations.device), 1e9, durations.device), graph.items,
        write=graph.writes.values, level=level, bytes=graph.nbytes, place=graph.place, **lists,
    )  # fmt: skip
    machine = other.Machine(
        node.cores, node.devices, node.bandwidth, node.between, node.latency, node.launch, node.task, node.ahead
    )
    found = {"bound": other.area_bound(dag, machine), "tasks": len(graph)}
    for name, ours in NAMES.items():
        run = other.simulate(dag, machine, name, allowed or None, policy.POLICIES[ours].batch)
        found[ours] = [run.makespan, run.moved, int(run.launches)]
    return found


def _levels(graph):
    """Return the level of each task's group: M2M has one group on each level, which waits for those below."""
    up = graph.rank(graph.kind == KINDS.index("M2M")).astype(int) + 1
    level = np.full(len(graph), 99)
    m2m = graph.kind == KINDS.index("M2M")
    of_group = dict(zip(graph.group[m2m].tolist(), up[m2m].tolist(), strict=True))
    boxes = ~np.isin(graph.kind, [KINDS.index(name) for name in ("L2P", "M2P", "P2P")])
    level[boxes] = [of_group[g] for g in graph.group[boxes].tolist()]
    return level


def main(path):
    """Write the results of the simulator in a file."""
    spec = importlib.util.spec_from_file_location("other", path)
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    lines = [json.dumps({"case": case, **frozen(other, case)}) for case in CASES]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
