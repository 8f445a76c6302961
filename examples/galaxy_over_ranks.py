"""A galaxy whose stars many processes share moves under its own gravity, and keeps its energy.

Shows    ``comm=`` on a plan of a treecode, positions and velocities that stay where the plan has put them.
Run      mpirun -n 4 python -m mpi4py examples/galaxy_over_ranks.py     (alone on one process; --small for a trial)
Expect   The total energy changes by less than a part in ten thousand, for any number of processes.

Every process begins with stars from anywhere.  `Plan.theirs` brings them to the processes that have their part of the
tree; from then on those alone are sent that leave it, and parts change only where the work is no longer even.

Units: G = M = a = 1, the stars of a Plummer sphere have equal masses; gravity is softened, φ = −1/√(r² + ε²).
"""

import argparse
import os

import numpy as np

import parki

LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")  # set by mpirun of MPICH and Open MPI, and srun
SOFTENING, TOLERANCE, STEP, BOUND = 0.05, 1e-5, 0.02, 1e-4


def communicator():
    """MPI's world, None where no launcher has begun this process."""
    if not any(name in os.environ for name in LAUNCHED):
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


def galaxy(n, rank, size):
    """Positions and velocities (3, …) of every size-th of n stars; their speeds are those of a virial equilibrium."""
    x = parki.samples.plummer(n, seed=1, cutoff=10)
    v = np.random.default_rng(1).standard_normal((3, n)) * (1 + (x**2).sum(axis=0)) ** -0.25 / np.sqrt(6)
    return np.ascontiguousarray(x[:, rank::size]), np.ascontiguousarray(v[:, rank::size])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a trial with few stars")
    small = parser.parse_args().small
    n, steps, comm = 1500 if small else 10_000, 4 if small else 20, communicator()
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)

    def gravity():
        """Potential (…) and acceleration (3, …) of this process's stars, none of which feels itself."""
        potential, gradient = plan(np.full(x.shape[1], 1 / n))
        return 1 / (n * SOFTENING) - potential, gradient

    def energy():
        """Kinetic and potential energy of the stars of all processes."""
        return plan.inner(v, v) / (2 * n) + plan.inner(potential, np.ones(len(potential))) / (2 * n)

    x, v = galaxy(n, rank, size)
    options = {"epsilon": SOFTENING, "gradient": True, "tolerance": TOLERANCE, "comm": comm}
    plan = parki.treecode.plan("regularised_coulomb", x, x, **options)
    potential, acceleration = gravity()
    first = energy()
    for step in range(1, 1 + steps):
        v = v + STEP / 2 * acceleration
        x = x + STEP * v
        x, v = plan.theirs(x), plan.theirs(v)  # to where they were a step ago
        plan.move(x)
        potential, acceleration = gravity()
        v = v + STEP / 2 * acceleration
        change = abs(energy() / first - 1)
        if rank == 0:
            print(f"step {step}: {x.shape[1]} of {n} stars here, the energy has changed by {change:.1e}")
        assert change < BOUND


if __name__ == "__main__":
    main()
