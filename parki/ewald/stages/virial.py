"""Strain derivative of the energy of an Ewald sum, from the pass that gives energy and forces.

A strain ε maps points and lattice vectors x to x + ε x.  The energy ½ Σ q u of pairs at r then grows by
ε : ½ Σ q_i q_j r ∇φ(r).  The near field sums r ∇φ; in the far field a mode with the multiplier g(k²) contributes
−g δ − 2 g' k k, times the squared transform of the spread sources.  Along a free direction, which has no images,
½ Σ q_i q_j r_a ∇φ is the sum of x_a q ∇u over the points.

Source: Nosé and Klein, Mol. Phys. 50 (1983), for the Gaussian split in three periodic directions.  For any split and
periodicity the transform of r_a ∂φ/∂r_b is −∂/∂k_a (k_b g).
"""

import numpy as np

from parki.arrays import Array, to_host
from parki.ewald.report import WallTime
from parki.ewald.stages.sums import Stages
from parki.left_out import SYMMETRIC
from parki.scaling import Powers


class VirialStages(Stages):
    """Stages of a kernel with its gradient and virial, for one right-hand side."""

    def run_with_virial(self, dens: Array, out: Array, times: WallTime) -> np.ndarray:
        """Sum one density ``(1, 1, N)`` to `out` ``(1, 4, N)``; return dE/dε (3, 3) in the caller's axes and units.

        The unit of the energy is the squared unit of the density over the unit of length.
        """
        place = self.sum.place
        powers = Powers.of(self.sum.law, place.power, dens, None, self.sum.p.kernel.result)
        self.run(dens, None, out, times, powers)
        tensor = self._virial()
        if place.frame is not None:
            frame = np.array(place.frame)
            tensor = frame.T @ tensor @ frame
        return np.ldexp(tensor, int(powers.result[0, 0] - powers.dens[0, 0]))

    def _constant(self) -> float:
        """Return the constant that the net density adds to the sum."""
        return to_host(self.placed[self.sum.constants])[0]

    def _virial(self) -> np.ndarray:
        """Return dE/dε in the stages' axes and units."""
        sum_, p, wide = self.sum, self.sum.p, np.float64
        rows, near, far = (self.placed[h] for h in (sum_.rows_of_sources, sum_.near.result, sum_.far.result))
        q = rows[:, 3].astype(wide)
        own_sums = to_host(near[p.kernel.result :].astype(wide) @ q)
        lines = to_host(self.placed[sum_.far.lines].sum(axis=0, dtype=wide))
        total = lines[0] + float(self._constant()) * float(q.sum())
        tensor = (0.5 * own_sums - lines[1:])[SYMMETRIC] - 0.5 * total * np.eye(3)
        periodic = p.periodicity
        if periodic < 3:
            far = far if sum_.v.g2p != "BASE" else far[:, self.placed[sum_.points.targets.order]]
            slopes = (near[1:4].astype(wide) + far[1:4].astype(wide)) * q
            x = self.placed[sum_.points.targets.points][periodic:].astype(wide)
            moments = to_host((x - x.mean(axis=1)[:, None]) @ slopes.T)
            tensor[periodic:], tensor[:, periodic:] = moments, moments.T
            part = moments[:, periodic:]
            tensor[periodic:, periodic:] = 0.5 * (part + part.T)
        return tensor
