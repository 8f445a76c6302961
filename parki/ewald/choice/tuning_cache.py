"""Stored results of tuning: one file per class of questions in the cache, separate for each machine.

A class has similar sums: on the same device with the same threads, with the same compilation and kernel, with numbers
of points within a factor of two, and so on.  A file holds the full key of its class, so that no other class takes the
result.
"""

import hashlib
import json
import logging
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from parki import prediction
from parki.engine import cache, devices, spaces, trust
from parki.ewald.choice.question import Question
from parki.ewald.options import COUNTS, EwaldOptions, named
from parki.perfmodels import machine

FORMAT = 4  # version of the stored results
METHODS = ("p2p_method", "p2g_method", "g2p_method", *COUNTS)

log = logging.getLogger("parki.ewald")


def key(question: Question, options: EwaldOptions, is_same: bool, facts: Sequence[Any] = ()) -> list[Any]:
    """Return the class of a question: all facts on which the best parameters depend.

    `is_same` tells whether targets and sources are one array; `facts` has further facts of sums over ranks.
    """
    q, space, kernel = question, question.space, question.kernel
    shortest, size = min(q.box), math.prod(q.box) ** (1 / 3)
    gpu = devices.current() if space.own_memory else None
    return [
        FORMAT,
        [space.name, space.engine, gpu.name if gpu else "", spaces.workers(space), "" if gpu else prediction.built()],
        list(astuple(prediction.costs(space))),
        [str(kernel), str(kernel.pair), [_steps(value * size) for value in kernel.parameters]],
        [q.dtype, options.far_precision, options.split, options.transform(), options.fft_type],
        round(-math.log10(q.tolerance)),
        [q.periodicity, [_steps(side / shortest) for side in q.box], q.skew is not None],
        [_steps(q.n_targets), _steps(q.n_sources), is_same],
        [round(2 * q.arrangement.regular), [_steps(value) for value in q.crowding]],
        {name: str(value) for name in METHODS if named(value := getattr(options, name))},
        *([list(facts)] if facts else []),
    ]


def _steps(value: float) -> int:
    """Return the exponent of the nearest power of two."""
    return round(math.log2(value))


def folder() -> Path:
    """Return the folder of this machine's results."""
    return cache.folder() / cache.FORMAT / "tuned" / machine.stored().stem


def _file(key: list[Any]) -> Path:
    return folder() / f"{hashlib.blake2b(json.dumps(key).encode(), digest_size=10).hexdigest()}.json"


def recall(key: list[Any]) -> dict[str, Any] | None:
    """Return the result for a key; None if there is none or its file cannot be read."""
    try:
        text = json.loads(trust.read(_file(key)))
        return text["found"] if text["question"] == key and isinstance(text["found"], dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(key: list[Any], result: Mapping[str, Any]) -> None:
    """Write a result as a whole, or not at all if that fails."""
    path = _file(key)
    try:
        cache.write(path, json.dumps({"question": key, "found": dict(result)}, indent=1))
    except OSError as error:
        log.info("%s is not remembered: %s", path, error)


def forget() -> int:
    """Remove all results of this machine, and return the number of their files."""
    count = len(list(folder().glob("*.json")))
    shutil.rmtree(folder(), ignore_errors=True)
    return count
