"""Bodies of lane ranges that stand once, under a mask, and branches that need no mask of their range."""

import pytest

from parki import engine


def text(file, name):
    """Return the C++ of a kernel with its default parameters."""
    kernel = engine.kernel(file, name)
    return kernel.unit(kernel.default_layouts(), False)[1].source


@pytest.mark.parametrize(
    ("file", "name"), [("p2p_list", "p2p_list"), ("p2p", "p2p_gm_1d"), ("direct", "direct_sum"), ("clusters", "ranges")]
)
def test_loops_over_sources_at_uniform_addresses_stand_once(file, name):
    assert text(file, name).count("pk_for_masked(") == 1


@pytest.mark.parametrize(
    ("file", "name"), [("g2p", "g2p_base"), ("translate", "fold_children"), ("cells", "gather_sources")]
)
def test_loops_that_access_lanes_have_whole_groups_without_masks(file, name):
    assert "pk_for_masked(" not in text(file, name)


def test_sums_over_sources_do_not_mask_targets_out_of_range():
    targets = text("p2p_list", "p2p_list").split("t_begin + t);")[-1]
    assert "pk_select(pk_m" in targets
    assert "pk_and(pk_given" not in targets
