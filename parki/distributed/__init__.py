"""Sums over many processes: ``comm=`` on the calls and plans of parki.

A call with a communicator of mpi4py is made by all of its ranks, each with its own points: `parki.distributed.comm`
has the few calls of MPI that are used.
"""
