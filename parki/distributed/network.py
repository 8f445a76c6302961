"""Costs of messages between ranks: seconds a message, and bytes a second, measured and kept."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np

from parki.distributed.comm import Comm
from parki.engine import writing
from parki.perfmodels import machine
from parki.perfmodels.network import Network

SHORT, LONG = 8, 4 << 20  # bytes: of a message for latency, and of all messages of a rank for bandwidth
REPEATS = 20


def keep(network: Network) -> Path:
    """Keep a network for later sums on this machine; return the file."""
    path = _file()
    writing.write(path, json.dumps({"alpha": network.alpha, "beta": network.beta}) + "\n")
    return path


def kept() -> Network | None:
    """Return the network that was kept; None if there is none, or with ``PARKI_CALIBRATION=off``."""
    if machine.ignored():
        return None
    try:
        return Network(**json.loads(_file().read_text("utf-8")), name="measured")
    except (OSError, ValueError, TypeError):
        return None


def _file() -> Path:
    return machine.stored().with_suffix(".network.json")


def measure(comm: Comm) -> Network:
    """Measure messages between ranks: the best of several times, each of the slowest rank; collective."""
    successor, predecessor = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    alpha = _best(comm, {successor: np.zeros(SHORT, np.uint8)}, {predecessor: np.zeros(SHORT, np.uint8)})
    peers = [q for q in range(comm.size) if q != comm.rank]
    size = max(1, LONG // max(1, len(peers)))
    send, receive = ({q: np.zeros(size, np.uint8) for q in peers} for _ in range(2))
    seconds = _best(comm, send, receive)
    return Network(alpha, len(peers) * size / max(seconds, 1e-12))


def _best(comm: Comm, send: dict[int, np.ndarray], receive: dict[int, np.ndarray]) -> float:
    """Return the shortest time in which all ranks have sent and received."""
    times = []
    for _ in range(REPEATS):
        comm.barrier()
        start = time.perf_counter()
        comm.exchange(send, receive, "network").finish()
        times.append(float(comm.allreduce(time.perf_counter() - start, "max")))
    return min(times)
