"""`parki calibrate`: the rates of this machine and the costs of a sum's parts on it, measured in about ten seconds.

The rates are operations as kernels compute them, bandwidths, transforms, atomics, launches.  The costs come from whole
sums, timed phase by phase as a plan runs them: one with many sources within rc, which gives the time of a pair, and
others with few, which give the time of a target, of a grid point and of a row of the window.  All take turns, and the
best of all rounds counts, in processor time, as others may use the machine meanwhile.
"""

import argparse
import datetime
import functools
import logging
import math
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np

from parki import engine, fft, pairs, prediction, samples
from parki.engine import RangePolicy, Space, cache, spaces, target
from parki.ewald import predict
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.report import TITLES
from parki.ewald.stages import points, sums
from parki.perfmodels import machine, roofline, select
from parki.perfmodels.bench import microbench
from parki.perfmodels.bench.measure import CUBE
from parki.perfmodels.bench.microbench import Probe
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Costs, Machine
from parki.plan import Plan
from parki.timing import PhaseTimes
from parki.treecode import api, work
from parki.treecode.report import PHASES

TOLERANCE = 1e-6
FULL = 10.0  # seconds from which on sums are of full size
TICK = 1e-9  # seconds that a phase takes at least, where a coarse clock shows none
#: Name → kernel, points, sources in rc³, type.  "many" gives the time of a pair, "few" and "vectors" all other costs,
#: "single" is "few" in single precision.
SUMS = {
    "many": ("laplace", 20_000, 224.0, "float64"),
    "few": ("laplace", 80_000, 16.0, "float64"),
    "vectors": ("stokes_sl", 40_000, 24.0, "float64"),
    "single": ("laplace", 80_000, 16.0, "float32"),
}
LEAST_POINTS = 500
CLUSTERS, LEAST_CLUSTERS = 20_000, 4_000  # points of the treecode, and the least: fewer have no far clusters
DEGREE = 4  # degree of all pairs of the treecode
FREE = 0.85  # share of a core's rate alone that all cores together must reach each, else others use them
PLANES, LINE = 4, 128  # planes of the transforms, and their sides: a megabyte, as much as a sum transforms at once
NAMES = {"float64": "double", "float32": "single"}
DOUBLE = ("many", "few", "vectors")

log = logging.getLogger("parki.perfmodels")


class CalibrationSum:
    """A sum of random strengths at random points, whose phases are timed; `seconds` are the best times so far.

    On one thread times are processor time, which stands still while others have the core.
    """

    def __init__(self, kernel: str, n: int, crowd: float, dtype: str, space: Space) -> None:
        rng = np.random.default_rng(1)
        self.space, self.n = space, n
        self.p = choose.parameters(Question(kernel, CUBE, n, n, TOLERANCE, dtype, cell_size=crowd, far=dtype), Costs())
        v, k = variants.choose(space, dtype, p=self.p), self.p.kernel
        x = rng.random((3, n)).astype(dtype)
        sum_ = sums.SumSteps(self.p, v, (n, n, True), space)
        self.stages = sums.Stages(sum_, points.Points(self.p, x, x, space, v))
        self.dens = rng.standard_normal((1, k.dens, n)).astype(dtype)
        self.out = np.empty((1, k.result, n), dtype)
        self.clock = thread_time if space.name == "Serial" else perf_counter
        self.seconds = dict.fromkeys(Machine.PHASES, math.inf)

    def once(self) -> None:
        """Run once more and keep the best times."""
        times = PhaseTimes(TITLES, clock=self.clock)
        self.stages.run(self.dens, None, self.out, times)
        self.seconds = {phase: min(best, max(times.time[phase], TICK)) for phase, best in self.seconds.items()}

    @property
    def crowd(self) -> float:
        """Sources in a cube of side rc."""
        return float(select.Domain(CUBE).crowd(self.n, self.p.rc))

    @property
    def points(self) -> float:
        """Grid points."""
        return float(np.prod(self.p.grid))

    @property
    def transforms(self) -> float:
        """Seconds per grid point of one real transform of a component, with its share of the scaling."""
        seconds = sum(self.seconds[phase] for phase in ("fft", "cnv", "ifft"))
        return seconds / (self.points * (self.p.kernel.spread + self.p.kernel.fields))


