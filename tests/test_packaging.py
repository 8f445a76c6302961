"""Packaging: the list of packages is complete, versions agree, and importing parki costs nothing."""

import ast
import fnmatch
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib

import pytest

import parki

FOLDERS = {
    "parki": "parki",
    "parki.examples": "examples",
    "parki.kernels": "kernels",
    "parki.perfmodels": "perfmodels",
}
OPTIONAL = {"matplotlib", "rich", "finufft", "cupy", "mpi4py", "torch", "jax", "pykokkos", "hypothesis", "pytest"}


@pytest.fixture(scope="module")
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def folders_of(root):
    """Yield the folders below the four installed ones, with the names of their packages."""
    for package, folder in FOLDERS.items():
        for path in (root / folder, *(root / folder).rglob("*")):
            if path.is_dir() and path.name != "__pycache__":
                yield ".".join([package, *path.relative_to(root / folder).parts]), path


def test_every_folder_is_a_listed_package(root, project):
    # An editable install hides a missing entry; a wheel would lack the folder.
    found = {name for name, path in folders_of(root) if any(p.is_file() for p in path.iterdir())}
    assert found == set(project["tool"]["setuptools"]["packages"])
    assert project["tool"]["setuptools"]["package-dir"] == FOLDERS


def test_every_package_has_an_init(root):
    without = [name for name, path in folders_of(root) if not (path / "__init__.py").is_file()]
    assert without == []


def test_every_data_file_is_package_data(root, project):
    patterns = project["tool"]["setuptools"]["package-data"]
    lost = [
        str(file.relative_to(root))
        for name, path in folders_of(root)
        for file in path.iterdir()
        if file.is_file() and file.suffix not in (".py", ".pyc")
        if not any(fnmatch.fnmatch(file.name, pattern) for pattern in patterns.get(name, ()))
    ]
    assert lost == []


def test_kernels_init_is_only_a_docstring(root):
    # Code that reads a kernel file as text imports this module.
    (only,) = ast.parse((root / "kernels" / "__init__.py").read_text("utf-8")).body
    assert isinstance(only, ast.Expr)
    assert isinstance(only.value, ast.Constant)


def test_the_version_stands_in_one_place(root, project):
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"] == {"version": {"attr": "parki.__version__"}}
    assert importlib.metadata.version("parki") == parki.__version__
    # A recipe belongs to a release and names its version.
    recipe = (root / "recipe" / "recipe.yaml").read_text("utf-8")
    assert re.findall(r'(?m)^  version: "(.*)"$', recipe) == [parki.__version__]


def test_the_address_stands_in_one_form(project):
    urls = project["project"]["urls"]
    assert {"Homepage", "Documentation", "Repository", "Changelog", "Issues"} == set(urls)
    assert all(url.startswith((urls["Homepage"], "https://parki-dev.github.io/parki")) for url in urls.values())


def modules_after(statement, where):
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=where, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_import_of_parki_imports_no_library(tmp_path):
    loaded = modules_after("import parki", tmp_path)
    assert "parki" in loaded
    assert not loaded & (OPTIONAL | {"numpy", "scipy", "filelock", "platformdirs", "threadpoolctl"})


@pytest.mark.parametrize("module", ["ewald", "utils", "engine"])
def test_submodules_come_on_first_use_without_optional_libraries(module, tmp_path):
    loaded = modules_after(f"import parki; parki.{module}", tmp_path)
    assert not loaded & OPTIONAL


def test_unknown_attribute_says_what_there_is():
    with pytest.raises(AttributeError, match=r"no attribute 'ewold'.*ewald"):
        _ = parki.ewold
    assert {"ewald", "engine", "utils", "__version__"} <= set(dir(parki))
