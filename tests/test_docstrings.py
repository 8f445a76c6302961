"""Docstrings of all public names conform to numpydoc, and pages of the site list all these names."""

import functools
import inspect
import re
import tomllib

import pytest

from tests import public_names

validation = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed")
docscrape = pytest.importorskip("numpydoc.docscrape_sphinx")

#: Findings that do not count for members of classes, and for errors and warnings: the class, or the function that
#: raises, has examples and related names.
MEMBERS = {"EX01", "SA01"}


@functools.cache
def names():
    return public_names.documented()


def switched_off(root):
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["numpydoc_validation"]
    assert settings["checks"][0] == "all"
    return set(settings["checks"][1:])


def findings(each, off):
    member = isinstance(each, property) or not (inspect.isclass(each) or "." not in each.__qualname__)
    error = inspect.isclass(each) and issubclass(each, Exception)
    found = validation.validate(docscrape.get_doc_object(each))["errors"]
    return [f"{code}: {text}" for code, text in found if code not in off | (MEMBERS if member or error else set())]


def test_docstrings(root):
    off = switched_off(root)
    found = {name: findings(each, off) for name, each in names().items()}
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_faults_are_found():
    def call(x, y):
        """Sums two numbers

        Parameters
        ----------
        x : int
        """
        return x + y

    call.__qualname__ = "call"
    assert {text[:4] for text in findings(call, {"ES01"})} == {"SS03", "SS05", "PR01", "PR07", "RT01", "SA01", "EX01"}


def test_names_are_many():
    assert {"parki.ewald.laplace", "parki.plan.Plan.__call__", "parki.torch.yukawa", "parki.CellList"} <= names().keys()
    assert "parki.plan.Plan.turned" not in names()
    assert len(names()) > 150


def listed_on_pages(root):
    """Return the names in the tables of the reference, with their modules, in order."""
    found = []
    for page in sorted((root / "docs" / "reference").glob("*.md")):
        module, inside = "", False
        for line in page.read_text("utf-8").splitlines():
            if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            inside = line.startswith(".. autosummary::") or (inside and (line.startswith("   ") or not line))
            if inside and re.fullmatch(r"   \w+", line):
                found.append(f"{module}.{line.strip()}")
    return found


def test_every_name_has_one_place_on_the_site(root):
    on_pages = listed_on_pages(root)
    assert len(set(on_pages)) == len(on_pages)
    objects = public_names.exported() | public_names.reached()
    del objects["parki.__version__"]
    places = {}
    for name in on_pages:
        places.setdefault(id(objects[name]), []).append(name)
    assert [several for several in places.values() if len(several) > 1] == []
    assert [name for name, each in objects.items() if id(each) not in places] == []


def test_the_reference_has_a_page_for_every_module(root):
    index = (root / "docs" / "reference" / "index.md").read_text("utf-8")
    for module in public_names.PUBLIC.MODULES[1:]:
        name = module.removeprefix("parki.")
        assert (root / "docs" / "reference" / f"{name}.md").exists()
        assert re.search(rf"^{name}$", index, re.MULTILINE)
