"""Command line: output, written files and failures."""

import argparse
import importlib.resources
import logging
import subprocess
import sys

import numpy as np
import pytest

import parki
from parki import cli, doctor, prediction
from parki.engine.compile import rtc
from parki.engine.run import devices, spaces
from parki.perfmodels import machine


@pytest.fixture
def cloud(tmp_path):
    """Return the path of a small file for the combined kernel, and its arrays."""
    rng = np.random.default_rng(5)
    arrays = {"trg": rng.random((3, 20)), "src": rng.random((3, 30)), "dens": rng.standard_normal((6, 30))}
    arrays |= {"normals": rng.standard_normal((3, 30)), "box": np.array([1.0, 1.0, 1.0])}
    path = tmp_path / "cloud.npz"
    np.savez(path, **arrays)
    return path, arrays


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"parki {parki.__version__}\n"


def test_doctor(capsys):
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"parki {parki.__version__}   Python 3.")
    found = {line.split()[0]: line for line in lines[1:]}
    for name, why in spaces.available().items():
        assert ("ready" in found[name]) is (why is None)
        assert why is None or why in found[name]
    assert "g++" in found["compiler"] or "clang" in found["compiler"]
    assert "-bit vectors" in found["vectors"]
    assert "threads" in found
    assert "kernels" in found["cache"]
    for library in ("MPI", "CuPy", "matplotlib", "PyKokkos"):
        assert found[library].split()[1] in ("present", "missing")
    assert "warps of 32" in found["GpuSim"]
    assert "warps of 64" in found["GpuSim64"]
    assert all(len(line.split()) > 2 for line in lines[1:])  # a reason or a fact behind the name


def test_doctor_describes_gpus(capsys, monkeypatch):
    pair = [
        devices.Device(k, name, "sm_90", 150 * 10**9, "580.95.05, CUDA 13.0", 232448, 32, 132, "9.0")
        for k, name in enumerate(("NVIDIA H200", "NVIDIA H100"))
    ]
    monkeypatch.setattr(devices, "missing", lambda kind: None if kind == "Cuda" else "CuPy is for CUDA: change it.")
    monkeypatch.setattr(devices, "find", lambda kind: tuple(pair) if kind == "Cuda" else ())
    monkeypatch.setattr(devices, "current", lambda: pair[1])
    monkeypatch.setattr(devices, "platform", lambda: "Cuda")
    monkeypatch.setattr(devices, "distribution", lambda kind: "cupy-cuda13x 14.2.0")
    monkeypatch.setattr(devices, "missing_compiler", lambda kind: None)
    monkeypatch.setattr(rtc, "version", lambda backend: "NVRTC 13.0")
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    facts = "compute capability 9.0, 150 GB, 132 multiprocessors, driver 580.95.05, CUDA 13.0"
    for name in ("H200", "H100"):
        assert f"  Cuda        ready    NVIDIA {name}, {facts}\n" in text
    assert "  HIP         missing  CuPy is for CUDA: change it.\n" in text
    assert "  CuPy        present  cupy-cuda13x 14.2.0, NVRTC 13.0\n" in text
    assert doctor.backend(spaces.Space("Cuda")) == f"Cuda, NVIDIA H100, {facts}, NVRTC 13.0"


def test_doctor_without_cupy(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert '  Cuda        missing  CuPy is not installed: pip install "parki[cuda13]"' in text
    assert '  HIP         missing  CuPy is not installed: pip install "parki[rocm]"' in text
    assert "  CuPy        missing  CuPy is not installed: pip install" in text


def test_the_simulated_gpu_is_named():
    assert "GPU kernels on the host" in doctor.backend(spaces.get("GpuSim"))


def test_doctor_says_where_rates_come_from(capsys, monkeypatch, tmp_path):
    def said():
        assert cli.main(["doctor"]) == 0
        (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("  rates "))
        return line.removeprefix("  rates ").strip()

    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PARKI_CALIBRATION", raising=False)
    assert said() == "common ones, others have not been measured here → parki calibrate"
    path = machine.stored()
    path.parent.mkdir(parents=True)
    text = importlib.resources.files("parki.perfmodels.machines").joinpath("xeon.toml").read_text()
    path.write_text(f"# {prediction.built()}\n{text}")
    assert said() == "measured here"
    path.write_text(f"# g++ 4.2\n{text}")
    assert said() == "common ones, others were by another compiler or for other vectors → parki calibrate"
    monkeypatch.setenv("PARKI_CALIBRATION", "Off")
    assert said() == "common ones, as PARKI_CALIBRATION=Off"


def test_doctor_without_a_compiler(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PARKI_CXX", "no-such-compiler")
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path))
    assert cli.main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "compiler    missing" in text
    assert "no-such-compiler" in text
    assert "pip install 'parki[compiler]'" in text


