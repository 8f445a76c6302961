"""Tuned plans: as accurate as others, measured once, remembered for similar sums, and made only on request."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import parki
from parki import arrays, cli
from parki.engine.errors import BuildError
from parki.engine.run import devices, spaces
from parki.ewald import kernels
from parki.ewald.choice import params, tuning, tuning_cache
from parki.ewald.choice.arrangement import Arrangement
from parki.ewald.choice.question import Question
from parki.ewald.method import Ewald
from parki.ewald.options import EwaldOptions
from parki.perfmodels import select
from tests.ewald import cupy_standin as standin
from tests.ewald import sums

BOX, N = (1.0, 1.2, 0.9), 300


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    """Give every test an empty folder of tuned parameters."""
    monkeypatch.setattr(tuning_cache, "folder", lambda: tmp_path / "tuned")
    return tmp_path / "tuned"


@pytest.fixture
def fastest(monkeypatch):
    """Return a function that makes a candidate the fastest, by a clock that runs nothing, and lists timed plans."""
    asked = []

    def choose(factor=0.5, **attributes):
        def seconds(plan, given):
            asked.append(plan)
            named = {**vars(plan.chosen.variants), **vars(plan.parameters)}
            return factor if all(named[name] == value for name, value in attributes.items()) else 1.0

        monkeypatch.setattr(tuning, "seconds", seconds)
        return asked

    return choose


@pytest.fixture
def unmeasured(monkeypatch):
    """Return a function after which every measurement fails."""

    def measure(*_):
        raise AssertionError("measured")

    return lambda: monkeypatch.setattr(tuning, "measure", measure)


@pytest.fixture
def x(rng):
    return np.array(BOX)[:, None] * rng.random((3, N))


def plan_of(x, kernel="laplace", tolerance=1e-4, **options):
    return parki.ewald.plan(kernel, x, x, **({"box": BOX, "tolerance": tolerance, "tune": True} | options))


def key_of(plan):
    return tuning_cache.key(plan.chosen.question, plan.method.options, True)


def others(plan):
    """Return the candidates besides the model's choice."""
    return tuning.candidates(plan.chosen.question, plan.method.options)[1:]


@pytest.mark.parametrize(
    ("kernel", "tolerance", "periodicity", "n"),
    [
        ("laplace", 1e-4, 3, N),
        pytest.param("laplace", 1e-8, 3, N, marks=pytest.mark.slow),
        ("stokes_sl", 1e-8, 2, N),
        ("laplace", 1e-4, 0, 10 * N),
        ("stokes_sl", 1e-4, 3, N),
    ],
)
def test_every_candidate_meets_the_tolerance(kernel, tolerance, periodicity, n, rng, fastest):
    x = np.array(BOX)[:, None] * rng.random((3, n))
    dens = rng.standard_normal(n if kernel == "laplace" else (3, n))
    exact = sums.periodic(kernel, x[:, :40], x, dens, box=BOX, periodicity=periodicity)
    usual = plan_of(x, kernel, tolerance, periodicity=periodicity, tune=False)
    found = tuning.candidates(usual.chosen.question, usual.method.options)
    assert 2 <= len(found) <= tuning.MOST_CANDIDATES
    for one in found:
        fastest(rc=one.parameters.rc, P=one.parameters.P)
        plan = plan_of(x, kernel, tolerance, periodicity=periodicity)
        assert plan.parameters == one.parameters
        error = np.linalg.norm(plan(dens)[..., :40] - exact) / np.linalg.norm(exact)
        assert error <= tolerance
        tuning_cache.forget()


def test_what_was_found_is_taken_without_measuring(x, rng, fastest, unmeasured, memory):
    one = others(plan_of(x, tune=False))[0]
    asked = fastest(rc=one.parameters.rc)
    first = plan_of(x)
    assert asked
    assert len(list(memory.iterdir())) == 1
    unmeasured()
    again = plan_of(x)
    assert again.parameters == first.parameters == one.parameters
    assert again.chosen.tuned.choice.near == first.chosen.tuned.choice.near
    assert again.chosen.tuned.trials == ()
    plan_of(x, tolerance=1.1e-4)
    near = plan_of(x[:, :290])
    assert near.chosen.tuned.choice.near == one.near
    usual = plan_of(x[:, :290], tune=False)
    assert np.sign(near.parameters.rc - usual.parameters.rc) == np.sign(first.parameters.rc - usual.parameters.rc)


