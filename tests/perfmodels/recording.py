"""Arguments of a benchmark, and the rows that the benchmark records."""

import argparse
import json

from parki.perfmodels.bench import command


def asked(name, n, **others):
    given = {"n": n, "tolerance": 1e-3, "repeat": 2, "threads": 1, "space": "Serial"}
    return argparse.Namespace(name=name, **(given | {"json": None, "compare": None, "plot": None} | others))


def ran(name, n, folder):
    """Run a benchmark and return the recorded rows."""
    return ran_rows(asked(name, n), folder)


def ran_rows(args, folder):
    """Run the benchmark of these arguments and return the recorded rows."""
    path = args.json = folder / "record.json"
    assert command.main(args) == 0
    (record,) = json.loads(path.read_text())
    keys = [(r["what"], r["n"], r["tolerance"], r["threads"]) for r in record["rows"]]
    assert len(set(keys)) == len(keys)
    for r in record["rows"]:
        assert 0 < r["seconds"] == min(r["times"])
        assert len(r["times"]) == 2
    return record["rows"]
