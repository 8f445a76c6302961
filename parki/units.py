"""Prefactors that give units to sums, which have no prefactors themselves.

A sum Σ q/r has the unit of charges over lengths.  Times `coulomb` it is a potential of charges in e, times `gravity`
(and −1) that of masses.  `stokes` turns a sum of forces into a flow, `laplace` a sum of charges into the potential that
obeys −∇²u = Σ q δ.
"""

import math

from scipy import constants

from parki.checks import check_choice, check_positive

__all__ = ["coulomb", "gravity", "laplace", "stokes"]

#: Metres per unit of length, joules per unit of energy.
LENGTHS = {
    "m": 1.0, "nm": 1e-9, "Å": 1e-10, "angstrom": 1e-10, "bohr": constants.value("Bohr radius"),
    "pc": constants.parsec, "au": constants.au, "km": 1e3,
}  # fmt: skip
ENERGIES = {
    "J": 1.0, "eV": constants.e, "kJ/mol": 1e3 / constants.N_A, "kcal/mol": 1e3 * constants.calorie / constants.N_A,
    "hartree": constants.value("Hartree energy"),
}  # fmt: skip
MASSES = {"kg": 1.0, "Msun": 1.98841e30}
SPEEDS = {"m/s": 1.0, "km/s": 1e3}


def __dir__() -> list[str]:
    return sorted(__all__)


def coulomb(length: str = "nm", energy: str = "kJ/mol", permittivity: float = 1.0) -> float:
    """Return e²/(4πε₀ε) in these units: the energy of two elementary charges at a distance of one unit of length.

    Parameters
    ----------
    length : {"nm", "Å", "angstrom", "bohr", "m"}, default "nm"
        Unit of the points.
    energy : {"kJ/mol", "kcal/mol", "eV", "hartree", "J"}, default "kJ/mol"
        Unit of the energy.
    permittivity : float, default 1
        Relative permittivity ε of the medium.

    Returns
    -------
    float
        The prefactor of ½ Σ q_i u_i with charges in e, and of −q ∇u.

    Raises
    ------
    ValueError
        For an unknown unit, or a permittivity that is not positive.

    See Also
    --------
    parki.plan.Plan.energy_forces : Compute energies and forces without units.

    References
    ----------
    CODATA, by `scipy.constants`.

    Examples
    --------
    >>> import parki
    >>> print(f"{parki.units.coulomb():.4f} {parki.units.coulomb('Å', 'eV'):.5f}")
    138.9355 14.39965
    """
    check_choice("length", length, LENGTHS)
    check_choice("energy", energy, ENERGIES)
    check_positive("permittivity", permittivity)
    joules = constants.e**2 / (4 * math.pi * constants.epsilon_0 * permittivity)
    return joules / LENGTHS[length] / ENERGIES[energy]


def gravity(length: str = "pc", mass: str = "Msun", speed: str = "km/s") -> float:
    """Return G in these units: the potential of −G Σ m/r is a speed squared.

    Parameters
    ----------
    length : {"pc", "au", "km", "m"}, default "pc"
        Unit of the points.
    mass : {"Msun", "kg"}, default "Msun"
        Unit of the masses.
    speed : {"km/s", "m/s"}, default "km/s"
        Unit of speeds.

    Returns
    -------
    float
        The constant.

    Raises
    ------
    ValueError
        For an unknown unit.

    See Also
    --------
    coulomb : Return the prefactor of charges.

    Examples
    --------
    >>> import parki
    >>> print(f"{parki.units.gravity():.5f}")
    0.00430
    """
    for name, value, names in (("length", length, LENGTHS), ("mass", mass, MASSES), ("speed", speed, SPEEDS)):
        check_choice(name, value, names)
    return constants.G * MASSES[mass] / LENGTHS[length] / SPEEDS[speed] ** 2


def stokes(viscosity: float = 1.0) -> float:
    """Return 1/(8πμ), the factor with which `stokes_sl` is the flow of forces in a liquid of this viscosity.

    Parameters
    ----------
    viscosity : float, default 1
        The viscosity μ.

    Returns
    -------
    float
        The prefactor of all Stokes kernels.

    Raises
    ------
    ValueError
        For a viscosity that is not positive.

    See Also
    --------
    parki.ewald.stokes_sl : Sum the flow of forces.

    Examples
    --------
    >>> import parki
    >>> print(f"{parki.units.stokes():.6f}")
    0.039789
    """
    check_positive("viscosity", viscosity)
    return 1 / (8 * math.pi * viscosity)


def laplace() -> float:
    """Return 1/(4π), the factor with which `laplace` solves −∇²u = Σ q δ.

    Returns
    -------
    float
        The prefactor of `laplace`, its gradient and dipoles, and of `yukawa`.

    See Also
    --------
    parki.ewald.laplace : Sum the potential of charges.

    Examples
    --------
    >>> import parki
    >>> print(f"{parki.units.laplace():.6f}")
    0.079577
    """
    return 1 / (4 * math.pi)
