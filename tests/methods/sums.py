"""Plans of all methods that sum over trees, and measures of their sums."""

import numpy as np

import parki
from parki import samples
from parki.direct import direct_sum

TREECODES = ("dual", "pc", "cp")
FMM = ("kifmm", "chebyshev")
METHODS = (*TREECODES, *FMM)
NT, NS = 350, 400


def table(treecodes, fmm):
    """Return a value for each method: one for all treecodes, one for all fast multipole methods."""
    return dict.fromkeys(TREECODES, treecodes) | dict.fromkeys(FMM, fmm)


#: Options of sums with few digits, which most tests share so that few kernels are compiled.
COARSE = table({"degree": 1, "theta": 0.9, "leaf_size": 20}, {"order": 3, "leaf_size": 20})
#: Option of a far field in double precision.
DOUBLE = table({"far_precision": "double"}, {"far_precision": "double"})


def module(method):
    """Return the module of a method: `parki.treecode` or `parki.fmm`."""
    return table(parki.treecode, parki.fmm)[method]


def plan(method, kernel, targets, sources, **options):
    """Return a plan of a method."""
    return module(method).plan(kernel, targets, sources, method=method, **options)


def points(method, dtype=np.float64):
    """Return targets and sources; on octrees they lie differently, so that all lists are in use."""
    x = samples.uniform(NT, 2) if method in TREECODES else samples.plummer(NT, 2, 4.0)
    return x.astype(dtype), samples.uniform(NS, 1).astype(dtype)


def once(method, *args, **options):
    """Call the function that makes a plan of this method, sums once, and forgets the plan."""
    if method in FMM:
        return getattr(parki.fmm, method)(*args, **options)
    if method == "dual":
        return parki.treecode.bldtt(*args, **options)
    return parki.treecode.bltc(*args, variant=method, **options)


def relative(found, exact):
    """Return the relative error in the 2-norm over all targets and components."""
    return float(np.linalg.norm(np.asarray(found, np.float64) - exact) / np.linalg.norm(exact))


def far_share(plan):
    """Return the share of the pairs of particles that are not summed one by one."""
    pairs = plan.walltime.pairs
    return 1 - pairs["pp" if "pp" in pairs else "near"] / (plan.n_targets * plan.n_sources)


def checked(method, kernel, x, y, q, **options):
    """Return the error of a sum, and its plan."""
    parameters = {name: options.pop(name) for name in ("kappa", "width") if name in options}
    made = plan(method, kernel, x, y, **options, **parameters)
    return relative(made(q), direct_sum(kernel, x, y, q, **parameters)), made
