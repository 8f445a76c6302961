"""Messages about GPUs with CuPy absent, broken, for the other platform, without a driver, and with devices."""

import subprocess
import sys
import types

import pytest

from parki.engine.run import devices

H200 = {
    "name": b"NVIDIA H200",
    "major": 9,
    "minor": 0,
    "totalGlobalMem": 150_000_000_000,
    "sharedMemPerBlock": 49152,
    "sharedMemPerBlockOptin": 232448,
    "warpSize": 32,
    "multiProcessorCount": 132,
}
MI300 = {
    "name": b"AMD Instinct MI300X",
    "gcnArchName": b"gfx942:sramecc+:xnack-",
    "totalGlobalMem": 206_000_000_000,
    "sharedMemPerBlock": 65536,
    "warpSize": 64,
    "multiProcessorCount": 304,
}


class Refusal(RuntimeError):
    """Error in the form of CUDARuntimeError: a text and a status."""

    def __init__(self, status):
        self.status = status
        super().__init__(f"cudaError{status}: no luck")


def raiser(error):
    def fail(*_):
        raise error

    return fail


@pytest.fixture
def install(monkeypatch):
    """Return a function that installs a stand-in for CuPy with the given answers."""

    def put(found=(), *, hip=False, driver=13000, nvrtc=(13, 0), archs=(75, 80, 86, 90, 120), version="14.2.0"):
        runtime = types.SimpleNamespace(
            is_hip=hip,
            getDeviceCount=raiser(found) if isinstance(found, Exception) else lambda: len(found),
            getDeviceProperties=lambda index: found[index],
            driverGetVersion=lambda: driver,
            runtimeGetVersion=lambda: 13020,
            getDevice=lambda: 1,
            memGetInfo=lambda: (123, 456),
        )
        compiler = types.SimpleNamespace(
            getVersion=raiser(nvrtc) if isinstance(nvrtc, Exception) else lambda: nvrtc,
            getSupportedArchs=raiser(RuntimeError("HIP does not")) if hip else lambda: archs,
        )
        module = types.ModuleType("cupy")
        module.__version__ = version
        module.cuda = types.SimpleNamespace(runtime=runtime, nvrtc=compiler)
        monkeypatch.setitem(sys.modules, "cupy", module)
        forget()
        return module

    monkeypatch.setattr(
        devices, "distribution", lambda kind: {"Cuda": "cupy-cuda13x 14", "HIP": "cupy-rocm-7-0 14"}[kind]
    )
    yield put
    forget()


def forget():
    devices._import.cache_clear()
    devices._ask.cache_clear()


def test_devices_are_described(install, monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "_NVIDIA", tmp_path / "version")
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release\n")
    install([H200, H200 | {"name": b"RTX", "major": 8, "minor": 9}])
    assert devices.missing("Cuda") is None
    assert devices.missing_compiler("Cuda") is None
    first, second = devices.find("Cuda")
    driver = "580.95.05, CUDA 13.0"
    assert first == devices.Device(0, "NVIDIA H200", "sm_90", 150_000_000_000, driver, 232448, 32, 132, "9.0")
    assert (second.index, second.arch, second.capability) == (1, "sm_86", "8.9")  # the newest that NVRTC knows
    assert devices.current() == second
    assert devices.find("HIP") == ()
    (tmp_path / "version").unlink()
    forget()
    assert devices.find("Cuda")[0].driver == "CUDA 13.0"


def test_amd_devices_are_described(install):
    install([MI300], hip=True, driver=70051831)
    expected = devices.Device(0, "AMD Instinct MI300X", "gfx942", 206_000_000_000, "HIP 7.0", 65536, 64, 304)
    assert devices.find("HIP") == (expected,)
    assert devices.platform() == "HIP"
    assert devices.current() is None  # CuPy works on device 1
    for said in (devices.missing("Cuda"), devices.missing_compiler("Cuda")):
        assert said.startswith("cupy-rocm-7-0 14 is built for ROCm: pip uninstall cupy-rocm-7-0, then pip install")


