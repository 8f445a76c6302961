"""Table of calls that are compared bit for bit."""

from dataclasses import dataclass, field
from typing import Any

EWALD = ("laplace", "laplace_grad", "laplace_dipole", "stokes_sl", "stokes_dl", "stokes_comb", "stokes_pressure",
         "stokes_grad", "yukawa")  # fmt: skip
FREE = ("laplace", "laplace_grad", "laplace_dipole", "stokes_sl", "stokes_dl", "stokes_comb", "stokes_pressure",
        "stokes_grad", "yukawa", "regularised_coulomb", "regularised_yukawa", "oscillatory", "gaussian", "multiquadric",
        "inverse_quadratic", "biharmonic", "thin_plate", "rotlet", "regularised_stokeslet",
        "regularised_dipole", "rpy", "spline_coulomb")  # fmt: skip
KIFMM = ("coulomb", *FREE[1:9], "rotlet", "rpy")
TREECODES = ("bldtt", "pc", "cp")
DTYPES = ("float64", "float32")
TOLERANCES = {"float64": 1e-7, "float32": 1e-4}
THREADS = {"OpenMP": 2}
POINTS = {"ewald": 1000, "direct": 700, "treecode": 2000, "fmm": 2000}
FEW = 150  # points of a case in the simulator
BOX = (1.0, 1.25, 1.5)
CELL = ((1.0, 0.0, 0.0), (0.3, 1.1, 0.0), (-0.2, 0.4, 1.2))


