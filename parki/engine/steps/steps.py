"""Lists of steps, which may be placed in a space."""

from collections.abc import Mapping
from typing import Any

from parki.engine.run.spaces import Space
from parki.engine.steps.handles import Handle
from parki.engine.steps.placing import Placed
from parki.engine.steps.steplist import StepList


class Steps(StepList):
    """A list of steps in an order that may be run one after another: see `StepList` for its parameters."""

    def place(self, space: Space, arrays: Mapping[Handle, Any] | None = None, *, graph: bool = False) -> Placed:
        """Return the list in a space: see `Placed`."""
        return Placed(self, space, arrays, graph=graph)
