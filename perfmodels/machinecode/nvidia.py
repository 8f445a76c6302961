"""Machine code of NVIDIA GPUs, by their disassembler."""

import functools
import importlib.metadata
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parki.perfmodels.machinecode.instructions import Instruction, Pipe, Role

WHEEL = "nvidia-cuda-nvdisasm"
BYTES = 16  # of an instruction
#: Pipe of each opcode without its suffixes; "other" are moves, branches and reads of constants.
PIPE: Mapping[str, Pipe] = {
    **dict.fromkeys(("DFMA", "DADD", "DMUL", "DSETP", "DMNMX"), "double"),
    **dict.fromkeys(("FFMA", "FADD", "FMUL", "FSETP", "FMNMX", "FSEL", "FCHK", "FSWZADD"), "single"),
    **dict.fromkeys(("MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV"), "special"),
    **dict.fromkeys(("LDG", "LDS", "LDL", "STG", "STS", "STL", "LD", "ST", "SHFL", "LDSM"), "memory"),
    **dict.fromkeys(("RED", "ATOM", "ATOMG", "ATOMS", "REDG"), "atomic"),
    **dict.fromkeys(
        (
            "IMAD",
            "IADD3",
            "ISETP",
            "LOP3",
            "LEA",
            "SHF",
            "SEL",
            "VIADD",
            "VIMNMX",
            "VIADDMNMX",
            "IABS",
            "PRMT",
            "IMNMX",
        ),
        "integer",
    ),
}
ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("DFMA", "DADD", "DMUL", "FFMA", "FADD", "FMUL"), "sum"),
    "CALL": "call",
}
ROOT = "MUFU.RSQ"  # first instruction of a reciprocal square root
APART = "BRA.DIV"  # branch of a warp whose lanes are not together where they exchange numbers: they are
ENDS = ("BRA", "EXIT", "RET", "BRX", "JMX")  # no other instruction goes on elsewhere
_TARGET = re.compile(r"0x([0-9a-f]+)$")


@functools.cache
def disassembler() -> str | None:
    """Return the path of nvdisasm: of its wheel, or on PATH; None if there is none."""
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    paths = [Path(str(file.locate())) for file in files if file.name.startswith("nvdisasm")]
    return next((str(path) for path in paths if path.exists()), None) or shutil.which("nvdisasm")


def kernel(path: Path) -> list[Instruction]:
    """Return the instructions of the kernel in an object.

    Raises
    ------
    FileNotFoundError
        If there is no disassembler.
    ValueError
        If the disassembler refuses the file, or finds other than one kernel in it.
    """
    command = disassembler()
    if command is None:
        raise FileNotFoundError(f"nvdisasm is missing; expected the wheel {WHEEL}, or the CUDA toolkit on PATH.")
    run = subprocess.run([command, "-json", str(path)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise ValueError(f"{path}: nvdisasm refuses it: {run.stderr.strip()}")
    _, functions = json.loads(run.stdout)
    if len(functions) != 1:
        names = ", ".join(function["function-name"] for function in functions) or "none"
        raise ValueError(f"{path} holds the kernels {names}; expected one.")
    entries = functions[0]["sass-instructions"]
    return [_instruction(i, entry, len(entries)) for i, entry in enumerate(entries)]


def _instruction(i: int, entry: Mapping[str, Any], count: int) -> Instruction:
    """Return an instruction from its entry in the list of a kernel."""
    opcode, operands = entry["opcode"], entry.get("operands", "")
    name = opcode.partition(".")[0]
    conditional = "predicate" in entry or (name == "BRA" and "," in operands)  # BRA may have a predicate of its own
    target = _TARGET.search(operands) if name == "BRA" and opcode != APART else None
    successors = (int(target[1], 16) // BYTES,) if target else ()
    if (conditional or name not in ENDS) and i + 1 < count:
        successors = (i + 1, *successors)
    role = "root" if opcode.startswith(ROOT) else ROLES.get(name, "")
    return Instruction(opcode, operands, PIPE.get(name, "other"), successors, role)
