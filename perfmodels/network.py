"""Networks: costs of messages between ranks."""

from __future__ import annotations

import difflib
import importlib.resources
import tomllib
from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """Costs of messages between ranks.

    Attributes
    ----------
    alpha : float
        Seconds of a message.
    beta : float
        Bytes a second that a rank sends while all others send, too.
    name, source : str
    """

    alpha: float
    beta: float
    name: str = ""
    source: str = ""

    @classmethod
    def load(cls, name: str) -> Network:
        """Return a network by its name.

        Raises
        ------
        ValueError
            For a name that is not in `names`.
        """
        names = cls.names()
        if name not in names:
            matches = difflib.get_close_matches(name, names, n=1)
            advice = f" Did you mean {matches[0]!r}?" if matches else ""
            raise ValueError(f"network: found {name!r}, expected one of {', '.join(names)}.{advice}")
        file = importlib.resources.files("parki.perfmodels.networks") / f"{name}.toml"
        return cls(**tomllib.loads(file.read_text("utf-8")))

    @staticmethod
    def names() -> list[str]:
        """Return the names of all networks."""
        folder = importlib.resources.files("parki.perfmodels.networks")
        return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))

    def seconds(self, messages: float, nbytes: float) -> float:
        """Return the seconds of some messages that have `nbytes` bytes together."""
        return self.alpha * messages + nbytes / self.beta

    def __str__(self) -> str:
        return f"{1e6 * self.alpha:.3g} µs a message, {self.beta / 1e9:.3g} GB/s a rank"
