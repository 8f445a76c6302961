"""Files of workunits; outcomes and reasons to skip in each space; registers of kernels on a GPU."""

import re
from collections import Counter, defaultdict

import pytest

from parki.engine.run import spaces

OUTCOMES = ("passed", "failed", "skipped")
_results: dict[str, Counter] = defaultdict(Counter)
_reasons: dict[str, Counter] = defaultdict(Counter)
_usage: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)  # kernel → architecture, dtype → registers


@pytest.fixture(scope="session")
def where(root):
    """Return the kernel file of every workunit."""
    found = {}
    folder = root / "kernels"
    for path in sorted([*folder.glob("*.py"), *(folder / "published").glob("*.py")]):
        for name in re.findall(r"^@pk\.workunit.*?^def (\w+)", path.read_text("utf-8"), re.M | re.S):
            found[name] = path.relative_to(folder).with_suffix("").as_posix()
    return found


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Record the outcome under the space of the test."""
    report = (yield).get_result()
    callspec = getattr(item, "callspec", None)
    space = callspec.params.get("space") if callspec else None
    if space is not None:
        report.user_properties.append(("space", space))


def pytest_runtest_logreport(report):
    """Count an outcome; under xdist in the main process, too."""
    for name, value in report.user_properties:
        if name == "usage" and report.when == "call":
            arch, dtype, kernel, registers, _ = value
            _usage[kernel][arch, dtype] = max(registers, _usage[kernel].get((arch, dtype), 0))
    space = dict(report.user_properties).get("space")
    if space is None or (report.when != "call" and report.outcome == "passed"):
        return
    _results[space][report.outcome] += 1
    if report.outcome == "skipped":
        _reasons[space][report.longrepr[2].removeprefix("Skipped: ")] += 1


def pytest_terminal_summary(terminalreporter):
    """Write a line per space and per reason to skip; then the most registers, by architecture and precision."""
    if _usage:
        columns = sorted({column for found in _usage.values() for column in found})
        terminalreporter.section("registers of kernels compiled for GPUs")
        terminalreporter.write_line(" " * 18 + "".join(f"{arch + ' ' + dtype[5:]:>10}" for arch, dtype in columns))
        for kernel, found in sorted(_usage.items()):
            terminalreporter.write_line(f"{kernel:18}" + "".join(f"{found.get(c, ''):>10}" for c in columns))
    if not _results:
        return
    terminalreporter.section("portability by space")
    for space in spaces.NAMES:
        counts = _results[space]
        told = ", ".join(f"{counts[o]} {o}" for o in OUTCOMES if counts[o]) or "nothing selected"
        terminalreporter.write_line(f"{space:9} {told}")
        for reason, n in _reasons[space].items():
            terminalreporter.write_line(f"{'':9} {n} skipped: {reason}")
