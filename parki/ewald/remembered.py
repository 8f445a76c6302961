"""What tuning has found, a file for each question in the cache, apart for each machine.

A question is a class of sums alike: on the same device with the same threads, compiled alike, of the same kernel, with
numbers of points within a factor of two, and so on.  A file holds its question in full, so that no other is answered.
"""

import hashlib
import json
import logging
import math
import shutil
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parki.engine import spaces
from parki.engine.runtime import cache, devices, trust
from parki.ewald import predict
from parki.ewald.options import COUNTS, named
from parki.perfmodels import machine

if TYPE_CHECKING:
    from parki.ewald.plan import Plan

FORMAT = 4
METHODS = ("p2p_method", "p2g_method", "g2p_method", *COUNTS)

log = logging.getLogger("parki.ewald")


def question(plan: "Plan", same: bool) -> list[Any]:
    """What the best parameters depend on, in classes: `same` if the targets are the sources."""
    options, place, space = plan.options, plan.geometry, plan.space
    shortest, size = min(place.box), math.prod(place.box) ** (1 / 3)
    gpu = devices.current() if space.kind == "device" else None
    return [
        FORMAT,
        [space.name, space.engine, gpu.name if gpu else "", spaces.workers(space), "" if gpu else predict.built()],
        list(astuple(predict.costs(space))),
        [str(plan.kernel), str(plan.kernel.pair), [_steps(value * size) for value in plan.inner.parameters]],
        [plan.dtype.name, options.far_precision, options.split, options.transform(), options.fft_type],
        round(-math.log10(options.tolerance)),
        [place.periodicity, [_steps(side / shortest) for side in place.box], place.skew is not None],
        [_steps(plan.n_targets), _steps(plan.n_sources), same],
        [round(2 * plan.arrangement.regular), [_steps(value) for value in plan.arrangement.crowding]],
        {name: str(value) for name in METHODS if named(value := getattr(options, name))},
    ]


def _steps(value: float) -> int:
    """Which power of two is nearest."""
    return round(math.log2(value))


def folder() -> Path:
    """Where all that was found on this machine is."""
    return cache.folder() / cache.FORMAT / "tuned" / machine.stored().stem


def _file(asked: list[Any]) -> Path:
    return folder() / f"{hashlib.blake2b(json.dumps(asked).encode(), digest_size=10).hexdigest()}.json"


def recall(asked: list[Any]) -> dict[str, Any] | None:
    """What was found for a question, None if it was not asked or if its file cannot be read."""
    try:
        found = json.loads(trust.read(_file(asked)))
        return found["found"] if found["question"] == asked and isinstance(found["found"], dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(asked: list[Any], found: Mapping[str, Any]) -> None:
    """Write what was found: whole, or where that fails not at all."""
    path = _file(asked)
    try:
        cache.write(path, json.dumps({"question": asked, "found": dict(found)}, indent=1))
    except OSError as failed:
        log.info("%s is not remembered: %s", path, failed)


def forget() -> int:
    """Remove all that was found on this machine, and return how many files that were."""
    count = len(list(folder().glob("*.json")))
    shutil.rmtree(folder(), ignore_errors=True)
    return count
