"""Completion by `parki completion`: bash offers commands, options and words; other shells get their own script."""

import shutil
import subprocess
import sys

import pytest

from parki import cli
from parki.app import completion, examples, parser, words
from parki.perfmodels.bench.benchmark import BENCHMARKS

pytest.importorskip("shtab", reason='shtab is not installed: pip install "parki[completion]"')

OFFERED = """
source script.sh
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$(complete -p parki | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def offered(tmp_path, capsys):
    """Return a function for the words that bash offers after the given ones, the last of which is incomplete."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    assert cli.main(["completion", "bash"]) == 0
    (tmp_path / "script.sh").write_text(capsys.readouterr().out)

    def found(*typed):
        command = ["bash", "-c", OFFERED, "-", "parki", *typed]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return set(done.stdout.split())

    return found


def test_bash_offers_commands_and_options(offered):
    assert offered("") >= {name for name in parser.of_commands(parser.parser()) if " " not in name}
    assert offered("mod") == {"model"}
    assert offered("doctor", "--ch") == {"--check"}
    assert offered("examples", "") >= {"list", "show", "copy"}
    assert "--periodicity" in offered("run", "--")


def test_bash_offers_words(offered):
    assert offered("run", "--method", "") == set(words.METHODS)
    assert offered("run", "--kernel", "regularised_") == {k for k in words.KERNELS if k.startswith("regularised_")}
    assert offered("tune", "--kernel", "") == set(words.EWALD_KERNELS)
    assert offered("bench", "fmm-") == {name for name in BENCHMARKS if name.startswith("fmm-")}
    assert offered("cache", "") >= {"list", "clear", "prune"}
    assert offered("examples", "show", "wat") == {"water", "water_dynamics"}
    assert offered("examples", "copy", "") >= set(examples.names())


def test_bash_offers_files(offered, tmp_path):
    (tmp_path / "particles.npz").touch()
    assert "particles.npz" in offered("run", "part")
    assert "particles.npz" in offered("bench", "p2p", "--json", "part")


@pytest.mark.parametrize("shell", words.SHELLS)
def test_every_shell_has_a_script(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for word in ("doctor", "completion", "periodicity", "chebyshev"):
        assert word in text


def test_names_stay_free_words_after_a_script(capsys):
    """Check that a script does not restrict the next parser, which takes other kernels, such as files."""
    assert cli.main(["completion", "bash"]) == 0
    capsys.readouterr()
    asked = parser.parser().parse_args("run in.npz --kernel mine.py -o out.npz".split())
    assert asked.kernel == "mine.py"


def test_without_shtab(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"parki completion: {completion.MISSING}\n")
    assert 'pip install "parki[completion]"' in err
