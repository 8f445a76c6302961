"""Near field alone of a sum, and noise of its far field: the two parts of split sampling.

White noise ξ on the grid becomes noise of the far field W F⁻¹ ĝ F Wᵗ, with the interpolation W and the transform F of
T points, by W F⁻¹ (ĝ/T)^½ F ξ: the projection of a Stokes flow, a part of ĝ, is its own square root.

Source: Fiore, Balboa Usabiaga, Donev and Swan, J. Chem. Phys. 146 (2017) 124116.
"""

from dataclasses import replace

from parki import scaling
from parki.arrays import Array, module_of
from parki.engine.steps import Blocks, Call, Number, Step, argument, state
from parki.ewald.report import WallTime
from parki.ewald.stages import far, near
from parki.ewald.stages.brick import Share
from parki.ewald.stages.points import coincident
from parki.ewald.stages.sums import Stages, SumSteps


class NearSteps(SumSteps):
    """Steps of the near field and of the constants for a net density."""

    def _far(self, points: far.FarPoints, library: str | None, with_images: bool, share: Share | None) -> far.FarField:
        """Return a far field of zeros."""
        return far.nothing(self.p, points, self.rhs)


class NoiseSteps(SumSteps):
    """Steps from white noise on the grid to noise of the far field.

    Attributes
    ----------
    noise : Handle (components, M, M, M)
        Argument.
    """

    def _near(self, skew: tuple[float, float, float] | None) -> near.NearField:
        """Return a near field of zeros."""
        result = state("near field", (self.rhs * self.p.kernel.sums, self.points.targets.n), self.p.dtype)
        return near.NearField(result, Number("tiny", coincident(self.p, 0.0)), ())

    def _far(self, points: far.FarPoints, library: str | None, with_images: bool, share: Share | None) -> far.FarField:
        """Return the far field of noise."""
        p = replace(self.p, kernel=replace(self.p.kernel, root=True))
        self.noise = argument("noise", (self.rhs * p.kernel.spread, *p.grid), p.far)
        points = replace(points, noise=self.noise)
        return far.field(p, points, self.v, self.space, library, with_images, self.rhs, share)

    def _ordered(self, packing: list[Step]) -> list[Step | Call | Blocks]:
        """Return the steps of the far field."""
        return [*self.far.steps, *self._unpack()]


class NoiseStages(Stages):
    """Steps of noise with the arrays of a sum's points."""

    def draw(self, noise: Array, out: Array, times: WallTime) -> None:
        """Write noise of the far field's covariance, in the caller's order, units and axes.

        Parameters
        ----------
        noise : array (components, M, M, M)
            White noise on the grid's points, which is multiplied in place.
        out : array (rhs, components, N)
        times : WallTime
        """
        sum_, p = self.sum, self.sum.p
        noise *= noise.dtype.type(2.0 ** (0.5 * self._power()))
        factors = module_of(noise).asarray(scaling.pairs_of_factors((0,) * len(sum_.factors), p.dtype))
        self.placed.run({sum_.noise: noise, sum_.factors: factors, sum_.u: out}, times)

    def _power(self) -> int:
        """Return the power of two from the matrix in the stages' unit of length to that in the caller's."""
        law = self.sum.law
        return 0 if law is None else -self.sum.place.power * (law.result[0] + law.dens[0])
