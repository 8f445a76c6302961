"""Hints to compilers on the roots and exponentials of a sum, by the error that it may have (`parki.engine.kernel`)."""

#: Least relative errors of a sum for which hints apply, and the relative errors of roots and exponentials with them.
SHORT = (
    (1e-9, "short_rsqrt", 1.5e-13),
    (1e-8, "shorter_rsqrt", 1.5e-10),
    (1.5e-7, "brief_rsqrt", 5.7e-9),
    (5e-6, "shortest_rsqrt", 2.1e-7),
    (1e-9, "short_exp", 2.6e-12),
    (1e-8, "shorter_exp", 1.6e-9),
    (3e-6, "shortest_exp", 5.5e-7),
)
#: Error of a sum that has own terms, where they are taken off and may be most of the sum.
OWN_TERMS = 1e-9
#: Error of roots and exponentials, at most, in formulas that are not parki's: they may be differences of these.
CAREFUL = 1e-12


def short(error: float, is_ours: bool) -> tuple[str, ...]:
    """Return hints for roots and exponentials of a sum with this relative error, of a pair of parki or a caller's."""
    return tuple(hint for threshold, hint, largest in SHORT if error >= threshold and (is_ours or largest <= CAREFUL))


def rounding(error: float) -> float:
    """Return the largest relative error of a root or an exponential with the hints of `short`."""
    return max((largest for threshold, _, largest in SHORT if error >= threshold), default=0.0)
