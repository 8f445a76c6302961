"""A galaxy shared by many processes
=================================

Stars that many processes share move under their own gravity, and keep their energy.

:Shows: ``comm=`` on a plan of a treecode, and positions and velocities that stay on the processes of the plan.
:Run: ``mpirun -n 4 python -m mpi4py examples/galaxy_over_ranks.py -o galaxy_over_ranks.png`` (alone on one process;
   ``--small`` for a trial)
:Expect: The total energy changes by less than a part in ten thousand, for any number of processes.

Each process begins with stars from anywhere. ``Plan.theirs`` sends them to the processes that have their part of the
tree. From then on only stars that leave their part are sent, and parts change only if the work becomes uneven.

Units: G = M = a = 1, the stars of a Plummer sphere have equal masses; gravity is softened, φ = −1/√(r² + ε²).
"""

import argparse
import importlib.util
import os
from pathlib import Path

import numpy as np

import parki

LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")  # set by mpirun of MPICH and Open MPI, and srun
SOFTENING, TOLERANCE, STEP, BOUND = 0.05, 1e-5, 0.02, 1e-4


def communicator():
    """Return MPI's world, or None if no launcher has started this process."""
    if not any(name in os.environ for name in LAUNCHED):
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


def galaxy(n, rank, size):
    """Return positions and velocities (3, …) of every size-th of n stars, with speeds of a virial equilibrium."""
    x = parki.samples.plummer(n, seed=1, cutoff=10)
    v = np.random.default_rng(1).standard_normal((3, n)) * (1 + (x**2).sum(axis=0)) ** -0.25 / np.sqrt(6)
    return np.ascontiguousarray(x[:, rank::size]), np.ascontiguousarray(v[:, rank::size])


def draw(file, places, changes):
    """Draw the stars of each process, and the change of the energy."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    stars = np.hstack(places)
    owners = np.repeat(np.arange(len(places)), [x.shape[1] for x in places])
    order = np.argsort(stars[2])  # near stars are drawn over far ones
    left.scatter(*stars[:2, order], s=6e4 / len(order), c=[f"C{rank % 10}" for rank in owners[order]], linewidths=0)
    for rank, x in enumerate(places):
        left.scatter([], [], color=f"C{rank % 10}", label=f"process {rank}: {x.shape[1]} stars")
    left.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xlabel="x (a)", ylabel="y (a)", facecolor="black")
    left.set_title(f"{stars.shape[1]} stars on {len(places)} process{'es' * (len(places) > 1)}")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    right.semilogy(np.arange(1, 1 + len(changes)), changes, "o-", color="#1b6ca8", label="change")
    right.axhline(BOUND, color="#8c1c13", label="bound")
    right.set(xlabel="step", ylabel="relative change since the start", title="Total energy", ylim=(1e-9, 1e-3))
    right.xaxis.get_major_locator().set_params(integer=True)
    right.grid(alpha=0.3)
    right.legend(loc="lower right")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A galaxy shared by many processes.")
    parser.add_argument("--small", action="store_true", help="a trial with few stars")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)
    n, steps, comm = 1500 if asked.small else 10_000, 4 if asked.small else 20, communicator()
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)

    def gravity():
        """Return potential (…) and acceleration (3, …) of this process's stars, without each star's own."""
        potential, gradient = plan(np.full(x.shape[1], 1 / n))
        return -potential, gradient

    def energy():
        """Return the total energy of the stars of all processes."""
        return plan.inner(v, v) / (2 * n) + plan.inner(potential, np.ones(len(potential))) / (2 * n)

    x, v = galaxy(n, rank, size)
    options = {"epsilon": SOFTENING, "own_term": False, "gradient": True, "tolerance": TOLERANCE, "comm": comm}
    plan = parki.treecode.plan("regularised_coulomb", x, x, **options)
    potential, acceleration = gravity()
    first, changes = energy(), []
    for step in range(1, 1 + steps):
        v = v + STEP / 2 * acceleration
        x = x + STEP * v
        x, v = plan.theirs(x), plan.theirs(v)  # move to the processes that the plan chose a step ago
        plan.move(x)
        potential, acceleration = gravity()
        v = v + STEP / 2 * acceleration
        change = abs(energy() / first - 1)
        if rank == 0:
            print(f"step {step}: {x.shape[1]} of {n} stars here, the energy has changed by {change:.1e}")
        assert change < BOUND
        changes.append(change)
    if asked.o:
        places = [x] if comm is None else comm.gather(x)
    if rank == 0 and asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif rank == 0 and asked.o:
        draw(asked.o, places, changes)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
