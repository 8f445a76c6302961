"""Policies: the number of iterations or teams of a launch, and its space."""

import numpy as np

from parki.engine.errors import LaunchError
from parki.engine.run import spaces
from parki.engine.run.spaces import Space

MAX_TEAM = 1024  # threads of a team, lanes counted
MAX_LEAGUE = 2**31 - 1  # teams or iterations of a launch


class RangePolicy:
    """A launch of the iterations ``0 … n - 1`` in a space.

    Parameters
    ----------
    space : str or Space or None
        None is the best host space.
    n : int
        Number of iterations.
    threads : int, optional
        Iterations that share a block on a device, 128 by default; a host divides iterations in its own way.

    Raises
    ------
    LaunchError
        A number is negative or no integer; the block has more than 1024 threads.

    See Also
    --------
    TeamPolicy : Launch teams of threads.

    Examples
    --------
    >>> from parki import engine
    >>> engine.RangePolicy("OpenMP", 1000).league
    1000
    """

    kind = "range"

    def __init__(self, space: str | Space | None, n: int, threads: int | None = None) -> None:
        self.space, self.league = spaces.get(space), _count("n", n)
        self.threads = None if threads is None else _count("threads", threads, 1)
        if (threads or 1) > MAX_TEAM:
            raise LaunchError(f"threads is {threads}, expected at most {MAX_TEAM}")


class TeamPolicy:
    """A launch of a league of teams in a space.

    Parameters
    ----------
    space : str or Space or None
        None is the best host space.
    league : int
        Number of teams.
    team_size, vector_length : int, optional
        Threads per team and lanes per thread on a device: the block is ``vector_length × team_size``.  The
        default follows from the kernel's ranges.  On a host a team is one thread, whatever is given.

    Raises
    ------
    LaunchError
        A number is negative or no integer; the block has more than 1024 threads; a vector length is no power of two
        up to 32.

    See Also
    --------
    RangePolicy : Launch iterations without teams.

    Examples
    --------
    >>> from parki import engine
    >>> policy = engine.TeamPolicy("Serial", 100, 128, 1)
    >>> policy.league, policy.team_size
    (100, 128)
    """

    kind = "team"

    def __init__(
        self, space: str | Space | None, league: int, team_size: int | None = None, vector_length: int | None = None
    ) -> None:
        self.space, self.league = spaces.get(space), _count("league", league)
        self.team_size = None if team_size is None else _count("team_size", team_size, 1)
        self.vector_length = None if vector_length is None else _count("vector_length", vector_length, 1)
        lanes, threads = self.vector_length or 1, self.team_size or 1
        if lanes not in (1, 2, 4, 8, 16, 32):
            raise LaunchError(f"vector_length={lanes}: expected 1, 2, 4, 8, 16 or 32")
        if threads * lanes > MAX_TEAM:
            raise LaunchError(f"team_size * vector_length is {threads * lanes}, expected at most {MAX_TEAM}")


def _count(name: str, n: int, minimum: int = 0) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not minimum <= n <= MAX_LEAGUE:
        raise LaunchError(f"{name}={n!r}: expected an integer in {minimum} … 2**31 - 1")
    return int(n)
