"""Settings of parki's site: sphinx-build -W docs build/docs."""

import importlib.util
import sys
from pathlib import Path

from sphinx.application import Sphinx

import parki

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
import gallery_pictures
import public

project = "parki"
author = "The parki developers"
project_copyright = "2026, the parki developers"
version = release = parki.__version__

extensions = [
    "command_help",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas show without a network, too
    "option_table",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns: list[str] = []
nitpicky = False
default_role = "py:obj"  # names between single backticks are links where there is such an object
smartquotes = False  # quotes of docstrings are those of Python

html_theme = "furo"
html_title = f"parki {release}"
html_static_path = ["_static"]
html_show_sphinx = False

myst_enable_extensions = ["deflist", "dollarmath", "colon_fence", "fieldlist"]
myst_heading_anchors = 3

templates_path = ["_templates"]
autosummary_generate = True
autosummary_context = {"listed": public.members()}  # by the full names of classes
# The reference reads parki.torch and parki.jax.
autodoc_mock_imports = [name for name in ("torch", "jax") if importlib.util.find_spec(name) is None]
autodoc_typehints = "none"  # numpydoc's sections say them
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# No page depends on another site; links are checked by `sphinx-build -b linkcheck`.
intersphinx_mapping: dict[str, tuple[str, str | None]] = {}

copybutton_exclude = ".linenos, .gp, .go"

# Examples run with --small; PARKI_GALLERY=full in the environment makes the whole gallery.
NOTEBOOK_BEGINS = """%matplotlib inline
# As on a command line; a larger run leaves out --small.
import importlib.util
import sys
sys.argv = ["example.py", "--small", "-o", "picture.png"]
__file__ = "example.py"  # kernels and data of the example lie beside the notebook"""
NOTEBOOK_ENDS = """from IPython.display import Image
Image("picture.png")"""
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "backreferences_dir": "gallery/backreferences",
    "filename_pattern": gallery_pictures.runnable(),
    "ignore_pattern": r"(regularised_stokeslet|__init__)\.py",  # a kernel, and the mark of a package
    "within_subsection_order": "gallery_pictures.order",
    "minigallery_sort_order": "gallery_pictures.order",
    "image_scrapers": ("gallery_pictures.pictures",),
    "reset_argv": "gallery_pictures.arguments",
    "reset_modules": (),
    "capture_repr": (),
    "min_reported_time": 0,
    "show_memory": True,
    "show_signature": False,
    "first_notebook_cell": NOTEBOOK_BEGINS,
    "last_notebook_cell": NOTEBOOK_ENDS,
}


def setup(app: Sphinx) -> None:
    """Give the gallery's index its sections."""
    app.connect("source-read", gallery_pictures.sections)
