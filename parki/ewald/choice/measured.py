"""Measured size of a sum over the size for random strengths, which the error estimates assume."""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from parki import exclusions
from parki.arguments import Density
from parki.arrays import Array
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.choice.sizes import Size


def sizes(question: Question, p: Parameters, power: int, density: Density, rows: Array) -> tuple[float, ...]:
    """Return the smallest relative size of some sums for each layer of the kernel, at most 1; 1 for double layers.

    Parameters
    ----------
    question, p
        Question and parameters of the sums, in the unit of the stages.
    power : int
        Lengths of the stages are the caller's times 2^power.
    density : Density
    rows : array (rhs, components, Nt)
        The sums, in the caller's unit.
    """
    kernel = p.kernel
    if kernel.normals or kernel.law is None:
        return (1.0,) * len(kernel.layers)
    strengths = np.linalg.norm(exclusions.norms(density.values), axis=1)
    norms = exclusions.norms(rows) / math.sqrt(max(rows.shape[2], 1))
    values, shares = slice(0, kernel.before_slopes), []
    rest = [slice(values.stop, None)] * (len(kernel.layers) - 1)
    for expected, columns in zip(_expected(question, p), (values, *rest), strict=True):
        norm = np.ldexp(np.linalg.norm(norms[:, columns], axis=1), power * kernel.law.result[columns.start])
        good = (strengths > 0) & (norm > 0)
        shares.append(float(np.min(norm[good] / (expected * strengths[good]), initial=1.0)))
    return tuple(max(share, exclusions.LEAST) for share in shares)


@lru_cache(maxsize=64)
def _expected(question: Question, p: Parameters) -> tuple[float, ...]:
    """Return the size of a sum of random strengths for each layer, over the root of the sum of their squares."""
    question, volume, expected_sizes = question.resolved(), math.prod(p.box), []
    size = replace(Size.of(question), kernel=p.kernel)
    for layer in p.kernel.layers:
        unit = float(layer.unit(p.rc, volume))
        expected_sizes.append(unit / float(size.units(layer, p.rc)[0]) * p.kernel.scale)
    return tuple(expected_sizes)
