"""A crystal of ions drifts through a periodic box that many processes share; its energy stays what it is.

Shows    ``comm=`` on a plan, points that stay on the processes that have their part of the box, and inner products.
Run      mpirun -n 4 python -m mpi4py examples/many_processes.py     (alone on one process; --small for a trial)
Expect   The Madelung constant of rock salt, 1.747564594633, at every step and for any number of processes.

Every process begins with some of the ions, wherever they are.  `Plan.theirs` brings them to the processes whose part of
the box they are in; from then on ions are sent on only when they leave it.
"""

import argparse
import os

import numpy as np

import parki

LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")  # set by mpirun of MPICH and Open MPI, and srun
DRIFT = np.array([[0.31], [0.17], [0.23]])  # nearest distances a step


def communicator():
    """MPI's world, None where no launcher has begun this process."""
    if not any(name in os.environ for name in LAUNCHED):
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


def ions(cells, rank, size):
    """Positions (3, N), nearest distance 1, and charges (N,): every size-th ion of a cubic crystal."""
    at = np.indices([2 * cells] * 3).reshape(3, -1)[:, rank::size]
    return at + 0.25, (-1.0) ** at.sum(axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a trial with few ions")
    small = parser.parse_args().small
    cells, steps, comm = 4 if small else 24, 4, communicator()
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    side = 2.0 * cells

    x, q = ions(cells, rank, size)
    plan = parki.ewald.plan("laplace", x, x, box=(side,) * 3, tolerance=1e-9, comm=comm)
    for step in range(steps):
        x, q = plan.theirs(x), plan.theirs(q)
        plan.move(x)
        madelung = -plan.inner(q, plan(q)) / (2 * cells) ** 3
        if rank == 0:
            print(f"step {step}: {len(q)} of {(2 * cells) ** 3} ions here, Madelung constant {madelung:.9f}")
        x = parki.utils.wrap(x + DRIFT, (side,) * 3)
        plan.move(x)


if __name__ == "__main__":
    main()
