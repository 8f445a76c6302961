"""Arrays of a tree, and comparison of trees."""

from dataclasses import fields, is_dataclass

import numpy as np


def arrays(tree, prefix=""):
    """Return all arrays and numbers of a tree on the host, by name: nodes.level, sources.order, …"""
    found = {}
    for field in fields(tree):
        value = getattr(tree, field.name)
        if is_dataclass(value):
            found |= arrays(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = (
                value.get() if hasattr(value, "get") else np.asarray(getattr(value, "inner", value))
            )
    return found


def assert_same(a, b):
    """Assert that two trees are equal, array by array."""
    for (name, found), expected in zip(arrays(a).items(), arrays(b).values(), strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=name)
