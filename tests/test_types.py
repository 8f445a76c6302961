"""Types of the public calls: as type checkers read them, and as the tables at run time list them."""

import inspect
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import parki
from parki import arrays, fft, keywords, names, pairs, utils
from parki.automatic.options import METHODS as SUM_METHODS
from parki.distributed.bricks import wire
from parki.engine.run import spaces
from parki.ewald import EwaldOptions, kernels
from parki.fmm.options import METHODS as FMM_METHODS
from parki.fmm.options import FmmOptions
from parki.options import choices
from parki.treecode.api import VARIANTS
from parki.treecode.options import METHODS as TREECODE_METHODS
from parki.treecode.options import TreecodeOptions

PACKAGES = ("direct", "engine", "ewald", "fmm", "pairs", "samples", "treecode", "utils")
#: Names accepted at run time, by the type that lists them.
ACCEPTED = {
    "KernelName": pairs.PAIRS,
    "EwaldKernelName": kernels.KERNELS,
    "TreecodeMethod": TREECODE_METHODS,
    "TreecodeVariant": VARIANTS,
    "FmmMethod": FMM_METHODS,
    "SumMethod": SUM_METHODS,
    "TaskSchedule": choices(TreecodeOptions, "schedule"),
    "FmmSchedule": choices(FmmOptions, "schedule"),
    "Layout": arrays.LAYOUTS,
    "Precision": arrays.PRECISIONS,
    "ExchangeBits": wire.BITS,
    "EngineName": spaces.ENGINES,
    "TransformLibrary": fft.BACKENDS,
    "TransformKind": choices(EwaldOptions, "fft_type"),
    "SplitName": choices(EwaldOptions, "split"),
    "P2PMethod": choices(EwaldOptions, "p2p_method"),
    "P2GMethod": choices(EwaldOptions, "p2g_method"),
    "G2PMethod": choices(EwaldOptions, "g2p_method"),
    "DtypeName": utils.DTYPES,
}
EWALD = [name for name in parki.ewald.__all__ if inspect.isfunction(getattr(parki.ewald, name))]
FREE = [(parki.treecode, "bldtt"), (parki.treecode, "bltc"), (parki.fmm, "kifmm"), (parki.fmm, "chebyshev")]
FREE += [(parki.treecode, "plan"), (parki.fmm, "plan")]
TABLES = {parki.treecode: keywords.TreecodeKeywords, parki.fmm: keywords.FmmKeywords}
OPTIONS = {parki.treecode: TreecodeOptions, parki.fmm: FmmOptions}


# Names ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ACCEPTED)
def test_a_type_lists_the_names_that_run_time_accepts(name):
    assert sorted(get_args(getattr(names, name))) == sorted(ACCEPTED[name])


def test_spaces_are_listed():
    listed = get_args(names.SpaceName)
    assert set(spaces.NAMES) < set(listed)
    others = {*spaces._BEST_HOST, *spaces._BEST_DEVICE}
    assert {name.lower() for name in listed} == {*(name.lower() for name in spaces.NAMES), *others}


def test_every_type_is_compared():
    literals = {name for name, value in vars(names).items() if get_origin(value) is Literal}
    assert literals == {*ACCEPTED, "SpaceName"}


@pytest.mark.parametrize("package", [parki.treecode, parki.fmm])
def test_gradients(package):
    (only,) = get_args(get_args(names.Gradient)[1])
    with pytest.raises(ValueError, match=f"gradient is 'all'; expected one of False, True, {only!r}"):
        package.plan("coulomb", np.zeros((3, 1)), np.zeros((3, 1)), gradient="all")


# Options --------------------------------------------------------------------------------------------------------------
def test_keywords_of_ewald_sums_are_the_fields_of_its_options():
    assert get_type_hints(keywords.EwaldReported) == get_type_hints(parki.ewald.EwaldOptions)


def test_parameters_are_of_the_kernels():
    assert set(get_type_hints(keywords.KernelParameters)) == {name for p in pairs.PAIRS.values() for name in p.names}


@pytest.mark.parametrize("package", TABLES)
def test_keywords_of_sums_in_free_space_are_those_of_their_plans(package):
    typed, apart = get_type_hints(TABLES[package]), {"method", "gradient", "timed"}
    parameters = get_type_hints(keywords.KernelParameters)
    options = {name: hint for name, hint in get_type_hints(OPTIONS[package]).items() if name != "TITLE"}
    taken = {name: hint for name, hint in options.items() if name not in apart}
    assert taken == {name: hint for name, hint in typed.items() if name not in parameters}
    assert set(options) == set(OPTIONS[package].names())


@pytest.mark.parametrize("name", EWALD)
def test_signatures_of_ewald_sums_show_all_options(name):
    shown = inspect.signature(getattr(parki.ewald, name)).parameters
    for field, option in inspect.signature(parki.ewald.EwaldOptions).parameters.items():
        assert (shown[field].kind, shown[field].default) == (option.KEYWORD_ONLY, option.default)
    assert "keywords" not in shown


@pytest.mark.parametrize(("package", "name"), FREE)
def test_signatures_in_free_space_show_all_options(package, name):
    shown = inspect.signature(getattr(package, name)).parameters
    assert {*get_type_hints(TABLES[package]), "gradient"} < set(shown)
    assert ("method" in shown, "timed" in shown) == ((True, True) if name == "plan" else (False, False))
    kinds = [p.kind for p in shown.values()]
    assert kinds[-1] is inspect.Parameter.VAR_KEYWORD  # parameters of a caller's own pair
    assert "keywords" not in shown


def test_a_pair_of_ones_own_takes_parameters_of_its_own_name():
    mine = pairs.Pair("mine", 1, 1, "pair/radial", names=("length",), slots=(("radial", "radial/gaussian"),))
    x, q = parki.samples.uniform(20), parki.samples.charges(20)
    u = parki.treecode.bldtt(x, x, q, mine, length=0.5)
    np.testing.assert_array_equal(u, parki.treecode.bldtt(x, x, q, pairs.find(mine, length=0.5)))
    np.testing.assert_allclose(u, parki.direct.direct_sum("gaussian", x, x, q, width=0.5), rtol=1e-5)


# Modules --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["", *PACKAGES])
def test_dir_lists_the_public_names(name):
    module = getattr(parki, name) if name else parki
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


# Type checkers --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def errors(root, tmp_path_factory):
    """Return the errors that mypy finds in the two scripts, with parki installed: (file, line) → messages."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed; pip install mypy")
    folder = tmp_path_factory.mktemp("types")
    for script in (root / "tests" / "types").glob("*.py"):
        (folder / script.name).write_text(script.read_text("utf-8"), "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-pretty", "--hide-error-context"]
    # mypy treats modules of `PYTHONPATH` as installed: it follows their types, and reports no errors in them.
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(
        [*command, "right.py", "wrong.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = {}
    for line in done.stdout.splitlines():
        if match := re.match(r"(.+?):(\d+): error: (.*)", line):
            found.setdefault((match[1], int(match[2])), []).append(match[3])
    return found


@pytest.mark.timeout(300)
def test_mypy_has_nothing_to_say_of_a_right_script(errors):
    assert {place: text for place, text in errors.items() if place[0] != "wrong.py"} == {}


@pytest.mark.timeout(300)
def test_mypy_finds_every_mistake(errors, root):
    lines = (root / "tests" / "types" / "wrong.py").read_text("utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# wrong: " in line}
    assert len(wrong) == 10
    assert {line for file, line in errors if file == "wrong.py"} == wrong
