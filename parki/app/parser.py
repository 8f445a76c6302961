"""Parser of the command ``parki``: every command with its options."""

import argparse
from pathlib import Path
from typing import Any

import parki
from parki.app import words
from parki.perfmodels.bench.benchmark import BENCHMARKS

FILES = ".npz, .npy, .csv, .h5 or .hdf5; FILE.h5:/GROUP for a group"


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    result = words.Parser(prog="parki", description="Fast sums of particle interactions.")
    result.add_argument("--version", action="version", version=f"parki {parki.__version__}")
    result.set_defaults(verbose=False, mpi=False)
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_demo, _run, _doctor, _examples, _bench, _model, _calibrate, _tune, _cache, _completion):
        add(commands)
    return result


def of_commands(parent: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of all commands by name, as ``cache``, ``examples`` and ``examples copy``."""
    parsers = {}
    for action in parent._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                subparsers = of_commands(command)
                parsers |= {name: command} | {f"{name} {subcommand}": p for subcommand, p in subparsers.items()}
    return parsers


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument("-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help="say what is done")
    return command


def _where(command: argparse.ArgumentParser) -> None:
    """Add the options of the space and its threads."""
    command.add_argument("--space", help="execution space, see parki doctor (the best host space)")
    command.add_argument("--threads", type=int, help="number of threads (all)")


def _sum(command: argparse.ArgumentParser, tolerance: float = 1e-7) -> None:
    """Add the options of the tolerance, the space and its threads."""
    command.add_argument("--tolerance", type=float, default=tolerance, help="relative RMS error (%(default)g)")
    _where(command)


def _particles(command: argparse.ArgumentParser) -> None:
    command.add_argument("--n", type=words.count, default=100_000, help="number of particles (%(default)d)")


def _unit_box(command: argparse.ArgumentParser) -> None:
    command.add_argument("--box", type=words.sides, default=(1.0, 1.0, 1.0), metavar="LX LY LZ", help="its sides")


def _demo(commands: Any) -> None:
    command = _command(commands, "demo", "Sum the Stokes flow of random particles: times, error, a picture.")
    _sum(command)
    _particles(command)
    command.add_argument("--seed", type=int, default=0, help="of the random numbers (%(default)d)")
    command.add_argument("--no-picture", action="store_true", help="draw none")
    command.add_argument("-o", "--output", type=Path, default=Path("parki-demo.png"), help="the picture (%(default)s)")


def _run(commands: Any) -> None:
    text = "Sum over the particles of a file with src, dens, box [, normals] [, trg]; under mpirun on all processes."
    command = _command(commands, "run", text)
    command.add_argument("input", type=Path, metavar="IN", help=FILES)
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="OUT", help="gets the result: one of these or .vtu"
    )
    command.add_argument(
        "--kernel", required=True, metavar="NAME", help="what is summed, or FILE.py with a pair function of one's own"
    )
    command.add_argument(
        "--method", choices=words.METHODS, default="ewald", help="how: ewald in boxes, the others in free space"
    )
    command.add_argument(
        "--parameter", type=words.parameter, action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of the kernel; may be given several times",
    )  # fmt: skip
    command.add_argument("--kappa", type=float, help="the same as --parameter kappa=…")
    command.add_argument("--gradient", choices=("both", "only"), help="of the potential: beside it, or in its place")
    command.add_argument("--tolerance", type=float, help="relative RMS error (1e-6)")
    command.add_argument(
        "--box", type=words.box, metavar="LX LY LZ", help="side lengths, or 9 numbers: lattice vectors; if IN has none"
    )
    command.add_argument(
        "--periodicity", type=words.periodicity, metavar="DIRECTIONS",
        help="periodic directions: the first 0, 1, 2 or 3, or their names as xz, or digits as 101 (3)",
    )  # fmt: skip
    command.add_argument("--rc", type=float, help="near-field radius (chosen for speed)")
    command.add_argument(
        "--split", choices=("prolate", "gaussian"), help="of the sum into near and far field (prolate)"
    )
    command.add_argument(
        "--dtype", choices=("float32", "float64"), help="convert the arrays (computes as the file has them)"
    )
    _where(command)


def _doctor(commands: Any) -> None:
    command = _command(commands, "doctor", "Say what is here, what is missing and how to get it.")
    command.add_argument(
        "--check", action="store_true", help="sum by every method in every space, and check the results"
    )


def _examples(commands: Any) -> None:
    command = _command(commands, "examples", "List, show or copy the examples.")
    subcommands = command.add_subparsers(dest="what", required=True, metavar="WHAT")
    subcommands.add_parser("list", help="names and titles", description="List all examples with their titles.")
    command = subcommands.add_parser("show", help="print one", description="Print the text of an example.")
    command.add_argument("name", metavar="NAME")
    text = "Copy an example, or all of them, with the files that they read."
    command = subcommands.add_parser("copy", help="copy one or all, with their data", description=text)
    command.add_argument("--all", action="store_true", help="copy every example: no NAME then")
    command.add_argument("--force", action="store_true", help="overwrite files that are there")
    command.add_argument("name", nargs="?", metavar="NAME")
    command.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="where copies go (this folder)")


def _bench(commands: Any) -> None:
    command = _command(commands, "bench", "Measure a kernel or a whole sum.")
    _sum(command)
    command.add_argument("name", choices=(*BENCHMARKS, "report", "list"), help="list prints the others")
    command.add_argument(
        "--n",
        type=words.count,
        help="number of particles (100000; of model and selection 30000, of water and drift 2685)",
    )
    text = "a sum over all processes of mpirun, of N particles in all"
    command.add_argument("--mpi", action="store_true", help=text)
    command.add_argument(
        "--points", choices=words.POINTS, help="of peers-free (all), and in free space with --mpi (uniform)"
    )
    command.add_argument(
        "--repeat", type=words.count, default=5, help="measurements, of which the best counts (%(default)d)"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="append a record to this file")
    command.add_argument("--compare", type=Path, metavar="OLD.json", help="say what is slower than in this file")
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures, .png, .svg or .pdf")
    text = "sums of accuracy, growth, phases and threads, as kifmm-coulomb, of peers-free, or entries of a report (all)"
    command.add_argument("--only", nargs="+", metavar="NAME", help=text)
    text = "a library that is built, as dmk=build/libdmk.so: of peers-free barytree, dmk, exafmm-t, pvfmm, of peers dmk"
    command.add_argument("--library", nargs="+", metavar="NAME=PATH", help=text)
    command.add_argument("--device", metavar="NAME", help="of code: an NVIDIA GPU in the list of machines (h200)")
    command.add_argument("--set", dest="named_set", choices=words.REPORTS, help="benchmarks of a report (standard)")
    command.add_argument("--resume", type=Path, metavar="FILE", help="go on with the record of a report")
    command.add_argument("--from", dest="source", type=Path, metavar="FILE", help="write the pages of a record")
    command.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="of a report's pages (parki-report)")


def _model(commands: Any) -> None:
    command = _command(
        commands, "model", "Predict the time of a sum, phase by phase, on a machine that need not be here."
    )
    command.add_argument("what", choices=("ewald", "treecode", "fmm"))
    command.add_argument(
        "--device", default="host", metavar="NAME", help="host, or a machine in the list (%(default)s)"
    )
    command.add_argument("--kernel", help="what is summed (stokes_comb; in free space coulomb)")
    _particles(command)
    command.add_argument("--tolerance", type=float, help="relative RMS error (1e-7)")
    command.add_argument("--theta", type=float, help="of a treecode, with --degree, instead of a tolerance")
    command.add_argument("--degree", type=int, help="of a treecode's polynomials")
    command.add_argument("--method", choices=("dual", "pc", "cp"), default="dual", help="of a treecode (%(default)s)")
    command.add_argument("--order", type=int, help="of a fast multipole sum, instead of a tolerance")
    command.add_argument("--kappa", type=float, help="of yukawa in free space")
    command.add_argument("--periodicity", type=int, choices=range(4), help="periodic directions (3; else 0)")
    _unit_box(command)
    command.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    command.add_argument("--rc", type=float, help="near-field radius (chosen for speed)")
    command.add_argument("--threads", type=int, help="cores of a host (all)")
    command.add_argument("--ranks", type=words.count, help="of a sum over processes, each on such a machine")
    command.add_argument("--network", default="ndr400", metavar="NAME", help="between ranks (%(default)s)")
    command.add_argument("--schedule", choices=words.SCHEDULES, help="of fmm cut into tasks: simulate it on one node")
    command.add_argument("--points", choices=words.POINTS, help="of a schedule (uniform)")
    command.add_argument("--cores", type=int, help="of a schedule, beside a GPU (0; of a host all)")
    command.add_argument("--devices", type=int, help="of a schedule, GPUs of the node (1)")
    command.add_argument("--gantt", type=Path, metavar="FILE", help="draw a schedule: which unit did what when")
    command.add_argument("--trace", type=Path, metavar="FILE", help="write a schedule as JSON for Perfetto")
    command.add_argument(
        "--published", action="store_true", help="the published method and its measured times beside it"
    )
    command.add_argument("--code", action="store_true", help="hot loops of an Ewald sum on an NVIDIA GPU, as compiled")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the table to this file")
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw the roofline and the time against rc")


def _calibrate(commands: Any) -> None:
    command = _command(commands, "calibrate", "Measure this machine's rates, for the models that choose parameters.")
    command.add_argument("--seconds", type=float, default=10.0, help="about so long (%(default)g)")
    command.add_argument("--forget", action="store_true", help="remove what was measured")


def _tune(commands: Any) -> None:
    command = _command(commands, "tune", "Measure which parameters are fastest, and remember them for tune=True.")
    _sum(command)
    command.add_argument(
        "--kernel", choices=words.EWALD_KERNELS, default="stokes_comb", help="what is summed (%(default)s)"
    )
    _particles(command)
    command.add_argument(
        "--periodicity", type=int, choices=range(4), default=3, help="periodic directions (%(default)d)"
    )
    _unit_box(command)
    command.add_argument("--kappa", type=float, help="inverse screening length of yukawa")
    command.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    command.add_argument("--forget", action="store_true", help="remove what was found on this machine")


def _cache(commands: Any) -> None:
    command = _command(commands, "cache", "List, clear or prune compiled kernels.")
    command.add_argument("what", choices=("list", "clear", "prune"))
    command.add_argument("--days", type=float, default=30.0, help="prune what was not used for so long (%(default)g)")


def _completion(commands: Any) -> None:
    command = _command(commands, "completion", "Print a script that lets a shell complete commands and options.")
    command.add_argument("shell", choices=words.SHELLS)
