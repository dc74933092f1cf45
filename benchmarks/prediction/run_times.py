"""Test the prediction of run times for settings with few or no runs.

    python -m benchmarks.prediction.run_times --data FOLDER

Runs of pw.x on two materials (a folder of the developer's, qe/) are held out by number of nodes, by build, by machine,
by cut-off and by material, with 0, 1, 3 and 10 of them known after all. Beside the model: Amdahl's law with a
communication term. The loss of a choice is computed per setting (material, build, nodes).
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls
from scipy.stats import spearmanr

from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.features import FloatArray
from autotune.performance.run_times.estimate import Estimate
from autotune.performance.run_times.model import RunTimes
from autotune.performance.run_times.novelty import installation
from autotune.records.measurement import Measured, Setting
from benchmarks.prediction.pwx_runs import MATERIALS, pwx_runs

By = Callable[[Setting], object]
SPLITS: Mapping[str, By] = {
    "build": lambda one: (one.machine, installation(one)),
    "nodes": lambda one: one.machine_facts["nodes"],
    "machine": lambda one: one.machine,
    "cut-off": lambda one: one.workload_facts["cutoff_ry"],
    "material": lambda one: one.workload.split()[0],
}
_KNOWN = (0, 1, 3, 10)
_LEAST_LEFT = 5


@dataclass(frozen=True)
class Said:
    """Predictions of held-out rows: logarithms, half widths of intervals, and their promised shares, (n,)."""

    rows: list[Measured]
    mean: FloatArray
    half: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, answers: Sequence[tuple[list[Measured], Estimate]]) -> "Said":
        """Join the answers of several questions."""
        return cls(
            [row for rows, _ in answers for row in rows],
            np.concatenate([found.mean for _, found in answers]),
            np.concatenate([found.half for _, found in answers]),
            np.concatenate([np.full(len(rows), found.share) for rows, found in answers]),
        )

    @property
    def y(self) -> FloatArray:
        return _logs(self.rows)

    @property
    def percent(self) -> FloatArray:
        found: FloatArray = 100.0 * np.abs(np.exp(self.mean - self.y) - 1.0)
        return found

    def losses(self) -> list[tuple[float, float]]:
        """Return, for each setting with several choices, what the first proposal, and a random one, lose."""
        places = defaultdict(list)
        for place, row in enumerate(self.rows):
            places[row.setting.key, installation(row.setting)].append(place)
        slow = np.exp(self.y)
        losses = []
        for alike in places.values():
            if len(alike) > 1:
                first = min(alike, key=lambda place: self.mean[place])
                best = slow[alike].min()
                losses.append((slow[first] / best - 1.0, slow[alike].mean() / best - 1.0))
        return losses


@dataclass(frozen=True)
class Score:
    """The score of a model on one held-out group."""

    error: float
    correlation: float
    covered: float
    promised: float
    width: float
    loss: float
    random: float

    @classmethod
    def of(cls, said: Said) -> "Score":
        losses = said.losses()
        varies = np.ptp(said.mean) > 0.0 and np.ptp(said.y) > 0.0
        return cls(
            float(np.median(said.percent)),
            float(spearmanr(said.mean, said.y)[0]) if varies else float("nan"),
            100.0 * float(np.mean(np.abs(said.mean - said.y) <= said.half)) if said.half.any() else float("nan"),
            100.0 * float(said.share.mean()),
            float(np.exp(np.median(said.half))),
            100.0 * float(np.mean([loss for loss, _ in losses])) if losses else float("nan"),
            100.0 * float(np.mean([loss for _, loss in losses])) if losses else float("nan"),
        )


def line(name: str, scores: Sequence[Score]) -> str:
    """Return the median over groups of errors and correlations, and the mean of the rest."""
    columns = {field: np.array([getattr(score, field) for score in scores]) for field in Score.__dataclass_fields__}
    text = f"{name:18s} error {np.nanmedian(columns['error']):6.1f}%  rho {np.nanmedian(columns['correlation']):5.2f}"
    if not np.isnan(columns["covered"]).all():
        held, promised = np.nanmean(columns["covered"]), np.mean(columns["promised"])
        text += f"  in intervals {held:4.0f}% of {promised:2.0f}% (x{np.nanmedian(columns['width']):.2f})"
    else:
        text += " " * 34
    if not np.isnan(columns["loss"]).all():
        text += (
            f"  first proposal loses {np.nanmean(columns['loss']):5.1f}% (random {np.nanmean(columns['random']):.0f}%)"
        )
    return text


Model = Callable[[list[Measured], list[Measured], Setting], Estimate]


def _ours(train: list[Measured], asked: list[Measured], setting: Setting) -> Estimate:
    model = RunTimes.fit(train, (), setting)
    assert model is not None
    return model.estimate(DesignMatrix.from_measurements(asked))


def _manual(_: list[Measured], asked: list[Measured], setting: Setting) -> Estimate:
    """Predict by the cost model without any measurement."""
    return _ours([], asked, setting)


def _amdahl(train: list[Measured], asked: list[Measured], setting: Setting) -> Estimate:
    """t = work (a + b / ranks + c log2(ranks)), fitted to the build's own runs if there are three, else to all."""
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
    return Estimate(np.log(np.maximum(design(asked) @ weights, 1e-9)), np.zeros(len(asked)))