def test_doctor_names_zig(capsys, monkeypatch, tmp_path):
    (tmp_path / "zig").write_text('#!/bin/sh\n[ "$1" = c++ ] && echo "clang version 99.0 (a tree)" || echo 0.99.0\n')
    (tmp_path / "zig").chmod(0o755)
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / "zig"))
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "cache"))
    cli.main(["doctor"])
    assert f"  compiler    Zig 0.99.0, clang version 99.0   ({tmp_path}/zig)\n" in capsys.readouterr().out


def test_cache(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path))
    assert cli.main(["cache", "list"]) == 0
    assert f"0 kernels, 0.0 MB in {tmp_path}" in capsys.readouterr().out
    for what in ("clear", "prune"):
        assert cli.main(["cache", what]) == 0
        assert f"0 kernels removed from {tmp_path}" in capsys.readouterr().out


@pytest.mark.parametrize("tolerance", ["1e-4", "1e-7", "1e-11"])
def test_run_on_water_meets_the_tolerance(tolerance, water_file, water, tmp_path, capsys):
    result = tmp_path / "out"
    command = ["run", str(water_file), "--kernel", "laplace", "--tolerance", tolerance, "-o", str(result)]
    assert cli.main(command) == 0
    assert f"laplace: 2685 sources, 2685 targets, tolerance {float(tolerance):g}" in capsys.readouterr().out
    with np.load(result) as file:
        found = dict(file)
    exact = water["potential"]
    error = np.linalg.norm(found["potential"][water["sample"]] - exact) / np.linalg.norm(exact)
    assert error < float(tolerance)
    assert found["kernel"] == "laplace"
    assert found["tolerance"] == float(tolerance)
    assert np.array_equal(found["box"], water["box"])
    assert {"rc", "kmax", "window_P", "grid_shape_ext", "split"} <= set(found)


def test_run_in_single_precision(water_file, water, tmp_path):
    result = tmp_path / "out.npz"
    command = ["run", str(water_file), "--kernel", "laplace", "--tolerance", "1e-4", "--dtype", "float32"]
    assert cli.main([*command, "-o", str(result)]) == 0
    with np.load(result) as file:
        found = file["potential"]
    assert found.dtype == np.float32
    exact = water["potential"]
    assert np.linalg.norm(found[water["sample"]] - exact) < 1e-4 * np.linalg.norm(exact)


