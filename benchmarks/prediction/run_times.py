"""Test the prediction of run times and rates for settings with few or no runs.

    python -m benchmarks.prediction.run_times --data FOLDER [--of llm] [--only machine] [--known 0 3] [--seeds 20]

Runs of pw.x on two materials (a folder of the developer's, qe/), of LLM serving (llm/) and of GROMACS (machines/) are
held out by number of nodes, by build (of pw.x, or a pair of card and framework), by machine, by cut-off and by material
(of LLMs, the model), with 0, 1, 3 and 10 of them known after all. Beside the model: simpler ways, with the same
columns. The loss of a choice is computed per setting (material, build, nodes; of LLMs over frameworks, too).
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import xgboost
from scipy.optimize import nnls
from scipy.stats import spearmanr

from autotune.performance.regression.learners import Features, Forest, LogLinear
from autotune.performance.regression.prediction import Estimate
from autotune.performance.regression.table import DesignMatrix, Reader, Table
from autotune.performance.run_times.model import RunTimes
from autotune.performance.run_times.novelty import installation
from autotune.records.measurement import Measured, Setting
from benchmarks.prediction.gromacs_runs import CHOOSING_MACHINES, INPUTS, gromacs_runs
from benchmarks.prediction.llm_serving import CHOOSING_CARDS, CHOOSING_MODELS, SHAPE, serving
from benchmarks.prediction.pwx_runs import MATERIALS, pwx_runs
from objectives.shapes.scaling import strong_scaling
from spaces.expressions.quantities import FloatArray

By = Callable[[Setting], object]
SPLITS: Mapping[str, By] = {
    "build": lambda one: (one.machine, installation(one)),
    "nodes": lambda one: one.machine_facts["nodes"],
    "machine": lambda one: one.machine,
    "cut-off": lambda one: one.workload_facts["cutoff_ry"],
    "material": lambda one: one.workload.split()[0],
}
_OF = {
    "silicon": ("build", "nodes", "machine", "cut-off"),
    "tas2": ("build", "nodes"),
    "both": ("material",),
    "llm": ("machine", "build", "material"),
    **dict.fromkeys(INPUTS, ("machine",)),
}
_KNOWN = (0, 1, 3, 10)
_LEAST_LEFT = 5
_SHAPES = {"llm": SHAPE, "gromacs": replace(strong_scaling("ranks", "threads"), inverse=True)}
_CHOSE = CHOOSING_CARDS | CHOOSING_MODELS | CHOOSING_MACHINES


@dataclass(frozen=True)
class Said:
    """Predictions of held-out rows: logarithms, half widths and shares of intervals, and whether vague, (n,)."""

    rows: list[Measured]
    mean: FloatArray
    half: FloatArray
    share: FloatArray
    vague: FloatArray

    @classmethod
    def of(cls, answers: Sequence[tuple[list[Measured], Estimate]]) -> "Said":
        """Join the answers of several questions."""
        return cls(
            [row for rows, _ in answers for row in rows],
            np.concatenate([found.mean for _, found in answers]),
            np.concatenate([found.half for _, found in answers]),
            np.concatenate([np.full(len(rows), found.share) for rows, found in answers]),
            np.concatenate([2.0 * found.half > np.log(found.widest) for _, found in answers]),
        )

    @property
    def y(self) -> FloatArray:
        return _logs(self.rows)

    def losses(self) -> list[tuple[float, float]]:
        """Return, for each setting with several choices, what the first proposal, and a random one, lose."""
        places = defaultdict(list)
        for place, row in enumerate(self.rows):
            places[row.setting.key, row.setting.program == "qe" and installation(row.setting)].append(place)
        cost = self.rows[0].setting.metric.cost
        expected, slow = cost(1.0) * self.mean, np.exp(cost(1.0) * self.y)
        losses = []
        for alike in places.values():
            if len(alike) > 1:
                first = min(alike, key=lambda place: expected[place])
                best = slow[alike].min()
                losses.append((slow[first] / best - 1.0, slow[alike].mean() / best - 1.0))
        return losses


@dataclass(frozen=True)
class Score:
    """The score of a model on one held-out group; errors are factors."""

    error: float
    error_of_90: float
    correlation: float
    covered: float
    promised: float
    width: float
    vague: float
    loss: float
    random: float

    @classmethod
    def of(cls, said: Said) -> "Score":
        losses, off = said.losses(), np.abs(said.mean - said.y)
        varies = np.ptp(said.mean) > 0.0 and np.ptp(said.y) > 0.0
        return cls(
            float(np.exp(np.median(off))),
            float(np.exp(np.quantile(off, 0.9))),
            float(spearmanr(said.mean, said.y)[0]) if varies else float("nan"),
            100.0 * float(np.mean(off <= said.half)) if said.half.any() else float("nan"),
            100.0 * float(said.share.mean()),
            float(np.exp(np.median(said.half))),
            100.0 * float(np.mean(said.vague)),
            100.0 * float(np.mean([loss for loss, _ in losses])) if losses else float("nan"),
            100.0 * float(np.mean([loss for _, loss in losses])) if losses else float("nan"),
        )


def line(name: str, scores: Sequence[Score]) -> str:
    """Return the median over groups of errors and correlations, and the mean of the rest."""
    columns = {field: np.array([getattr(score, field) for score in scores]) for field in Score.__dataclass_fields__}
    errors = f"{np.nanmedian(columns['error']):5.2f}, 90 % {np.nanmedian(columns['error_of_90']):5.2f}"
    text = f"{name:12s} error {errors}  rho {np.nanmedian(columns['correlation']):5.2f}"
    if not np.isnan(columns["covered"]).all():
        held, promised = np.nanmean(columns["covered"]), np.mean(columns["promised"])
        text += f"  held {held:3.0f}% of {promised:2.0f}% (x{np.nanmedian(columns['width']):5.2f}, "
        text += f"not known {np.mean(columns['vague']):3.0f}%)"
    else:
        text += " " * 43
    if not np.isnan(columns["loss"]).all():
        text += f"  first loses {np.nanmean(columns['loss']):5.1f}% (random {np.nanmean(columns['random']):.0f}%)"
    return text


Model = Callable[[list[Measured], list[Measured], Setting], Estimate]


def _ours(train: list[Measured], asked: list[Measured], setting: Setting) -> Estimate:
    model = RunTimes.fit(train, (), setting, _SHAPES.get(setting.program))
    assert model is not None
    mean, half = np.zeros(len(asked)), np.zeros(len(asked))
    for one in {id(row.setting): row.setting for row in asked}.values():
        places = np.array([place for place, row in enumerate(asked) if row.setting is one])
        found = replace(model, setting=one).estimate(DesignMatrix.from_measurements([asked[at] for at in places]))
        mean[places], half[places] = found.mean, found.half
    return Estimate(mean, half, model.share, model.widest)


def _manual(_: list[Measured], asked: list[Measured], setting: Setting) -> Estimate:
    """Predict by the cost model without any measurement."""
    return _ours([], asked, setting)


def _amdahl(train: list[Measured], asked: list[Measured], setting: Setting) -> Estimate:
    """t = work (a + b / ranks + c log2(ranks)), fitted to the build's own runs if there are three, else to all."""
    if setting.program != "qe":
        return _exactly(np.full(len(asked), _logs(train).mean()))
    own = [row for row in train if SPLITS["build"](row.setting) == SPLITS["build"](setting)]
    rows = own if len(own) >= 3 else train

    def design(cases: list[Measured]) -> FloatArray:
        named = DesignMatrix.from_measurements(cases).named
        ranks = named["np"].astype(float)
        work = (
            named["kpoints"] * named["bands"] * named["fft_dense_x"] * named["fft_dense_y"] * named["fft_dense_z"] / 1e9
        )
        return np.column_stack([work, work / ranks, work * np.log2(ranks)])

    times = np.exp(_logs(rows))
    weights, _ = nnls(design(rows) / times[:, None], np.ones(len(rows)))
    return _exactly(np.log(np.maximum(design(asked) @ weights, 1e-9)))


