"""Compilation of a text to a GPU object by NVRTC or hipRTC, in this process or by this file run as another one.

NVRTC compiles one text after the other within a process, whatever the number of threads; processes compile in parallel.
This file imports nothing of parki, so that such a process costs little more than the import of CuPy.
"""

import base64
import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass

_turn = threading.Lock()  # held by the thread that compiles in this process


@dataclass(frozen=True)
class DeviceSource:
    """Text to compile: the file name that messages give, the source, headers by name, options; `hip` for hipRTC.

    `seconds` is the time that a process of its own may take.
    """

    name: str
    source: str
    headers: dict[str, str]
    options: tuple[str, ...]
    hip: bool
    seconds: float = 600.0


@dataclass(frozen=True)
class Made:
    """Compiled object, empty if the text was refused, and the compiler's log."""

    code: bytes
    log: str


def compile_text(text: DeviceSource) -> Made:
    """Compile `text` here or, while another thread compiles here, in a new process."""
    if _turn.acquire(blocking=not sys.executable):  # a program that embeds Python has no interpreter to run
        try:
            return _compile(text)
        finally:
            _turn.release()
    return _elsewhere(text)


def _compile(text: DeviceSource) -> Made:
    from cupy.cuda import nvrtc

    names = [name.encode() for name in text.headers]
    program = nvrtc.createProgram(text.source, text.name, [part.encode() for part in text.headers.values()], names)
    try:
        try:
            nvrtc.compileProgram(program, list(text.options))
        except nvrtc.NVRTCError as error:
            return Made(b"", nvrtc.getProgramLog(program) or f"error: {error}")
        # CuPy's name for hipRTC's code object is PTX too.
        code = nvrtc.getPTX(program) if text.hip else nvrtc.getCUBIN(program)
        return Made(code + b"\0", nvrtc.getProgramLog(program))  # CuPy cuts the last byte, as if it ended a string
    finally:
        nvrtc.destroyProgram(program)


def _elsewhere(text: DeviceSource) -> Made:
    # CuPy is found as here; -P: the folder of this file is no place to import from.
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        process = subprocess.run(
            [sys.executable, "-P", __file__],
            input=json.dumps(asdict(text)).encode(),
            capture_output=True,
            env=paths,
            check=False,
            timeout=text.seconds,
        )
    except subprocess.TimeoutExpired:
        return Made(b"", f"error: the compiling process had not ended after {text.seconds:g} s (PARKI_COMPILE_TIMEOUT)")
    if process.returncode:
        last = process.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return Made(b"", f"error: the compiling process ended with status {process.returncode}: {last or 'no message'}")
    answer = json.loads(process.stdout)
    return Made(base64.b64decode(answer["code"]), answer["log"])


def _serve() -> None:
    request = json.loads(sys.stdin.buffer.read())
    result = _compile(DeviceSource(**request | {"options": tuple(request["options"])}))
    sys.stdout.write(json.dumps({"code": base64.b64encode(result.code).decode(), "log": result.log}))


if __name__ == "__main__":
    _serve()
