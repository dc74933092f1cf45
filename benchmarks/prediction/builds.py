"""Predict each build of a program from the others, as if builds were machines, and measure what a warm start saves.

    python -m benchmarks.prediction.builds reference=reference.db prescott=prescott.db ... [--seeds 10]

Each storage holds one exhaustive study of the same program and input under another build (another BLAS library, another
OPENBLAS_CORETYPE, other cores), for example

    LD_LIBRARY_PATH=... autotune machine --measure
    LD_LIBRARY_PATH=... autotune study qe --storage haswell.db --trials 100 --sampler exhaustive --warm-start off \\
        --set 'space.constraints=[{name="own", rule="not is_set(blas)", reason="the build"}]' --set repeats.caps=false

The studies are real; the searches on them are replays: a trial's value is drawn from the runs of its configuration.
"""

import argparse
from dataclasses import replace
from statistics import median

import numpy as np
import optuna
from optuna.trial import TrialState

from autotune.performance.measurements.dataset import study_measurements
from autotune.performance.model import PerformanceModel
from autotune.performance.warm_start import PROPOSALS, guide
from autotune.records.measurement import Measured, Setting
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.suggest import ask
from autotune.storage.address import storage_url
from autotune.storage.study_store import StudyStore, study_names
from spaces import Space

NEAR = 1.05


def load(name: str, path: str) -> tuple[Setting, Space, list[Measured], dict[str, list[float]]]:
    """Read a study from a storage: its measurements, as of a machine called `name`, and the values of all runs."""
    url = storage_url(path)
    (study,) = study_names(url)
    store = StudyStore.read(url, study)
    definition, trials = store.definition, store.trials()
    found = study_measurements(study, definition, trials)
    setting = replace(found[0].setting, machine=name)
    runs = {key(trial.configuration): trial.measured(definition.target.name) for trial in trials if trial.complete}
    return setting, Space.from_dict(definition.space), [replace(one, setting=setting) for one in found], runs


def key(configuration: object) -> str:
    return repr(sorted(dict(configuration).items()))  # type: ignore[call-overload]


def searched(space: Space, values: dict[str, list[float]], seed: int, warm: tuple[list, object] | None) -> int:
    """Search; return the number of trials until a configuration within 5 % of the best was tried."""
    rng = np.random.default_rng(seed)
    best = min(median(runs) for runs in values.values())
    sampler = ValidSetSampler(space, seed=seed)
    if warm is not None:
        sampler.start_with(warm[0])
        sampler.set_prior_mean(warm[1])  # type: ignore[arg-type]
    study = optuna.create_study(sampler=sampler)
    for number in range(space.size.value):
        trial = ask(study, space)
        runs = values.get(key(trial.params))
        if runs is None:
            study.tell(trial, state=TrialState.FAIL)
            continue
        study.tell(trial, float(rng.choice(runs)))
        if median(runs) <= NEAR * best:
            return number + 1
    return space.size.value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="NAME=STORAGE")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    builds = {name: load(name, path) for name, _, path in (one.partition("=") for one in given.builds)}
    for out, (setting, space, own, runs) in builds.items():
        known = [one for name, (_, _, rows, _) in builds.items() if name != out for one in rows]
        rules = tuple(constraint.rule for constraint in space.constraints)
        found = PerformanceModel(tuple(known), rules).best(space, setting, PROPOSALS)
        values = {key(one.configuration): one.value for one in own if one.value is not None}
        best, default = min(values.values()), values[key(space.default())]
        reached = [best / values.get(key(one.configuration), np.inf) for one in found.proposals]
        print(f"{out}: {len(values)} configurations, default {default:.3g}, best {best:.3g} ({default / best:.2f}x)")
        print(f"  proposals, best / value: {', '.join(f'{one:.2f}' for one in reached)}; default {best / default:.2f}")
        first = found.proposals[0]
        real = default / values.get(key(first.configuration), np.inf)
        print(f"  speed-up of the first: said {first.speed_up}, was {real:.2f}; promising: {found.promising}")
        print(f"  value of the first: said {first.value}, was {values.get(key(first.configuration), np.nan):.3g}")
        for line in (*found.grounds, *(f"doubt: {doubt}" for doubt in found.doubts)):
            print(f"  {line}")
        warm = ([one.configuration for one in found.proposals], guide(space, setting, known))
        for name, start in (("cold", None), ("guided only", ([], warm[1])), ("warm", warm)):
            counts = [searched(space, runs, seed, start) for seed in range(given.seeds)]
            print(f"  {name}: trials to within 5 %: median {median(counts):g}, from {min(counts)} to {max(counts)}")


if __name__ == "__main__":
    main()
