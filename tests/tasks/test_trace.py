"""Traces: written and read, checked, and drawn."""

import dataclasses
import json
from itertools import pairwise

import numpy as np
import pytest

from parki.tasks import gantt
from parki.tasks.simulate import simulate
from parki.tasks.trace import Trace
from tests.tasks import frozen


@pytest.fixture(scope="module")
def graph():
    return frozen.made(*frozen.read()[10]["case"])[0]


@pytest.fixture(scope="module")
def trace():
    return simulate(*frozen.made(*frozen.read()[10]["case"]), "drain")


def changed(trace, name, task, value):
    a = np.array(getattr(trace, name))
    a[task] = value
    return dataclasses.replace(trace, **{name: a})


def test_a_file_is_read_as_it_was_written(trace, tmp_path):
    trace.write(tmp_path / "run.json")
    found = Trace.read(tmp_path / "run.json")
    for field in dataclasses.fields(Trace):
        if field.name != "launch":
            np.testing.assert_array_equal(getattr(found, field.name), getattr(trace, field.name), field.name)
    same = np.unique(np.column_stack([trace.launch, found.launch]), axis=0)
    assert len(same) == len(trace.launches) == len(found.launches)
    found.check()


def test_events_are_those_of_chromes_format(trace, tmp_path):
    trace.write(tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text("utf-8"))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    assert list(names.values()) == list(trace.units)
    done = [e for e in events if e["ph"] == "X"]
    assert len(done) == len(trace.launches) < len(trace)
    assert sum(len(e["args"]["tasks"]) for e in done) == len(trace)
    by_unit = {tid: sorted((e["ts"], e["dur"]) for e in done if e["tid"] == tid) for tid in names}
    for some in by_unit.values():
        assert all(a + long <= b + 1e-6 for (a, long), (b, _) in pairwise(some))
    first = min(done, key=lambda e: (e["ts"], e["tid"]))
    assert first["cat"] in trace.kinds
    assert first["name"].startswith(f"{first['cat']} {first['args']['groups'][0]}")


def test_busy_shares(trace):
    busy, cores = trace.busy, slice(0, 8)
    assert (busy <= trace.seconds).all()
    assert trace.share(cores) == pytest.approx(busy[:8].mean() / trace.seconds)
    assert busy.sum() == pytest.approx(sum(trace.seconds_of(kind) for kind in trace.kinds))


def test_a_run_is_valid(trace, graph):
    trace.check(graph)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("begin", -1.0, "is not between"),
        ("end", 1e9, "is not between"),
        ("unit", 99, "unit: found"),
        ("launch", 0, "than its launch"),
    ],
)
def test_faults_are_found(trace, name, value, says):
    task = int(np.argmax(trace.launch))
    with pytest.raises(ValueError, match=says):
        changed(trace, name, task, value).check()


def test_overlaps_and_tasks_too_early_are_found(trace, graph):
    alone = np.flatnonzero((trace.unit == 0) & (trace.begin > 0))
    late = int(alone[np.argmax(trace.begin[alone])])
    with pytest.raises(ValueError, match=f"{trace.name(late)} overlaps another task on its unit; found from .* core 0"):
        changed(trace, "begin", late, np.sort(trace.begin[trace.unit == 0])[-2]).check()
    waits = graph.before.owner[(trace.unit[graph.before.owner] < 8)][-1]
    early = dataclasses.replace(trace, unit=np.arange(len(trace)), units=[str(i) for i in range(len(trace))],
                                launch=np.arange(len(trace)))  # fmt: skip
    early.check(graph)
    with pytest.raises(ValueError, match="begins before a task ends that it waits for"):
        changed(early, "begin", waits, 0.0).check(graph)


@pytest.mark.parametrize("text", ["{}", "[]", "no JSON", '{"parki": {"kinds": [], "tasks": 1}, "traceEvents": []}'])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"other\.json: found no trace of this library"):
        Trace.read(path)


def test_a_picture_names_units_and_kinds(trace, tmp_path):
    pytest.importorskip("matplotlib", reason="no picture: matplotlib is not installed")
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        gantt.draw(trace, tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text("utf-8")
    shown = {trace.kinds[k] for k in np.unique(trace.kind)}
    assert all(f">{name}<" in text for name in [*trace.units, *shown, "time, ms", "unit"])
    gantt.draw(trace, tmp_path / "run.png", "a title")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_need_a_place(trace, tmp_path):
    with pytest.raises(ValueError, match=r"gantt: found .*run\.txt.* expected a file name in \.png"):
        gantt.draw(trace, tmp_path / "run.txt")
    with pytest.raises(ValueError, match="in a folder that is there"):
        gantt.draw(trace, tmp_path / "none" / "run.png")


def test_without_matplotlib_the_user_is_told(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(gantt.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'parki\[plot\]'"):
        gantt.draw(trace, tmp_path / "run.png")
