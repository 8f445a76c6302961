"""Notebooks: kernels in cells, and notices below them."""

import os
import subprocess
import sys

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # warnings of jupyter's own packages

POINTS = """
import numpy as np, parki
x, q = np.random.default_rng(1).random((3, 40)), np.ones(40)
"""
KERNEL = """
FACTOR = 2.0
# a comment
def scaled(value):
    return value * FACTOR

def mine(dx, dy, dz, r2, w, far, s, u):
    u[0] += s[0] * scaled(w)
"""
SUM = """
u = parki.direct.direct_sum(parki.pairs.Pair("mine", 1, 1, mine), x, x, q, execution_space="Serial")
print(round(float((u / parki.direct.direct_sum("laplace", x, x, q)).mean()), 9))
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs cells in a Jupyter kernel with an empty cache."""
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("PARKI_QUIET", raising=False)
    monkeypatch.chdir(tmp_path)

    def cells(*texts):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in texts])
        nbclient.NotebookClient(book, timeout=300, kernel_name="python3", allow_errors=True).execute()
        return [cell.outputs for cell in book.cells]

    return cells


def said(outputs, name):
    """Return the text of a stream, or of the error for "error"."""
    streams = [output["text"] for output in outputs if output["output_type"] == "stream" and output["name"] == name]
    errors = [output["evalue"] for output in outputs if output["output_type"] == "error"]
    return "".join(errors if name == "error" else streams)


def test_kernels_in_cells(run):
    """Check a kernel, another one of the same name, the first again, and one with an error."""
    wrong = KERNEL.replace("scaled(w)", "nowhere")
    outputs = run(POINTS, KERNEL, SUM, KERNEL.replace("2.0", "5.0"), SUM, KERNEL, SUM, wrong, SUM)
    assert [said(outputs[i], "stdout").strip() for i in (2, 4, 6)] == ["2.0", "5.0", "2.0"]
    assert said(outputs[2], "stderr").startswith("parki: compiling ")
    assert said(outputs[2], "stderr").endswith(" s, cached\n")
    assert "compiling" in said(outputs[4], "stderr")
    assert said(outputs[6], "stderr") == ""  # the first kernel again: nothing is compiled
    assert said(outputs[8], "error").startswith("Cell In[8]:7:20: K003: unknown name 'nowhere'")


def test_notices_can_be_turned_off(run, monkeypatch):
    monkeypatch.setenv("PARKI_QUIET", "1")
    (*_, outputs) = run(POINTS, KERNEL, SUM)
    assert said(outputs, "stdout").strip() == "2.0"
    assert said(outputs, "stderr") == ""


def test_what_a_plan_says_and_shows(run):
    text = 'plan = parki.direct.plan("laplace", x, x, verbose=True)\nplan'
    _, outputs = run(POINTS, text)
    shown = next(output for output in outputs if output["output_type"] == "execute_result")
    assert "<caption>&lt;Plan: laplace, direct, 40 sources" in shown["data"]["text/html"]
    assert "parki: laplace: rounding 1e-14" in said(outputs, "stderr")


def test_progress_of_commands(run):
    begin = "import sys, time\nfrom parki import progress\nprogress.AFTER = 0.1"
    work = "with progress.Progress(sys.stderr) as shown:\n    shown('reading')\n    time.sleep(0.5)\n    shown('p2p')"
    _, outputs = run(begin, work)
    lines = said(outputs, "stderr").splitlines()
    assert lines[0] == "parki: reading …"
    assert [line.split("  ")[0] for line in lines[1:]] == ["parki: reading", "parki: near field (P2P)"]


def test_a_script_is_quiet_though_ipykernel_is_loaded(tmp_path):
    script = "import ipykernel.iostream\n" + POINTS + KERNEL + SUM
    (tmp_path / "script.py").write_text(script)
    environment = os.environ | {"PARKI_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        timeout=300,
    )  # fmt: skip
    assert done.stdout.strip() == "2.0"
    assert done.stderr == ""


@pytest.mark.slow
def test_the_example_in_cells(run, root, monkeypatch):
    """Check that the notebook that the gallery offers for download runs, and shows tables and a picture."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    gallery = pytest.importorskip("sphinx_gallery.notebook", reason="sphinx-gallery is not installed")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    path = root / "examples" / "own_kernel_cells.py"
    book = gallery.jupyter_notebook(split_code_and_text_blocks(str(path))[1], dict(DEFAULT_GALLERY_CONF), str(root))
    texts = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    outputs = run("%matplotlib inline\nimport sys; sys.argv.append('--small')", *texts)
    assert [said(each, "error") for each in outputs] == [""] * len(outputs)
    shown = [output["data"] for each in outputs for output in each if output["output_type"] == "execute_result"]
    captions = [data["text/html"].partition("<caption>")[2].split("</caption>")[0] for data in shown[:3]]
    assert [caption.split()[0] for caption in captions] == ["&lt;Plan:", "&lt;PhaseTimes", "relative"]
    assert len(shown[3]["image/png"]) > 50_000
    assert any("largest error: " in said(each, "stdout") for each in outputs)