@pytest.mark.parametrize(
    "other",
    [{"tolerance": 1e-6}, {"kernel": "stokes_sl"}, {"split": "gaussian"}, {"execution_space": "Serial"},
     {"periodicity": 2}, {"box": (4.0, 1.2, 0.9)}, {"g2p_method": "TARGET"}, {"fft_type": "C2C"}],
    ids=str,
)  # fmt: skip
def test_other_questions_have_other_answers(other, x, fastest, unmeasured):
    fastest()
    plan_of(x)
    unmeasured()
    with pytest.raises(AssertionError, match="measured"):
        plan_of(x, **other)


def test_so_have_other_numbers_of_points(x, fastest, unmeasured):
    fastest()
    plan_of(x)
    unmeasured()
    for trg, src in ((x, x[:, :100]), (x[:, :100], x), (x.copy(), x), (x.astype("f4"), x.astype("f4"))):
        with pytest.raises(AssertionError, match="measured"):
            parki.ewald.plan("laplace", trg, src, box=BOX, tolerance=1e-4, tune=True)


def test_others_are_left_alone(x, fastest, monkeypatch):
    usual = plan_of(x, tune=False)
    fastest(rc=others(usual)[0].parameters.rc)
    assert plan_of(x).parameters != usual.parameters
    monkeypatch.setattr(tuning_cache, "recall", None)
    plan = plan_of(x, tune=False)
    assert (plan.parameters, plan.chosen.tuned) == (usual.parameters, None)
    assert "tuned" not in str(plan)


def test_a_little_faster_is_not_faster(x, fastest):
    usual = plan_of(x, tune=False)
    fastest(factor=1 - tuning.NOISE / 2, rc=others(usual)[0].parameters.rc)
    plan = plan_of(x)
    assert plan.parameters == usual.parameters
    assert "tuned among" in str(plan)
    assert "the model's choice stays" in str(plan)
    assert "the model's choice stays" in str(plan_of(x))


def test_one_lucky_run_is_not_faster(x, monkeypatch):
    usual, counted = plan_of(x, tune=False), {}

    def seconds(plan, given):
        counted[id(plan)] = counted.get(id(plan), 0) + 1
        return 0.1 if plan.parameters != usual.parameters and counted[id(plan)] == 2 else 1.0

    monkeypatch.setattr(tuning, "seconds", seconds)
    assert plan_of(x).parameters == usual.parameters
    assert counted


def test_the_first_run_does_not_count(monkeypatch):
    times = iter([9.0, 0.1, 1.0, 2.0, 1.5, 2.5, 1.2, 2.2])
    monkeypatch.setattr(tuning, "seconds", lambda plan, given: next(times))
    assert tuning.compare(None, None, []) == (1.0, 2.0, 2.0)


def test_a_plan_says_what_was_tuned(x, fastest):
    usual = plan_of(x, tune=False).parameters
    one = others(plan_of(x, tune=False))[0].parameters
    fastest(rc=one.rc)
    told = str(plan_of(x)).splitlines()[-1]
    assert told.startswith("tuned among")
    assert f"rc {usual.rc:.4g} → {one.rc:.4g}" in told
    assert "2.00 times as fast as the model's choice" in told
    assert str(plan_of(x)).splitlines()[-1].startswith("tuned, measured 20")


GOOD = {"near": 1.6, "window": 1.0, "shape": {}, "ratio": 0.9, "rc": 0.9, "P": 6, "day": "2026-01-01"}


@pytest.mark.parametrize(
    "change",
    [{"near": 0.3}, {"near": [1]}, {"window": "1"}, {"shape": {"p2p_method": "FAST"}}, {"shape": [1]}, {"shape": None},
     {"shape": {"tolerance": 1.0}}, {"shape": {"p2g_method": []}}, {"ratio": "fast"}, {"ratio": 1.5}, {"ratio": None}],
    ids=str,
)  # fmt: skip
def test_what_could_not_have_been_found_is_ignored(change, x, fastest, unmeasured):
    asked = key_of(plan_of(x, tune=False))
    tuning_cache.remember(asked, GOOD | change)
    assert fastest() == []
    assert plan_of(x).chosen.tuned.trials
    tuning_cache.remember(asked, GOOD)
    unmeasured()
    assert plan_of(x).chosen.tuned.choice.near == GOOD["near"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"found": {}}', "\0", b"\xff\xfe", "{}"])
