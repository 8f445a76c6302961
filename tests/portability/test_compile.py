"""Compilation of every kernel of a sum for GPUs, without a GPU; default kernels spill nothing."""

import re

import numpy as np
import pytest

from parki import engine, pairs
from parki.distributed.bricks import wire
from parki.distributed.bricks.division import Division
from parki.distributed.bricks.exchange import GridExchanges
from parki.distributed.simulated import World
from parki.engine.calls import device as calls
from parki.engine.compile import rtc
from parki.engine.lower import gpu
from parki.engine.run import devices
from parki.engine.run.spaces import Space
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions
from parki.ewald.stages import sums
from parki.ewald.stages.brick import Share
from parki.proxies import ProxyKernels
from parki.treecode.interactions import InteractionLists, Interactions
from parki.treecode.steps import steps
from parki.treecode.structure import TreecodeStructure
from parki.trees import cluster
from tests.engine import gpu_texts as texts
from tests.quick import but, every

ARCHES = but("sm_80", "sm_100", of=("sm_80", "sm_90", "sm_100"))
BOX = (1.0, 1.0, 1.0)
N = 1_000_000
KERNELS = ("laplace", "stokes_sl", "stokes_comb")
SETTINGS = [("float64", 1e-9), ("float32", 1e-4), ("float64", 1e-4)]  # the last one has a far field in single precision
CUDA = Space("Cuda")
OTHERS = [{"p2p_method": m} for m in ("LIST", "LIST-2D", "GM-1D", "GM-2D", "SM-1D", "SM-2D")]
OTHERS += [{"p2g_method": m} for m in ("BASE", "SOURCE", "GRID", "HYBRID", "BLOCK", "TILE")]
OTHERS += [{"g2p_method": m} for m in ("BASE", "TARGET", "TILE")]
TREECODES = {"coulomb": {}, "yukawa": {"kappa": 1.0}, "stokes_sl": {}, "stokes_comb": {}, "stokes_grad": {}}
POINTS = range(2, 14)  # proxy points per direction: up to degree 12
FEW = [("stokes_comb", "float64", (2, 9)), ("coulomb", "float32", (9,))]
ALL = [pytest.param(k, dtype, POINTS, marks=pytest.mark.slow) for k in TREECODES for dtype in ("float64", "float32")]


@pytest.fixture(params=ARCHES)
def device(request):
    """Return a GPU of this architecture, as far as compilation needs one."""
    why = devices.missing_compiler("Cuda")
    if why is not None:
        pytest.skip(why)
    return devices.Device(0, "", request.param, 0, "", 227 << 10, 32, 132)


def workunits(kernel, dtype, tolerance, **named):
    """Yield the workunits that a sum launches on a GPU, with the threads of their blocks."""
    p = choose.parameters(Question(kernel, BOX, N, N, tolerance, dtype))
    v = variants.choose(CUDA, dtype, EwaldOptions(box=BOX, **named))
    shape = variants.P2P_SHAPES[v.p2p]
    for unit, *_ in sums.SumSteps(p, v, (N, N, True), CUDA).steps.units():
        near = unit.ir.name.startswith("p2p")
        yield unit, shape[0] * shape[1] if near else 128