def test_run_equals_the_call(cloud, tmp_path):
    path, arrays = cloud
    result = tmp_path / "out.npz"
    options = ["--tolerance", "1e-5", "--rc", "0.4", "--split", "gaussian", "--space", "Serial", "--threads", "1"]
    assert cli.main(["run", str(path), "--kernel", "stokes_comb", *options, "-o", str(result)]) == 0
    box = arrays.pop("box")
    expected = parki.ewald.stokes_comb(**arrays, box=box, tolerance=1e-5, rc=0.4, split="gaussian")
    with np.load(result) as file:
        np.testing.assert_allclose(file["potential"], expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
        assert file["rc"] == 0.4
        assert file["split"] == "gaussian"


def test_verbose_says_what_is_done(cloud, tmp_path, capsys):
    path, _ = cloud
    command = ["run", str(path), "--kernel", "stokes_comb", "-o", str(tmp_path / "out.npz")]
    assert cli.main(command) == 0
    assert capsys.readouterr().err == ""
    before = logging.getLogger("parki").handlers[:]
    assert cli.main([*command, "-v"]) == 0
    err = capsys.readouterr().err
    assert "near field (P2P)" in err
    assert "window" in err
    assert logging.getLogger("parki").handlers == before


@pytest.mark.parametrize(
    ("kernel", "dropped", "missing"),
    [
        ("laplace", "src", "no array 'src'"),
        ("stokes_sl", "dens", "no array 'dens'"),
        ("stokes_comb", "normals", "no array 'normals'"),
        ("laplace", "box", "no array 'box'"),
    ],
)
def test_a_missing_array_is_named(kernel, dropped, missing, cloud, tmp_path, capsys):
    _, arrays = cloud
    path = tmp_path / "part.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if name != dropped})
    assert cli.main(["run", str(path), "--kernel", kernel, "-o", str(tmp_path / "out.npz")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert missing in err
    for name in set(arrays) - {dropped}:
        assert name in err.partition("found")[2]
    assert not (tmp_path / "out.npz").exists()


def broken(tmp_path, cloud):
    """Yield files that cannot be used, with a part of the expected message."""
    _, arrays = cloud
    yield tmp_path / "none.npz", "No such file"
    (tmp_path / "text.npz").write_text("not an archive")
    yield tmp_path / "text.npz", "is not an .npz file"
    (tmp_path / "empty.npz").touch()
    yield tmp_path / "empty.npz", "is not an .npz file"
    np.save(tmp_path / "one.npy", arrays["src"])
    yield tmp_path / "one.npy", "one.npy has no box"
    (tmp_path / "unnamed.npz").write_bytes((tmp_path / "one.npy").read_bytes())
    yield tmp_path / "unnamed.npz", "is not an .npz file"
    np.savez(tmp_path / "objects.npz", **arrays | {"dens": np.array([{}], dtype=object)})
    yield tmp_path / "objects.npz", "is not an .npz file"
    np.savez(tmp_path / "flat.npz", **arrays | {"src": arrays["src"].T})
    yield tmp_path / "flat.npz", "src has shape (30, 3)"
    np.savez(tmp_path / "infinite.npz", **arrays | {"src": arrays["src"] + np.inf})
    yield tmp_path / "infinite.npz", "NaN or infinite"
    np.savez(tmp_path / "scalar.npz", **arrays | {"box": np.array(1.0)})
    yield tmp_path / "scalar.npz", "box is"


def test_bad_files_give_one_line_and_no_traceback(tmp_path, cloud, capsys):
    for path, said in broken(tmp_path, cloud):
        code = cli.main(["run", str(path), "--kernel", "stokes_comb", "-o", str(tmp_path / "out.npz")])
        err = capsys.readouterr().err
        assert code == 2, path
        assert said in err, path
        assert err.startswith("parki run: "), path
        assert "Traceback" not in err, path
        assert not (tmp_path / "out.npz").exists()


def test_the_input_is_not_overwritten(cloud, capsys):
    path, _ = cloud
    before = path.read_bytes()
    assert cli.main(["run", str(path), "--kernel", "stokes_comb", "-o", str(path)]) == 2
    assert "is the input too" in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tolerance", "2"], "tolerance is 2.0"),
        (["--rc", "3"], "rc is 3.0"),
        (["--space", "Cuda"], "execution space 'Cuda'"),
        (["--threads", "0"], "threads is 0"),
    ],
)
def test_bad_options_give_one_line(arguments, said, cloud, tmp_path, capsys):
    path, _ = cloud
    assert cli.main(["run", str(path), "--kernel", "stokes_comb", "-o", str(tmp_path / "o.npz"), *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_points_of_integers_in_a_file_need_the_word(cloud, tmp_path, capsys):
    _, arrays = cloud
    path, result = tmp_path / "whole.npz", tmp_path / "out.npz"
    np.savez(path, **arrays | {"src": np.arange(90).reshape(3, 30), "dens": np.ones(30, dtype=int)})
    assert cli.main(["run", str(path), "--kernel", "laplace", "-o", str(result)]) == 2
    assert "src has dtype int64" in capsys.readouterr().err
    assert cli.main(["run", str(path), "--kernel", "laplace", "--dtype", "float64", "-o", str(result)]) == 0


def test_the_installed_command_exits_with_2(tmp_path):
    command = [sys.executable, "-c", "import sys; from parki.cli import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "run", "none.npz", "--kernel", "laplace", "-o", "out.npz"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "none.npz" in done.stderr


def test_demo(tmp_path, capsys):
    picture = tmp_path / "flow.png"
    assert cli.main(["demo", "--n", "2e3", "--tolerance", "1e-5", "--seed", "4", "-o", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "2000 random particles" in lines[0]
    assert "tolerance 1e-05" in lines[0]
    words = [line.split()[0] for line in lines if line]
    assert words[:4] == ["parki", "backend", "parameters", "times"]
    for title in ("phase", "near", "spread", "FFT", "multiply", "inverse", "interpolate", "total", "error", "picture"):
        assert title in words
    error = float(next(line for line in lines if line.startswith("error")).split()[1])
    assert 0 < error < 1e-5
    matplotlib = pytest.importorskip("matplotlib.image")
    assert matplotlib.imread(picture).shape[2] == 4


def test_demo_without_a_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--n", "500", "--tolerance", "1e-3", "--no-picture"]) == 0
    assert "picture" not in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_bench_passes_its_arguments_on(monkeypatch):
    given = []
    module = pytest.importorskip("parki.perfmodels.bench.command")
    monkeypatch.setattr(module, "main", lambda asked: given.append(asked) or 0)
    assert cli.main(["bench", "p2p", "--n", "1e4", "--repeat", "2", "--threads", "1", "--json", "record.json"]) == 0
    assert isinstance(given[0], argparse.Namespace)
    assert (given[0].name, given[0].n, given[0].repeat, given[0].threads) == ("p2p", 10000, 2, 1)
    assert str(given[0].json) == "record.json"
    assert given[0].space is None
    assert given[0].tolerance == 1e-7


def test_points_are_of_sums_over_processes(capsys):
    assert cli.main(["bench", "treecode", "--points", "sphere"]) == 2
    assert "--points was given without --mpi" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-5", "2.5", "inf", "nan", "many"])
def test_a_number_of_particles_is_a_positive_whole_number(text, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["demo", "--n", text])
    assert stop.value.code == 2
    assert f"--n: invalid count value: '{text}'" in capsys.readouterr().err
