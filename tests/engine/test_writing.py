"""Files that are written whole or not at all: results, records, pictures."""

import json
import os
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from parki import cli, demo, formats
from parki.engine.compile import writing
from parki.ewald.options import EwaldOptions
from parki.perfmodels.bench import compare, plot

FACTS = {"kernel": "laplace", "tolerance": 1e-6}


def need(name):
    pytest.importorskip({".h5": "h5py", ".vtu": "pyevtk", ".png": "matplotlib"}.get(Path(name).suffix, "numpy"))


def save(path, size):
    rng = np.random.default_rng(size)
    formats.save(path, {"potential": rng.random(size)}, rng.random((3, size)), FACTS)


def drawn(path):
    x = np.random.default_rng(1).random((3, 60))
    demo.draw(path, EwaldOptions.resolve(box=(1, 1, 1), tolerance=1e-2), x, x)


def bars(path):
    plot.draw({"benchmark": "p2p", "machine": {"processor": "one"}, "rows": []}, path)


WRITERS = {
    **{f"result{suffix}": lambda path: save(path, 30) for suffix in (".npz", ".npy", ".csv", ".h5", ".vtu", "")},
    "record.json": lambda path: compare.append(path, {"benchmark": "p2p", "rows": []}),
    "model.json": lambda path: cli.main(["model", "ewald", "--device", "h200", "--n", "1e4", "--json", str(path)]),
    "bars.png": bars,
    "demo.png": drawn,
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_cannot_be_written_leaves_what_was_there(name, tmp_path, monkeypatch, capsys):
    need(name)
    path, other = tmp_path / name, tmp_path / f"other-{name}"
    old = b"[]" if name == "record.json" else b"what was there"
    path.write_bytes(old)
    WRITERS[name](other) if name != "record.json" else None

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    if name == "model.json":
        assert WRITERS[name](path) == 2
        said = capsys.readouterr().err
    else:
        with pytest.raises(OSError, match="No space left on device") as caught:
            WRITERS[name](path)
        said = str(caught.value)
    assert f"{path} cannot be written" in said
    assert path.read_bytes() == old
    assert {at.name for at in tmp_path.iterdir()} <= {name, f"other-{name}"}


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from parki import formats
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
rng = np.random.default_rng(2)
try:
    formats.save(path, {"potential": rng.random(20000)}, rng.random((3, 20000)), {"kernel": "laplace"})
except OSError as error:
    print(error)
    sys.exit(3)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit to files")
@pytest.mark.parametrize("name", ["result.npz", "result.npy", "result.csv", "result.h5", "result.vtu", "result.h5:/a"])
def test_a_result_that_does_not_fit_on_the_disk_leaves_the_old_one(name, tmp_path):
    need(name.partition(":")[0])
    given = tmp_path / name
    path = formats.place(given).file
    save(given, 30)
    old = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), str(given)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert f"{path} cannot be written: " in done.stdout
    assert path.read_bytes() == old
    assert [at.name for at in tmp_path.iterdir()] == [path.name]


def test_a_link_is_followed_and_access_stays(tmp_path):
    real, link = tmp_path / "real.npy", tmp_path / "link.npy"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    save(link, 5)
    assert link.is_symlink()
    assert np.load(real).shape == (5,)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_written_to(tmp_path):
    pipe, read = tmp_path / "pipe.json", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    writing.write(pipe, json.dumps([1]))
    reader.join()
    assert read == ["[1]"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_that_is_not_there_is_named_by_the_file(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match=r"file.x\.json cannot be written"):
        writing.write(tmp_path / "file" / "x.json", "[]")
