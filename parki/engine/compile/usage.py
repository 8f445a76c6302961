"""Resources of a compiled GPU kernel: registers, shared memory, stack, spills."""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """Resources of one kernel; the largest numbers where an object holds several.

    `registers` is the number of 32-bit registers of a thread (vector registers on AMD), `shared` the bytes of shared
    memory of a block beside those that a launch asks for, `stack` the bytes of local memory of a thread.  Spills are
    bytes that the compiler's code stores and loads because registers did not suffice, counted once per instruction;
    AMD's compiler counts registers spilled, given here as 4 bytes each way.
    """

    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int


def from_log(log: str) -> Usage | None:
    """Return the report of ``ptxas -v`` in an NVRTC log, None if there is none."""
    registers = _largest(r"Used (\d+) registers", log)
    if registers is None:
        return None
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    stack, stores, loads = (max((int(frame[k]) for frame in frames), default=0) for k in range(3))
    # the kernel's own frame, or the frames with the functions that it calls, if larger
    stack = max(stack, _largest(r"(\d+) bytes cumulative stack size", log) or 0)
    return Usage(registers, _largest(r"(\d+) bytes smem", log) or 0, stack, stores, loads)


def _largest(pattern: str, text: str) -> int | None:
    return max(map(int, re.findall(pattern, text)), default=None)


def from_code_object(code: bytes) -> Usage | None:
    """Return the resources that the metadata of an AMD code object tell, None without metadata.

    The metadata are MessagePack, version 3 and later: a map for each kernel, with keys of LLVM's "AMDGPU Code Object
    Metadata".
    """
    registers = max(_values(code, ".vgpr_count"), default=None)
    if registers is None:
        return None
    spills = 4 * max(_values(code, ".vgpr_spill_count"), default=0)
    stack = max(_values(code, ".private_segment_fixed_size"), default=0)
    return Usage(registers, max(_values(code, ".group_segment_fixed_size"), default=0), stack, spills, spills)


def _values(code: bytes, name: str) -> Iterator[int]:
    """Yield the unsigned integers that follow this key in MessagePack."""
    key = (bytes([0xA0 | len(name)]) if len(name) < 32 else bytes([0xD9, len(name)])) + name.encode()
    widths = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
    position = code.find(key)
    while position >= 0:
        position += len(key)
        first = code[position] if position < len(code) else 0xC0
        if first < 0x80:
            yield first
        elif width := widths.get(first):
            yield int.from_bytes(code[position + 1 : position + 1 + width], "big")
        position = code.find(key, position)
