"""`parki examples`: the scripts that come with the library, and copies of them with the files that they read."""

import ast
import importlib.resources
import re
from importlib.resources.abc import Traversable
from pathlib import Path

from parki import spelling
from parki.engine import writing

PACKAGE = "parki.examples"
SUFFIXES = (".py", ".ipynb")
DATA = "data"


def names() -> list[str]:
    """Return the names of all examples."""
    return sorted(_files())


def title(text: str) -> str:
    """Return the title of an example's text: the first line of its docstring, or of a notebook its first heading."""
    if text.lstrip().startswith("{"):
        heading = re.search(r'"#+ (.*?)(?:\\n)?"', text)
        return heading[1] if heading else ""
    lines = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    return next((line.strip() for line in lines if line.strip("=-~ ")), "").rstrip(".")


def table() -> str:
    """Return a line for each example: its name and its title."""
    titles = {name: title(file.read_text("utf-8")) for name, file in sorted(_files().items())}
    width = max(map(len, titles))
    return "\n".join(f"{name:<{width}}   {text}" for name, text in titles.items())


def text(name: str | None) -> str:
    """Return the text of an example.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    return _file(name).read_text("utf-8")


def copy(name: str | None, folder: Path, force: bool = False) -> list[Path]:
    """Copy an example, or with None all of them, with the files that they read; return the paths written.

    Parameters
    ----------
    name : str, optional
    folder : Path
        Folder of the copies; made if missing.
    force : bool
        Whether to overwrite files.

    Raises
    ------
    ValueError
        For an unknown name, and without `force` if a different file is there; nothing is written then.
    OSError
        Naming a file that cannot be written.
    """
    files = list(_files().values()) if name is None else [_file(name)]
    sources = _with_companions(files) | (_data() if name is None else {})
    conflicts = [folder / place for place, data in sources.items() if _differs(folder / place, data)]
    if conflicts and not force:
        raise ValueError(f"{conflicts[0]} is there; expected another folder, or --force to overwrite it.")
    for place, data in sources.items():
        writing.write(folder / place, data)
    return [folder / place for place in sources]


def _with_companions(files: list[Traversable]) -> dict[str, bytes]:
    """Return the contents of examples, and of other examples and data whose names stand in them, by their places."""
    sources: dict[str, bytes] = {}
    queue = list(files)
    candidates = {file.name: file for file in _files().values()}
    data = _data()
    while queue:
        file = queue.pop()
        sources[file.name] = file.read_bytes()
        source_text = file.read_text("utf-8")
        code = source_text if file.name.endswith(".ipynb") else _code(source_text)
        for candidate in candidates.values():
            # A script or a kernel is read as "name.py", a module of functions is imported.
            import_pattern = rf"(?m)^\s*(?:import|from) {re.escape(Path(candidate.name).stem)}\b"
            if candidate.name not in sources and (f'"{candidate.name}"' in code or re.search(import_pattern, code)):
                queue.append(candidate)
        sources |= {place: content for place, content in data.items() if Path(place).name in code}
    return sources


def _data() -> dict[str, bytes]:
    """Return the files that examples read, by their places."""
    folder = importlib.resources.files(PACKAGE) / DATA
    return {f"{DATA}/{file.name}": file.read_bytes() for file in folder.iterdir() if not file.name.startswith("_")}


def _code(text: str) -> str:
    """Return a script without its docstring, which may name other scripts that it does not read."""
    tree = ast.parse(text)
    first = tree.body[0] if ast.get_docstring(tree) is not None else None
    return "\n".join(text.splitlines()[first.end_lineno or 0 :]) if first is not None else text


def _differs(path: Path, data: bytes) -> bool:
    """Tell whether something is at a path, and not a file of these bytes."""
    return path.exists() and not (path.is_file() and path.read_bytes() == data)


def _files() -> dict[str, Traversable]:
    """Return the files of all examples by name."""
    resources = importlib.resources.files(PACKAGE).iterdir()
    return {
        Path(file.name).stem: file
        for file in resources
        if Path(file.name).suffix in SUFFIXES and not file.name.startswith("_")
    }


def _file(name: str | None) -> Traversable:
    files = _files()
    stem = None if name is None else Path(name).stem if Path(name).suffix in SUFFIXES else name
    if stem is None or stem not in files:
        value = "missing" if name is None else repr(name)
        advice = "" if name is None else spelling.advice(name, files)
        raise ValueError(f"NAME is {value}; expected one of {', '.join(sorted(files))}. {advice}".rstrip())
    return files[stem]
