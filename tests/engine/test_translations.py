"""Translations of kernels, kept in the cache: found by later processes, and made anew where anything has changed."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from parki import engine
from parki.engine import workunit
from parki.engine.compile import cache, translations
from parki.engine.errors import KernelError
from parki.engine.lower import gpu, host
from parki.engine.text import source, specialise
from tests.engine import compiling as tools

folder = tools.folder

KERNEL = """import pykokkos as pk

FACTOR = 2.0

@pk.workunit
def scale(i: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double]):
    y[i] = FACTOR * x[i]
"""
MANY = {
    "gather": ("cells", "gather_points", {"real": "double"}, ()),
    "pairs": ("direct", "direct_sum", {"pair": "pair/stokes_comb", "real": "float"}, ("jam_2", "finite_rsqrt")),
    "scan": ("cells", "count_scan", {}, ()),
}


@pytest.fixture
def fresh(monkeypatch):
    """Return a function after which kernels are asked for as by a new process."""

    def forget():
        specialise._cache.clear()
        workunit._of.cache_clear()
        source._parsed.clear()
        source._digests.clear()

    forget()
    yield forget
    forget()


@pytest.fixture
def refused(monkeypatch):
    """Return a function after which translating is an error."""

    def refuse():
        def fail(*args, **kwargs):
            raise AssertionError("translated again")

        for module, name in ((specialise, "_specialise"), (workunit, "parse"), (host, "lower"), (gpu, "lower")):
            monkeypatch.setattr(module, name, fail)

    return refuse


def forms(name):
    """Return everything that launches take from the front end."""
    file, unit, slots, hints = MANY[name]
    unit = engine.kernel(file, unit, hints=hints, **slots)
    layouts = unit.default_layouts()
    return unit.l0, unit.ir, unit.unit(layouts, False), unit.unit(layouts, True), unit.gpu(layouts), unit.neighbours


@pytest.mark.parametrize("name", MANY)
def test_a_later_process_translates_nothing(name, fresh, refused):
    first = forms(name)
    fresh()
    refused()
    later = forms(name)
    assert later == first
    assert later[1] is not first[1]


@pytest.mark.parametrize("name", MANY)
def test_a_kept_tree_gives_the_same_texts(name, fresh):
    first = forms(name)
    for path in (cache.shelf() / cache.FORMAT / cache.TRANSLATIONS).iterdir():
        if isinstance(pickle.loads(cache.read_sealed(path)), host.Lowered):
            path.unlink()
    fresh()
    assert forms(name) == first


def doubled(path):
    """Return the result of the kernel in a file for the number 3."""
    x, y = np.full(1, 3.0), np.zeros(1)
    engine.parallel_for(engine.RangePolicy("Serial", 1), engine.kernel(str(path), "scale"), x=x, y=y)
    return y[0]


def test_a_changed_file_is_translated_anew(tmp_path, fresh):
    path = tmp_path / "own.py"
    path.write_text(KERNEL)
    assert doubled(path) == 6.0
    fresh()
    path.write_text(KERNEL.replace("2.0", "5.0"))
    assert doubled(path) == 15.0
    fresh()
    path.unlink()
    with pytest.raises(KernelError, match="no kernel file"):
        engine.kernel(str(path), "scale")


def test_a_relative_path_means_the_file_in_this_folder(root, tmp_path, monkeypatch, fresh):
    text = (root / "kernels/pair/laplace.py").read_text("utf-8")
    for number in (2, 5):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "own.py").write_text(text.replace("s[0] * a", f"s[0] * {number}.25 * a"), "utf-8")
    for number in (2, 5, 2):
        monkeypatch.chdir(tmp_path / str(number))
        fresh()
        assert f"{number}.25" in engine.kernel("direct", "direct_sum", pair="own.py").l0.text


@pytest.mark.parametrize("content", [b"", b"nonsense", bytes(100)])
def test_a_damaged_file_is_made_anew(content, fresh):
    first = forms("gather")
    kept = list((cache.shelf() / cache.FORMAT / cache.TRANSLATIONS).iterdir())
    assert len(kept) > 3
    for path in kept:
        path.write_bytes(content)
    fresh()
    assert forms("gather") == first
    fresh()
    assert all(cache.read_sealed(path) for path in kept)


def test_another_engine_uses_nothing_of_this_one(monkeypatch, fresh, refused):
    forms("gather")
    fresh()
    monkeypatch.setattr(translations, "_translator", lambda: "another")
    refused()
    with pytest.raises(AssertionError, match="translated again"):
        forms("gather")


def test_nothing_is_kept_where_the_engine_cannot_be_read(monkeypatch, fresh, folder):
    monkeypatch.setattr(translations, "_translator", lambda: "")
    forms("gather")
    assert not (folder / cache.FORMAT / cache.TRANSLATIONS).exists()


def test_results_that_cannot_be_stored_are_made_again():
    made = []

    def make():
        made.append(0)
        return lambda: None

    for _ in range(2):
        translations.kept(make, "function")
    assert len(made) == 2


def test_prune_and_clear(fresh, folder):
    forms("gather")
    kept = folder / cache.FORMAT / cache.TRANSLATIONS
    number = len(list(kept.iterdir()))
    cache.prune(max_age_days=1)
    assert len(list(kept.iterdir())) == number
    cache.prune(max_age_days=-1)
    assert list(kept.iterdir()) == []
    fresh()
    forms("gather")
    cache.clear()
    assert not kept.exists()


def test_a_second_process_finds_the_translations_of_the_first(folder):
    program = """
from parki import engine
from parki.engine.text import specialise
if {second}:
    specialise.Program = None
unit = engine.kernel("direct", "direct_sum", pair="pair/stokes_comb")
print(unit.unit(unit.default_layouts(), False)[1].source)
"""
    texts = [
        subprocess.run([sys.executable, "-c", program.format(second=k)], capture_output=True, text=True, check=True)
        for k in (False, True)
    ]
    assert texts[0].stdout == texts[1].stdout != ""
