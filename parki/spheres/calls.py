"""Several radii as calls take them: the kernel that is summed for them, and the method over another's sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from parki.pairs import Pair
from parki.spheres.radii import Radii

P = TypeVar("P", bound=Pair)


def of_call(kernel: Any, flow: P, parameters: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any], Radii | None]:
    """Return the kernel and parameters of a call, or, for ``"rpy"`` with several radii, those of the `flow`, and radii.

    Raises
    ------
    ValueError
        For radii that are not as in `Radii.of`.
    """
    radii = Radii.of(parameters.get("radius")) if isinstance(kernel, str) and kernel == "rpy" else None
    if radii is None:
        return kernel, parameters, None
    return flow, {**parameters, "radius": radii.largest}, radii


def over(method: Any, radii: Radii | None, exclude: Any = None) -> Any:
    """Return the method of spheres of these radii, or the method itself without radii.

    Raises
    ------
    NotImplementedError
        With radii, for a sum over ranks, and for one that leaves out pairs or own terms.
    """
    if radii is None:
        return method
    from parki.spheres.method import Spheres

    own_term = None if getattr(method.options, "own_term", True) else False
    for name, value in (("comm", method.options.comm), ("exclude", exclude), ("own_term", own_term)):
        if value is not None:
            raise NotImplementedError(f"{name} was given with one radius for each sphere; expected one radius for all.")
    return Spheres(method, radii)
