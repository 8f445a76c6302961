"""What the parts of an Ewald sum cost on one core: the numbers that every selection uses."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """Calibrated times in seconds; the defaults are one AVX-512 core at 2.5–3 GHz, double precision.

    Only ratios matter for a selection, so more threads need no other numbers as long as all parts scale alike.
    """

    near_laplace: float = 3.5e-9  # a pair within rc
    near_stokes_sl: float = 5.0e-9
    near_stokes_comb: float = 7.0e-9
    near_overhead: float = 1.3  # pairs examined beyond rc, as a factor
    fft: float = 12e-9  # a grid point and one real transform of one component, with its share of the scaling
    spread: float = 1.2e-9  # a row of the window (P² rows) and component
    gather: float = 0.8e-9
    single: float = 0.6  # single precision over double, every part

    def near_pair(self, kernel: str) -> float:
        """Return the time of one pair within rc, with the overhead."""
        return self.near_overhead * getattr(self, f"near_{kernel}")
