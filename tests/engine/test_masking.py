"""Branches that need no mask of their range: their values in lanes outside it are never read."""

from parki import engine


def text(file, name):
    """Return the C++ of a kernel with its default parameters."""
    kernel = engine.kernel(file, name)
    return kernel.unit(kernel.default_layouts(), False)[1].source


def test_sums_over_sources_do_not_mask_targets_out_of_range():
    targets = text("p2p_list", "p2p_list").split("t_begin + t);")[-1]
    assert "pk_select(pk_m" in targets
    assert "pk_and(pk_given" not in targets


def test_branches_that_store_keep_the_mask():
    assert "pk_and(pk_given" in text("p2p_list", "p2p_list").split("t_begin + t);")[0]
