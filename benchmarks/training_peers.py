"""Other searches for trainings, on recorded learning curves; each returns the values of all epochs in order.

The peers search the unit cube of a table. Instead of a proposal they train the nearest recorded setting, and learn from
it as if they had proposed it. All begin with the same default. BOHB and the stopping rule of Ray's ASHA are written
from their sources, since BOHB's own package no longer installs and Ray's rule needs a running trial.
"""

import tempfile
from collections.abc import Hashable, Sequence
from itertools import chain, count, islice
from math import inf

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from autotune.scheduling.hyperband import brackets
from benchmarks.training_tables import Trainings

Array = NDArray[np.float64]
_ETA = 3
# Ray's default: one training in four continues.
_RAY_ETA = 4


class Trainer:
    """Makes the trainings of one search, each from where it stopped, until `budget` epochs are used."""

    def __init__(self, recorded: Trainings, budget: int) -> None:
        self.seen: list[float] = []
        self._recorded, self._budget = recorded, budget
        self._reached: dict[Hashable, int] = {}

    @property
    def is_over(self) -> bool:
        return len(self.seen) >= self._budget or len(self._reached) >= self._budget

    def cost(self, training: Hashable, number: int, step: int) -> float:
        """Return the value of a setting at a step, lower is better; infinity if its training ended before.

        Two trainings of one setting cost its epochs twice, as a search cannot know that.
        """
        curve = self._recorded.curves[number]
        self.seen.extend(curve[self._reached.get(training, 0) : step])
        self._reached[training] = max(step, self._reached.get(training, 0))
        return self._recorded.metric.cost(curve[step - 1]) if len(curve) >= step else inf


def train_with_tpe(recorded: Trainings, seed: int, budget: int) -> list[float]:
    """Search with Optuna's TPE and its pruner of successive halving."""
    trainer, cost = Trainer(recorded, budget), recorded.metric.cost
    names = [str(place) for place in range(recorded.dimensions)]

    def objective(trial: optuna.Trial) -> float:
        number = recorded.nearest(np.array([trial.suggest_float(name, 0.0, 1.0) for name in names]))
        curve = recorded.curves[number]
        for step in range(1, len(curve) + 1):
            trial.report(trainer.cost(trial.number, number, step), step)
            if trainer.is_over or (step < len(curve) and trial.should_prune()):
                raise optuna.TrialPruned
        if not curve:
            raise optuna.TrialPruned
        return min(map(cost, curve))

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = optuna.pruners.SuccessiveHalvingPruner()
    study = optuna.create_study(sampler=_TpeOnRecorded(recorded, names, seed), pruner=pruner)
    study.enqueue_trial(dict(zip(names, recorded.unit[recorded.default(seed)].tolist(), strict=True)))
    while not trainer.is_over:
        study.optimize(objective, n_trials=1)
    return trainer.seen


class _TpeOnRecorded(optuna.samplers.TPESampler):
    """Optuna's TPE, whose proposals are moved to the nearest recorded setting."""

    def __init__(self, recorded: Trainings, names: Sequence[str], seed: int) -> None:
        super().__init__(seed=seed)
        self._recorded, self._names = recorded, names
        self._random = np.random.default_rng(seed)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, float]:
        # Nothing is proposed in the first trials, which are random.
        proposed = super().sample_relative(study, trial, search_space)
        point = [proposed[name] for name in self._names] if proposed else self._random.random(len(self._names))
        unit = self._recorded.unit[self._recorded.nearest(np.array(point))]
        return dict(zip(self._names, unit.tolist(), strict=True))


def train_with_asha(recorded: Trainings, seed: int, budget: int) -> list[float]:
    """Train random settings under Ray's ASHAScheduler: one bracket, a grace period of one step."""
    trainer, default = Trainer(recorded, budget), recorded.default(seed)
    rungs: dict[int, list[float]] = {}
    rung = 1
    while rung < recorded.most:
        rungs[rung] = []
        rung *= _RAY_ETA
    drawn = np.random.default_rng(seed).permutation(len(recorded.curves))
    for number in [default, *drawn[drawn != default].tolist()]:
        for step in range(1, len(recorded.curves[number]) + 1):
            cost = trainer.cost(number, number, step)
            if trainer.is_over:
                return trainer.seen
            known = rungs.get(step, [])
            is_behind = bool(known) and cost > np.percentile(known, 100 / _RAY_ETA)
            known.append(cost)
            if is_behind:
                break
    return trainer.seen


