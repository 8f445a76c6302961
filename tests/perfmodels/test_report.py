"""Report by `parki bench report`: sets, the record and its checks, continuation, and the written pages."""

import copy
import json

import pytest

from parki import cli
from parki.app import parser
from parki.app.words import REPORTS
from parki.perfmodels.bench import facts, kernels, measure, methods
from parki.perfmodels.bench.report import command, page, record, running, sets, tables

ABOUT = {"n": 1000, "tolerance": 1e-3, "threads": 1}
TINY = [
    sets.ReportEntry("sums", "accuracy", 300, 1e-3, 1, "ewald-laplace"),
    sets.ReportEntry("sizes", "growth", 300, 1e-3, 1, "kifmm-coulomb"),
    sets.ReportEntry("parts", "phases", 300, 1e-3, 1, "kifmm-coulomb"),
    sets.ReportEntry("cores", "threads", 300, 1e-3, 1, "kifmm-coulomb", scales=True),
    sets.ReportEntry("wrong", "p2p", 300, 1e-3, 1),
]


def sums(run, name, slower):
    """Return the rows of accuracy of one sum."""
    rows = []
    for tolerance in (1e-3, 1e-5):
        for part, seconds in (("plan and call", 0.2), ("call again", 0.1)):
            more = ABOUT | {"tolerance": tolerance, "error": tolerance / 3, "memory": 5e5, "series": name}
            times = [slower * seconds, 2 * slower * seconds]
            rows.append(measure.row(f"{name}, {tolerance:g}: {part}", times, 1e-3, "M particles", part=part, **more))
    return [r | {"run": run} for r in rows]


def beside(run):
    other = measure.row("sum: FMM3D", [3.0], 1e-3, "M particles", error=1e-4, **ABOUT)
    ours = measure.row("sum: parki", [0.5], 1e-3, "M particles", other, error=9e-5, **ABOUT)
    gone = measure.absent("against openmm", "pip install openmm")
    return [r | {"run": run} for r in (other, ours, gone)]


def entry(name, benchmark, rows, run="first"):
    question = {"n": 1000, "tolerance": 1e-3, "threads": 1, "space": "Serial", "repeat": 2}
    made = {"name": name, "benchmark": benchmark, "command": f"parki bench {benchmark}", "run": run, "seconds": 2.0}
    return made | {"asked": question, "rows": rows, "load": [1.0, 1.0, 1.0]}


def made(run="first"):
    """Return a record of two sums and a comparison."""
    load = [0.1, 0.1, 0.1]
    times = {"began": "2026-11-01T10:00:00+00:00", "ended": "2026-11-01T10:01:00+00:00"}
    return {
        "schema": 1,
        "set": "quick",
        "command": "parki bench report --set quick",
        "asked": {"space": None, "threads": None},
        "machine": {"processor": "P", "cores": 2, "arch": "zen-1", "bytes": 64, "system": "S", "memory": 2**34},
        "software": {
            "parki": "0",
            "python": "3",
            "numpy": "2",
            "scipy": "1",
            "compiler": "c",
            "flags": "-O",
            "rates": "r",
        },
        "runs": [{"run": run, **times, "load_began": load, "load_ended": load}],
        "entries": [
            entry("a", "accuracy", sums(run, "ewald-laplace", 1), run),
            entry("b", "accuracy", sums(run, "bldtt-coulomb", 4), run),
            entry("c", "free", beside(run), run),
        ],
    }


# Sets -----------------------------------------------------------------------------------------------------------------
def test_sets_are_those_of_the_command():
    assert tuple(sets.SETS) == REPORTS


@pytest.mark.parametrize("name", sets.SETS)
def test_entries_are_commands_that_can_be_run(name):
    entries = sets.SETS[name]
    assert len({one.name for one in entries}) == len(entries)
    shown = {benchmark for section in page.SECTIONS for benchmark in section.benchmarks}
    for one in entries:
        assert one.benchmark in shown
        parsed = parser.parser().parse_args(one.command().split()[1:])
        given = one.asked()
        assert {key: getattr(parsed, key) for key in vars(given)} == vars(given)
        if one.only:
            assert methods.chosen(given, (*methods.TOLERANT, methods.DIRECT))


def test_one_thread_but_where_threads_are_measured():
    assert {one.asked().threads for one in sets.SETS["standard"] if not one.scales} == {1}
    assert [one.name for one in sets.SETS["standard"] if one.asked().threads is None] == ["threads"]
    assert {one.asked(threads=8).threads for one in sets.SETS["standard"]} == {8}