def test_devices_that_nvrtc_does_not_know_are_left_out(install):
    old = H200 | {"name": b"Tesla V100", "major": 7}
    install([old, H200])
    assert [device.index for device in devices.find("Cuda")] == [1]
    install([old])
    assert devices.find("Cuda") == ()
    assert "NVRTC 13.0 does not compile for Tesla V100 (compute capability 7.0)" in devices.missing("Cuda")
    assert "parki[cuda12]" in devices.missing("Cuda")


def test_a_device_that_does_not_answer_does_not_hide_the_others(install):
    module = install([H200, H200])
    module.cuda.runtime.getDeviceProperties = lambda index: H200 if index else raiser(Refusal(46))()
    assert [device.index for device in devices.find("Cuda")] == [1]


@pytest.mark.parametrize(
    ("found", "driver", "text"),
    [
        (Refusal(35), 0, "finds no CUDA driver: install an NVIDIA driver (580 or newer"),
        (Refusal(35), 12040, "needs a driver for CUDA 13, the one here serves CUDA 12.4: update it (580"),
        (Refusal(35), 12040, 'or pip install "parki[cuda12]"'),
        (Refusal(100), 13000, "finds no CUDA device: nvidia-smi shows what there is"),
        ([], 13000, "finds no CUDA device"),
        (Refusal(3), 13000, "a forked process cannot use the GPU of its parent"),
        (Refusal(999), 13000, "cannot ask for CUDA devices: cudaError999: no luck"),
    ],
)
def test_without_a_device_the_reason_is_one_sentence(install, monkeypatch, found, driver, text):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    install(found, driver=driver)
    said = devices.missing("Cuda")
    assert text in said
    assert said.endswith(".")
    assert "\n" not in said
    assert ". " not in said
    assert devices.find("Cuda") == ()
    assert devices.current() is None
    assert devices.missing_compiler("Cuda") is None  # compiling needs no device


def test_devices_hidden_by_the_environment(install, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    install(Refusal(100))
    assert "CUDA_VISIBLE_DEVICES='' may hide it" in devices.missing("Cuda")


def test_without_nvrtc_nothing_is_compiled(install):
    install([H200], nvrtc=RuntimeError("libnvrtc not found.\nlook elsewhere"))
    for said in (devices.missing("Cuda"), devices.missing_compiler("Cuda")):
        assert "NVRTC, which compiles kernels, cannot be loaded (libnvrtc not found): pip install" in said
    assert devices.find("Cuda") == ()


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert not devices.installed()
    assert devices.missing("Cuda").startswith('CuPy is not installed: pip install "parki[cuda13]" (NVIDIA driver 580')
    assert devices.missing_compiler("HIP").startswith('CuPy is not installed: pip install "parki[rocm]"')
    assert devices.find("Cuda") == devices.find("HIP") == ()
    assert devices.current() is None
    assert devices.platform() is None
    with pytest.raises(ImportError, match="CuPy is not installed"):
        devices.cupy()


def test_a_cupy_that_cannot_be_imported(monkeypatch, tmp_path):
    text = "=====\\nMany lines.\\n\\nOriginal error:\\n  ImportError: libcudart.so.13: cannot open\\n====="
    (tmp_path / "cupy.py").write_text(f'raise ImportError("{text}")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    forget()
    said = devices.missing("Cuda")
    forget()
    assert said.startswith("CuPy cannot be imported (ImportError: libcudart.so.13: cannot open): pip install")


def test_free_memory_is_asked_of_the_device(install):
    entered = []

    class Guard:
        def __init__(self, index):
            entered.append(index)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            entered.append("left")

    module = install([H200, H200])
    module.cuda.Device = Guard
    assert devices.free_bytes(devices.find("Cuda")[1]) == 123
    assert entered == [1, "left"]


def test_names_of_host_spaces_import_no_cupy():
    code = (
        "import sys; from parki.engine import spaces; spaces.get('Serial'); spaces.get(); print('cupy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
