"""Calls of the GPU text compiled for the host: every block's threads as fibres, every access checked."""

import ctypes
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from parki.engine.calls.gpu import GpuCall
from parki.engine.compile import loading, objects
from parki.engine.compile.compiler import target
from parki.engine.run import gpusim
from parki.engine.run.spaces import SIM_SCRATCH
from parki.engine.workunit import Workunit

ONE = threading.Lock()  # a simulated object has one memory: one launch at a time
FLAGS = ("-O1", "-fno-strict-aliasing", "-DPK_SIM", "-DPK_BLOCK=1024")


def unit(workunit: Workunit, layouts: dict[str, str], wide: bool = False) -> objects.Unit:
    """Return the unit to compile for the simulator."""
    return objects.Unit(
        name=f"{workunit.l0.name}_{workunit.l0.hash}",
        label=f"{workunit.label} for GpuSim",
        source=workunit.gpu(layouts).source,
        headers=gpusim.HEADERS,
        target=target(),
        flags=(*FLAGS, *workunit.gpu_macros, f"-DPK_WIDE={int(wide)}"),
        l0=workunit.l0.text,
    )


def load(workunit: Workunit, layouts: dict[str, str], wide: bool = False) -> Any:
    """Return the entry point of a workunit, compiled on first use."""
    name = key(layouts, wide)
    if name not in workunit.objects:
        workunit.objects[name] = entry(objects.build(unit(workunit, layouts, wide)))
    return workunit.objects[name]


def load_all(requests: Iterable[tuple[Workunit, dict[str, str], int | None]]) -> None:
    """Compile workunits for layouts that are not yet loaded, in parallel; threads of a block do not matter here."""
    units = {(w, key(layouts)): layouts for w, layouts, _ in requests if key(layouts) not in w.objects}
    paths = objects.build_many(unit(w, layouts) for (w, _), layouts in units.items())
    for (w, name), path in zip(units, paths, strict=True):
        w.objects[name] = entry(path)


def key(layouts: dict[str, str], wide: bool = False) -> tuple:
    """Return the key of a simulated object: layouts, width of indices, and target."""
    return ("sim", tuple(layouts.values()), wide, target())


def entry(path: Path) -> Any:
    """Return the function that runs the launches of a simulated object."""
    run = loading.load(path).pk_run
    run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    return run


class SimCall(GpuCall):
    """A simulated launch, bound to NumPy arrays."""

    xp, limit = np, SIM_SCRATCH

    def compiled(self, workunit: Workunit, layouts: dict[str, str]) -> Any:
        """Return the entry point."""
        return load(workunit, layouts, self.wide)

    def address(self, a: np.ndarray) -> int:
        """Return the address of the first element."""
        return a.ctypes.data

    def launch(self) -> None:
        """Run all blocks, one after another.

        Raises
        ------
        GpuFault
            The kernel broke a rule: out of bounds, a race, a divergent barrier; the message names the places.
        """
        seed, order = gpusim.order_from_environment()
        record = gpusim.SimLaunch(
            grid=self.grid, block_x=self.block[0], block_y=self.block[1], warp=self.policy.space.warp,
            shared_bytes=self.shared, seed=seed, order=order,
        )  # fmt: skip
        with ONE:
            self.object(ctypes.addressof(record), ctypes.addressof(self.struct))
        if record.fault[0]:
            raise gpusim.GpuFault(gpusim.explain(record.fault, self.lowered.sites, self.kernel.name))