MODELS: Mapping[str, Model] = {
    "autotune": _ours,
    "manual alone": _manual,
    "Amdahl": _amdahl,
}


def held_out(rows: list[Measured], split: str, known: int, model: Model, seeds: int) -> list[Score]:
    """Return a model's score for each group that is held out, `known` rows of it being known after all."""
    by = SPLITS[split]
    scores = []
    for label in dict.fromkeys(by(row.setting) for row in rows):
        held = [row for row in rows if by(row.setting) == label]
        train = [row for row in rows if by(row.setting) != label]
        if len(held) < known + _LEAST_LEFT or not train:  # all of TaS2 is of one machine and cut-off
            continue
        for seed in range(seeds if known else 1):
            order = np.random.default_rng(seed).permutation(len(held))
            seen = train + [held[place] for place in order[:known]]
            asked = [held[place] for place in sorted(order[known:])]
            scores.append(Score.of(_said(model, seen, asked)))
    return scores


def _said(model: Model, train: list[Measured], asked: list[Measured]) -> Said:
    """Predict each build's most frequent workload with one question, and its other workloads with another."""
    groups = defaultdict(list)
    for row in asked:
        build = SPLITS["build"](row.setting)
        counts = Counter(other.setting.workload for other in asked if SPLITS["build"](other.setting) == build)
        groups[build, row.setting.workload == counts.most_common(1)[0][0]].append(row)
    return Said.of([(own, model(train, own, own[0].setting)) for own in groups.values()])


def _logs(rows: list[Measured]) -> FloatArray:
    return np.log([row.value or np.nan for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with qe/pwx_*.csv.gz")
    parser.add_argument("--only", nargs="*", choices=list(SPLITS), default=list(SPLITS))
    parser.add_argument("--materials", nargs="*", default=[*MATERIALS, "both"], help="silicon, tas2, both")
    parser.add_argument(
        "--known", nargs="*", type=int, default=list(_KNOWN), help="numbers of held-out runs that are known"
    )
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", type=int, default=3, help="random draws of the known runs")
    given = parser.parse_args()
    folder = given.data / "qe"
    runs = {material: pwx_runs(folder, material) for material in MATERIALS}
    runs["both"] = [row for rows in runs.values() for row in rows]
    for split in given.only:
        for material in given.materials:
            if (split == "material") != (material == "both") or (split, material) in {
                ("machine", "tas2"),
                ("cut-off", "tas2"),
            }:
                continue
            for known in given.known:
                print(f"pw.x on {material}, held out by {split}, {known} of them known:", flush=True)
                for name in given.models:
                    start = time.perf_counter()
                    scores = held_out(runs[material], split, known, MODELS[name], given.seeds)
                    text = line(name, scores) if scores else f"{name:18s} nothing to ask"
                    print(f"  {text}  [{len(scores)} groups, {time.perf_counter() - start:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
