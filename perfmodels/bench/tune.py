"""`parki tune`: fastest parameters for sums of uniform random points, measured and remembered for ``tune=True``."""

import argparse

import numpy as np

from parki.engine import spaces
from parki.ewald import api
from parki.ewald.choice import tuning, tuning_cache
from parki.ewald.choice.tuning import Trial, Tuned
from parki.perfmodels.bench.measure import asked_space


def main(args: argparse.Namespace) -> int:
    """Tune, remember and print a table; or with `forget` remove this machine's remembered results."""
    if args.forget:
        folder = tuning_cache.folder()
        print(f"removed {tuning_cache.forget()} files from {folder}")  # noqa: T201
        return 0
    space = asked_space(args)
    x = np.random.default_rng(1).random((3, args.n)) * np.array(args.box)[:, None]
    x = spaces.array_module(space).asarray(x.astype(args.dtype))
    options = {"box": args.box, "periodicity": args.periodicity, "tolerance": args.tolerance}
    plan = api.plan(args.kernel, x, x, execution_space=space, kappa=args.kappa, **options)
    result = tuning.tune(plan.method.bench(plan.full(), plan.chosen.question), refresh=True)
    print(f"{str(plan).splitlines()[0]}, tolerance {args.tolerance:g}")  # noqa: T201
    print(f"{table(result)}\n{result}")  # noqa: T201
    if len(result.trials) > 1:
        print(f"remembered in {tuning_cache.folder()}")  # noqa: T201
    return 0


def table(result: Tuned) -> str:
    """Return all candidates as text: predicted and least measured seconds, and the latter over the model's choice.

    The last column comes from runs that took turns, so it holds also if the machine's speed varied.
    """
    lines = [f"{'rc':>9}  {'grid':<17}{'P':>3}  {'predicted':>12}{'measured':>12}{'over model':>12}"]
    for trial in result.trials:
        remarks = ", ".join([*_remarks(trial, result), *(f"{name} {value}" for name, value in trial.shape.items())])
        p = trial.parameters.scaled(-result.power)
        figures = f"{1e3 * trial.predicted:>9.3g} ms{1e3 * trial.seconds:>9.3g} ms{trial.ratio:>12.2f}"
        lines.append(f"{p.rc:>9.4g}  {' × '.join(map(str, p.grid)):<17}{p.P:>3}  {figures}   {remarks}".rstrip())
    return "\n".join(lines)


def _remarks(row: Trial, result: Tuned) -> list[str]:
    return [text for trial, text in ((result.model, "the model's choice"), (result.choice, "taken")) if row is trial]
