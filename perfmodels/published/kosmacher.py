"""Model of the published method, and its measured times: Kosmacher et al. (2026), sections 4 to 6.

Section 5 models a kernel by its flops f, the bytes m of all its input and output, and the bytes m_G and m_S that it
moves to and from global and shared memory:

    T0    = τf f + τm (m_G + l1 m_S)             no cache
    T∞    = τf f + τm (m + l2 m_G + l1 m_S)      a second-level cache for all
    T∞,l1 = τf f + τm (m + l1 m_G + l1 m_S)      a first-level cache, too
    Tf    = τf f

with l2 = 1/4, l1 = 1/10.  The text leaves some constants open; the following give all analytical times of its Tables 3
and 5 to the digits printed:

- 1/τf = 33.5 TFLOP/s, the data sheet's; 1/τm = 4.0 TB/s, not the 4.8 TB/s of an H200's data sheet: 4 TB/s is that of
  the superchip with 96 GB of HBM3.
- The polynomials of the window have degree ν = 5.  The grid has 264 × 272 × 272 points: 256 × 264 × 264, and P more
  along each axis for the taps.  A far-field cell of (P/2)³ grid points holds 14 sources, and a block of P2G-hybrid no
  more than a cell does, whatever bx.
- Table 4 gives P2G-grid 96·27 Ns (P/2)³ bytes, but Table 5 has been computed with the bytes of P2G-base.

A stage of a whole sum (Tables 9 and 10) is modelled from the kernels measured alone (`stages`), on a padded grid.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

#: Table 1: flop-equivalents, each half the time of a fused multiply-add, of double-precision functions on an H200.
FLOP_EQUIVALENTS = {
    "fma": 2.0, "add": 2.10, "mul": 2.10, "div": 35.0, "sqrt": 41.5, "rsqrt": 30.2, "exp": 50.8, "erf": 155.0,
    "erfc": 267.0, "sinh": 361.0, "i0": 82.9, "j0": 262.0, "j1": 654.0,
}  # fmt: skip
#: Section 5.1: flop-equivalents of a pair within rc, by device.
PAIR = {"h200": 414.0, "a100": 318.0}

#: Table 3, milliseconds: measured, T0, T∞, T∞,l1, Tf; N = 4e6, s = 256.
TABLE3 = {
    ("GM-1D", 64, 1): (261.0, 854.0, 357.0, 257.0, 190.0),
    ("GM-2D", 8, 32): (336.0, 855.0, 357.0, 257.0, 190.0),
    ("SM-1D", 32, 1): (258.0, 278.0, 262.0, 259.0, 190.0),
    ("SM-2D", 64, 2): (323.0, 267.0, 260.0, 258.0, 190.0),
}
#: Table 5, likewise; N = 4e6, s = 224, P = 8.
TABLE5 = {
    ("P2G", "base", 256): (477.0, 88.9, 24.9, 12.0, 2.81),
    ("P2G", "source", 512): (354.0, 88.9, 24.9, 12.0, 2.81),
    ("P2G", "grid", 128): (246.0, 98.2, 34.2, 21.3, 12.2),
    ("P2G", "hybrid", 64): (39.5, 21.7, 13.4, 11.6, 2.81),
    ("G2P", "base", 32): (62.8, 12.8, 3.73, 1.88, 0.489),
    ("G2P", "target", 32): (28.3, 12.8, 3.73, 1.88, 0.489),
}
#: Tables 9 (N = 4e6 uniform, s = 224, P = 8, 1e-9) and 10 (s = 160, P = 4, 1e-7): milliseconds by stage.
MEASURED = {
    "table9": {"p2p": 239.0, "p2g": 47.6, "fft": 48.7, "cnv": 20.0, "ifft": 10.7, "g2p": 36.7},
    "table10": {"p2p": 191.34, "p2g": 36.69, "fft": 8.17, "cnv": 11.72, "ifft": 1.87, "g2p": 17.51},
    "table10_single": {"p2p": 92.67, "p2g": 28.24, "fft": 4.8, "cnv": 6.72, "ifft": 1.27, "g2p": 7.95},
}
#: Table 11, milliseconds by stage on 1, 2, 4, … 64 H200s, 4e6 points each, a box that grows along x: P = 8, rc and grid
#: as in Table 9; and times of messages between GPUs.
RANKS = (1, 2, 4, 8, 16, 32, 64)
TABLE11 = {
    "p2p": (227.4, 232.2, 232.2, 234.2, 235.1, 231.5, 229.9),
    "p2g": (45.9, 53.6, 51.3, 51.6, 49.9, 50.5, 45.0),
    "fft": (48.8, 190.4, 245.9, 278.3, 299.0, 307.0, 330.2),
    "cnv": (18.1, 25.4, 24.8, 24.6, 24.2, 24.3, 23.4),
    "ifft": (10.7, 47.4, 61.5, 69.6, 74.6, 76.6, 83.2),
    "g2p": (33.3, 35.2, 34.0, 32.7, 32.0, 31.4, 30.5),
    "sort": (0.0, 16.5, 23.7, 37.1, 61.3, 110.4, 222.0),
    "ghost_source": (0.0, 7.6, 8.1, 8.0, 8.0, 8.0, 7.2),
    "ghost_grid": (0.0, 6.9, 6.2, 6.1, 5.7, 5.5, 2.7),
}
#: Atomic additions of P2G-hybrid in Table 5, where a block adds to all 27 (P/2)³ grid points of 12 components; and
#: additions a second, beside all other work: a rate that an H200 has sustained.
ADDED = 4e6 / 14 * 27 * 4**3 * 12
SUSTAINED = ADDED / 39.5e-3


@dataclass(frozen=True)
class DeviceConstants:
    """Constants of section 5: τf, τm in seconds, l1, l2, and flop-equivalents of a pair within rc."""

    flop: float = 1 / 33.5e12
    byte: float = 1 / 4.0e12
    l1: float = 1 / 10
    l2: float = 1 / 4
    pair: float = PAIR["h200"]


@dataclass(frozen=True)
class PublishedProblem:
    """A problem of the paper: points, sources in a cube of side rc, taps P, and the grids.

    Attributes
    ----------
    held
        Grid points that P2G writes, with the taps beyond the box.
    padded
        Points of the transforms, padded along free directions.
    smooth
        Whether the transforms have sizes without large prime factors.
    cell
        Sources of a far-field cell of (P/2)³ grid points.
    degree
        Degree of the window's polynomials.
    """

    n: int = 4_000_000
    s: float = 224.0
    P: int = 8
    held: float = 264.0 * 272 * 272
    padded: float = 256.0 * 692 * 692
    smooth: bool = False
    cell: float = 14.0
    degree: int = 5


#: Problems of `MEASURED`.  The paper gives the padded grid of the first only.  The second is inferred: the first at the
#: spacing that the ratio of their CNV times gives, and 576 as the next good size.
PROBLEMS = {
    "table9": PublishedProblem(),
    "table10": PublishedProblem(s=160.0, P=4, held=220.0 * 224 * 224, padded=216.0 * 576 * 576, smooth=True, cell=3.0),
}
PROBLEMS["table10_single"] = PROBLEMS["table10"]


@dataclass(frozen=True)
class KernelWork:
    """Work of one kernel: flops f, and the bytes m, m_G and m_S of the module's formulas."""

    flops: float
    whole: float
    moved: float
    shared: float = 0.0

    def times(self, device: DeviceConstants) -> dict[str, float]:
        """Return the seconds of the four models: ``"T0"``, ``"Tinf"``, ``"Tinf_l1"`` and ``"Tf"``."""
        arithmetic, shared = self.flops * device.flop, device.l1 * self.shared
        return {
            "T0": arithmetic + device.byte * (self.moved + shared),
            "Tinf": arithmetic + device.byte * (self.whole + device.l2 * self.moved + shared),
            "Tinf_l1": arithmetic + device.byte * (self.whole + device.l1 * self.moved + shared),
            "Tf": arithmetic,
        }


