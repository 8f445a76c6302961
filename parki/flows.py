"""Stokes flows as data: the parts that sources and results of `kernels/pair/stokes_flow.py` are made of."""

from collections.abc import Mapping
from typing import Any

PAIR = "pair/stokes_flow"
#: Numbers of each part of a source, and the power of length of each number where a force has 0.
SOURCES = {"FORCE": (3, 0), "FLOW": (1, -1), "TORQUE": (3, -1), "TENSOR": (6, -1), "DOUBLET": (3, -2)}
#: Numbers of each part of a result, and the power of length of each number if a force makes them.
RESULTS = {"VELOCITY": (3, -1), "PRESSURE": (1, -2), "GRADIENT": (9, -2), "SPIN": (3, -2), "LAPLACIAN": (3, -3)}
ON = ("FORCE", "FLOW", "VELOCITY", "PRESSURE")  # parts in the file, unless slots leave them out


def of(*parts: str) -> dict[str, Any]:
    """Return fields of a `parki.pairs.Pair` whose sources and results have these parts, and no others.

    Examples
    --------
    >>> from parki import flows
    >>> flows.of("TENSOR", "VELOCITY")["dens"]
    6
    """
    slots = dict.fromkeys(ON, False) | dict.fromkeys(parts, True)
    dens, result = (len(powers(table, slots)) for table in (SOURCES, RESULTS))
    return {"dens": dens, "result": result, "pair": PAIR, "slots": tuple(slots.items()), "smooth": True}


def parts(slots: Mapping[str, Any]) -> list[str]:
    """Return the parts of sources, and behind them those of results, that slots choose."""
    return [part for part in (*SOURCES, *RESULTS) if slots.get(part, part in ON)]


def powers(table: Mapping[str, tuple[int, int]], slots: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the power of length of each number of a source or a result, by its table."""
    return tuple(power for part in parts(slots) if part in table for power in table[part][1:] * table[part][0])
