"""A sum as data: named arrays, and a list of what is launched and called on them."""

from parki.engine.steps import glue
from parki.engine.steps.cutting import Cut, RowBlocks, RowByRow, Touched
from parki.engine.steps.handles import (
    Handle,
    Number,
    alike,
    argument,
    constant,
    placed,
    result,
    scratch,
    state,
    together,
)
from parki.engine.steps.listing import Block, Blocks, Call, Context, Index, Step
from parki.engine.steps.placing import Placed
from parki.engine.steps.steps import Steps

__all__ = [
    "Block",
    "Blocks",
    "Call",
    "Context",
    "Cut",
    "Handle",
    "Index",
    "Number",
    "Placed",
    "RowBlocks",
    "RowByRow",
    "Step",
    "Steps",
    "Touched",
    "alike",
    "argument",
    "constant",
    "glue",
    "placed",
    "result",
    "scratch",
    "state",
    "together",
]
