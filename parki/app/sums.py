"""Sum of `parki run`: checks of its arguments, its kernel, its plan, and its results by name."""

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from parki import pairs
from parki.app.words import EWALD_KERNELS, METHODS, Box
from parki.arguments import PUBLISHED
from parki.arrays import Array
from parki.engine import kernel_files
from parki.ewald import api, kernels
from parki.ewald.method import Ewald
from parki.ewald.options import EwaldOptions
from parki.ewald.report import Params
from parki.pairs import Pair
from parki.plan import Plan, make
from parki.portions import Portion

FACTS = ("rc", "kmax", "c", "split", "window_P", "grid_shape_ext", "h")
TOLERANCE = 1e-6


@dataclass(frozen=True)
class FileSum:
    """A sum as the command line names it.

    Attributes
    ----------
    kernel : str
        A kernel's name, or the path of a file with a pair function.
    method : str
        A key of `METHODS`.
    parameters : mapping
        Parameters of the kernel, by name.
    gradient : {"both", "only"}, optional
        Sum the gradient beside the potential, or in its place.
    box : tuple, optional
        Three side lengths, or three lattice vectors, for files without a box.
    periodicity : int or tuple of three booleans, optional
    tolerance, rc, split, space, threads : optional
        Options of the Python calls; None if not given.
    comm : communicator, optional
    """

    kernel: str
    method: str = "ewald"
    parameters: Mapping[str, float] = field(default_factory=dict)
    gradient: str | None = None
    box: Box | None = None
    periodicity: int | tuple[bool, bool, bool] | None = None
    tolerance: float | None = None
    rc: float | None = None
    split: str | None = None
    space: str | None = None
    threads: int | None = None
    comm: Any = None

    @property
    def boxed(self) -> bool:
        """Tell whether the sum is in a box that must be given."""
        return self.method == "ewald" and self.periodicity not in (0, (False, False, False))

    @property
    def name(self) -> str:
        """Return the kernel's name (a file's without the folder), with the method after the name unless it is Ewald."""
        name = os.path.basename(self.kernel) if kernel_files.is_path(self.kernel) else self.kernel
        return name if self.method == "ewald" else f"{name} by {self.method}"

    @property
    def given_tolerance(self) -> float:
        """Return the tolerance, by default the usual one."""
        return TOLERANCE if self.tolerance is None else self.tolerance

    def pair(self) -> Pair:
        """Return the kernel's pair, without parameters.

        Raises
        ------
        ValueError
            For a kernel that the method does not have.
        """
        names = EWALD_KERNELS if self.method == "ewald" else tuple(pairs.PAIRS)
        path = self.method != "ewald" and kernel_files.is_path(self.kernel)
        if self.kernel not in names and not path:
            alternative = "" if self.method == "ewald" else ", or a file NAME.py"
            raise ValueError(
                f"--kernel is {self.kernel!r} with --method {self.method}; expected one of "
                f"{', '.join(names)}{alternative}."
            )
        return pairs.own(self.kernel) if path else pairs.PAIRS[self.kernel]

    def check(self) -> None:
        """Raise ValueError for arguments that do not go together."""
        with_method = f"with --method {self.method}"
        if self.method == "ewald":
            return
        expected = "free space has none; --method ewald has boxes"
        if self.box is not None:
            raise ValueError(f"--box was given {with_method}; expected no box: {expected}.")
        if self.periodicity not in (None, 0, (False, False, False)):
            raise ValueError(f"--periodicity is {self.periodicity} {with_method}; expected 0: {expected}.")
        for name in ("rc", "split", *(("tolerance",) if self.method == "direct" else ())):
            if getattr(self, name) is not None:
                raise ValueError(f"--{name} was given {with_method}, which has none; expected no --{name}.")

    def check_file(self, path: Path, contents: Mapping[str, Any], portion: Portion) -> None:
        """Raise ValueError for a file with a box that the sum would not see, and for arrays that do not fit."""
        if self.method != "ewald":
            if contents.get("box") is not None and self.periodicity is None:
                raise ValueError(
                    f"{path} has a box, and --method {self.method} sums in free space; expected --method ewald, or "
                    "--periodicity 0 beside it to sum over the particles alone."
                )
            portion.check(path, always=True)

    def prepare(self, box: Any) -> Callable[[Array, Array], Plan[Any]]:
        """Return the function that makes the plan for targets and sources; `box` is that of the file or `self.box`."""
        module_name, kind = METHODS[self.method]
        placement = {"execution_space": self.space, "threads": self.threads, "comm": self.comm}
        gradient: Any = {None: False, "both": True, "only": "only"}[self.gradient]
        if self.method == "ewald":
            settings = {"periodicity": 3 if self.periodicity is None else self.periodicity, "rc": self.rc, **placement}
            settings |= {"split": self.split or "prolate", "tolerance": self.given_tolerance, "box": box}
            # On a GPU, phases are timed only if asked for.
            options = EwaldOptions.resolve(return_walltime=True, **settings)
            kernel = kernels.gradient(kernels.find(self.kernel, **self.parameters), gradient)
            method = Ewald(kernel, options, names=PUBLISHED, gradient=gradient)
            return lambda targets, sources: make(api.over(method), targets, sources)
        pairs.find(self.kernel, **self.parameters)
        extras = ({} if self.method == "direct" else {"tolerance": self.given_tolerance}) | (
            {"method": kind} if kind else {}
        )
        module = importlib.import_module(f"parki.{module_name}")
        keywords = {"gradient": gradient, "timed": True, **placement, **extras, **self.parameters}
        return lambda targets, sources: module.plan(self.kernel, targets, sources, **keywords)

    def results(self, u: Any) -> dict[str, Array]:
        """Return the results of a plan by name: ``potential``, ``gradient``, or both."""
        if self.gradient == "both":
            return dict(zip(("potential", "gradient"), u, strict=True))
        return {"gradient" if self.gradient else "potential": u}

    def facts(self, plan: Plan[Any]) -> dict[str, Any]:
        """Return the facts on the sum that go into a result's file: kernel, method, tolerance, parameters, box."""
        facts: dict[str, Any] = {}
        if self.method == "ewald":
            params, options = Params(plan.parameters), plan.method.options
            facts |= {name: getattr(params, name) for name in FACTS}
            facts["box"] = plan.parameters.box if options.box is None else options.box
            facts["periodicity"] = np.array(options.periodic)
        else:
            parameters = {f.name: getattr(plan.parameters, f.name) for f in fields(plan.parameters)} | {"error": None}
            facts |= {name: value for name, value in parameters.items() if isinstance(value, bool | int | float | str)}
        facts |= dict(zip(plan.kernel.names, plan.kernel.parameters, strict=True))
        facts |= {"kernel": self.kernel, "method": self.method}
        return facts | ({} if self.method == "direct" else {"tolerance": self.given_tolerance})