def p2p(
    problem: PublishedProblem, device: DeviceConstants, variant: str = "GM-1D", bx: int = 64, by: int = 1
) -> KernelWork:
    """Return the work of P2P (section 5.1, Table 2), with the sources as targets."""
    n, looked_at = problem.n, 27.0 * problem.s
    flops = n * looked_at * (device.pair * math.pi / 6 + 14)
    sources = 96.0 * looked_at
    nbytes, shared = {
        "GM-1D": (48 + sources, 0.0),
        "GM-2D": (24 * by + 24 + sources, 0.0),
        "SM-1D": (48 + sources / bx, 24 + sources),
        "SM-2D": (48 + sources / bx, 24 * by + sources),
    }[variant]
    return KernelWork(flops, 144.0 * n, n * nbytes, n * shared)


def p2g(problem: PublishedProblem, variant: str = "hybrid", bx: int = 64) -> KernelWork:
    """Return the work of P2G (section 5.2, Table 4; for ``"grid"`` the bytes behind Table 5, see the module)."""
    n, taps, neighbours = problem.n, problem.P**3, 27 * (problem.P / 2) ** 3
    nbytes_all = 96.0 * (n + problem.held)
    if variant == "hybrid":
        nbytes = 96.0 * n * (1 + neighbours / min(bx, problem.cell))
        return KernelWork(46.0 * n * taps, nbytes_all, nbytes, n * (96.0 * taps + 12 * neighbours))
    flops = n * (6.0 * problem.degree * taps + 50 * neighbours) if variant == "grid" else 46.0 * n * taps
    return KernelWork(flops, nbytes_all, n * (24.0 + 168 * taps))


