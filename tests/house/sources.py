"""Imports of parki from one tree, regardless of installed versions."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.resources
import importlib.util
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

PACKAGE = "parki"


def folders(root: Path) -> dict[str, Path]:
    """Return the folder of each package of a tree that is not in its parent's folder, by its pyproject.toml."""
    table = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    named = table["tool"]["setuptools"]["package-dir"]
    return {name: root / folder for name, folder in named.items()}


class Finder(importlib.abc.MetaPathFinder):
    """Finder of the modules of parki in one tree; it refuses missing modules, so that no other finder is asked."""

    def __init__(self, root: Path) -> None:
        self.root, self.folders = root, folders(root)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's spec; None for modules of other packages."""
        if fullname.partition(".")[0] != PACKAGE:
            return None
        package = max((p for p in self.folders if f"{fullname}.".startswith(f"{p}.")), key=len)
        place = self.folders[package].joinpath(*fullname[len(package) :].split(".")[1:])
        if (place / "__init__.py").is_file():
            found = [str(place)]
            return importlib.util.spec_from_file_location(
                fullname, place / "__init__.py", submodule_search_locations=found
            )
        if place.with_suffix(".py").is_file():
            return importlib.util.spec_from_file_location(fullname, place.with_suffix(".py"))
        if place.is_dir():
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        raise ModuleNotFoundError(f"No module named {fullname!r} in {self.root}", name=fullname)


def install(root: Path) -> None:
    """Let parki be imported from this tree.

    Raises
    ------
    RuntimeError
        If a module of parki was imported before, or is found elsewhere.
    """
    early = sorted(name for name in sys.modules if name.partition(".")[0] == PACKAGE)
    if early:
        raise RuntimeError(f"{early[0]} was imported before the tree was chosen; expected no module of {PACKAGE}.")
    finder = Finder(root)
    sys.meta_path.insert(0, finder)
    for name, folder in finder.folders.items():
        module = importlib.import_module(name)
        resources = Path(str(importlib.resources.files(name)))
        if Path(module.__file__).parent != folder or resources != folder:
            raise RuntimeError(f"{name} is {module.__file__}, its files {resources}; expected {folder}.")
    check(root)


def check(root: Path) -> None:
    """Raise RuntimeError if a module of parki is not in this tree."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE:
            places = [module.__file__] if getattr(module, "__file__", None) else list(module.__path__)
            wrong = [place for place in places if not Path(place).resolve().is_relative_to(root)]
            if wrong or not places:
                raise RuntimeError(f"{name} lies in {wrong}; expected {root}.")
