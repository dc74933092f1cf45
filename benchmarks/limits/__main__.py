"""The search under a limit, beside Optuna's constrained samplers and SMAC3, on measured tables.

    python -m venv peers && peers/bin/pip install torch==2.13.0
    peers/bin/pip install -r benchmarks/search-requirements.txt
    python -m benchmarks.limits --data FOLDER --peers-env peers/bin/python --out results

FOLDER is the developer's own, with `convolution/*.json.gz` and `syr2k/small.csv.gz`. Of the convolution the time on one
card is minimised, and that on another limited; of the loop nest its time is minimised, and that of compiling and
running it limited: a fifth of what works keeps the limit. Told are the share of the runs that broke the limit or
failed, and how far the best feasible configuration is from the best of the table after 20 and 50 runs. Searches that
are in --out are not run again.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from math import expm1
from pathlib import Path
from statistics import fmean, median

import numpy as np
from optuna.study import StudyDirection

from autotune.records.limit import Limit
from autotune.search.base import History
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.observation import Observation
from benchmarks.limits.problem import LimitedProblem, load_problems
from objectives.base import Metric

PEERS = ("optuna-tpe", "optuna-gp", "smac-hpo")
BUDGETS = (20, 50)
_SECOND = Metric("second", "s")


def main() -> int:
    """Run what is missing, and report."""
    options = _options()
    problems = list(load_problems(options.data))
    if not problems:
        print(f"no measured table in {options.data}: nothing to search; --data names the folder that holds them")
        return 3
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "limits.jsonl"
    for problem in problems:
        print(f"{problem.name}: {len(problem.rows)} configurations, {problem.keeps.mean():.0%} keep the limit")
        for method in options.methods:
            known = _known(file, problem, method)
            seeds = [seed for seed in range(options.seeds) if seed not in known]
            searches = _ours(problem, seeds) if method == "ours" else _peer(problem, method, seeds, options)
            for seed, places in searches:
                with file.open("a", encoding="utf-8") as out:
                    line = {"problem": problem.name, "method": method, "seed": seed, "places": places}
                    out.write(json.dumps(line) + "\n")
    _report(problems, options.methods, options.seeds, file)
    return 0


def _ours(problem: LimitedProblem, seeds: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    limits = (Limit(_SECOND, high=problem.limit),)
    place_of = {tuple(row): place for place, row in enumerate(problem.rows.tolist())}
    for seed in seeds:
        sampler = ValidSetSampler(problem.space, seed=seed)
        sampler.keep(limits)
        places: list[int] = []
        while len(places) < BUDGETS[-1]:
            observations = [_observation(problem, place) for place in places]
            history = History(problem.rows[places], observations, StudyDirection.MINIMIZE)
            proposed = problem.space.indices([sampler.propose(history)])[0]
            places.append(place_of[tuple(proposed.tolist())])
        yield seed, places


def _observation(problem: LimitedProblem, place: int) -> Observation:
    value = float(problem.values[place])
    return Observation() if np.isnan(value) else Observation(value=value, limited=(float(problem.second[place]),))


def _peer(
    problem: LimitedProblem, method: str, seeds: Sequence[int], options: argparse.Namespace
) -> Iterator[tuple[int, list[int]]]:
    if not seeds:
        return
    script = str(Path(__file__).parent / "peer.py")
    argv = [options.peers_env, script, str(problem.hand_out(options.out)), method, str(BUDGETS[-1]), *map(str, seeds)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        for line in child.stdout or ():
            said = json.loads(line)
            yield said["seed"], said["places"]


def _known(file: Path, problem: LimitedProblem, method: str) -> dict[int, list[int]]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    said = [json.loads(line) for line in lines]
    return {one["seed"]: one["places"] for one in said if (one["problem"], one["method"]) == (problem.name, method)}


def _report(problems: Sequence[LimitedProblem], methods: Sequence[str], seeds: int, file: Path) -> None:
    print(f"{'problem':42} {'method':24} seeds  infeasible  best feasible above the optimum (median) after", *BUDGETS)
    gaps: dict[tuple[str, int], list[float]] = {}
    shares: dict[str, list[float]] = {}
    for problem in problems:
        for method in methods:
            known = _known(file, problem, method)
            found = [known[seed] for seed in range(seeds) if seed in known]
            if not found:
                continue
            share = fmean(problem.infeasible(places[: BUDGETS[-1]]) for places in found)
            shares.setdefault(method, []).append(share)
            after = []
            for budget in BUDGETS:
                mine = [problem.gap(places[:budget]) for places in found]
                gaps.setdefault((method, budget), []).append(fmean(mine))
                after.append(f"{expm1(median(mine)):8.1%}")
            print(f"{problem.name:42} {method:24} {len(found):5}  {share:10.0%} ", *after)
    for method, each in shares.items():
        means = [f"{expm1(fmean(gaps[method, budget])):8.1%}" for budget in BUDGETS]
        print(f"{'all (geometric mean)':42} {method:24} {'':5}  {fmean(each):10.0%} ", *means)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the measured tables")
    parser.add_argument("--peers-env", default=sys.executable, help="the interpreter that has the peers")
    parser.add_argument("--out", type=Path, default=Path("results"), help="where results are kept")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--methods", nargs="+", default=["ours", *PEERS], choices=["ours", *PEERS])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