def _mean(train: list[Measured], asked: list[Measured], setting: Setting) -> Estimate:
    """Predict the geometric mean of the others that share most columns, times the factor that the own runs show."""
    own = [row for row in train if SPLITS["build"](row.setting) == SPLITS["build"](setting)]
    others = [row for row in train if row not in own] or train

    def keys(row: Measured) -> list[tuple[object, ...]]:
        chosen, one = tuple(sorted(row.configuration.items())), row.setting
        if one.program == "gromacs":
            return [(one.nodes,), ()]
        return [
            (one.workload, chosen, installation(one)),
            (one.machine, chosen, one.workload.split()[1:], installation(one)),
            (one.workload, chosen),
            (chosen, one.workload.split()[1:]),
            (chosen,),
            (),
        ]

    found: dict[str, list[float]] = defaultdict(list)
    for row in others:
        for key in keys(row):
            found[repr(key)].append(float(np.log(row.value or np.nan)))
    means = [
        next(np.mean(found[repr(key)]) for key in keys(row) if repr(key) in found or not key) for row in [*asked, *own]
    ]
    off = float(np.mean(_logs(own) - means[len(asked) :])) if own else 0.0
    return _exactly(np.array(means[: len(asked)]) + off)


def _table(rows: list[Measured]) -> Table:
    setting = rows[0].setting
    names = {"machine": np.array([row.setting.machine for row in rows], dtype=object)}
    return Reader(setting.program, (), _SHAPES.get(setting.program)).read(DesignMatrix.from_measurements(rows), names)


def _log_linear(train: list[Measured], asked: list[Measured], _: Setting) -> Estimate:
    return _exactly(LogLinear.fit(_table(train), _logs(train), np.ones(len(train))).predict(_table(asked)))