def test_damaged_files_are_ignored(text, x, fastest, memory):
    fastest()
    plan_of(x)
    (file,) = memory.iterdir()
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert plan_of(x).chosen.tuned.trials
    assert json.loads(file.read_text("utf-8"))["found"]["near"] == 1.0


def test_an_answer_to_another_question_is_ignored(x, fastest, memory):
    fastest()
    plan_of(x)
    (file,) = memory.iterdir()
    told = json.loads(file.read_text("utf-8"))
    told["question"][1][0] = "Elsewhere"
    file.write_text(json.dumps(told), "utf-8")
    assert plan_of(x).chosen.tuned.trials


def test_a_memory_that_cannot_be_written(x, fastest, memory):
    memory.write_text("a file where the folder should be")
    fastest()
    plan_of(x)
    assert plan_of(x).chosen.tuned.trials


def test_calls_take_it_too(x, rng, fastest):
    dens = rng.standard_normal(N)
    asked = fastest()
    options = {"box": BOX, "tolerance": 1e-4, "return_params": True, "return_error": True}
    u, found, error = parki.ewald.laplace(x, x, dens, tune=True, **options)
    assert asked
    assert error.value < 1e-4
    usual, _, _ = parki.ewald.laplace(x, x, dens, **options)
    assert np.linalg.norm(u - usual) < 2e-4 * np.linalg.norm(usual)
    assert found.rc > 0


def test_several_right_hand_sides_and_the_transpose(x, rng, fastest, unmeasured):
    longest = max(others(plan_of(x, tune=False)), key=lambda one: one.parameters.rc)
    fastest(rc=longest.parameters.rc)
    plan = plan_of(x)
    assert plan.parameters.rc == longest.parameters.rc
    unmeasured()
    dens = rng.standard_normal((3, N))
    u, usual = plan(dens), plan_of(x, tune=False)(dens)
    assert np.linalg.norm(u - usual) < 2e-4 * np.linalg.norm(usual)
    back = plan.operator().rmatvec(dens[0])
    assert np.linalg.norm(back - usual[0]) < 2e-4 * np.linalg.norm(usual[0])


def test_empty_plans_have_nothing_to_tune(unmeasured):
    unmeasured()
    assert plan_of(np.empty((3, 0))).chosen.tuned is None


def test_all_layouts_and_places(x, fastest):
    fastest()
    assert plan_of(x.T, layout="nd").chosen.tuned.trials
    assert plan_of(x, box=None, periodicity=0).chosen.tuned.trials
    cell = [[1.0, 0.1, 0.0], [0.2, 1.1, 0.1], [0.0, 0.3, 0.9]]
    assert plan_of(x, box=cell).chosen.tuned.trials


def test_plans_are_measured_one_at_a_time(x, monkeypatch):
    busy, most = [], []

    def seconds(plan, given):
        busy.append(threading.get_ident())
        most.append(len(set(busy)))
        time.sleep(1e-3)
        busy.remove(threading.get_ident())
        return 1.0

    measured, real = [], tuning.measure
    monkeypatch.setattr(tuning, "seconds", seconds)
    monkeypatch.setattr(tuning, "measure", lambda bench: measured.append(bench) or real(bench))
    with ThreadPoolExecutor(4) as pool:
        plans = list(pool.map(lambda tolerance: plan_of(x, tolerance=tolerance), [1e-4, 1e-3, 1e-4, 1e-3]))
    assert max(most) == 1
    assert len(measured) == 2
    assert plans[0].parameters == plans[2].parameters


SHAPES = ({"p2p_method": "SM-1D"}, {"g2p_threads": 64})


def test_on_gpus_shapes_are_tried_too(x, fastest, monkeypatch):
    monkeypatch.setattr(tuning, "SHAPES", SHAPES)
    monkeypatch.setattr(tuning, "NEAR", (0.25,))
    monkeypatch.setattr(tuning, "WINDOW", ())
    few = x[:, :20]
    fastest(p2p="SM-1D")
    plan = plan_of(few, tolerance=1e-3, execution_space="GpuSim")
    assert (plan.chosen.variants.p2p, plan.chosen.variants.g2p_threads) == ("SM-1D", 128)
    assert "p2p_method SM-1D" in str(plan)
    assert plan_of(few, tolerance=1e-3, execution_space="GpuSim").chosen.variants == plan.chosen.variants
    named = plan_of(few, tolerance=1e-3, execution_space="GpuSim", p2p_method="GM-1D")
    assert named.chosen.variants.p2p == "GM-1D"
    assert [one.shape for one in named.chosen.tuned.trials if one.shape] == [{"g2p_threads": 64}]


