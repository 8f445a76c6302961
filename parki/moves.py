"""Points of a move, as its caller names them."""

from typing import Any

from parki.arguments import deprecated
from parki.method import Method

LEVEL = 6  # frames from the warning to the caller of `Plan.move`


def given(
    method: Method, same: bool, positional: tuple[Any, ...], targets: Any = None, sources: Any = None
) -> tuple[Any, Any]:
    """Return targets and sources of a move, None for points that stay, one array if both are the same.

    Parameters
    ----------
    method : Method
    same : bool
        Whether the plan has one array for both.
    positional : tuple
        Points without a name: None, one array, or two in the order of `method.positional`, which is deprecated.
    targets, sources : array, optional

    Raises
    ------
    TypeError
        For no points, too many, or points both by position and by keyword.
    ValueError
        For new targets alone where the targets are the sources.
    """
    points, *rest = positional
    if len(rest) > 1 or (points is not None and (targets is not None or sources is not None)):
        raise TypeError("move: found several arrays of points, expected one, or targets and sources by keyword.")
    if rest:
        deprecated("move takes targets and sources by keyword", LEVEL)
        points_by_name = dict(zip(method.positional, (points, *rest), strict=True))
        points, targets, sources = None, points_by_name["targets"], points_by_name["sources"]
    elif points is not None and not same:
        first = method.positional[0]
        deprecated(f"move takes {first} by keyword in a plan that has targets apart", LEVEL)
        points, targets, sources = None, *((points, None) if first == "targets" else (None, points))
    if points is None and same and targets is None:
        points = sources
    if points is not None:
        return points, points
    if same and sources is None and targets is not None:
        trg, src = method.names[:2]
        raise ValueError(f"{trg} was given, but the targets of this plan are its {src}; expected both.")
    if targets is None and sources is None:
        raise TypeError("move: found no points, expected points, or targets or sources by keyword.")
    return targets, sources