class TreecodeProbe:
    """A treecode's sum of random charges at random points on one thread, planned anew each time.

    All else is as in `CalibrationSum`.
    """

    def __init__(self, n: int, degree: int) -> None:
        self.x, self.q, self.degree = samples.uniform(n), samples.charges(n), degree
        self.pair = replace(pairs.find("coulomb"), smooth=False)  # one degree, so few kernels to compile
        self.plan = self.planned()
        self.seconds = dict.fromkeys(clusters.PHASES, math.inf)

    def planned(self) -> Plan:
        """Return a new plan."""
        options = {"degree": self.degree, "far_precision": "double", "execution_space": "Serial"}
        return api.plan(self.pair, self.x, self.x, **options)

    def once(self) -> None:
        """Plan and run once more, and keep the best times."""
        self.plan, times = self.planned(), PhaseTimes(PHASES, clock=thread_time)
        out = np.empty((1, 1, len(self.q)))
        self.plan.sums[1].run(self.q[None, None], None, out, times)
        seconds = {phase: times.time[phase] or self.plan.walltime.time[phase] for phase in self.seconds}
        self.seconds = {phase: min(best, seconds[phase]) for phase, best in self.seconds.items()}

    def reached(self, machine: Machine) -> dict[str, float]:
        """Return the time that a machine's rates allow over the measured one, by the names in `clusters.SHARES`."""
        counts, shares = work.counts(self.plan.structure, self.plan.parameters, machine), {}
        limits = {name: roofline.time(counts_of_phase, machine).seconds for name, counts_of_phase in counts.items()}
        for share in dict.fromkeys(clusters.SHARES.values()):
            phases = [name for name, phase_share in clusters.SHARES.items() if phase_share == share]
            limit, seconds = (sum(times[name] for name in phases) for times in (limits, self.seconds))
            if limit > 0:
                shares[share] = limit / seconds
        return shares


def main(args: argparse.Namespace) -> int:
    """Measure this machine, and store and print the results; or with `forget` remove the stored ones."""
    path = machine.stored()
    if args.forget:
        exists = path.exists()
        path.unlink(missing_ok=True)
        print(f"removed {path}" if exists else f"nothing was stored in {path}")  # noqa: T201
        return 0
    if not args.seconds > 0:
        raise ValueError(f"seconds: found {args.seconds}, expected a positive number")
    result = measure(args.seconds)
    store(result, path)
    print(f"{table(result)}\nstored in {path}")  # noqa: T201
    return 0


