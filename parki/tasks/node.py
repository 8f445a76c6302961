"""Description of a node: its cores and devices, the links between their memories, and the cost of starting work."""

from dataclasses import dataclass

HOST = 0  # number of the memory shared by all cores; device d has memory d + 1


@dataclass(frozen=True)
class Node:
    """Cores and devices of one kind each, numbered as units: all cores, then all devices.

    Attributes
    ----------
    cores, devices : int
        Numbers of units.
    bandwidth : float
        Bytes per second between the host and a device, each way.
    between : float
        Bytes per second between two devices; 0 if copies go through the host.
    latency : float
        Seconds from the end of a copy until its bytes may be read.
    launch : float
        Seconds of a launch on a device.
    task : float
        Seconds that a core needs to find and to end a task.
    ahead : int
        Launches that a device holds at once: copies for the next one overlap with the running one.
    """

    cores: int
    devices: int = 0
    bandwidth: float = 50e9
    between: float = 0.0
    latency: float = 8e-6
    launch: float = 4e-6
    task: float = 1e-6
    ahead: int = 2

    def __post_init__(self) -> None:
        if min(self.cores, self.devices) < 0 or self.cores + self.devices == 0:
            text = f"found {self.cores} and {self.devices}"
            raise ValueError(f"cores, devices: {text}, expected numbers of units, of which one at least is positive")
        if not self.bandwidth > 0 or self.ahead < 1:
            text = f"found {self.bandwidth} and {self.ahead}"
            raise ValueError(f"bandwidth, ahead: {text}, expected a positive rate and 1 launch at least")

    @property
    def units(self) -> int:
        """Number of cores and devices together."""
        return self.cores + self.devices

    @property
    def names(self) -> list[str]:
        """Names of all units, such as "core 3" and "device 0"."""
        return [f"core {i}" for i in range(self.cores)] + [f"device {i}" for i in range(self.devices)]

    def is_device(self, unit: int) -> bool:
        """Return whether a unit is a device."""
        return unit >= self.cores

    def memory(self, unit: int) -> int:
        """Return the number of the memory that a unit reads and writes."""
        return unit - self.cores + 1 if unit >= self.cores else HOST