def train_with_dehb(recorded: Trainings, seed: int, budget: int) -> list[float]:
    """Search with DEHB (Awad, Mallik & Hutter, IJCAI 2021; the package `dehb`)."""
    import ConfigSpace  # noqa: PLC0415  of the peer's environment
    from dehb import DEHB  # noqa: PLC0415

    trainer = Trainer(recorded, budget)
    names = [f"x{place}" for place in range(recorded.dimensions)]
    space = ConfigSpace.ConfigurationSpace(seed=seed)
    space.add(*(ConfigSpace.UniformFloatHyperparameter(name, 0.0, 1.0) for name in names))
    with tempfile.TemporaryDirectory() as folder:
        search = DEHB(
            cs=space,
            f=None,
            dimensions=len(names),
            min_fidelity=1,
            max_fidelity=recorded.most,
            eta=_ETA,
            n_workers=1,
            seed=seed,
            output_path=folder,
            save_freq="end",
        )
        while not trainer.is_over:
            job, before = search.ask(), len(trainer.seen)
            number = recorded.nearest(np.array([float(job["config"][name]) for name in names]))
            cost = trainer.cost(job["config_id"], number, max(1, round(job["fidelity"])))
            search.config_repository.configs[job["config_id"]].config = recorded.unit[number]
            search.tell(job, {"fitness": min(cost, 1e9), "cost": float(len(trainer.seen) - before)})
    return trainer.seen


def train_with_bohb(recorded: Trainings, seed: int, budget: int) -> list[float]:
    """Search with BOHB (Falkner, Klein & Hutter, ICML 2018), by algorithms 1 and 2 and their defaults."""
    trainer, densities = Trainer(recorded, budget), _Densities(recorded.unit, np.random.default_rng(seed))
    proposals = chain([recorded.default(seed)], (recorded.nearest(densities.draw()) for _ in count()))
    trainings = count()
    while True:
        for bracket in brackets(recorded.most, 1, _ETA):
            waiting = ((next(trainings), number) for number in islice(proposals, bracket.sizes[0]))
            for size, step in zip(bracket.sizes, bracket.steps, strict=True):
                ended: list[tuple[float, int, int]] = []
                for training, number in islice(waiting, size):
                    ended.append((trainer.cost(training, number, step), training, number))
                    densities.add(step, ended[-1][0], number)
                    if trainer.is_over:
                        return trainer.seen
                waiting = ((training, number) for _, training, number in sorted(ended))


class _Densities:
    """Kernel densities of the good and of the other settings, at the highest step with enough values."""

    def __init__(self, unit: Array, rng: np.random.Generator) -> None:
        self._unit, self._rng = unit, rng
        self._known: dict[int, list[tuple[float, int]]] = {}

    def add(self, step: int, cost: float, number: int) -> None:
        self._known.setdefault(step, []).append((cost, number))

    def draw(self) -> Array:
        dimensions = self._unit.shape[1]
        least = dimensions + 1
        enough = [step for step, known in self._known.items() if len(known) >= least + 2]
        if not enough or self._rng.random() < 1 / 3:
            return self._rng.random(dimensions)
        ranked = [number for _, number in sorted(self._known[max(enough)])]
        share = int(0.15 * len(ranked))
        good, others = self._unit[ranked[: max(least, share)]], self._unit[ranked[-max(least, len(ranked) - share) :]]
        width = 3.0 * _bandwidth(good)
        drawn = np.clip(
            good[self._rng.integers(len(good), size=64)] + width * self._rng.normal(size=(64, dimensions)), 0, 1
        )
        best: Array = drawn[np.argmax(_density(drawn, good) / _density(drawn, others))]
        return best


def _bandwidth(points: Array) -> Array:
    """Return the normal reference bandwidth, (d,), of points (n, d)."""
    n, d = points.shape
    width: Array = np.maximum(1.059 * points.std(axis=0, ddof=1) * n ** (-1.0 / (4 + d)), 1e-3)
    return width


def _density(at: Array, points: Array) -> Array:
    width = _bandwidth(points)
    squared = (((at[:, None, :] - points[None, :, :]) / width) ** 2).sum(axis=2)
    density: Array = np.exp(-0.5 * squared).mean(axis=1) / width.prod() + 1e-32
    return density
