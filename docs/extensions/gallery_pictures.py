"""How sphinx-gallery runs, orders and shows the examples.

An example draws with ``-o FILE...`` into the folder that it runs in; pictures are moved from there to its page.
"""

import importlib.util
import logging
import os
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx_gallery.gen_rst import THUMBNAIL_PARENT_DIV, THUMBNAIL_PARENT_DIV_CLOSE
from sphinx_gallery.scrapers import figure_rst

FULL = os.environ.get("PARKI_GALLERY") == "full"  # otherwise examples run with --small
logging.getLogger("matplotlib.animation").setLevel(logging.WARNING)  # it names its writer otherwise
# Shown, but not run, where the module is missing.
NEEDS = {"elastic_constants": "ase", "forces": "torch", "trajectory": "MDAnalysis"}

SECTIONS = {
    "Periodic boxes": "madelung tolerance sedimentation squirmers",
    "Molecules and crystals": "water water_dynamics trajectory electrolyte electrolyte_walls elastic_constants",
    "Free space": "plummer galaxy_large galaxy_fmm screened_sphere",
    "Boundary integrals": "gmres pipe capacitance near_surface boundary_integral_2p suspension_2p drag_of_arrays "
    "viscosity_of_arrays",
    "Own kernels, and PyTorch": "own_kernel_cells own_kernel blobs forces",
    "Devices and processes": "backends many_processes galaxy_over_ranks",
}
ORDER = [name for names in SECTIONS.values() for name in names.split()]


def order(path: str) -> tuple[int, str]:
    """Return the place of an example; those of no section are last."""
    name = Path(path).stem
    return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def sections(app: Sphinx, docname: str, source: list[str]) -> None:
    """Divide the gallery's index into sections; sphinx-gallery has these for folders of examples only."""
    if docname != "gallery/index":
        return
    head, _, rest = source[0].partition(THUMBNAIL_PARENT_DIV)
    tail = rest.partition(THUMBNAIL_PARENT_DIV_CLOSE)[2]
    shown = [path.stem for path in sorted(Path(app.srcdir, "gallery").glob("*.py"), key=lambda path: order(str(path)))]
    listed = {title: [name for name in shown if name in names.split()] for title, names in SECTIONS.items()}
    listed["More"] = [name for name in shown if name not in ORDER]
    for title, names in listed.items():
        if names:
            paths = "".join(f"   ../examples/{name}.py\n" for name in names)
            head += f"\n{title}\n{'-' * len(title)}\n\n.. minigallery::\n\n{paths}\n"
    source[0] = head + tail


def runnable() -> str:
    """Return the pattern of paths of the examples that can run here."""
    left_out = [name for name, module in NEEDS.items() if importlib.util.find_spec(module) is None]
    return r"[\\/]" + "".join(rf"(?!{name}\.py)" for name in left_out) + r"\w+\.py$"


def drawn(script: str) -> list[str]:
    """Return the pictures that an example names in its text: NAME.png, and NAME.gif if something moves."""
    path = Path(script)
    text = path.read_text("utf-8")
    return [name for name in (f"{path.stem}.png", f"{path.stem}.gif") if name in text]


def arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return the arguments that an example runs with."""
    # sphinx-gallery sets no __file__, by which examples find kernels and data beside themselves.
    script_vars["example_globals"]["__file__"] = script_vars["src_file"]
    files = drawn(script_vars["src_file"])
    return [*([] if FULL else ["--small"]), *(["-o", *files] if files else [])]


def pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Move the pictures of an example to its page, and return the directives that show them."""
    shown = []
    for name in drawn(block_vars["src_file"]):
        source = Path(block_vars["src_file"]).with_name(name)
        if source.exists():
            target = Path(next(block_vars["image_path_iterator"])).with_suffix(source.suffix)
            shutil.move(source, target)
            shown.append(figure_rst([target], gallery_conf["src_dir"]))
    return "".join(shown)