def measure(seconds: float = FULL) -> Machine:
    """Measure this host for about this number of seconds, besides compiling.

    In less than ten seconds the sums are smaller, and less like real ones.
    """
    serial, host_space, build = Space("Serial"), spaces.get("host"), target()
    threads = spaces.workers(host_space)
    lanes = {dtype: build.vector_bytes // np.dtype(dtype).itemsize for dtype in NAMES}
    log.info("compiling what is measured")
    probes = [probe for dtype in NAMES for probe in microbench.arithmetic(dtype, lanes[dtype])]
    probes += [*microbench.memory(threads), *_transforms(), _launch(serial)]
    sums = {name: CalibrationSum(*_sized(sizes, seconds), serial) for name, sizes in SUMS.items()}
    treecode = TreecodeProbe(max(LEAST_CLUSTERS, int(CLUSTERS * min(1.0, seconds / FULL))), DEGREE)
    start, rounds, parallel_sum, all_cores = perf_counter(), 0, None, None
    for probe in probes:
        probe.plan(min(microbench.LEAST, seconds / 200))
    if threads > 1:
        all_cores = microbench.everywhere(probes[0], threads)
        probes.append(all_cores)
        parallel_sum = CalibrationSum(*_sized(SUMS["few"], seconds), host_space)
    while rounds < 2 or perf_counter() - start < seconds:
        log.info("round %d, after %.1f s", rounds + 1, perf_counter() - start)
        for calibration_sum in (*sums.values(), treecode):
            calibration_sum.once()
        for probe in probes:
            probe.once()
        if parallel_sum is not None and _free(probes[0], all_cores):
            parallel_sum.once()
        rounds += 1
    rates = {probe.name: probe.rate for probe in probes}
    result = Machine(
        name=_name(),
        kind="host",
        units=threads,
        operations={dtype: {n[1]: rate for n, rate in rates.items() if n[0] == dtype} for dtype in NAMES},
        bandwidth=_bandwidths(rates),
        atomics=rates["atomics",],
        launch=1.0 / rates["launch",],
        fft={dtype: rates["fft", dtype] for dtype in NAMES},
        lanes=lanes,
        reached=dict.fromkeys(Machine.PHASES, 1.0),
        parallel=_parallel(sums["few"], parallel_sum, threads) if parallel_sum and _free(probes[0], all_cores) else {},
        costs=fitted(sums, lanes["float64"]),
        source=f"measured {datetime.date.today().isoformat()}",
    )
    return replace(result, reached=reached(result, [sums[name] for name in DOUBLE]) | treecode.reached(result))


def store(host: Machine, path: Path) -> None:
    """Write a machine to a file, completely or not at all."""
    cache.write(path, f"# {prediction.built()}\n{host.text()}")


def fitted(sums: Mapping[str, CalibrationSum], lanes: int) -> Costs:
    """Return the costs with which the model predicts the measured sums."""
    near_cost, time = near_costs(sums["many"], sums["few"], lanes)
    sums_in_double = [sums[name] for name in DOUBLE]
    (spread, s), (gather, g) = (_rows(sums_in_double, phase, lanes) for phase in ("p2g", "g2p"))
    sparse_share = (s + g) / (spread + gather)
    transforms = [sums[name].transforms for name in ("few", "vectors")]
    costs = Costs(
        near=near_cost,
        target=time,
        lanes=lanes,
        fft=float(np.mean(transforms)),
        spread=_level(sums_in_double, "p2g", lanes, sparse_share),
        gather=_level(sums_in_double, "g2p", lanes, sparse_share),
        sparse=sparse_share,
        single=1.0,
        single_fft=1.0,
    )
    # Times in single precision over times in double precision.
    ratios = []
    for part, phases in {"near": ("p2p",), "transform": ("fft", "cnv", "ifft")}.items():
        double, single = (
            sum(sums[name].seconds[phase] for phase in phases) / _modelled(sums[name], costs)[part]
            for name in ("few", "single")
        )
        ratios.append(min(single / double, 1.0))
    return replace(costs, single=ratios[0], single_fft=ratios[1])


def reached(host: Machine, sums: list[CalibrationSum]) -> dict[str, float]:
    """Return by phase the time that a machine's rates allow over the measured one, as geometric means over the sums."""
    shares_of_phases: dict[str, list[float]] = {phase: [] for phase in Machine.PHASES}
    for sample in sums:
        v = variants.choose(sample.space, sample.p.dtype, p=sample.p)
        for phase, counts in predict.counts(sample.p, v, (sample.n, sample.n), host).items():
            limit = roofline.time(counts, host, sample.p.type_of(phase)).seconds
            shares_of_phases[phase].append(limit / sample.seconds[phase])
    return {phase: float(np.exp(np.mean(np.log(shares)))) for phase, shares in shares_of_phases.items()}


def near_costs(large_crowd: CalibrationSum, small_crowd: CalibrationSum, lanes: int) -> tuple[float, float]:
    """Return the seconds of a pair, and of a target besides its pairs, from sums with many and few sources in reach."""
    model, rows = Costs(near=1.0, lanes=lanes), []
    for sample in (large_crowd, small_crowd):
        pairs = 4 / 3 * math.pi * sample.crowd
        pair = model.near_pair(select.relative(sample.p.kernel, sample.p.tolerance, model), sample.crowd)
        share = float(replace(model, target=1.0).near_target(sample.crowd))
        rows.append((float(pair) * pairs, share, sample.seconds["p2p"] / sample.n))
    (a, f, t), (b, g, u) = rows
    rest = (u * a - t * b) / (g * a - f * b)
    if 0 < g * rest < u:
        return (t - f * rest) / a, rest
    return t / a, 0.0  # the sum with few sources takes no longer than its pairs


def _modelled(sample: CalibrationSum, costs: Costs) -> dict[str, float]:
    """Return the seconds that the model expects, by its parts."""
    question = select.ModelledSum(sample.p.kernel, sample.n, sample.n, select.Domain(CUBE), sample.p.itemsizes)
    phases = select.phases(question, sample.p.rc, sample.points, sample.p.P, costs)
    return {part: float(seconds) for part, seconds in phases.items()}


def _rows(sums: list[CalibrationSum], phase: str, lanes: int) -> tuple[float, float]:
    """Return the seconds of a row of the window, and its increase per grid point of a particle.

    They minimise the squares of relative errors.
    """
    terms = np.array([_terms(sample, phase, lanes) for sample in sums])
    coefficients, *_ = np.linalg.lstsq(terms[:, :2] / terms[:, 2:], np.ones(len(terms)), rcond=None)
    if coefficients.min() > 0:
        return float(coefficients[0]), float(coefficients[1])
    return float(np.mean(terms[:, 2] / terms[:, 0])), 0.0


def _level(sums: list[CalibrationSum], phase: str, lanes: int, sparse: float) -> float:
    """Return the seconds of a row for a given cost of sparse grids."""
    terms = np.array([_terms(sample, phase, lanes) for sample in sums])
    return float(np.exp(np.mean(np.log(terms[:, 2] / (terms[:, 0] + sparse * terms[:, 1])))))


def _terms(sample: CalibrationSum, phase: str, lanes: int) -> tuple[float, float, float]:
    """Return rows of the window per particle and component, on a dense grid and added by a sparse one, and seconds."""
    components = sample.p.kernel.spread if phase == "p2g" else sample.p.kernel.fields
    model, per_particle = Costs(lanes=lanes, sparse=1.0), sample.points / sample.n
    name = "spread" if phase == "p2g" else "gather"
    dense_rows = float(model.rows(name, sample.p.P))
    return (
        dense_rows,
        float(model.rows(name, sample.p.P, per_particle)) - dense_rows,
        sample.seconds[phase] / (sample.n * components),
    )


def table(host: Machine) -> str:
    """Return the machine's rates and costs in a few lines."""
    lines = [f"{host.name}, {host.units} cores, {host.source}", f"{'G operations/s':<16}{'double':>10}{'single':>10}"]
    double, single = (host.operations[dtype] for dtype in NAMES)
    lines += [f"  {name:<14}{1e-9 * rate:>10.3g}{1e-9 * single[name]:>10.3g}" for name, rate in double.items()]
    lines.append("  {:<14}{:>10.3g}{:>10.3g}".format("transforms", *(1e-9 * host.fft[dtype] for dtype in NAMES)))
    lines.append(f"  {'atomics':<14}{1e-9 * host.atomics:>10.3g}")
    levels = ", ".join(f"{level} {1e-9 * rate:.3g}" for level, rate in host.bandwidth.items())
    lines.append(f"GB/s            {levels}")
    lines.append(f"launch          {1e6 * host.launch:.3g} µs")
    if host.units > 1:
        shares = ", ".join(f"{phase} {share:.0%}" for phase, share in host.parallel.items())
        lines.append(f"all cores, of {host.units} times one  {shares or 'not measured: others were using them'}")
    lines.append("of the limit    " + ", ".join(f"{phase} {share:.0%}" for phase, share in host.reached.items()))
    if host.costs is not None:
        c, defaults = host.costs, Costs()
        lines.append(f"{'costs':<16}{'here':>10}{'default':>10}")
        for name in ("near", "target", "fft", "spread", "gather"):
            lines.append(f"  {name + ', ns':<14}{1e9 * getattr(c, name):>10.3g}{1e9 * getattr(defaults, name):>10.3g}")
        for name in ("sparse", "single", "single_fft"):
            lines.append(f"  {name:<14}{getattr(c, name):>10.3g}{getattr(defaults, name):>10.3g}")
    return "\n".join(lines)


def _sized(sizes: tuple[str, int, float, str], seconds: float) -> tuple[str, int, float, str]:
    """Return the same sum, with fewer points if there is less time."""
    kernel, n, crowd, dtype = sizes
    return kernel, max(LEAST_POINTS, int(n * min(1.0, seconds / FULL))), crowd, dtype


def _bandwidths(rates: Mapping[tuple[str, ...], float]) -> dict[str, float]:
    """Return bytes per second by level; all cores together reach at least the rate of one."""
    bandwidths = {name[1]: rate for name, rate in rates.items() if name[0] == "bandwidth"}
    return bandwidths | {"dram_all": max(bandwidths["dram"], bandwidths.get("dram_all", 0.0))}


def _parallel(serial: CalibrationSum, parallel: CalibrationSum, threads: int) -> dict[str, float]:
    """Return by phase the speedup of all threads over one, at least 1, over their number."""
    speedups = {phase: serial.seconds[phase] / parallel.seconds[phase] for phase in Machine.PHASES}
    return {phase: min(1.0, max(1.0, speedup) / threads) for phase, speedup in speedups.items()}


def _free(serial: Probe, parallel: Probe) -> bool:
    """Return whether all cores were free at once: together they reached nearly the rate of one times their number."""
    return parallel.rate > FREE * parallel.amount / serial.amount * serial.rate


def _transforms() -> list[Probe]:
    """Return probes of transforms along both axes of planes, by the library that sums use."""
    library, probes = fft.library(threads=1), []
    for dtype in NAMES:
        x = np.ones((PLANES, LINE, LINE), np.result_type(dtype, np.complex64))

        def run(turns: int, x: np.ndarray = x) -> None:
            for _ in range(turns):
                for axis in (2, 1):
                    library.run(x, axis, False)
                x.fill(1.0)  # transforms do not divide, so x would grow

        probes.append(Probe(("fft", dtype), run, 2 * x.size * 5 * math.log2(LINE)))
    return probes


def _launch(space: Space) -> Probe:
    """Return a probe of launches of a kernel with hardly any work."""
    kernel = engine.kernel("cells", "gather_points", real="float64")
    x, order, out = np.zeros((3, 1)), np.zeros(1, np.int32), np.zeros((3, 1))
    launch = engine.prepare(RangePolicy(space, 1), kernel, x=x, order=order, out=out)

    def run(turns: int) -> None:
        for _ in range(turns):
            launch.run()

    return Probe(("launch",), run, 1.0)


@functools.cache
def _name() -> str:
    """Return the system's name of the processor."""
    names = [
        line.partition(":")[2].strip() for line in machine.hardware().splitlines() if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()
