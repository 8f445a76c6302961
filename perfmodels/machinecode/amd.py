"""Machine code of AMD GPUs, as assembly of a clang that compiles HIP: neither a GPU nor ROCm's libraries are needed."""

import functools
import re
import shutil
import subprocess
from collections.abc import Iterator

from parki.engine import BuildError, objects, rtc
from parki.perfmodels.machinecode.instructions import Instruction, Pipe, Role

COMMANDS = ("/opt/rocm/llvm/bin/clang++", *(f"clang++-{n}" for n in range(25, 13, -1)), "clang++")
ROOTS = ("/opt/rocm", "/usr")  # folders with the headers of HIP's runtime
# Functions of ROCm's library that headers of HIP before version 6 call for places in a block, and for fences.
LIBRARY = """
#if HIP_VERSION < 60000000
#define PK_PLACE(name, value)                                                                         \\
  extern "C" __device__ __attribute__((always_inline, const)) size_t __ockl_get_##name(unsigned d) {  \\
    return d == 0 ? value##_x() : d == 1 ? value##_y() : value##_z();                                 \\
  }
PK_PLACE(local_id, __builtin_amdgcn_workitem_id)
PK_PLACE(group_id, __builtin_amdgcn_workgroup_id)
PK_PLACE(local_size, __builtin_amdgcn_workgroup_size)
extern "C" __device__ __attribute__((always_inline)) void __atomic_work_item_fence(
    __cl_mem_fence_flags, __memory_order, __memory_scope scope) {
  if (scope == __memory_scope_work_group) __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  else __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
#endif
"""
PROBE = "__global__ void k(double* x) { x[threadIdx.x] = sqrt(x[0]); }"
WAITS = ("s_waitcnt", "s_nop", "s_barrier", "s_sleep", "s_setprio")  # take no unit
ENDS = ("s_branch", "s_endpgm", "s_setpc_b64")  # no other instruction goes on elsewhere
_LINE = re.compile(r"\t([a-z]\w+)(?:[ \t]+([^;]*))?")
_LABEL = re.compile(r"(\.?\w+):")
_PIPES: tuple[tuple[str, Pipe], ...] = (
    (r"(global|flat|buffer)_atomic|ds_(add|sub|min|max|cmpst)", "atomic"),
    (r"global_|flat_|buffer_|scratch_", "memory"),
    (r"ds_", "scratch"),
    (r"s_", "scalar"),
    (r"v_(rcp|rsq|sqrt|exp|log|sin|cos)(_iflag)?_f", "special"),
    (r"v_(cvt|mov|cndmask|readlane|readfirstlane|writelane|accvgpr)", "other"),
    (r"v_\w*_f64", "double"),
    (r"v_\w*_f(32|16)", "single"),
    (r"v_", "integer"),
)
_SUM = re.compile(r"v_(pk_)?(fma|fmac|add|mul|sub|subrev|mac|mad)_f(32|64)")


@functools.cache
def command() -> list[str] | str:
    """Return the command of the newest clang that compiles HIP with the runtime's headers, or the last error."""
    reason = "no clang++"
    for name in filter(None, map(shutil.which, COMMANDS)):
        for root in ROOTS:
            options = ["-x", "hip", "--cuda-device-only", "-nogpulib", f"--rocm-path={root}", "-S", "-o", "-"]
            arguments = [name, *options, "-include", "hip/hip_runtime.h", f"-I{objects.INCLUDE}", "-"]
            process = run([*arguments, "--offload-arch=gfx90a"], PROBE)
            if process.returncode == 0:
                return arguments
            reason = (process.stderr.strip().splitlines() or ["?"])[-1]
    return reason


def run(arguments: list[str], text: str) -> subprocess.CompletedProcess[str]:
    """Run a compiler with a text as its input."""
    return subprocess.run(arguments, input=text, capture_output=True, text=True, check=False)


def assembly(unit: rtc.GpuUnit) -> str:
    """Return the assembly of a unit, compiled as hipRTC would.

    Raises
    ------
    FileNotFoundError
        If no clang compiles HIP here.
    BuildError
        If it refuses the text.
    """
    arguments = command()
    if isinstance(arguments, str):
        raise FileNotFoundError(f"no clang compiles HIP here: {arguments}")
    process = run([*arguments, *rtc.options(unit)], LIBRARY + unit.source)
    if process.returncode:
        raise BuildError(f"{unit.label} does not compile for {unit.arch}: {process.stderr.strip()}")
    return process.stdout


def usage(text: str) -> rtc.Usage:
    """Return the resources that the metadata of an assembly tell."""

    def number(key: str) -> int:
        match = re.search(rf"^ +\.{key}: +(\d+)$", text, re.MULTILINE)
        return int(match[1]) if match else 0

    spills = 4 * number("vgpr_spill_count")
    stack, shared = number("private_segment_fixed_size"), number("group_segment_fixed_size")
    return rtc.Usage(number("vgpr_count"), shared, stack, spills, spills)


def kernel(text: str) -> list[Instruction]:
    """Return the instructions of the kernel in an assembly; waits, which take no unit, are left out.

    Raises
    ------
    ValueError
        If there are other than one kernel in it.
    """
    names = re.findall(r"^\t\.amdhsa_kernel (\w+)$", text, re.MULTILINE)
    if len(names) != 1:
        raise ValueError(f"text holds the kernels {', '.join(names) or 'none'}; expected one.")
    lines, places = [], {}
    for entry in _body(text, names[0]):
        if isinstance(entry, str):
            places[entry] = len(lines)
        elif not entry[0].startswith(WAITS):
            lines.append(entry)
    return [_instruction(i, *line, places, len(lines)) for i, line in enumerate(lines)]


def _body(text: str, name: str) -> Iterator[str | tuple[str, str]]:
    """Yield the labels of a function, and the opcode and operands of its instructions."""
    rest = iter(text.splitlines())
    next(line for line in rest if line.startswith(f"{name}:"))
    for line in rest:
        label, instruction = _LABEL.match(line), _LINE.match(line)
        if label:
            if label[1].startswith(".Lfunc_end"):
                return
            yield label[1]
        elif instruction:
            yield instruction[1], (instruction[2] or "").strip()


def _instruction(i: int, opcode: str, operands: str, places: dict[str, int], count: int) -> Instruction:
    """Return an instruction of a kernel from its line and the places of labels."""
    target = (places[operands],) if operands in places else ()
    successors = target if opcode in ENDS else (i + 1, *target)
    role: Role = "sum" if _SUM.match(opcode) else ""
    if opcode.startswith("v_rsq"):
        role = "root"
    elif opcode.startswith("s_swappc"):
        role = "call"
    pipe = next((pipe for pattern, pipe in _PIPES if re.match(pattern, opcode)), "other")
    return Instruction(opcode, operands, pipe, tuple(j for j in successors if j < count), role)
