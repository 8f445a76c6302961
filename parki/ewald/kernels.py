"""The kernels of Ewald sums as data: what each stage must know of one.

A kernel is a pair function (`kernels/pair/`), a function of the modes (`kernels/multiplier/`), the radial functions of
its far part (`radial.FAR`), a scalar Green's function (`green`), and the estimates of its error (`radial`, `window`).
"""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Kernel:
    """One kernel.

    Attributes
    ----------
    name
        By which it is asked for.
    dens, normals, result
        Components of the density, whether sources have normals, components of the result.
    names, parameters
        Names and values of the numbers that every source carries behind its density and normal, the same for all and
        positive; `find` sets the values.  The first is κ, for the profiles, far parts and Green's functions with one.
    pair
        The pair function: a file of `kernels/`, without suffix, or a path of one's own.
    far
        Names of the radial functions that the pair function takes as far parts, keys of `radial.FAR`.
    multiplier
        The function of the modes, as `pair`; it takes `spread` components and returns `result`.
    spread, slopes, single
        Components that sources are spread to.  With `slopes` these are the four of the Stokes double layer, with
        `single` that of the single layer within them.
    profile
        ``"phi"``, ``"stokes"`` or ``"yukawa"``: which normalisation of the split's profile multiplies the modes.
    green, scale
        The Green's function, a key of `green.GREEN`, and a factor.
    mean
        Whether the result has a mean that periodic sums fix: then the net density, `result` components of it, gives a
        constant.
    layers
        The error estimates that must hold, keys of `radial.truncation` and `window.alias`.
    near, common
        Time of a pair over one of laplace, both at a tolerance of 1e-7; the part of it that right-hand sides share.
    periodicities
        In how many directions it may be periodic.
    """

    name: str
    dens: int
    result: int
    pair: str
    far: tuple[str, ...]
    multiplier: str
    spread: int
    layers: tuple[str, ...]
    profile: str = "phi"
    green: str = "harmonic"
    scale: float = 1.0
    normals: bool = False
    slopes: bool = False
    single: bool = False
    mean: bool = False
    names: tuple[str, ...] = ()
    parameters: tuple[float, ...] = ()
    near: float = 1.0
    common: float = 0.95
    periodicities: tuple[int, ...] = (0, 1, 2, 3)

    @property
    def given(self) -> int:
        """Numbers of a source that a caller gives."""
        return self.dens + 3 * self.normals

    @property
    def strengths(self) -> int:
        """Numbers of a source besides its position."""
        return self.given + len(self.parameters)

    @property
    def components(self) -> int:
        """Components of the grid, which holds what is spread and then the result."""
        return max(self.spread, self.result)

    @property
    def kappa(self) -> float:
        """κ of a kernel with Yukawa's profile, its first parameter; 0 for others."""
        return self.parameters[0] if self.parameters and self.profile == "yukawa" else 0.0

    def __str__(self) -> str:
        return self.name


_STOKES = {"profile": "stokes", "green": "biharmonic"}

LAPLACE = Kernel(
    "laplace", 1, 1, "pair/laplace", ("F",), "multiplier/scalar", 1, ("laplace",), mean=True,
)  # fmt: skip
LAPLACE_GRAD = Kernel(
    "laplace_grad", 1, 3, "pair/laplace_grad", ("H",), "multiplier/gradient", 1, ("laplace_grad",), near=1.09,
    common=0.9,
)  # fmt: skip
LAPLACE_DIPOLE = Kernel(
    "laplace_dipole", 3, 1, "pair/dipole", ("H",), "multiplier/divergence", 3, ("laplace_grad",), near=1.02,
    common=0.9,
)  # fmt: skip
STOKES_SL = Kernel(
    "stokes_sl", 3, 3, "pair/stokeslet", ("D", "E"), "multiplier/stokes", 3, ("stokes_sl",), mean=True,
    near=1.35, common=0.84, **_STOKES,
)  # fmt: skip
STOKES_DL = Kernel(
    "stokes_dl", 3, 3, "pair/stresslet", ("D", "E", "G"), "multiplier/stokes_comb", 4, ("stokes_dl",),
    normals=True, slopes=True, near=1.66, common=0.75, **_STOKES,
)  # fmt: skip
STOKES_COMB = Kernel(
    "stokes_comb", 6, 3, "pair/stokes_comb", ("D", "E", "G"), "multiplier/stokes_comb", 4,
    ("stokes_sl", "stokes_dl"), normals=True, slopes=True, single=True, mean=True, near=1.93, common=0.71, **_STOKES,
)  # fmt: skip
STOKES_PRESSURE = Kernel(
    "stokes_pressure", 3, 1, "pair/stokes_pressure", ("H",), "multiplier/divergence", 3, ("laplace_grad",),
    scale=2.0, near=1.02, common=0.9,
)  # fmt: skip
STOKES_GRAD = Kernel(
    "stokes_grad", 3, 9, "pair/stokes_grad", ("E", "G"), "multiplier/stokes_grad", 3, ("stokes_grad",),
    near=2.0, common=0.7, **_STOKES,
)  # fmt: skip
YUKAWA = Kernel(
    "yukawa", 1, 1, "pair/yukawa", ("Y",), "multiplier/scalar", 1, ("laplace",), profile="yukawa",
    green="yukawa", mean=True, names=("kappa",), near=1.38, periodicities=(0, 3),
)  # fmt: skip

KERNELS = {
    kernel.name: kernel
    for kernel in (
        LAPLACE, LAPLACE_GRAD, LAPLACE_DIPOLE, STOKES_SL, STOKES_DL, STOKES_COMB, STOKES_PRESSURE, STOKES_GRAD, YUKAWA,
    )
}  # fmt: skip


def find(kernel: "str | Kernel", **parameters: float | None) -> Kernel:
    """Return the kernel of this name, or the one given, with its parameters; those that are None are not given.

    Raises
    ------
    ValueError
        For an unknown name, and for missing, surplus or not positive parameters.
    """
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            raise ValueError(f"kernel is {kernel!r}; expected one of {', '.join(map(repr, KERNELS))}.")
        kernel = KERNELS[kernel]
    given = {name: float(value) for name, value in parameters.items() if value is not None}
    for name, value in given.items():
        if name not in kernel.names:
            raise ValueError(f"{name} was given, but {kernel} takes {' and '.join(kernel.names) or 'no parameters'}.")
        if not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}; expected a positive number.")
    values = dict(zip(kernel.names, kernel.parameters, strict=False)) | given
    for name in kernel.names:
        if name not in values:
            raise ValueError(f"{name} is missing; {kernel} expects a positive number.")
    return replace(kernel, parameters=tuple(values[name] for name in kernel.names)) if given else kernel
