"""Command ``parki``: demo, run, doctor, examples, bench, model, calibrate, tune, cache, completion."""

import argparse
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Other modules are imported when they are needed: --help and --version are printed without NumPy.
from parki import console, memory
from parki.app import parser

OVER_RANKS = ("demo", "run", "doctor")  # commands that run on all ranks of MPI together; bench with --mpi


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its status: 0, 2 for input that cannot be used, 1 for any other failure.

    If the reader of stdout has gone, the command ends silently with `console.CLOSED`.
    """
    comm = None
    try:
        with console.ready():
            args = parser.parser().parse_args(arguments)
            from parki.distributed import launch

            if args.mpi or args.command in OVER_RANKS:
                comm = launch.world(1 if args.mpi else 2)
            args.comm = comm
            return _status(args)
    except BrokenPipeError:
        return _ended(comm, console.CLOSED)
    except OSError as error:  # only from the final flush: _status takes all others
        print(f"parki: {error}", file=sys.stderr)
        return _ended(comm, 2)


def _ended(comm: Any, status: int) -> int:
    """Return the status of a command whose output has failed, and end the other ranks."""
    if comm is None:
        return status
    from parki.distributed import launch

    return launch.end(comm, status)


def _status(args: argparse.Namespace) -> int:
    """Run the command that was asked for; report errors in its input in one line."""
    from parki.distributed import launch
    from parki.engine import BuildError

    log, handler, level = logging.getLogger("parki"), logging.StreamHandler(), logging.getLogger("parki").level
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    try:
        if args.verbose and launch.first(args.comm):
            log.addHandler(handler)
            log.setLevel(logging.INFO)
        with launch.told_by_one(args.comm):
            return ACTIONS[args.command](args)
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, MemoryError, BuildError) as error:
        if launch.speaks(args.comm, error):
            if args.verbose:
                traceback.print_exc()
            print(f"parki {args.command}: {error}{launch.found_by(args.comm, error)}", file=sys.stderr)
        return launch.end(args.comm, 1 if isinstance(error, BuildError) else 2, error)
    except BaseException:
        launch.end(args.comm, 1)
        raise
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def demo(args: argparse.Namespace) -> int:
    """Sum the flow of random particles; print times and error, draw a picture."""
    from parki import demo as module
    from parki import ranks
    from parki.ewald.options import EwaldOptions
    from parki.progress import Progress

    with ranks.together(args.comm, "reading options"):
        options = EwaldOptions.resolve(
            box=(1, 1, 1), tolerance=args.tolerance, execution_space=args.space, threads=args.threads
        )
        options.comm = args.comm
    progress = Progress(sys.stderr if args.comm is None else None, plain=args.verbose)
    ratio = module.run(options, args.n, args.seed, None if args.no_picture else args.output, print, progress)
    return 0 if ratio <= 1 else 1


def run(args: argparse.Namespace) -> int:
    """Sum over the particles of a file; over ranks of MPI together."""
    from parki import files
    from parki.app.sums import FileSum
    from parki.progress import Progress

    parameters = dict(args.parameter)
    if len(parameters) < len(args.parameter) or (args.kappa is not None and "kappa" in parameters):
        raise ValueError("a parameter was given several times; expected --parameter NAME=VALUE once for each name.")
    if args.kappa is not None:
        parameters["kappa"] = args.kappa
    names = "kernel method gradient box periodicity tolerance rc split space threads comm".split()
    question = FileSum(parameters=parameters, **{name: getattr(args, name) for name in names})
    progress = Progress(sys.stderr if args.comm is None else None, plain=args.verbose)
    lines = files.run(args.input, args.output, question, args.dtype, progress)
    print(lines[0])
    if args.comm is not None:  # times of all ranks
        print(lines.pop())
    if args.verbose:
        print(*lines[1:], sep="\n", file=sys.stderr)
    return 0


def doctor(args: argparse.Namespace) -> int:
    """Print the compilers, devices and libraries that are present or missing."""
    from parki import doctor as module

    if args.check:
        from parki import ranks
        from parki.app import checks

        with ranks.together(args.comm, "reading options"):
            if args.comm is not None:
                raise ValueError(f"--check was given with {args.comm.size} processes; expected one, and no launcher.")
        return checks.run(print)
    text, is_ready = module.report(args.comm)
    print(text)
    return 0 if is_ready else 1


def examples(args: argparse.Namespace) -> int:
    """List, show or copy the examples."""
    from parki.app import examples as module

    if args.what == "list":
        print(module.table())
    elif args.what == "show":
        print(module.text(args.name), end="")
    else:
        name, folder = (None, args.folder or args.name) if args.all else (args.name, args.folder)
        if args.all and args.name and args.folder:
            raise ValueError(f"--all was given with the name {args.name!r}; expected one of them.")
        if name is None and not args.all:
            raise ValueError(f"NAME is missing; expected --all, or one of {', '.join(module.names())}.")
        for path in module.copy(name, Path(folder or "."), args.force):
            print(path)
    return 0


def completion(args: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    from parki.app import completion as module

    print(module.script(parser.parser(), args.shell))
    return 0


def bench(args: argparse.Namespace) -> int:
    """Measure a kernel or a whole sum, with --mpi a sum over ranks."""
    from parki.perfmodels.bench import benchmark

    if args.mpi:
        from parki.perfmodels.bench import ranks

        return ranks.main(args)
    if args.name == "list":
        print(benchmark.listed())
        return 0
    if args.points is not None and not benchmark.takes_points(args.name):
        raise ValueError("--points was given without --mpi; expected parki bench treecode --mpi --points plummer.")
    _room(args.n or 0)
    if args.name == "report":
        from parki.perfmodels.bench.report import command as module
    else:
        from parki.perfmodels.bench import command as module
    return module.main(args)


def model(args: argparse.Namespace) -> int:
    """Predict a sum on any machine that is known."""
    for name in ("schedule", "points", "cores", "devices", "gantt", "trace"):
        if args.what != "fmm" and getattr(args, name) is not None:
            raise ValueError(f"--{name}: found with {args.what}, expected with fmm")
    if args.code and args.what != "ewald":
        raise ValueError(f"--code: found with {args.what}, expected with ewald; parki bench code reads trees, too")
    if args.what == "treecode":
        from parki.perfmodels.models import treecode as module
    elif args.what == "fmm":
        from parki.perfmodels.models import fmm as module
    else:
        from parki.perfmodels.models import ewald as module
    if args.what != "ewald" and args.ranks is None:  # these make no points, or not all of them
        _room(args.n)
    return module.main(args)


def calibrate(args: argparse.Namespace) -> int:
    """Measure this machine and remember it."""
    from parki.perfmodels.bench import calibrate as module

    return module.main(args)


def tune(args: argparse.Namespace) -> int:
    """Measure the fastest options for sums of random points and remember them."""
    from parki.perfmodels.bench import tune as module

    _room(args.n)
    return module.main(args)


def _room(n: int) -> None:
    """Refuse more random particles, of at least six numbers each, than there is memory for."""
    memory.require(48 * n, f"--n {n}", "A smaller --n takes less.")


def cache(args: argparse.Namespace) -> int:
    """List, clear or prune compiled kernels."""
    from parki.engine import cache as module

    if args.what == "list":
        for entry in module.entries():
            print(f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(entry.time))}  {entry.size:9d}  {entry.label}")
        print(f"{len(module.entries())} kernels, {module.size() / 1e6:.1f} MB in {module.folder()}")
        return 0
    entries = module.clear() if args.what == "clear" else module.prune(max_age_days=args.days)
    print(f"{len(entries)} kernels removed from {module.folder()}")
    return 0


ACTIONS = {
    "demo": demo,
    "run": run,
    "doctor": doctor,
    "examples": examples,
    "bench": bench,
    "model": model,
    "calibrate": calibrate,
    "tune": tune,
    "cache": cache,
    "completion": completion,
}
