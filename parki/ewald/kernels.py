"""The kernels of Ewald sums as data: what each stage must know of one.

A kernel is a pair function (`kernels/pair/`), a function of the modes (`kernels/multiplier/`), the radial functions of
its far part (`radial.FAR`), a scalar Green's function (`green`), and the estimates of its error (`radial`, `window`).
"""

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

from parki import pairs
from parki.pairs import Pair


@dataclass(frozen=True)
class Kernel(Pair):
    """One kernel: a pair interaction and what an Ewald sum must know besides.

    Attributes
    ----------
    name, dens, result, pair, normals, names, parameters
        As in `parki.pairs.Pair`.  The first parameter is κ, for the profiles, far parts and Green's functions with one.
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
        Time of a pair within rc over one of laplace, both at a tolerance of 1e-7 and by ``LIST``; the part of it that
        right-hand sides share.
    periodicities
        In how many directions it may be periodic.
    """

    far: tuple[str, ...]
    multiplier: str
    spread: int
    layers: tuple[str, ...]
    profile: str = "phi"
    green: str = "harmonic"
    scale: float = 1.0
    _: KW_ONLY
    slopes: bool = False
    single: bool = False
    mean: bool = False
    near: float = 1.0
    common: float = 0.95
    periodicities: tuple[int, ...] = (0, 1, 2, 3)

    @property
    def components(self) -> int:
        """Components of the grid, which holds what is spread and then the result."""
        return max(self.spread, self.result)

    @property
    def kappa(self) -> float:
        """κ of a kernel with Yukawa's profile, its first parameter; 0 for others."""
        return self.parameters[0] if self.parameters and self.profile == "yukawa" else 0.0


def _kernel(name: str, *rest: Any, **more: Any) -> Kernel:
    """The kernel of a pair of `parki.pairs`; the rest is what an Ewald sum must know besides."""
    pair = {f.name: getattr(pairs.PAIRS[name], f.name) for f in fields(Pair)}
    return Kernel(*(pair.pop(f) for f in ("name", "dens", "result", "pair")), *rest, **pair, **more)


_STOKES = {"profile": "stokes", "green": "biharmonic"}

LAPLACE = _kernel("laplace", ("F",), "multiplier/scalar", 1, ("laplace",), mean=True)
LAPLACE_GRAD = _kernel(
    "laplace_grad", ("H",), "multiplier/gradient", 1, ("laplace_grad",), near=1.17, common=0.9,
)  # fmt: skip
LAPLACE_DIPOLE = _kernel(
    "laplace_dipole", ("H",), "multiplier/divergence", 3, ("laplace_grad",), near=1.13, common=0.9,
)  # fmt: skip
STOKES_SL = _kernel(
    "stokes_sl", ("D", "E"), "multiplier/stokes", 3, ("stokes_sl",), mean=True, near=1.8, common=0.84, **_STOKES,
)  # fmt: skip
STOKES_DL = _kernel(
    "stokes_dl", ("D", "E", "G"), "multiplier/stokes_comb", 4, ("stokes_dl",), slopes=True, near=2.36, common=0.75,
    **_STOKES,
)  # fmt: skip
STOKES_COMB = _kernel(
    "stokes_comb", ("D", "E", "G"), "multiplier/stokes_comb", 4, ("stokes_sl", "stokes_dl"), slopes=True, single=True,
    mean=True, near=3.0, common=0.71, **_STOKES,
)  # fmt: skip
STOKES_PRESSURE = _kernel(
    "stokes_pressure", ("H",), "multiplier/divergence", 3, ("laplace_grad",), scale=2.0, near=1.2, common=0.9,
)  # fmt: skip
STOKES_GRAD = _kernel(
    "stokes_grad", ("E", "G"), "multiplier/stokes_grad", 3, ("stokes_grad",), near=2.8, common=0.7, **_STOKES,
)  # fmt: skip
YUKAWA = _kernel(
    "yukawa", ("Y",), "multiplier/scalar", 1, ("laplace",), profile="yukawa", green="yukawa", mean=True, near=1.42,
    periodicities=(0, 3),
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
    TypeError
        For a kernel that is neither a name nor a `Kernel`.
    """
    if isinstance(kernel, str):
        kernel = pairs.named(kernel, KERNELS)
    elif not isinstance(kernel, Kernel):
        raise TypeError(f"kernel is a {type(kernel).__name__}; expected a name or a parki.ewald.Kernel.")
    return pairs.with_parameters(kernel, parameters)