def _xgboost(train: list[Measured], asked: list[Measured], _: Setting) -> Estimate:
    table = _table(train)
    features = Features.learn(table.columns)
    known = xgboost.DMatrix(features.raw(table.columns), _logs(train))
    trees = xgboost.train({"eta": 0.1, "nthread": 1, "seed": 0}, known, 200)
    return _exactly(trees.predict(xgboost.DMatrix(features.raw(_table(asked).columns))).astype(float))


def _forest(train: list[Measured], asked: list[Measured], _: Setting) -> Estimate:
    return _exactly(Forest.fit(_table(train), _logs(train), np.ones(len(train))).predict(_table(asked)))


def _exactly(logarithms: FloatArray) -> Estimate:
    return Estimate(logarithms, np.zeros(len(logarithms)))


MODELS: Mapping[str, Model] = {
    "autotune": _ours,
    "costs alone": _manual,
    "Amdahl": _amdahl,
    "mean": _mean,
    "log-linear": _log_linear,
    "forest": _forest,
    "XGBoost": _xgboost,
}


def held_out(  # noqa: PLR0913, PLR0917  what a test is made of
    rows: list[Measured], split: str, known: int, model: Model, seeds: int, labels: Sequence[object]
) -> list[Score]:
    """Return a model's score for each group that is held out, `known` rows of it being known after all.

    Of LLM serving, each draw of known rows asks one question, of a framework at random: there are many.
    """
    by = SPLITS[split]
    scores = []
    for label in labels:
        held = [row for row in rows if by(row.setting) == label]
        train = [row for row in rows if by(row.setting) != label]
        least = 1 if held[0].setting.program == "gromacs" else _LEAST_LEFT
        if len(held) < known + least or not train:  # all of TaS2 is of one machine and cut-off
            continue
        for seed in range(seeds if known else 1):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(held))
            seen = train + [held[place] for place in order[:known]]
            asked = [held[place] for place in sorted(order[known:])]
            if known and held[0].setting.program != "qe":
                build = SPLITS["build"](held[order[0]].setting)
                asked = [row for row in asked if SPLITS["build"](row.setting) == build]
            if asked:
                scores.append(Score.of(_said(model, seen, asked)))
    return scores


def _said(model: Model, train: list[Measured], asked: list[Measured]) -> Said:
    """Predict each build's most frequent workload with one question, and its other workloads with another."""
    groups = defaultdict(list)
    for row in asked:
        build = SPLITS["build"](row.setting)
        counts = Counter(other.setting.workload for other in asked if SPLITS["build"](other.setting) == build)
        is_common = row.setting.workload == counts.most_common(1)[0][0]
        groups[build, is_common and row.setting.program == "qe"].append(row)
    return Said.of([(own, model(train, own, own[0].setting)) for own in groups.values()])


def _logs(rows: list[Measured]) -> FloatArray:
    return np.log([row.value or np.nan for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with qe/, llm/ and machines/")
    parser.add_argument("--only", nargs="*", choices=list(SPLITS), default=list(SPLITS))
    parser.add_argument("--of", nargs="*", default=list(_OF), choices=list(_OF))
    parser.add_argument(
        "--known", nargs="*", type=int, default=list(_KNOWN), help="numbers of held-out runs that are known"
    )
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", type=int, default=3, help="random draws of the known runs")
    parser.add_argument("--choosing", action="store_true", help="of LLM serving and GROMACS, what chose the method")
    given = parser.parse_args()
    readers: dict[str, Callable[[], list[Measured]]] = {
        **{material: partial(pwx_runs, given.data / "qe", material) for material in MATERIALS},
        "both": lambda: [row for material in MATERIALS for row in pwx_runs(given.data / "qe", material)],
        "llm": partial(serving, given.data / "llm"),
        **{case: partial(gromacs_runs, given.data / "machines", case) for case in INPUTS},
    }
    for name in given.of:
        rows = readers[name]()
        if name == "llm" and given.choosing:
            rows = [row for row in rows if {row.setting.machine, row.setting.workload.split()[0]} <= _CHOSE]
        for split in (split for split in _OF[name] if split in given.only):
            labels = list(dict.fromkeys(SPLITS[split](row.setting) for row in rows))
            if rows[0].setting.program != "qe":
                chose = {label: (label[0] if split == "build" else label) in _CHOSE for label in labels}
                labels = [label for label in labels if chose[label] == given.choosing]
            for known in given.known:
                print(f"{name}, held out by {split}, {known} of them known:", flush=True)
                for model in given.models:
                    start = time.perf_counter()
                    scores = held_out(rows, split, known, MODELS[model], given.seeds, labels)
                    text = line(model, scores) if scores else f"{model:12s} nothing to ask"
                    print(f"  {text}  [{len(scores)} groups, {time.perf_counter() - start:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