def g2p(problem: PublishedProblem) -> KernelWork:
    """Return the work of G2P (section 5.3)."""
    taps = problem.n * problem.P**3
    return KernelWork(8.0 * taps, 48.0 * problem.n + 24.0 * problem.held, 24.0 * taps)


@dataclass(frozen=True)
class Reached:
    """Share of its model that a stage reaches, and the source of this number."""

    share: float
    source: str


#: Efficiencies of kernels, for P = 8 and 4.  For P2P, P2G and G2P they are of kernels alone, so that the stages of
#: Tables 9 and 10 test them; for FFT and CNV they are from these tables, tested by IFFT and the other table.
REACHED = {
    "p2p": Reached(0.73, "190/261 of Tf, Table 3"),
    "p2g": Reached(21.7 / 39.5, "of T0, Table 5"),
    "p2g 4": Reached(0.36, "of T0, from the 178 points/µs of Table 7"),
    "g2p": Reached(12.8 / 28.3, "of T0, Table 5"),
    "g2p 4": Reached(0.30, "of T0, from the 760 points/µs of Table 8"),
    "fft": Reached(0.84, "of two passes, from Table 10, smooth sizes"),
    "fft odd": Reached(0.25, "of two passes, from Table 9: 692 = 4·173, a large prime"),
    "cnv": Reached(0.34, "of arithmetic plus traffic, from Table 9"),
}
#: Seconds of sorting the points and other work around the kernel, in P2G and in G2P: Table 9 less Table 5.  Without
#: them these stages of Table 9 would come out 17 and 23 % short.
SORT = 8e-3
#: Flop-equivalents of a mode: three window transforms (sinh, root, quotient), exp, the multiplier.
MODE = 3 * (361.0 + 41.5 + 35.0) + 50.8 + 2 * 35.0 + 120.0


@dataclass(frozen=True)
class Stage:
    """A predicted stage: seconds at full efficiency, seconds at the efficiency reached, measured seconds or None."""

    limit: float
    seconds: float
    reached: Reached
    measured: float | None = None

    @property
    def off(self) -> float | None:
        """Relative error of the prediction: predicted over measured seconds, less 1."""
        return None if self.measured is None else self.seconds / self.measured - 1


def stages(
    problem: PublishedProblem,
    device: DeviceConstants,
    times: Mapping[str, float] | None = None,
    single: bool = False,
) -> dict[str, Stage]:
    """Predict the stages of a whole sum by the published method.

    Parameters
    ----------
    problem, device
        Problem to sum, and constants of the device.
    measured
        Measured milliseconds by stage.
    single
        Whether in single precision: a stage takes half as long, but P2G, for its integer arithmetic, 1/1.3
        (section 6.4).
    """
    small = " 4" if problem.P < 6 else ""
    fft = REACHED["fft" if problem.smooth else "fft odd"]
    transform = 2 * 16.0 * problem.padded * device.byte  # two passes that read and write the array
    modes = problem.padded / 2
    limits = {
        "p2p": (p2p(problem, device).times(device)["Tf"], REACHED["p2p"], 0.0),
        "p2g": (p2g(problem).times(device)["T0"], REACHED[f"p2g{small}"], SORT),
        "fft": (12 * transform, fft, 0.0),
        "cnv": (modes * (MODE * device.flop + 15 * 16 * device.byte), REACHED["cnv"], 0.0),
        "ifft": (3 * transform, fft, 0.0),
        "g2p": (g2p(problem).times(device)["T0"], REACHED[f"g2p{small}"], SORT),
    }
    result = {}
    for name, (limit, reach, overhead) in limits.items():
        kernel = limit / reach.share
        seconds = (kernel / (1.3 if name == "p2g" else 2.0) + overhead / 2) if single else kernel + overhead
        time = None if times is None else times[name] * 1e-3
        result[name] = Stage(limit, seconds, reach, time)
    return result


def of_density(n: int, s: float, P: int = 8) -> PublishedProblem:
    """Return the headline problem at another size and density: s grows with rc³, and grid points with n / s."""
    base = PROBLEMS["table10" if P < 6 else "table9"]
    scale = n / base.n * base.s / s
    return replace(base, n=n, s=s, held=base.held * scale, padded=base.padded * scale, cell=base.cell * s / base.s)
