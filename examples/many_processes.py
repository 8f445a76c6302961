"""A periodic box shared by many processes
=======================================

A crystal of ions drifts through a box that many processes share; its energy stays the same.

:Shows: ``comm=`` on a plan, points that stay on the processes with their part of the box, and inner products.
:Run: ``mpirun -n 4 python -m mpi4py examples/many_processes.py -o many_processes.png`` (alone on one process;
   ``--small`` for a trial)
:Expect: The Madelung constant of rock salt, 1.747564594633, at every step and for any number of processes.

Each process begins with some of the ions, from anywhere in the box. ``Plan.theirs`` sends them to the processes that
have their part of the box; from then on ions are sent only when they leave a part.
"""

import argparse
import importlib.util
import os
from pathlib import Path

import numpy as np

import parki

LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")  # set by mpirun of MPICH and Open MPI, and srun
TOLERANCE = 1e-9
MADELUNG = 1.747564594633182
DRIFT = np.array([[0.31], [0.17], [0.23]])  # nearest distances per step


def communicator():
    """Return MPI's world, or None if no launcher has started this process."""
    if not any(name in os.environ for name in LAUNCHED):
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


def ions(cells, rank, size):
    """Return positions (3, N), nearest distance 1, and charges (N,) of every size-th ion of a cubic crystal."""
    at = np.indices([2 * cells] * 3).reshape(3, -1)[:, rank::size]
    return at + 0.25, (-1.0) ** at.sum(axis=0)


def draw(file, shares, errors, side):
    """Draw a layer of the ions of each process, and the error of the constant at each step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    middle = side / 2 + np.min(np.abs(np.hstack([x for x, _ in shares])[2] - side / 2))
    for rank, (x, q) in enumerate(shares):
        layer = np.abs(x[2] - middle) < 0.25
        colours = np.where(q[layer] > 0, f"C{rank % 10}", "white")  # negative ions are hollow
        left.scatter(*x[:2, layer], s=(230 / side) ** 2, color=colours, edgecolors=f"C{rank % 10}")
        left.scatter([], [], color=f"C{rank % 10}", label=f"process {rank}")
    left.set(xlim=(0, side), ylim=(0, side), aspect="equal", xlabel="x (nearest distances)")
    left.set(
        ylabel="y (nearest distances)", title=f"A layer of the ions, on {len(shares)} process{'es' * (len(shares) > 1)}"
    )
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4)
    right.semilogy(np.arange(len(errors)), np.maximum(errors, 1e-17), "o-", color="#1b6ca8", label="error")
    right.axhline(TOLERANCE, color="#8c1c13", label="tolerance")
    right.fill_between([-0.5, len(errors) - 0.5], TOLERANCE, 1e-7, color="#f3d9d9", linewidth=0)
    right.set(xlim=(-0.5, len(errors) - 0.5), xticks=range(len(errors)), ylim=(1e-16, 1e-7), xlabel="step")
    right.set(ylabel="relative error", title="Madelung constant")
    right.grid(alpha=0.3)
    right.legend(loc="lower right")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A periodic box shared by many processes.")
    parser.add_argument("--small", action="store_true", help="a trial with few ions")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)
    cells, steps, comm = 4 if asked.small else 24, 4, communicator()
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    side = 2.0 * cells

    x, q = ions(cells, rank, size)
    plan = parki.ewald.plan("laplace", x, x, box=(side,) * 3, tolerance=TOLERANCE, comm=comm)
    errors = []
    for step in range(steps):
        x, q = plan.theirs(x), plan.theirs(q)
        plan.move(x)
        madelung = -plan.inner(q, plan(q)) / (2 * cells) ** 3
        errors.append(abs(madelung / MADELUNG - 1))
        share = x, q
        if rank == 0:
            print(f"step {step}: {len(q)} of {(2 * cells) ** 3} ions here, Madelung constant {madelung:.9f}")
        x = parki.utils.wrap(x + DRIFT, (side,) * 3)
        plan.move(x)
    if asked.o:
        shares = [share] if comm is None else comm.gather(share)
    if rank == 0 and asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif rank == 0 and asked.o:
        draw(asked.o, shares, errors, side)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
