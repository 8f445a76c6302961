"""Gallery: examples become pages with their output, pictures, time and memory, and leave nothing behind."""

import os
import re
import shutil
import subprocess
import sys

import pytest

EXAMPLES = ("GALLERY_HEADER.rst", "forces.py", "regularised_stokeslet.py", "squirmers.py", "water.py")


@pytest.fixture(scope="module")
def built(root, tmp_path_factory):
    """Return the folder of a site with a few examples, built with the settings of the whole site."""
    for module in ("sphinx_gallery", "furo", "myst_parser", "numpydoc", "memory_profiler", "matplotlib"):
        pytest.importorskip(module, reason="pip install 'parki[docs]'")
    tree = tmp_path_factory.mktemp("site")
    for folder in ("docs/_static", "examples"):
        (tree / folder).mkdir(parents=True)
    shutil.copy(root / "docs" / "conf.py", tree / "docs")
    shutil.copytree(root / "docs" / "extensions", tree / "docs" / "extensions")
    for name in EXAMPLES:
        shutil.copy(root / "examples" / name, tree / "examples")
    shutil.copytree(root / "examples" / "data", tree / "examples" / "data")
    (tree / "docs" / "index.md").write_text("# Site\n\n```{toctree}\ngallery/index\n```\n")
    environment = {name: value for name, value in os.environ.items() if name != "PARKI_GALLERY"}
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "docs", "build"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return tree


def page(built, name):
    return (built / "build" / "gallery" / f"{name}.html").read_text("utf-8")


def test_nothing_is_left_beside_the_examples(built):
    assert {path.name for path in (built / "examples").iterdir()} == {*EXAMPLES, "data"}


@pytest.mark.parametrize("name", ["squirmers", "water"])
def test_a_page_shows_a_run(built, name):
    text = page(built, name)
    assert f"picture in {name}.png" in text
    assert f'src="../_images/sphx_glr_{name}_001.png"' in text
    assert float(re.search(r"Total running time of the script:</strong>\s+\(\d+ minutes ([\d.]+) s", text)[1]) > 0
    assert float(re.search(r"Estimated memory usage:</strong>\s+(\d+) MB", text)[1]) > 0
    assert {f"{name}.{end}" for end in ("py", "ipynb")} <= {path.name for path in built.rglob("build/_downloads/*/*")}


def test_motion_is_shown_beside_the_picture(built):
    assert "_images/sphx_glr_squirmers_002.gif" in page(built, "squirmers")
    assert (built / "build" / "_images" / "sphx_glr_squirmers_002.gif").stat().st_size > 1000


def test_examples_stand_in_sections(built):
    text = page(built, "index")
    titles = re.findall(r"<h2>(.*?)<", text)
    assert titles == ["Periodic boxes", "Molecules and crystals", "Own kernels, and PyTorch"]
    places = [text.index(f'href="{name}.html', text.index("<h2>")) for name in ("squirmers", "water", "forces")]
    assert places == sorted(places)


def test_kernels_and_data_are_no_pages(built):
    pages = {path.stem for path in (built / "build" / "gallery").glob("**/*.html")}
    assert pages == {"forces", "index", "sg_execution_times", "squirmers", "water"}
