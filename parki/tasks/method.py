"""Methods in free space whose sums may run as tasks."""

from __future__ import annotations

from typing import Any, Self

from parki.engine import spaces
from parki.engine.spaces import Space
from parki.engine.steps import Placed, Steps
from parki.freespace import FreeMethod, FreeProblem, FreeSum
from parki.prediction import Prediction
from parki.tasks.options import TaskOptions
from parki.tasks.schedule import Schedule
from parki.tasks.scheduled import Scheduled
from parki.tasks.sizes import TaskSizes


class TaskMethod(FreeMethod):
    """A method of summation in free space whose sums may run as tasks."""

    options: TaskOptions

    def in_space(self, space: Space) -> Self:
        """Return the method in a space.

        Raises
        ------
        ValueError
            For a schedule of tasks where there are none.
        """
        schedule = self.options.schedule
        if self.options.tasks and not (space.pick(True, False) and space.engine == "parki"):
            raise ValueError(f"schedule is {schedule!r} in {space.name!r}; expected a host, or schedule='phases'.")
        return super().in_space(space)

    @property
    def task_sizes(self) -> TaskSizes | None:
        """Return the sizes of tasks, None of sums by phases."""
        return TaskSizes(spaces.workers(self.space)) if self.options.tasks else None

    def placed(self, steps: Steps) -> Placed | Scheduled:
        """Return steps in the method's space, as tasks where the options ask for them."""
        return Scheduled(steps, self.space, self.options.schedule) if self.options.tasks else steps.place(self.space)

    def schedule(self, sums: FreeSum) -> Schedule | None:
        """Return the schedule of a sum that runs as tasks."""
        return Schedule(sums.placed) if isinstance(sums.placed, Scheduled) else None

    def describe(self, problem: FreeProblem, parameters: Any, prediction: Prediction) -> dict[str, str]:
        """Describe a plan in a few lines."""
        lines = super().describe(problem, parameters, prediction)
        if self.options.tasks:
            lines["schedule"] = f"tasks on {spaces.workers(self.space)} cores, {self.options.schedule}"
        return lines
