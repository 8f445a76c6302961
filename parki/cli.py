"""The command ``parki``: demo, run, doctor, bench, model, calibrate, tune, cache."""

import argparse
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import parki
from parki import console, memory, ranks
from parki.distributed import launch
from parki.engine.errors import BuildError

KERNELS = (
    "laplace", "laplace_grad", "laplace_dipole", "yukawa", "stokes_sl", "stokes_dl", "stokes_comb", "stokes_pressure",
    "stokes_grad",
)  # fmt: skip
OVER_RANKS = ("demo", "run", "doctor")  # commands that run on all ranks of MPI together; bench with --mpi
BENCHMARKS = (
    "p2p", "p2g", "g2p", "fft", "variants", "ewald", "scaling", "tolerance", "split", "precision", "crowds", "free",
    "peers", "model", "selection", "roofline", "treecode", "treecode-scaling", "treecode-leaves", "treecode-free",
    "treecode-model", "fmm", "fmm-leaves", "fmm-free", "fmm-model", "plans",
)  # fmt: skip


POINTS = ("uniform", "plummer", "sphere")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 2 for input that cannot be used, 1 for anything else that is not as it should be.

    Where nobody reads what is printed any more the command ends without a word, with `console.CLOSED`.
    """
    comm = None
    try:
        with console.ready():
            asked = _parser().parse_args(arguments)
            if asked.mpi or asked.command in OVER_RANKS:
                comm = launch.world(1 if asked.mpi else 2)
            asked.comm = comm
            return _status(asked)
    except BrokenPipeError:
        return launch.end(comm, console.CLOSED)
    except OSError as error:  # only of the end of what is printed: _status takes all others
        print(f"parki: {error}", file=sys.stderr)
        return launch.end(comm, 2)


def _status(asked: argparse.Namespace) -> int:
    """Run what was asked for; say in one line what is wrong with its input."""
    log, handler, level = logging.getLogger("parki"), logging.StreamHandler(), logging.getLogger("parki").level
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    try:
        if asked.verbose and launch.first(asked.comm):
            log.addHandler(handler)
            log.setLevel(logging.INFO)
        with launch.told_by_one(asked.comm):
            return asked.action(asked)
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, MemoryError, BuildError) as error:
        if launch.speaks(asked.comm, error):
            if asked.verbose:
                traceback.print_exc()
            print(f"parki {asked.command}: {error}{launch.found_by(asked.comm, error)}", file=sys.stderr)
        return launch.end(asked.comm, 1 if isinstance(error, BuildError) else 2, error)
    except BaseException:
        launch.end(asked.comm, 1)
        raise
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def demo(asked: argparse.Namespace) -> int:
    """Sum the flow of random particles; print times and error, draw a picture."""
    from parki import demo as module
    from parki.ewald.options import EwaldOptions
    from parki.progress import Progress

    with ranks.together(asked.comm, "reading options"):
        options = EwaldOptions.resolve(
            box=(1, 1, 1), tolerance=asked.tolerance, execution_space=asked.space, threads=asked.threads
        )
        options.comm = asked.comm
    progress = Progress(sys.stderr if asked.comm is None else None, plain=asked.verbose)
    ratio = module.run(options, asked.n, asked.seed, None if asked.no_picture else asked.output, print, progress)
    return 0 if ratio <= 1 else 1


def run(asked: argparse.Namespace) -> int:
    """Sum over the particles of a file; over ranks of MPI together."""
    from parki import files
    from parki.progress import Progress

    wanted = {
        "tolerance": asked.tolerance,
        "periodicity": asked.periodicity,
        "rc": asked.rc,
        "split": asked.split,
        "execution_space": asked.space,
        "threads": asked.threads,
        "comm": asked.comm,
    }
    progress = Progress(sys.stderr if asked.comm is None else None, plain=asked.verbose)
    lines = files.run(asked.input, asked.output, asked.kernel, asked.dtype, wanted, asked.box, progress, asked.kappa)
    print(lines[0])
    if asked.comm is not None:  # times of all ranks
        print(lines.pop())
    if asked.verbose:
        print(*lines[1:], sep="\n", file=sys.stderr)
    return 0


def doctor(asked: argparse.Namespace) -> int:
    """Print what is here and what is missing."""
    from parki import doctor as module

    text, ready = module.report(asked.comm)
    print(text)
    return 0 if ready else 1


def bench(asked: argparse.Namespace) -> int:
    """Measure a kernel or a whole sum, with --mpi a sum over ranks."""
    if asked.mpi:
        from parki.perfmodels import bench_ranks

        return bench_ranks.main(asked)
    if asked.points is not None:
        raise ValueError("--points was given without --mpi; expected parki bench treecode --mpi --points plummer.")
    from parki.perfmodels import bench as module

    _room(asked.n or 0)
    return module.main(asked)


def model(asked: argparse.Namespace) -> int:
    """Predict a sum on any machine that is known."""
    if asked.what == "treecode":
        from parki.perfmodels import model_treecode as module
    elif asked.what == "fmm":
        from parki.perfmodels import model_fmm as module
    else:
        from parki.perfmodels import model as module
    if asked.what != "ewald" and asked.ranks is None:  # which make no points, or not all of them
        _room(asked.n)
    return module.main(asked)


def calibrate(asked: argparse.Namespace) -> int:
    """Measure this machine and remember it."""
    from parki.perfmodels import calibrate as module

    return module.main(asked)


def tune(asked: argparse.Namespace) -> int:
    """Measure what is fastest for sums of random points and remember it."""
    from parki.perfmodels import tune as module

    _room(asked.n)
    return module.main(asked)


def _room(n: int) -> None:
    """Refuse more random particles, of six numbers at least, than there is memory for."""
    memory.require(48 * n, f"--n {n}", "A smaller --n takes less.")


def cache(asked: argparse.Namespace) -> int:
    """List, clear or prune compiled kernels."""
    from parki.engine.runtime import cache as module

    if asked.what == "list":
        for entry in module.entries():
            print(f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(entry.time))}  {entry.size:9d}  {entry.label}")
        print(f"{len(module.entries())} kernels, {module.size() / 1e6:.1f} MB in {module.folder()}")
        return 0
    gone = module.clear() if asked.what == "clear" else module.prune(max_age_days=asked.days)
    print(f"{len(gone)} kernels removed from {module.folder()}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="parki", description="Fast sums of particle interactions.")
    parser.add_argument("--version", action="version", version=f"parki {parki.__version__}")
    parser.set_defaults(verbose=False, mpi=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str, tolerance: float | None = None) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(action=globals()[name])
        added.add_argument("-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="say what is done")
        if tolerance is not None:
            added.add_argument("--tolerance", type=float, default=tolerance, help="relative RMS error (%(default)g)")
            added.add_argument("--space", help="execution space, see parki doctor (the best host space)")
            added.add_argument("--threads", type=int, help="number of threads (all)")
        return added

    it = command("demo", "Sum the Stokes flow of random particles: times, error, a picture.", 1e-7)
    it.add_argument("--n", type=count, default=100_000, help="number of particles (%(default)d)")
    it.add_argument("--seed", type=int, default=0, help="of the random numbers (%(default)d)")
    it.add_argument("--no-picture", action="store_true", help="draw none")
    it.add_argument("-o", "--output", type=Path, default=Path("parki-demo.png"), help="the picture (%(default)s)")
    text = "Sum over the particles of a file with src, dens, box [, normals] [, trg]; under mpirun on all processes."
    it = command("run", text, 1e-6)
    it.add_argument("input", type=Path, metavar="IN", help=".npz, .npy, .csv, .h5 or .hdf5; FILE.h5:/GROUP for a group")
    it.add_argument("--kernel", choices=KERNELS, required=True)
    it.add_argument(
        "-o", "--output", type=Path, required=True, metavar="OUT", help="gets the potential: one of these or .vtu"
    )
    it.add_argument("--box", type=float, nargs=3, metavar=("LX", "LY", "LZ"), help="side lengths, if IN has no box")
    it.add_argument("--periodicity", type=int, choices=range(4), default=3, help="periodic directions (%(default)d)")
    it.add_argument("--kappa", type=float, help="inverse screening length of yukawa")
    it.add_argument("--rc", type=float, help="near-field radius (chosen for speed)")
    it.add_argument("--split", choices=("prolate", "gaussian"), default="prolate")
    it.add_argument(
        "--dtype", choices=("float32", "float64"), help="convert the arrays (computes as the file has them)"
    )
    command("doctor", "Say what is here, what is missing and how to get it.")
    it = command("bench", "Measure a kernel or a whole sum.", 1e-7)
    it.add_argument("name", choices=BENCHMARKS)
    it.add_argument("--n", type=count, help="number of particles (100000; of model and selection 30000)")
    text = "a sum over all processes of mpirun, of N particles in all"
    it.add_argument("--mpi", action="store_true", help=text)
    it.add_argument("--points", choices=POINTS, help="in free space with --mpi (uniform)")
    it.add_argument("--repeat", type=count, default=5, help="measurements, of which the best counts (%(default)d)")
    it.add_argument("--json", type=Path, metavar="FILE", help="append a record to this file")
    it.add_argument("--compare", type=Path, metavar="OLD.json", help="say what is slower than in this file")
    it.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures, .png, .svg or .pdf")
    it = command("model", "Predict the time of a sum, phase by phase, on a machine that need not be here.")
    it.add_argument("what", choices=("ewald", "treecode", "fmm"))
    it.add_argument("--device", default="host", metavar="NAME", help="host, or a machine in the list (%(default)s)")
    it.add_argument("--kernel", help="what is summed (stokes_comb; in free space coulomb)")
    it.add_argument("--n", type=count, default=100_000, help="number of particles (%(default)d)")
    it.add_argument("--tolerance", type=float, help="relative RMS error (1e-7)")
    it.add_argument("--theta", type=float, help="of a treecode, with --degree, instead of a tolerance")
    it.add_argument("--degree", type=int, help="of a treecode's polynomials")
    it.add_argument("--method", choices=("dual", "pc", "cp"), default="dual", help="of a treecode (%(default)s)")
    it.add_argument("--order", type=int, help="of a fast multipole sum, instead of a tolerance")
    it.add_argument("--kappa", type=float, help="of yukawa in free space")
    it.add_argument("--periodicity", type=int, choices=range(4), help="periodic directions (3; else 0)")
    it.add_argument("--box", type=float, nargs=3, default=(1.0, 1.0, 1.0), metavar=("LX", "LY", "LZ"), help="its sides")
    it.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    it.add_argument("--rc", type=float, help="near-field radius (chosen for speed)")
    it.add_argument("--threads", type=int, help="cores of a host (all)")
    it.add_argument("--ranks", type=count, help="of a sum over processes, each on such a machine")
    it.add_argument("--network", default="ndr400", metavar="NAME", help="between ranks (%(default)s)")
    it.add_argument("--published", action="store_true", help="the published method and its measured times beside it")
    it.add_argument("--json", type=Path, metavar="FILE", help="write the table to this file")
    it.add_argument("--plot", type=Path, metavar="FILE", help="draw the roofline and the time against rc")
    it = command("calibrate", "Measure this machine's rates, for the models that choose parameters.")
    it.add_argument("--seconds", type=float, default=10.0, help="about so long (%(default)g)")
    it.add_argument("--forget", action="store_true", help="remove what was measured")
    it = command("tune", "Measure which parameters are fastest, and remember them for tune=True.", 1e-7)
    it.add_argument("--kernel", choices=KERNELS, default="stokes_comb", help="what is summed (%(default)s)")
    it.add_argument("--n", type=count, default=100_000, help="number of particles (%(default)d)")
    it.add_argument("--periodicity", type=int, choices=range(4), default=3, help="periodic directions (%(default)d)")
    it.add_argument("--box", type=float, nargs=3, default=(1.0, 1.0, 1.0), metavar=("LX", "LY", "LZ"), help="its sides")
    it.add_argument("--kappa", type=float, help="inverse screening length of yukawa")
    it.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    it.add_argument("--forget", action="store_true", help="remove what was found on this machine")
    it = command("cache", "List, clear or prune compiled kernels.")
    it.add_argument("what", choices=("list", "clear", "prune"))
    it.add_argument("--days", type=float, default=30.0, help="prune what was not used for so long (%(default)g)")
    return parser


def count(text: str) -> int:
    """Read a positive whole number, 1e6 included."""
    value = float(text)
    if not value.is_integer() or value < 1:
        raise ValueError(text)
    return int(value)
