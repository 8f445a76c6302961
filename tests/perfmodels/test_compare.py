"""Rule that finds slower times, on made-up records."""

import copy

import pytest

from parki.perfmodels.bench import compare

ASKED = {"n": 1000, "tolerance": 1e-6, "threads": 1, "space": "Serial"}


def record(times, date="2026-11-01", benchmark="ewald", **asked):
    """Return a record with one row per name in `times`."""
    asked = ASKED | asked
    about = {name: asked[name] for name in ("n", "tolerance", "threads")}
    rows = [{"what": what, "seconds": min(t), "times": t, **about} for what, t in times.items()]
    return {
        "benchmark": benchmark,
        "date": date,
        "asked": asked,
        "machine": {"processor": "P"},
        "versions": {"parki": "1"},
        "rows": rows,
    }


def verdicts(old, new):
    return {change.what: change.verdict for change in compare.compare(record(old), record(new)).changes}


def test_slower_faster_and_the_same():
    old = {"slow": [1.0] * 3, "fast": [1.0] * 3, "same": [1.0] * 3}
    new = {"slow": [1.06] * 3, "fast": [0.94] * 3, "same": [1.04] * 3}
    assert verdicts(old, new) == {"slow": "slower", "fast": "faster", "same": ""}
    found = compare.compare(record(old), record(new))
    assert found.slower
    assert [round(change.ratio, 3) for change in found.changes] == [0.943, 1.064, 0.962]


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ([1.0, 1.2, 1.3], [1.15, 1.15, 1.15], ""),  # the old times vary by 20 %
        ([1.0, 1.0, 1.0], [1.15, 1.30, 1.3], ""),  # the new times vary by 13 %
        ([1.0, 1.2, 1.3], [1.26, 1.26, 1.26], "slower"),  # more than 5 % and 20 %
        ([1.0, 1.0, 9.0], [1.1, 1.1, 9.0], "slower"),  # one odd run is not noise
        ([1.0], [1.5], ""),  # two single runs say little
        ([1.0], [1.6], "slower"),
        ([1.6], [1.0], "faster"),
    ],
)
def test_noise_is_the_spread_of_both(old, new, verdict):
    assert verdicts({"row": old}, {"row": new}) == {"row": verdict}


def test_a_machine_that_is_slower_as_a_whole_is_noise():
    old, new = record({"row": [1.0] * 3}), record({"row": [1.5] * 3})
    assert compare.compare(old | {"yardstick": [1e-3, 1.1e-3]}, new | {"yardstick": [1e-3, 1.1e-3]}).slower
    found = compare.compare(old | {"yardstick": [1e-3, 1.1e-3]}, new | {"yardstick": [1.1e-3, 1.5e-3]})
    assert not found.slower
    assert "yardstick then: 1.00 to 1.10 ms\nyardstick now: 1.10 to 1.50 ms" in str(found)


def test_rows_on_one_side_are_named_and_are_no_regression():
    old, new = record({"both": [1.0] * 3, "gone": [1.0] * 3}), record({"both": [1.0] * 3, "added": [9.0] * 3})
    found = compare.compare(old, new)
    assert (found.gone, found.added, found.slower) == (["gone"], ["added"], False)
    text = str(found)
    assert "measured then, not now" in next(line for line in text.splitlines() if line.startswith("gone"))
    assert "measured now, not then" in next(line for line in text.splitlines() if line.startswith("added"))
    assert text.endswith("0 of 1 rows slower beyond noise")


def test_rows_of_another_n_do_not_match():
    new = record({"row": [5.0] * 3})
    new["rows"][0]["n"] = 2000
    found = compare.compare(record({"row": [1.0] * 3}), new)
    assert (found.changes, found.gone, found.added) == ([], ["row"], ["row"])


def test_what_could_not_be_measured_is_missing():
    new = record({"row": [1.0] * 3})
    new["rows"].append({"what": "peer", "absent": "pip install peer"})
    found = compare.compare(record({"row": [1.0] * 3, "peer": [1.0] * 3}), new)
    assert found.gone == ["peer"]


def test_another_machine_or_version_is_noted():
    new = record({"row": [1.0] * 3})
    new["machine"] = {"processor": "Q"}
    new["versions"] = {"parki": "2", "numpy": "2.4"}
    notes = compare.compare(record({"row": [1.0] * 3}), new).notes
    assert notes == ["then: 2026-11-01, parki 1", "processor: P then, Q now", "numpy: None then, 2.4 now"]


def test_the_newest_record_of_the_same_question():
    records = [
        record({"b": [1.0]}, date="2026-11-03"),
        record({"a": [1.0]}, date="2026-11-02"),
        record({"c": [1.0]}, date="2026-11-03"),
        record({"d": [1.0]}, date="2026-11-04", n=7),
        record({"e": [1.0]}, date="2026-11-04", benchmark="p2p"),
        {"benchmark": "ewald", "rows": []},
    ]
    assert compare.newest(records, "ewald", ASKED)["rows"][0]["what"] == "c"
    with pytest.raises(ValueError, match=r"no record of ewald with n 8.*found n 1000.*n 7"):
        compare.newest(records, "ewald", ASKED | {"n": 8})
    with pytest.raises(ValueError, match="found none at all"):
        compare.newest(records, "fft", ASKED)


def test_records_come_back_from_their_file(tmp_path):
    path, first, second = tmp_path / "records.json", record({"a": [0.1, 0.2]}), record({"µ": [1e-9]})
    compare.append(path, first)
    compare.append(path, second)
    assert compare.read(path) == [first, second]
    assert compare.compare(compare.read(path)[0], copy.deepcopy(first)).slower is False


@pytest.mark.parametrize(("text", "said"), [("no", "is not JSON"), ("{}", "no list of records"), ("[1]", "no list")])
def test_other_files_are_refused(text, said, tmp_path):
    path = tmp_path / "records.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        compare.read(path)