@pytest.mark.parametrize("on_gpu", [True, False])
def test_on_a_device(on_gpu, x, rng, monkeypatch, unmeasured):
    """Timing waits for the device, and its arrays are where the arrays of calls will be."""
    cupy, waits = standin.install(monkeypatch), []
    monkeypatch.setattr(tuning, "SHAPES", ({"g2p_threads": 64},))
    monkeypatch.setattr(tuning, "NEAR", (0.25,))
    monkeypatch.setattr(tuning, "WINDOW", ())
    monkeypatch.setattr(tuning, "LEAST_RUNS", 1)
    monkeypatch.setattr(tuning, "ENOUGH_SECONDS", 0.0)
    monkeypatch.setattr(devices, "wait", lambda: waits.append(1))
    few, dens = x[:, :30], rng.standard_normal(30)
    given = (cupy.asarray(few), cupy.asarray(dens)) if on_gpu else (few, dens)
    plan = plan_of(given[0], tolerance=1e-3, execution_space="GPU")
    assert len(plan.chosen.tuned.trials) == len(tuning.candidates(plan.chosen.question, plan.method.options)) + 1
    assert len(waits) == 4 * (len(plan.chosen.tuned.trials) - 1)
    assert all(np.isfinite(one.seconds) for one in plan.chosen.tuned.trials)
    usual = plan_of(few, tolerance=1e-3, tune=False, execution_space="Serial")(dens)
    assert np.linalg.norm(arrays.to_host(plan(given[1])) - usual) < 2e-3 * np.linalg.norm(usual)
    unmeasured()
    assert plan_of(given[0], tolerance=1e-3, execution_space="GPU").chosen.variants == plan.chosen.variants


def test_what_cannot_be_built_is_left_out(x, fastest, monkeypatch):
    usual = plan_of(x, tune=False)
    one, other = others(usual)[:2]
    fastest(rc=other.parameters.rc)
    real = Ewald.arrange

    def arrange(self, problem, choice, times):
        if self.served and choice.parameters == one.parameters:
            raise BuildError("the compiler is gone")
        return real(self, problem, choice, times)

    monkeypatch.setattr(Ewald, "arrange", arrange)
    found = plan_of(x).chosen.tuned
    assert found.choice.parameters == other.parameters
    assert [one.ratio for one in found.trials].count(np.inf) == 1


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
@pytest.mark.parametrize("n", [select.BUDGET_FROM, 10**6])
def test_candidates_keep_to_the_budget(n, tolerance):
    options = EwaldOptions.resolve(box=(1, 1, 1), tolerance=tolerance)
    question = Question(
        kernels.KERNELS["stokes_comb"], (1.0, 1.0, 1.0), n, n, tolerance, arrangement=Arrangement(0.0, (), True),
        space=spaces.get("Serial"),
    )  # fmt: skip
    found = tuning.candidates(question, options)
    assert len(found) >= 2
    for one in found:
        p = one.parameters
        domain = select.Domain(p.box, 3, tolerance, params.edges(p.box, None))
        _, held = domain.work(max(p.h), np.array(p.grid), p.P, p.rc)
        room = (select.BUDGET - select.PARTICLE_BYTES) * n
        assert select.grid_bytes(p.kernel, held, 8) <= room
    assert len({(one.parameters.grid, one.parameters.P) for one in found}) == len(found)


def test_the_command(capsys, memory, unmeasured):
    given = "tune --kernel laplace --n 400 --tolerance 1e-3 --space Serial".split()
    assert cli.main(given) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("laplace: 400 targets, 400 sources")
    assert "the model's choice" in lines[2]
    assert sum("taken" in line for line in lines) == 1
    assert all(" ms" in line for line in lines[2:-2])
    assert lines[-2].startswith("tuned among")
    (file,) = memory.iterdir()
    unmeasured()
    x = np.random.default_rng(2).random((3, 410))
    plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-3, execution_space="Serial", tune=True)
    assert plan.chosen.tuned.choice.near == json.loads(file.read_text("utf-8"))["found"]["near"]
    assert cli.main(["tune", "--forget"]) == 0
    assert "removed 1 files" in capsys.readouterr().out
    assert not memory.exists()
