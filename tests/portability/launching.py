"""Launches over NumPy arrays in every space: arrays go to the memory of the space, and results come back in place."""

import numpy as np

from parki import arrays, engine


def parallel_for(policy, unit, **args):
    """Launch a workunit."""
    with_copies(engine.parallel_for, policy, unit, args)


def parallel_reduce(policy, unit, **args):
    """Launch a workunit that sums, and return the sum."""
    return with_copies(engine.parallel_reduce, policy, unit, args)


def with_copies(launch, policy, unit, args):
    """Launch over copies where the space has a memory of its own; an array that two arguments share is copied once."""
    library = engine.array_module(policy.space)
    if library is np:
        return launch(policy, unit, **args)
    host = {id(a): a for a in args.values() if isinstance(a, np.ndarray)}
    copies = {key: library.asarray(a) for key, a in host.items()}
    result = launch(policy, unit, **{name: copies.get(id(a), a) for name, a in args.items()})
    for key, a in host.items():
        if a.flags.writeable:
            a[...] = arrays.to_host(copies[key])
    return result
