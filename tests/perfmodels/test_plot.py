"""Pictures of benchmarks: each kind makes a file with its titles."""

import pytest

from parki.perfmodels.bench import measure, plot

ABOUT = {"n": 1000, "tolerance": 1e-6, "threads": 2}


def record(benchmark, rows):
    return {"benchmark": benchmark, "asked": ABOUT, "machine": {"processor": "P"}, "rows": rows}


def rows():
    first = measure.row("theirs", [0.5], 1.0, "M points", **ABOUT, error=1e-6)
    second = measure.row("ours", [0.001], 1.0, "M points", first, **ABOUT)
    return [first, second, measure.row("pairs", [1.0], 1.0, "G pairs", **ABOUT), measure.absent("other", "get it")]


def series(name, values):
    return [
        measure.row(f"{s} {v}", [0.1], 1.0, "M particles", **(ABOUT | {name: v}), series=s)
        for s in ("laplace", "stokes_sl")
        for v in values
    ]


KINDS = {
    "p2p": rows(),
    "scaling": series("n", [10_000, 30_000]),
    "tolerance": series("tolerance", [1e-3, 1e-6]),
    "free": [],
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_makes_a_file(kind, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.svg"
    plot.draw(record(kind, KINDS[kind]), path)
    assert path.read_text("utf-8").startswith("<?xml")


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_formats(suffix, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"picture{suffix}"
    plot.draw(record("p2p", rows()), path)
    assert path.read_bytes()[:4] == {".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix]


def test_bars_name_rates_and_ratios():
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure()
    plot.bars(figure, rows()[:3])
    fast, pairs = figure.axes
    assert [label.get_text() for label in fast.get_yticklabels()] == ["theirs, error 1e-06", "ours"]
    assert [text.get_text() for text in fast.texts] == ["2", "1e+03  (500.00 ×)"]
    assert (fast.get_xscale(), pairs.get_xscale()) == ("log", "linear")
    assert (fast.get_xlabel(), pairs.get_xlabel()) == ("M points/s", "G pairs/s")


def test_lines_are_one_for_each_series():
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure()
    plot.against_n(figure, KINDS["scaling"])
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["laplace", "stokes_sl"]
    assert [list(line.get_xdata()) for line in axes.lines] == [[10_000, 30_000]] * 2
    assert list(axes.lines[0].get_ydata()) == pytest.approx([10.0, 10 / 3])


def test_what_cannot_be_drawn_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"ends in \.png"):
        plot.check(tmp_path / "picture.gif")
    with pytest.raises(ValueError, match="is not there"):
        plot.check(tmp_path / "none" / "picture.png")
    monkeypatch.setattr(plot.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'parki\[plot\]'"):
        plot.check(tmp_path / "picture.png")
