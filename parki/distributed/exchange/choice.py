"""Choice of an exchange of values: owners to users, or by halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parki.distributed import network as networks
from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.distributed.exchange.census import Census, Parts, Wishes
from parki.distributed.exchange.hypercube import Hypercube
from parki.distributed.exchange.owners import OwnersToUsers
from parki.distributed.exchange.parcels import Shelf
from parki.distributed.exchange.rounds import Rounds
from parki.perfmodels.network import Network

SCHEMES: dict[str, Callable[[Census, Sequence[Shelf]], Rounds]] = {"owners": OwnersToUsers, "hypercube": Hypercube}
DIRECT = 64  # ranks up to which owners send to users, on a network that is not known
ASSUMED = "hdr200"  # network that is assumed for more ranks


def chosen(
    comm: Comm, network: Network | None, parts: Parts, wishes: Wishes, shelves: Sequence[Shelf], phase: str,
    scheme: str | None = None,
) -> Rounds:  # fmt: skip
    """Return the exchange with the least predicted time, the same on all ranks; collective.

    Parameters
    ----------
    comm : Comm
    network : Network or None
        Network of the first rank; by default the one kept on its machine.
    parts : Parts
        Nodes to whose values this rank adds.
    wishes : Wishes
        Nodes whose complete values it uses.
    shelves : sequence of Shelf
        Kinds of the arrays that values are in, the same on all ranks.
    phase : str
        Phase under which messages are counted.
    scheme : {"owners", "hypercube"}, optional
        Scheme to take in any case.

    Raises
    ------
    ValueError
        On all ranks, for another scheme, and for arrays that do not fit each other.
    RuntimeError
        On all ranks, for a node that is wanted of a rank that does not own it.
    """
    kinds = [(int(kind.width), str(kind.dtype)) for kind in shelves]
    with agreed(comm, "choosing an exchange", {"shelves": kinds, "phase": phase, "scheme": scheme}):
        if scheme not in (None, *SCHEMES):
            raise ValueError(f"scheme is {scheme!r}; expected {' or '.join(map(repr, SCHEMES))}, or None.")
    census = Census(comm, parts, wishes, len(shelves), phase)
    if scheme is None:
        known_network = comm.bcast((network or networks.kept()) if comm.rank == 0 else None)
        if known_network is None and comm.size <= DIRECT:
            scheme = "owners"
    if scheme is not None:
        return SCHEMES[scheme](census, shelves)
    network = known_network or Network.load(ASSUMED)
    exchanges = [kind(census, shelves) for kind in SCHEMES.values()]
    return min(exchanges, key=lambda rounds: rounds.seconds(comm, network))
