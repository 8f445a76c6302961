"""A sum as data: named arrays, and a list of the launches and calls on them."""

from parki.engine.steps import glue, values
from parki.engine.steps.cutting import Cut, RowBlocks, RowByRow, Touched
from parki.engine.steps.handles import (
    BOUND,
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
from parki.engine.steps.memory import Memory, fits
from parki.engine.steps.placing import Launch, NoTimes, Placed
from parki.engine.steps.steplist import StepList
from parki.engine.steps.steps import Steps
from parki.engine.steps.values import ArraysOf
from parki.engine.steps.workers import share

__all__ = [
    "BOUND",
    "ArraysOf",
    "Block",
    "Blocks",
    "Call",
    "Context",
    "Cut",
    "Handle",
    "Index",
    "Launch",
    "Memory",
    "NoTimes",
    "Number",
    "Placed",
    "RowBlocks",
    "RowByRow",
    "Step",
    "StepList",
    "Steps",
    "Touched",
    "alike",
    "argument",
    "constant",
    "fits",
    "glue",
    "placed",
    "result",
    "scratch",
    "share",
    "state",
    "together",
    "values",
]
