"""Points and densities of a case, from a seed that depends on its numbers alone."""

import zlib
from typing import Any

import numpy as np

from tests.house.cases import CELL, Case

COMPONENTS = {"stokes_comb": 6, "rpy_rotation": 6} | dict.fromkeys(
    ("laplace_dipole", "stokes_sl", "stokes_dl", "stokes_pressure", "stokes_grad", "rotlet", "regularised_stokeslet",
     "regularised_dipole", "rpy"), 3,
)  # fmt: skip
NORMALS = ("stokes_dl", "stokes_comb")
PARAMETERS = {
    "yukawa": {"kappa": 2.0}, "regularised_coulomb": {"epsilon": 0.05}, "spline_coulomb": {"epsilon": 0.05},
    "oscillatory": {"k": 3.0},
    "regularised_yukawa": {"kappa": 2.0, "epsilon": 0.05}, "gaussian": {"width": 0.5}, "multiquadric": {"width": 0.5},
    "inverse_quadratic": {"width": 0.5}, "thin_plate": {"unit": 0.7}, "regularised_stokeslet": {"epsilon": 0.05},
    "regularised_dipole": {"epsilon": 0.05},
    "rpy": {"radius": 0.02}, "rpy_rotation": {"radius": 0.02},
}  # fmt: skip
SPREAD = 0.1  # standard deviation of the half of the points in free space that crowd at the origin


class Inputs:
    """Arrays of a case in its dtype and layout, drawn in order: two cases of one seed have the same numbers."""

    def __init__(self, case: Case) -> None:
        self.case, self.layout = case, case.options.get("layout", "dn")
        self.rng = np.random.default_rng(zlib.crc32(f"{case.kernel} {case.n} {case.targets}".encode()))

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return targets and sources, one array if they are the same."""
        sources = self._points(self.case.n)
        return (self._points(self.case.targets) if self.case.targets else sources), sources

    def _points(self, n: int) -> np.ndarray:
        if self.case.method in ("ewald", "pieces"):
            x = self.rng.random((3, n))
            box = self.case.options.get("box")
            x = np.array(CELL).T @ x if box == CELL else x * np.array(box or (1, 1, 1))[:, None]
        else:
            x = 2 * self.rng.random((3, n)) - 1
            x[:, : n // 2] = SPREAD * self.rng.standard_normal((3, n // 2))
        return self._typed(x)

    def density(self, many: int = 0) -> np.ndarray:
        """Return strengths of the sources, for `many` right-hand sides if it is not 0."""
        components = COMPONENTS.get(self.case.kernel, 1)
        shape = (components,) * (components > 1) + (self.case.n,)
        return self._typed(self.rng.standard_normal((many,) * bool(many) + shape), components)

    def normals(self) -> tuple[np.ndarray, ...]:
        """Return the normals as a tuple, empty for kernels without normals."""
        return (self._typed(self.rng.standard_normal((3, self.case.n))),) if self.case.kernel in NORMALS else ()

    def parameters(self) -> dict[str, Any]:
        """Return the kernel's parameters."""
        return PARAMETERS.get(self.case.kernel, {})

    def _typed(self, a: np.ndarray, components: int = 3) -> np.ndarray:
        a = a.astype(self.case.dtype)
        return np.ascontiguousarray(a.swapaxes(-1, -2)) if self.layout == "nd" and components > 1 else a