def of_bricks(kernel, dtype, tolerance):
    """Return launches of one of four ranks that a single rank does not have, with those that bring its points."""
    p = choose.parameters(Question(kernel, BOX, N, N, tolerance, dtype))
    v = variants.choose(CUDA, dtype, EwaldOptions(box=BOX))
    _, n1, n2 = p.grid
    bricks = Division(p, (0, n1 // 2, n1), ((0, n2 // 4 * 2, n2),) * 2)
    slabs = Division(p, (0, n1), ((*(n2 * i // 4 // 2 * 2 for i in range(4)), n2),))
    units = []
    for cut, bits in ((bricks, 64), (bricks, 32), (slabs, wire.at_most(40, p.far))):
        share = Share(cut.bricks[0], GridExchanges(cut, World(4).comms[0], CUDA, 0.0, bits), N // 10)
        units += [unit for unit, *_ in sums.SumSteps(p, v, (N // 4, N // 4, True), CUDA, share=share).steps.units()]
    columns = [engine.kernel("glue", f"{way}_columns", real=np.dtype(dtype)) for way in ("gather", "scatter")]
    alone = {unit for unit, _ in workunits(kernel, dtype, tolerance)}
    return [(unit, 128) for unit in [*units, *columns] if unit not in alone]


def of_treecode(kernel, dtype, points):
    """Return launches of plans with a crowd and all kinds of pairs of clusters, for these numbers of proxy points."""
    real, source, span = np.dtype(dtype), np.zeros(1, np.int32), np.zeros((1, 2), np.int32)
    items = {m: np.array([[0, 0, m**3 or 1, m, 0, 1]], np.int32) for m in (0, *points)}
    tree = cluster.build(np.random.default_rng(0).random((3, 200)).astype(real), 50, Space("Serial"))
    pc, cc = ({m: InteractionLists(items[k * m], source) for m in points} for k in (0, 1))
    found = Interactions(
        InteractionLists(items[0], span),
        pc,
        InteractionLists(items[max(points)], span),
        cc,
        (1.0,) * 4,
        1,
        np.zeros(1, np.int32),
    )
    kernels = ProxyKernels(pairs.find(kernel, **TREECODES[kernel]).linear()[0], real, real, max(points))
    units = [
        (w, threads or 128) for w, _, threads in steps(TreecodeStructure(kernels, tree, tree, found, 0.0)).steps.units()
    ]
    return [*units, *((w, 128) for w in cluster.workunits(real, CUDA).values())]


def layouts(w):
    """Return C-ordered layouts with even rows, and small views by value, as all of them are constants of a plan."""
    return w.default_layouts() | dict.fromkeys(w.neighbours, "A") | dict.fromkeys(w.small, "V")


def compiled(units, device):
    """Return each workunit with its usage of resources."""
    units = list(dict.fromkeys(units))
    paths = rtc.build_many(calls.unit(w, layouts(w), device, block) for w, block in units)
    return [(w, rtc.usage(path)) for (w, _), path in zip(units, paths, strict=True)]


@pytest.mark.parametrize(("dtype", "tolerance"), SETTINGS)
def test_defaults_do_not_spill(device, dtype, tolerance, record_property):
    units = [pair for kernel in KERNELS for pair in workunits(kernel, dtype, tolerance)]
    found = compiled(units, device)
    for w, used in found:
        record_property("usage", (device.arch, dtype, w.ir.name, used.registers, used.shared))
    assert len({w.ir.name for w, _ in found}) >= 9
    assert {w.label: used for w, used in found if used.spill_stores or used.spill_loads} == {}
    assert all(0 < used.registers <= 255 for _, used in found)


@pytest.mark.parametrize(("dtype", "tolerance"), every(3, SETTINGS))
def test_all_variants_compile(device, dtype, tolerance):
    units = [pair for named in OTHERS for pair in workunits("stokes_comb", dtype, tolerance, **named)]
    names = {w.ir.name for w, _ in compiled(units, device)}
    assert {
        "p2p_list",
        "p2p_list_2d",
        "p2p_gm_1d",
        "p2p_gm_2d",
        "p2p_sm_1d",
        "p2p_sm_2d",
        "p2g_atomic",
        "p2g_grid",
        "p2g_hybrid",
        "p2g_tile",
    } <= names
    assert {"p2g_block", "g2p_target", "g2p_base", "g2p_tile", "convolve", "planes_gather", "planes_scatter"} <= names
    assert {"halo_clear", "halo_fold", "halo_ends", "halo_rows"} <= names


@pytest.mark.parametrize(("dtype", "tolerance"), SETTINGS)
def test_bricks_do_not_spill(device, dtype, tolerance):
    found = compiled([pair for kernel in KERNELS for pair in of_bricks(kernel, dtype, tolerance)], device)
    names = {w.ir.name for w, _ in found}
    assert {"lines_to_lines", "gather_columns", "scatter_columns", "convolve"} <= names
    assert (tolerance == 1e-9) == ({"lines_to_integers", "integers_to_lines"} <= names)
    assert {w.label: used for w, used in found if used.spill_stores or used.spill_loads} == {}


@pytest.mark.parametrize(("kernel", "dtype", "points"), [*FEW, *ALL])
def test_treecodes_do_not_spill(device, kernel, dtype, points, record_property):
    found = compiled(of_treecode(kernel, dtype, points), device)
    for w, used in found:
        record_property("usage", (device.arch, dtype, w.ir.name, used.registers, used.shared))
    names = "source_rows crowd_sums crowd_rows fill scatter grids ranges charges potentials transfer"
    assert {w.ir.name for w, _ in found} == {
        *names.split(),
        *(w.ir.name for w in cluster.workunits(np.dtype(float), CUDA).values()),
    }
    assert len(found) == 10 + len(points) + len(cluster.workunits(np.dtype(float), CUDA))
    assert {w.label: used for w, used in found if used.spill_stores or used.spill_loads or used.stack} == {}


def test_wide_indices_compile(device):
    units = [w for w, _ in workunits("stokes_comb", "float64", 1e-9)]
    wide = [calls.unit(w, w.default_layouts(), device, 128, wide=True) for w in units]
    assert all(path.stat().st_size > 0 for path in rtc.build_many(wide))
    assert "pk_index" in wide[0].source


def test_the_text_names_no_device():
    """Compare texts for all devices: differences are in the header alone."""
    for unit, _ in workunits("stokes_comb", "float64", 1e-9):
        text = unit.gpu(unit.default_layouts()).source
        assert re.search(r"\b__\w", text) is None
        assert text.count("#include") == 1
        assert gpu.HEADERS[0] in text


@pytest.fixture(scope="module")
def hip():
    """Return the command of a clang that compiles HIP, with ROCm's headers."""
    command = texts.hip_command()
    if isinstance(command, str):
        pytest.skip(command)
    return command


@pytest.mark.parametrize(("dtype", "tolerance"), [SETTINGS[0], pytest.param(*SETTINGS[1], marks=pytest.mark.slow)])
def test_all_kernels_compile_for_hip(hip, dtype, tolerance):
    units = {w: block for named in OTHERS for w, block in workunits("stokes_comb", dtype, tolerance, **named)}
    compile_for_hip(hip, units.items())


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_treecodes_compile_for_hip(hip, dtype):
    compile_for_hip(hip, of_treecode("stokes_comb", dtype, (5,)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_exponentials_compile_for_hip(hip, dtype):
    """Compile without a library of functions: exponentials need none."""
    (text,) = (w for w, _ in of_treecode("yukawa", dtype, (5,)) if w.ir.name == "ranges")
    assert "-DPK_EXP_ROUNDED" in text.gpu_macros
    command = [*hip, "-UPK_BLOCK", "-DPK_BLOCK=128", *text.gpu_macros]
    done = texts.compile_hip(command, text.gpu(layouts(text)).source, "gfx90a")
    assert done.returncode == 0, done.stderr
    assert "__ocml_" not in done.stdout


def compile_for_hip(hip, units):
    for w, block in units:
        command = [*hip, f"-DPK_BLOCK={block}", *w.gpu_macros]
        done = texts.compile_hip(command, w.gpu(layouts(w)).source, "gfx90a")
        assert done.returncode == 0, f"{w}: {done.stderr}"
