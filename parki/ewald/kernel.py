"""Ewald sums of a pair interaction as data: the parts that the stages and the choice of parameters use.

A kernel is a pair function (`kernels/pair/`), a function of the modes (`kernels/multiplier/`), the radial functions of
its far part (`far_parts`), its Green's function (`spectra`), the constants of a net density (`means`), the estimates of
its error (`layers`).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.engine import FunctionText
from parki.ewald.split import spectra
from parki.ewald.split.far_parts import FarPart, edges
from parki.ewald.split.layers import Layer
from parki.ewald.split.means import Surroundings
from parki.ewald.split.profiles import Split
from parki.ewald.split.spectra import Spectrum
from parki.pairs import Pair


@dataclass(frozen=True)
class Net:
    """Net density that fully periodic sums balance: its name, its components, and the convention."""

    name: str
    components: int
    convention: str


#: Numbers of a result per component of the grid.
GATHERED = {"values": 1, "both": 4, "slopes": 3}

#: Shares of the tolerance for the sources of a perfect crystal, in the order of `choice.SHARES`: errors of whole shells
#: are alike, and repeating strengths keep the aliases from averaging out.  By symmetry the double layer of a crystal
#: may even vanish at its own points.
CRYSTAL = (0.012, 0.002, 0.002)


@dataclass(frozen=True)
class Kernel(Pair):
    """Describe a kernel of Ewald sums: a pair interaction and the parts of its Ewald sum.

    Parameters
    ----------
    name, dens, result, pair : str, int, int, str
        Name, components and pair function, as in `parki.pairs.Pair`.
    far : tuple of FarPart
        Radial functions that the pair function takes as far parts.
    multiplier : str or function
        Function of the modes, a file or a Python function like `pair`, from `spread` to `fields` components.
    spread : int
        Components that sources are spread to.
    layers : tuple of Layer
        Error estimates that must hold.
    spectrum : Spectrum, optional
        Green's function with the split's profile.
    scale : float, default 1
        Factor of the spectrum.
    normals, names, parameters, slots : optional
        Fields of `parki.pairs.Pair`.  The first parameter of a screened kernel is κ.
    singular, smooth, core, dimensions, alias : optional
        Fields of `parki.pairs.Pair`.
    slopes, single : bool, default False
        With `slopes` the components of `spread` are the four of the Stokes double layer, with `single` they include the
        single layer.
    gather : {"values", "both", "slopes"}, optional
        Quantities that targets take from the grid: its values, values and then derivatives, or derivatives alone.
    virial : bool, default False
        True if the near field has six more numbers behind the result, the virial of a target.
    root : bool, default False
        True if modes are multiplied by the square root of the far field's matrix, for noise.
    mean : callable, optional
        Function of `parki.ewald.split.means` that returns the constants (fields,) by which the first `fields`
        components of a net density are multiplied, for kernels whose result has a mean that periodic sums fix.
    net : Net, optional
        Density whose net value deserves a warning in fully periodic sums.
    crystal : tuple of three floats, optional
        Shares of the tolerance for sources that are a perfect crystal: near field, window, tables.
    near, common : float, default 1, 0.95
        Time of a near-field pair over that of laplace, both at a tolerance of 1e-7 and by ``LIST``; the part of this
        time that right-hand sides share.
    periodicities : tuple of int, optional
        Numbers of directions along which a sum may be periodic.

    See Also
    --------
    plan : Take kernels by name, or of this class.
    parki.pairs.Pair : The pair interaction alone.

    Examples
    --------
    >>> from parki.ewald.kernels import KERNELS
    >>> kernel = KERNELS["yukawa"]
    >>> kernel.names, kernel.periodicities
    (('kappa',), (0, 1, 2, 3))
    """

    far: tuple[FarPart, ...]
    multiplier: str | FunctionText
    spread: int
    layers: tuple[Layer, ...]
    spectrum: Spectrum = spectra.HARMONIC
    scale: float = 1.0
    _: KW_ONLY
    slopes: bool = False
    single: bool = False
    gather: str = "values"
    virial: bool = False
    root: bool = False
    mean: Callable[[Surroundings], NDArray] | None = None
    net: Net | None = None
    crystal: tuple[float, float, float] = CRYSTAL
    near: float = 1.0
    common: float = 0.95
    periodicities: tuple[int, ...] = (0, 1, 2, 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "multiplier", self._read("multiplier", self.multiplier))

    @property
    def _counts(self) -> dict[str, int]:
        return super()._counts | {"NF": len(self.far), "NIN": self.spread, "NOUT": self.fields}

    @property
    def fields(self) -> int:
        """Return the number of the grid's components whose values or derivatives targets take."""
        return self.result // GATHERED[self.gather]

    @property
    def before_slopes(self) -> int:
        """Return the rows of a result before those of another power of length, slopes or rotations."""
        return self.fields if self.gather == "both" else super().before_slopes

    @property
    def components(self) -> int:
        """Return the number of components of the grid, which holds the spread densities and then the fields."""
        return max(self.spread, self.fields)

    @property
    def sums(self) -> int:
        """Return the number of sums that the near field has for each target."""
        return self.result + 6 * self.virial

    def with_virial(self) -> "Kernel":
        """Return the kernel of a sum with its gradient, extended by the virial.

        The virial of a mode decays along free directions as (1 + κ|z|) exp(−κ|z|).

        Returns
        -------
        Kernel
            The same kernel, whose near field has six numbers more.
        """
        slots, far = (*self.slots, ("VIRIAL", True)), (*self.far, *edges(self.far[0]))
        return replace(self, slots=slots, far=far, virial=True, spectrum=replace(self.spectrum, growing=True))

    @property
    def kappa(self) -> float:
        """Return κ of a screened kernel, its first parameter; 0 for others."""
        return self.parameters[0] if self.parameters and self.spectrum.screened else 0.0

    @property
    def fades(self) -> bool:
        """Tell whether pairs have no field where 1/r and the far parts are 0: kernels without a length besides 1/κ."""
        return not self.parameters or self.spectrum.screened

    @property
    def steep(self) -> bool:
        """Tell whether the kernel falls as 1/r²."""
        return all(layer.steep for layer in self.layers)

    @property
    def cubic(self) -> bool:
        """Tell whether the kernel falls as 1/r³."""
        return all(layer.cubic for layer in self.layers)

    def parameter(self, unit: float = 1.0) -> float:
        """Return the first parameter, which the profile depends on; 0 for kernels without.

        Parameters
        ----------
        unit : float, default 1.0
            Length that the parameter is measured in.

        Returns
        -------
        float
            The parameter: κ times the unit, or a radius over the unit.
        """
        if not self.parameters:
            return 0.0
        power = -1 if self.law is None else self.law.parameters[0]
        return self.parameters[0] * unit**-power

    def profile(self, split: Split, k: ArrayLike) -> NDArray:
        """Return the factors of a split at the modes `k`."""
        return self.spectrum.profile(split, k, self.parameter())

    def is_positive(self, split: Split, tolerance: float) -> bool:
        """Tell whether near and far field are positive both, up to a relative error of the modes.

        The transform of the near field is what the far field leaves of the kernel's own.

        Parameters
        ----------
        split : Prolate or Gaussian
            Profile of the split.
        tolerance : float
            The error.

        Returns
        -------
        bool
            False also for kernels whose transform is not known here.

        References
        ----------
        Fiore, Balboa Usabiaga, Donev and Swan, J. Chem. Phys. 146 (2017) 124116.
        """
        if self.spectrum.form is None:
            return False
        k = np.linspace(0.0, split.kmax, 400)
        far = self.profile(split, k)
        near = self.spectrum.form(k**2, self.parameter()) - far
        return bool((near >= -tolerance).all() and (far >= -tolerance).all())

    def growth(self, k2: ArrayLike) -> NDArray:
        """Return the factor of the modes beside those of the split, at least 1.

        The near field, where it decays at some rate, has the factor at minus the square of the rate.

        Parameters
        ----------
        k2 : array
            Squares of wave numbers.

        Returns
        -------
        array
            The factors.
        """
        factor = self.spectrum.factor
        return np.maximum(1.0, factor(k2, self.parameter())) if factor else np.ones(np.shape(k2))
