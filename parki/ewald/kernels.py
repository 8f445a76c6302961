"""Kernels of Ewald sums by name, and those of their gradients."""

from dataclasses import fields, replace
from typing import Any

from parki import pairs
from parki.checks import check_choice
from parki.ewald.kernel import Kernel, Net
from parki.ewald.split import layers, means, profiles, spectra
from parki.ewald.split.far_parts import (
    D_SOFTENED,
    D_SPHERES,
    E_SOFTENED,
    E_SPHERES,
    H_SOFTENED,
    H_SPHERES,
    H_STOKES,
    K_SOFTENED,
    K_SPHERES,
    K_STOKES,
    D,
    E,
    F,
    G,
    H,
    Y,
    Z,
)  # fmt: skip
from parki.pairs import Pair
from parki.spheres import flow as spheres

CHARGE = Net("charge", 1, "a uniform neutralising background is assumed")
FORCE = Net("force", 3, "a mean pressure gradient balances it, and the mean flow is zero")
#: Shares like `kernel.CRYSTAL` of kernels whose errors at a crystal's points average out better.
EVEN_CRYSTAL = (0.016, 0.035, 0.015)


def _kernel(name: str | Pair, *parts: Any, **options: Any) -> Kernel:
    """Return the kernel of a pair, or of its name, with the parts of its Ewald sum."""
    base = pairs.PAIRS[name] if isinstance(name, str) else name
    pair = {f.name: getattr(base, f.name) for f in fields(Pair)}
    return Kernel(*(pair.pop(f) for f in ("name", "dens", "result", "pair")), *parts, **pair, **options)


LAPLACE = _kernel(
    "laplace", (F,), "multiplier/scalar", 1, (layers.LAPLACE,), mean=means.harmonic, net=CHARGE, crystal=EVEN_CRYSTAL,
)  # fmt: skip
LAPLACE_GRAD = _kernel(
    "laplace_grad", (H,), "multiplier/scalar", 1, (layers.LAPLACE_SLOPES,), gather="slopes", net=CHARGE,
    near=1.17, common=0.9,
)  # fmt: skip
LAPLACE_DIPOLE = _kernel(
    "laplace_dipole", (H,), "multiplier/divergence", 3, (layers.LAPLACE_GRAD,),
    near=1.13, common=0.9,
)  # fmt: skip
STOKES_SL = _kernel(
    "stokes_sl", (D, E), "multiplier/stokes", 3, (layers.STOKES_SL,), spectra.BIHARMONIC, mean=means.stokes, net=FORCE,
    crystal=EVEN_CRYSTAL, near=1.8, common=0.84,
)  # fmt: skip
STOKES_DL = _kernel(
    "stokes_dl", (D, E, G), "multiplier/stokes_comb", 4, (layers.STOKES_DL,), spectra.BIHARMONIC, slopes=True,
    near=2.36, common=0.75,
)  # fmt: skip
STOKES_COMB = _kernel(
    "stokes_comb", (D, E, G), "multiplier/stokes_comb", 4, (layers.STOKES_SL, layers.STOKES_DL), spectra.BIHARMONIC,
    slopes=True, single=True, mean=means.stokes, net=FORCE, near=3.0, common=0.71,
)  # fmt: skip
STOKES_PRESSURE = _kernel(
    "stokes_pressure", (H,), "multiplier/divergence", 3, (layers.LAPLACE_GRAD,), scale=2.0,
    near=1.2, common=0.9,
)  # fmt: skip
STOKES_GRAD = _kernel(
    "stokes_grad", (E, G), "multiplier/stokes", 3, (layers.STOKES_GRAD,), spectra.BIHARMONIC, gather="slopes",
    net=FORCE, near=2.8, common=0.7,
)  # fmt: skip
STOKES_DIPOLE = _kernel(
    "stokes_dipole", (E, G), "multiplier/stokes_dipole", 9, (layers.STOKES_DIPOLE,), spectra.BIHARMONIC,
    near=2.8, common=0.7,
)  # fmt: skip
ROTLET = _kernel(
    "rotlet", (H,), "multiplier/curl", 3, (layers.LAPLACE_GRAD,), near=1.4, common=0.9,
)  # fmt: skip
REGULARISED_STOKESLET = _kernel(
    "regularised_stokeslet", (D_SOFTENED, E_SOFTENED), "multiplier/stokes", 3, (layers.STOKES_SL,), spectra.SOFTENED,
    mean=means.softened, net=FORCE, crystal=EVEN_CRYSTAL, near=2.2, common=0.84,
)  # fmt: skip
REGULARISED_DIPOLE = _kernel(
    "regularised_dipole", (H_SOFTENED, K_SOFTENED), "multiplier/stokes", 3, (layers.REGULARISED_DIPOLE,),
    spectra.SOFTENED_DIPOLE, mean=means.softened_dipole, crystal=EVEN_CRYSTAL, near=2.2, common=0.84,
)  # fmt: skip
RPY = _kernel(
    "rpy", (D_SPHERES, E_SPHERES), "multiplier/stokes", 3, (layers.STOKES_SL,), spectra.SPHERES, mean=means.spheres,
    net=FORCE, crystal=EVEN_CRYSTAL, near=2.3, common=0.84,
)  # fmt: skip
RPY_ROTATION = _kernel(
    "rpy_rotation", (D_SPHERES, E_SPHERES, H_SPHERES, K_SPHERES), "multiplier/spheres", 6,
    (layers.STOKES_SL, layers.SPIN, layers.SPIN_OF_TORQUES), replace(spectra.SPHERES, form=None),
    mean=means.rotating_spheres, net=FORCE, near=4.0, common=0.7,
)  # fmt: skip
#: Flow and Laplacian of which `parki.spheres` makes the mobilities of spheres of several radii.
FAXEN = _kernel(
    spheres.FAXEN, (D, E, H_STOKES, K_STOKES), "multiplier/faxen", 6, (layers.STOKES_SL,),
    replace(spectra.BIHARMONIC, factor=profiles.spheres), mean=means.flow_and_laplacian, net=FORCE, near=4.0,
    common=0.7,
)  # fmt: skip
YUKAWA = _kernel(
    "yukawa", (Y,), "multiplier/scalar", 1, (layers.LAPLACE,), spectra.YUKAWA, mean=means.screened,
    near=1.42,
)  # fmt: skip