# The record -----------------------------------------------------------------------------------------------------------
def test_a_valid_record_comes_back(tmp_path):
    record.write(tmp_path / "record.json", made())
    assert record.read(tmp_path / "record.json") == made()


def broken(change):
    found = made()
    change(found)
    return found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.update(schema=2), "schema is 2; expected 1"),
        (lambda r: r["machine"].pop("bytes"), "bytes of machine is missing; expected int"),
        (lambda r: r["software"].update(flags=None), "flags of software is None"),
        (lambda r: r["runs"][0].update(load_began=[1.0]), r"load_began of run 1 is \[1.0\]"),
        (lambda r: r["entries"][1].update(name="a"), "entry 'a' is there twice"),
        (lambda r: r["entries"][0].update(error="x"), "has rows and an error"),
        (lambda r: r["entries"][0].pop("rows"), "or neither"),
        (lambda r: r["entries"][0]["rows"][0].update(times=[]), "times of row 1 of entry 'a' is None"),
        (lambda r: r["entries"][0]["rows"][0].update(times=[0.2, -1.0]), "is -1.0; expected a positive number"),
        (lambda r: r["entries"][0]["rows"][0].update(seconds=0.3), "expected the least of its times"),
        (lambda r: r["entries"][0]["rows"][0].update(error=0.0), "error of row 1"),
        (lambda r: r["entries"][2]["rows"][1].update(ratio=7.0), "is 7.0; expected that of the rates of two rows"),
        (lambda r: r["entries"][2]["rows"][1].update(against="BaryTree"), "against 'BaryTree'"),
    ],
)
def test_what_contradicts_itself_is_refused(change, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        record.check(broken(change))
    path = tmp_path / "record.json"
    path.write_text(json.dumps(broken(change)))
    with pytest.raises(ValueError, match=rf"record\.json: .*{said}"):
        record.read(path)


def test_ratios_are_of_one_run():
    """Check rows, entries and runs of two records, mixed in every way."""
    one, two = made("first"), made("second")
    mixed = copy.deepcopy(one)
    mixed["runs"] += two["runs"]
    mixed["entries"][2]["rows"][0] = two["entries"][2]["rows"][0]  # row of the other program, from another run
    with pytest.raises(ValueError, match="rows of the runs first, second; expected those of one run"):
        record.check(mixed)
    mixed = copy.deepcopy(one)
    mixed["entries"][2]["rows"] = two["entries"][2]["rows"]
    mixed["runs"] += two["runs"]
    with pytest.raises(ValueError, match="of the run first, and its rows of second"):
        record.check(mixed)
    with pytest.raises(ValueError, match="run of entry 'c' is 'second'; expected one of first"):
        record.check(one | {"entries": [*one["entries"][:2], two["entries"][2]]})
    ours, other = one["entries"][2]["rows"][1], two["entries"][2]["rows"][0]
    with pytest.raises(ValueError, match="expected those of one run"):
        record.ratio(other, ours)
    assert record.ratio(one["entries"][2]["rows"][0], ours) == 6.0


# Measuring ------------------------------------------------------------------------------------------------------------
def test_a_set_from_end_to_end(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sets.SETS, "quick", TINY)
    monkeypatch.setattr(kernels, "p2p", lambda *_: 1 / 0)
    folder = tmp_path / "pages"
    assert cli.main(["bench", "report", "--set", "quick", "-o", str(folder)]) == 1
    printed, found = capsys.readouterr().out, record.read(folder / "record.json")
    assert [one["name"] for one in found["entries"]] == ["sums", "sizes", "parts", "cores", "wrong"]
    assert found["entries"][4]["error"] == "ZeroDivisionError: division by zero"
    for one in found["entries"]:
        assert one["command"] in printed
        for r in one.get("rows", ()):
            assert len(r["times"]) == 1
    text = (folder / "index.md").read_text("utf-8")
    assert "ZeroDivisionError" in text
    assert {path.name for path in folder.iterdir()} == {
        "index.md", "record.json", "accuracy.svg", "growth.svg", "phases.svg",
    }  # fmt: skip

    # Continued: only failed entries are measured again.
    row = measure.row("loop: by hand", [1.0], 1.0, "G pairs", **ABOUT)
    own = measure.row("loop: parki", [0.5], 1.0, "G pairs", row, **ABOUT)
    monkeypatch.setattr(kernels, "p2p", lambda *_: [row, own])
    monkeypatch.setattr(methods, "accuracy", lambda *_: pytest.fail("measured"))
    assert cli.main(["bench", "report", "--resume", str(folder / "record.json")]) == 0
    again = record.read(folder / "record.json")
    assert again["entries"][:4] == found["entries"][:4]
    assert len(again["runs"]) == 2
    assert again["entries"][4]["run"] == again["runs"][1]["run"]
    assert "kernels.svg" in (folder / "index.md").read_text("utf-8")
    capsys.readouterr()


def test_records_of_other_measurements_are_not_gone_on_with():
    old, new = made(), made()
    assert running.resumed(old, new) is old
    new["machine"]["processor"] = "Q"
    with pytest.raises(ValueError, match=r"machine of the record to resume is .*processor was 'P' and is 'Q'"):
        running.resumed(old, new)
    with pytest.raises(ValueError, match="set of the record to resume is 'quick'; expected 'full'"):
        running.resumed(old, made() | {"set": "full"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--n", "100"], "--n was given with report"),
        (["--tolerance", "1e-3"], "--tolerance was given"),
        (["--from", "x.json", "--set", "full"], "--set was given with --from"),
        (["--only", "none"], "--only is 'none'; expected some of accuracy-ewald-laplace"),
        (["--from", "none.json"], r"none\.json"),
    ],
)
def test_what_does_not_fit_is_refused(words, said, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", "report", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said.replace("\\", "") in line


def test_options_of_a_report_are_no_others(capsys):
    assert cli.main(["bench", "p2p", "--set", "quick"]) == 2
    assert cli.main(["bench", "p2p", "--only", "ewald-laplace"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "--set was given with p2p; expected parki bench report --set" in first
    assert "--only was given with p2p; expected one of report, peers-free, accuracy" in second


def test_a_commit_is_marked_if_the_code_differs(tmp_path, root):
    assert facts.commit(tmp_path) is None
    found = facts.commit(root)
    if (root / ".git").exists():
        assert len(found.removesuffix("-dirty")) == 40


# Pages ----------------------------------------------------------------------------------------------------------------
def test_pages_of_a_record(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    record.write(tmp_path / "old.json", made())
    for _ in range(2):
        assert cli.main(["bench", "report", "--from", str(tmp_path / "old.json"), "-o", str(tmp_path / "pages")]) == 0
    names = ["index.md", "record.json", "accuracy.svg", "programs.svg"]
    assert capsys.readouterr().out.splitlines()[:4] == [str(tmp_path / "pages" / name) for name in names]
    text = (tmp_path / "pages" / "index.md").read_text("utf-8")
    assert text == page.text(made())
    text = text.replace(tables.SPACE, " ")
    for said in (
        "in 4 of 4 sums",
        "| `bldtt-coulomb` | 1e-05 | 3.3e-06 | 800 ms | 400 ms | 500 |",
        "| sum | FMM3D: 1.0e-04, 3 s | parki: 9.0e-05, 500 ms | 6.00 |",
        "in 1 of 1 lines",
        "Not measured: against openmm (`pip install openmm`).",
        "512 bits, compiled for zen",
        "16 GiB",
    ):
        assert said in text
    assert "Other programs ran" not in text
    pictures = [(tmp_path / "pages" / name).read_bytes() for name in names[2:]]
    page.write(made(), tmp_path / "pages")
    assert pictures == [(tmp_path / "pages" / name).read_bytes() for name in names[2:]]


def test_a_busy_machine_is_told():
    found = made()
    for one in found["entries"]:
        one["load"] = [3.5, 3.0, 3.0]
    assert "at a load average of 3.5 or more on 2 cores" in page.text(found)


def test_sums_are_not_compared_over_runs():
    found = made()
    found["entries"][1] = entry("b", "accuracy", sums("second", "bldtt-coulomb", 4), "second")
    found["runs"].append(found["runs"][0] | {"run": "second"})
    record.check(found)
    assert "in 2 runs" in page.text(found)
    rows = [r for one in found["entries"][:2] for r in one["rows"]]
    with pytest.raises(ValueError, match="expected those of one run"):
        record.together(rows, "both")


def test_times_and_ratios_for_people():
    shown = [tables.seconds(value).split(tables.SPACE) for value in (12.345, 0.0123, 1.23e-5)]
    assert [" ".join(words) for words in shown] == [
        "12.3 s",
        "12.3 ms",
        "12.3 µs",
    ]
    assert [tables.factor(value) for value in (0.00123, 0.5, 9.949, 123.4)] == ["0.0012", "0.50", "9.95", "123"]
    assert command.FOLDER.name == "parki-report"


def test_the_page_of_the_site_is_that_of_its_record(root):
    folder = root / "docs" / "benchmarks"
    found = record.read(folder / "record.json")
    assert (folder / "index.md").read_text("utf-8") == page.text(found)
    for section, entries in page.shown(found):
        if page.drawn(section, entries):
            assert 1000 < (folder / section.picture).stat().st_size < 150_000