@dataclass(frozen=True)
class Case:
    """Case of a comparison: one call, or the calls of one plan.

    Attributes
    ----------
    method
        "ewald", "bldtt", "pc", "cp", "kifmm", "chebyshev", "direct", or "pieces".
    kernel
        A kernel, or the name of the function in `pieces`.
    way
        "once", "plan" (a call, one into an array, one after a move), "rhs" (several right-hand sides) or "operator".
    n, targets
        Numbers of sources and of targets; 0 targets mean that the targets are the sources.
    options
        Keywords.
    """

    method: str
    kernel: str
    way: str = "plan"
    dtype: str = "float64"
    space: str = "OpenMP"
    n: int = 1000
    targets: int = 0
    options: dict[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        words = [self.method, self.kernel, self.way, self.dtype, self.space, f"n={self.n}"]
        words += [f"targets={self.targets}"] if self.targets else []
        words += [f"{name}={_short(value)}" for name, value in self.options.items()]
        return " ".join(words)


def _short(value: Any) -> str:
    return "cell" if value == CELL else str(value).replace(" ", "")


def table() -> list[Case]:
    """Return every case; the first of each method and kernel are the cases of `quick`."""
    every = [*_ewald(), *_treecodes(), *_fmm(), *_direct(), *_pieces()]
    return list({str(case): case for case in every}.values())


def quick() -> list[Case]:
    """Return one case of each method and kernel; for treecodes other than dual tree traversal, of one kernel."""
    first: dict[tuple[str, str], Case] = {}
    for case in table():
        if case.method not in ("pc", "cp") or case.kernel == "coulomb":
            first.setdefault((case.method, case.kernel), case)
    return list(first.values())


def _ewald() -> list[Case]:
    def box(p: int) -> dict[str, Any]:
        return {"periodicity": p} | ({"box": BOX} if p else {})

    def case(
        kernel: str, p: int, way: str = "plan", dtype: str = "float64", space: str = "OpenMP", **more: Any
    ) -> Case:
        n, targets = more.pop("n", POINTS["ewald"]), more.pop("targets", 0)
        options = box(p) | {"tolerance": TOLERANCES[dtype]} | more
        return Case("ewald", kernel, way, dtype, space, n, targets, options)

    every = [(kernel, p) for kernel in EWALD for p in (3, 2, 1, 0) if kernel != "yukawa" or p in (0, 3)]
    cases = [case(*of, dtype=dtype, space=space) for space in ("OpenMP", "Serial") for dtype in DTYPES for of in every]
    cases += [case(*of, way) for of in every for way in ("once", "operator")]
    cases += [case(*of, targets=300) for of in every]
    cases += [case(kernel, p, "rhs") for kernel, p in every if p in (0, 3)]
    cases += [case(kernel, 3, dtype=dtype, box=CELL) for kernel in EWALD for dtype in DTYPES]
    cases += [case(kernel, 3, space="GpuSim", n=FEW) for kernel in EWALD]
    cases += [case("laplace", p, space="GpuSim", n=FEW, dtype="float32") for p in range(4)]
    for kernel in ("laplace", "stokes_sl", "stokes_comb"):
        for p in (3, 0):
            cases += [case(kernel, p, **options) for options in EWALD_OPTIONS]
            cases += [case(kernel, p, space="Serial", p2g_method=m) for m in ("BASE", "SOURCE", "HYBRID")]
            cases += [case(kernel, p, "once", layout="nd")]
        cases += [case(kernel, 3, periodicity=(False, True, True)), case(kernel, 3, periodicity=(True, False, False))]
    cases += [case("laplace", 3, way, box=CELL, targets=300) for way in ("once", "plan", "rhs")]
    cases += [case("laplace", 3, n=n, targets=nt) for n, nt in ((1, 0), (2, 1), (0, 0), (5, 900), (3000, 0))]
    cases += [case("stokes_sl", 2, box=None), case("laplace", 3, tolerance=2.0), case("laplace", 3, rc=3.0)]
    return cases


EWALD_OPTIONS = [
    {"layout": "nd"}, {"far_precision": "single"}, {"far_precision": "double", "tolerance": 1e-3}, {"fft_type": "C2C"},
    {"split": "gaussian"}, {"tolerance": 1e-2}, {"tolerance": 1e-4}, {"tolerance": 1e-10}, {"tolerance": 1e-12},
    {"rc": 0.2}, {"cell_size": 20}, {"rhs": 4}, {"p2p_method": "LIST"}, {"p2p_method": "GM-1D"},
    {"p2p_method": "GM-2D"}, {"p2p_method": "SM-1D"}, {"p2p_method": "SM-2D"}, {"p2g_method": "GRID"},
    {"p2g_method": "BLOCK"}, {"p2g_method": "TILE"}, {"g2p_method": "BASE"}, {"g2p_method": "TARGET"},
    {"g2p_method": "TILE"},
]  # fmt: skip


def _treecodes() -> list[Case]:
    def case(method: str, kernel: str, way: str = "plan", dtype: str = "float64", space: str = "OpenMP", **more: Any):
        n, targets = more.pop("n", POINTS["treecode"]), more.pop("targets", 0)
        asked = {} if {"theta", "tolerance"} & set(more) else {"tolerance": 1e-5 if dtype == "float64" else 1e-3}
        return Case(method, kernel, way, dtype, space, n, targets, asked | {"leaf_size": 60} | more)

    kernels = ("coulomb", *FREE[1:])
    cases = [case(method, kernel, theta=0.7, degree=5) for method in TREECODES for kernel in kernels]
    cases += [case(method, kernel) for method in TREECODES for kernel in kernels]
    cases += [case("bldtt", kernel, dtype=d, space="Serial") for kernel in kernels for d in DTYPES]
    cases += [case("bldtt", kernel, "once") for kernel in kernels]
    cases += [case(m, k, space="GpuSim", n=200, leaf_size=20) for m in TREECODES for k in ("coulomb", "stokes_sl")]
    options = [
        {"theta": 0.5, "degree": 6}, {"theta": 0.8}, {"tolerance": 1e-2}, {"tolerance": 1e-9}, {"leaf_size": 25},
        {"leaf_size": None}, {"batch_size": 30}, {"layout": "nd"}, {"far_precision": "single"},
        {"far_precision": "double"}, {"targets": 500}, {"gradient": "only"},
    ]  # fmt: skip
    for method in TREECODES:
        for kernel in ("coulomb", "stokes_sl"):
            cases += [case(method, kernel, **more) for more in options]
            cases += [case(method, kernel, way) for way in ("rhs", "operator")]
        cases += [case(method, kernel, gradient=True) for kernel in ("coulomb", "yukawa")]
        cases += [case(method, "stokes_comb", way, targets=500) for way in ("once", "rhs")]
    cases += [case("bldtt", "coulomb", n=n, targets=nt) for n, nt in ((1, 0), (3, 2), (0, 0), (5, 900))]
    return [*cases, case("bldtt", "stokes_sl", gradient=True), case("bldtt", "coulomb", tolerance=-1.0)]


def _fmm() -> list[Case]:
    def case(method: str, kernel: str, way: str = "plan", dtype: str = "float64", space: str = "OpenMP", **more: Any):
        n, targets = more.pop("n", POINTS["fmm"]), more.pop("targets", 0)
        asked = {} if {"order", "tolerance"} & set(more) else {"tolerance": 1e-3}
        return Case(method, kernel, way, dtype, space, n, targets, asked | {"leaf_size": 60} | more)

    every = [("kifmm", kernel) for kernel in KIFMM]
    every += [("chebyshev", kernel) for kernel in ("coulomb", *FREE[1:])]
    cases = [case(*of, order=4) for of in every]  # quick: no order is sought
    cases += [case(*of, dtype=dtype, space="Serial") for of in every for dtype in DTYPES]
    cases += [case(*of, "once") for of in every]
    cases += [case(m, k, space="GpuSim", n=200, leaf_size=20, order=3) for m, k in every if k in ("coulomb", "rotlet")]
    options = [
        {"order": 4}, {"order": 6}, {"tolerance": 1e-5}, {"tolerance": 1e-7}, {"leaf_size": 25}, {"leaf_size": None},
        {"layout": "nd"}, {"targets": 500}, {"gradient": "only"},
    ]  # fmt: skip
    for method in ("kifmm", "chebyshev"):
        for kernel in ("coulomb", "stokes_sl"):
            cases += [case(method, kernel, **more) for more in options]
            cases += [case(method, kernel, way) for way in ("rhs", "operator")]
        cases += [case(method, kernel, gradient=True) for kernel in ("coulomb", "yukawa")]
        cases += [case(method, "stokes_comb", way, targets=500) for way in ("once", "rhs")]
        cases += [case(method, "coulomb", n=n, targets=nt) for n, nt in ((1, 0), (3, 2), (0, 0), (5, 900))]
    return [*cases, case("kifmm", "gaussian"), case("kifmm", "coulomb", order=2)]


def _direct() -> list[Case]:
    def case(kernel: str, dtype: str, space: str, n: int = POINTS["direct"], targets: int = 0) -> Case:
        return Case("direct", kernel, "once", dtype, space, n, targets)

    spaces = ("OpenMP", "Serial")
    cases = [case(kernel, dtype, space) for kernel in FREE for dtype in DTYPES for space in spaces]
    cases += [case(kernel, "float64", "OpenMP", targets=333) for kernel in FREE]
    return cases + [case(kernel, "float64", "GpuSim", FEW) for kernel in FREE]


def _pieces() -> list[Case]:
    cases = [Case("pieces", name, "once", dtype, n=500) for name in ("wrap", "cell_list") for dtype in DTYPES]
    for options in ({"padding_factor": 8}, {"periodicity": 3}, {"skip_empty_cells": False}):
        cases += [Case("pieces", "cell_list", "once", space=s, n=500, options=options) for s in ("OpenMP", "Serial")]
    return [*cases, Case("pieces", "samples", "once", n=500)]