LAPLACE_AND_GRAD = _kernel(
    LAPLACE.with_gradient(), (F, H), "multiplier/scalar", 1, (layers.LAPLACE, layers.LAPLACE_SLOPES), gather="both",
    mean=means.harmonic, net=CHARGE, crystal=EVEN_CRYSTAL, near=1.5, common=0.9,
)  # fmt: skip
YUKAWA_AND_GRAD = _kernel(
    YUKAWA.with_gradient(), (Y, Z), "multiplier/scalar", 1, (layers.LAPLACE, layers.LAPLACE_SLOPES), spectra.YUKAWA,
    gather="both", mean=means.screened, near=2.0,
)  # fmt: skip
YUKAWA_GRAD = _kernel(
    YUKAWA.with_gradient(only=True), (Z,), "multiplier/scalar", 1, (layers.LAPLACE_SLOPES,), spectra.YUKAWA,
    gather="slopes", near=1.8,
)  # fmt: skip

KERNELS = {
    kernel.name: kernel
    for kernel in (
        LAPLACE, LAPLACE_GRAD, LAPLACE_DIPOLE, STOKES_SL, STOKES_DL, STOKES_COMB, STOKES_PRESSURE, STOKES_GRAD,
        STOKES_DIPOLE, YUKAWA,
        ROTLET, REGULARISED_STOKESLET, REGULARISED_DIPOLE, RPY, RPY_ROTATION,
    )
}  # fmt: skip

PARAMETERS = ("kappa", "radius", "epsilon")  # of kernels by name


def find(kernel: "str | Kernel", **parameters: float | None) -> Kernel:
    """Return the named or given kernel with its parameters; None stands for a parameter left out.

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


#: Kernels of a sum with its gradient, and of the gradient alone, as far as they exist.
SLOPES: dict[str, dict[bool | str, Kernel]] = {
    "laplace": {True: LAPLACE_AND_GRAD, "only": LAPLACE_GRAD},
    "yukawa": {True: YUKAWA_AND_GRAD, "only": YUKAWA_GRAD},
    "stokes_sl": {"only": STOKES_GRAD},
}


def gradient(kernel: Kernel, request: Any) -> Kernel:
    """Return the kernel of a sum, of a sum with its gradient, or of the gradient alone, as `request`.

    Raises
    ------
    ValueError
        For another value than False, True and "only", and for a kernel whose gradient is not known.
    """
    check_choice("gradient", request, (False, True, "only"))
    if not request:
        return kernel
    slopes = SLOPES.get(kernel.name, {}) if known_to_parki(kernel) else {}
    if request not in slopes:
        names = ", ".join(repr(name) for name, variants in SLOPES.items() if request in variants)
        raise ValueError(f"{kernel} has no gradient={request!r} in Ewald sums; expected one of {names}.")
    return replace(slopes[request], parameters=kernel.parameters)


def known_to_parki(kernel: Kernel) -> bool:
    """Tell whether a kernel is one of parki's, with any parameters."""
    return replace(kernel, parameters=(), alias="") == KERNELS.get(kernel.name)
