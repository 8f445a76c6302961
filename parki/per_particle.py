"""Lengths of single particles as calls take them: the kernel that is summed for them, and the method over another's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from parki.lengths import Lengths
from parki.pairs import Pair
from parki.softening.kinds import Kinds
from parki.spheres.radii import Radii

P = TypeVar("P", bound=Pair)
#: Kernels of charges that may have a softening length each.
SOFTENED = ("regularised_coulomb", "spline_coulomb")


def of_call(kernel: Any, flow: P, parameters: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any], Lengths | None]:
    """Return the kernel and parameters of a call, and lengths of its particles if it has several.

    The parameter is then the largest length, and the kernel of spheres with radii is the `flow`.

    Raises
    ------
    ValueError
        For lengths that are not as in `Lengths.of`.
    """
    if isinstance(kernel, str) and kernel == "rpy" and (radii := Radii.of(parameters.get("radius"))) is not None:
        return flow, {**parameters, "radius": radii.largest}, radii
    if isinstance(kernel, str) and kernel in SOFTENED and (kinds := Kinds.of(parameters.get("epsilon"))) is not None:
        return kernel, {**parameters, "epsilon": kinds.largest}, kinds
    return kernel, parameters, None


def over(method: Any, lengths: Lengths | None, exclude: Any = None) -> Any:
    """Return the method of particles of these lengths, or the method itself without lengths.

    Raises
    ------
    NotImplementedError
        With lengths, for a sum over ranks, and for one that leaves out pairs, or own terms of spheres.
    """
    if lengths is None:
        return method
    own_term = False if isinstance(lengths, Radii) and not getattr(method.options, "own_term", True) else None
    for name, value in (("comm", method.options.comm), ("exclude", exclude), ("own_term", own_term)):
        if value is not None:
            one = f"one {lengths.name}"
            raise NotImplementedError(f"{name} was given with {one} for each {lengths.item}; expected {one} for all.")
    if isinstance(lengths, Radii):
        from parki.spheres.method import Spheres

        return Spheres(method, lengths)
    from parki.softening.method import Softened

    return Softened(method, lengths)
