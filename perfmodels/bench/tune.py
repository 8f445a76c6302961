"""`parki tune`: fastest parameters for sums of uniform random points, measured and remembered for ``tune=True``."""

import argparse

import numpy as np

from parki.engine import spaces
from parki.ewald import api
from parki.ewald.choice import tuning, tuning_cache
from parki.ewald.choice.tuning import Trial, Tuned
from parki.perfmodels.bench.measure import asked_space


def main(asked: argparse.Namespace) -> int:
    """Tune, remember and print a table; or with `forget` remove this machine's remembered results."""
    if asked.forget:
        where = tuning_cache.folder()
        print(f"removed {tuning_cache.forget()} files from {where}")  # noqa: T201
        return 0
    space = asked_space(asked)
    x = np.random.default_rng(1).random((3, asked.n)) * np.array(asked.box)[:, None]
    x = spaces.array_module(space).asarray(x.astype(asked.dtype))
    given = {"box": asked.box, "periodicity": asked.periodicity, "tolerance": asked.tolerance}
    plan = api.plan(asked.kernel, x, x, execution_space=space, kappa=asked.kappa, **given)
    found = tuning.tune(plan.method.bench(plan.full(), plan.chosen.question), refresh=True)
    print(f"{str(plan).splitlines()[0]}, tolerance {asked.tolerance:g}")  # noqa: T201
    print(f"{table(found)}\n{found}")  # noqa: T201
    if len(found.trials) > 1:
        print(f"remembered in {tuning_cache.folder()}")  # noqa: T201
    return 0


def table(found: Tuned) -> str:
    """Return all candidates as text: predicted and least measured seconds, and the latter over the model's choice.

    The last column comes from runs that took turns, so it holds also if the machine's speed varied.
    """
    lines = [f"{'rc':>9}  {'grid':<17}{'P':>3}  {'predicted':>12}{'measured':>12}{'over model':>12}"]
    for one in found.trials:
        said = ", ".join([*_remarks(one, found), *(f"{name} {value}" for name, value in one.shape.items())])
        p = one.parameters.scaled(-found.power)
        figures = f"{1e3 * one.predicted:>9.3g} ms{1e3 * one.seconds:>9.3g} ms{one.ratio:>12.2f}"
        lines.append(f"{p.rc:>9.4g}  {' × '.join(map(str, p.grid)):<17}{p.P:>3}  {figures}   {said}".rstrip())
    return "\n".join(lines)


def _remarks(one: Trial, found: Tuned) -> list[str]:
    return [text for trial, text in ((found.model, "the model's choice"), (found.choice, "taken")) if one is trial]
