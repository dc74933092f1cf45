"""Run real studies beside real neighbours, and count how often the verdict is there, right and affordable.

    python -m benchmarks.verdicts.beside FOLDER [--programs work,same] [--loads .5,1,2] [--studies 5] [--minutes 45]
    python -m benchmarks.verdicts.beside FOLDER --report

work      a C program of known speed, .2 s: 12 configurations, the best is 2.016 times as fast as the default
same      the same program with knobs that change nothing (A/A): every claimed gain is false
training  a network by its error, with Hyperband; its true errors are means over ten seeds, measured first
pwx       pw.x with one or two ranks, pools and diagonalisation; its true times are medians of five runs, made first,
          so begin on a quiet machine

Neighbours use cores, memory bandwidth, cores in bursts, or the page cache (`programs.c`), with a process for each core
times the load. Each study is a session of its own. FOLDER keeps the results, so the same command resumes after an
interruption. Studies take turns over all cells, so a campaign that is cut short is balanced. Costs are compared with
those of studies without a neighbour in the same campaign; other users of the machine come on top, see `load`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.verdicts.trust import share

HERE = Path(__file__).parent
QUIET = "nobody"
NEIGHBOURS = ("compute", "memory", "bursts", "files")
TRIALS = 12
# A study that takes longer than this counts as one without a verdict.
MOST_S = 900.0
_NEAR = 1.05

_KNOWN = """
objective = "command"
[options]
argv = ["{programs}", "work", "{{= UNITS }}"]
metrics = [{{ name = "seconds", pattern = '^seconds (\\S+)', unit = "s", kind = "time" }}]
[space.parameters]
a = {{ type = "integer", values = [62, 80, 90, 100], default = 100 }}
b = {{ type = "integer", values = [80, 100, 110], default = 100 }}
"""
_TRAINING = """
objective = "training"
[options]
argv = ["{python}", "{here}/training.py", "{{rate}}", "{{width}}", "{{steps}}", "{{seed}}"]
progress = '^epoch (\\d+): error (\\S+)'
metric = "error"
environment = {{ OMP_NUM_THREADS = "1", OPENBLAS_NUM_THREADS = "1" }}
[stopping]
max_steps = 9
[space.parameters]
rate = {{ type = "choice", values = ["0.003", "0.03", "0.1", "0.3"], default = "0.003" }}
width = {{ type = "integer", values = [8, 32, 128], default = 32 }}
"""
_PWX = r"""
objective = "command"
[options]
argv = ["pw.x", "-nk", "{{pools}}", "-in", "si.in"]
ranks = "ranks"
environment = {{ ESPRESSO_PSEUDO = "/usr/share/espresso/pseudo", OMP_NUM_THREADS = "1" }}
success = ['JOB DONE\.']
metrics = [{{ name = "seconds", pattern = 'PWSCF .*CPU +(\S+)s WALL', unit = "s", kind = "time" }}]
[[options.files]]
name = "si.in"
copy = "{deck}"
lines = [
    {{ line = " 10 10 10 1 1 1", replaces = '^ 4 4 4 1 1 1$' }},
    {{ line = "  conv_thr = 1d-10, diagonalization = '{{diagonalization}}'", replaces = 'conv_thr' }},
]
[space.parameters]
ranks = {{ type = "integer", values = [1, 2], default = 1 }}
pools = {{ type = "integer", values = [1, 2], default = 1 }}
diagonalization = {{ type = "choice", values = ["david", "cg", "ppcg"], default = "david" }}
[[space.constraints]]
name = "pools"
rule = "pools <= ranks"
"""
STUDIES = {
    "work": _KNOWN.replace("UNITS", "a * b"),
    "same": _KNOWN.replace("UNITS", "10000 + 0 * a * b"),
    "training": _TRAINING,
    "pwx": _PWX,
}
DECK = HERE.parent.parent / "studies" / "inputs" / "si-scf.in"
_BUDGET = f"[budget]\ntrials = {TRIALS}\n[sampler]\nseed = "
KNOBS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "training": {"rate": ("0.003", "0.03", "0.1", "0.3"), "width": (8, 32, 128)},
    "pwx": {"ranks": (1, 2), "pools": (1, 2), "diagonalization": ("david", "cg", "ppcg")},
}


def units(program: str, configuration: Mapping[str, Any]) -> float:
    """Return the work of a run of the C program."""
    return 10000.0 if program == "same" else float(configuration["a"] * configuration["b"])


class Costs:
    """The true costs of the programs' configurations; those of the training and of pw.x are measured, and stored."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / "costs.json"
        self._measured = json.loads(self._file.read_text()) if self._file.exists() else {}

    def of(self, program: str, configuration: Mapping[str, Any]) -> float:
        """Return the true cost of a configuration."""
        if program in KNOBS:
            return float(self._measured[program][_key(configuration)])
        return units(program, configuration)

    def least(self, program: str) -> float:
        """Return the cost of the best configuration."""
        if program in KNOBS:
            return float(min(self._measured[program].values()))
        return units(program, {"a": 62, "b": 80})

    def measure(self, program: str) -> None:
        """Measure the costs of a program once."""
        if program in self._measured or program not in KNOBS:
            return
        names, found = list(KNOBS[program]), {}
        for values in product(*KNOBS[program].values()):
            configuration = dict(zip(names, values, strict=True))
            if program == "training":
                found[_key(configuration)] = fmean(_error(self._folder, configuration, seed) for seed in range(1, 11))
            elif configuration["pools"] <= configuration["ranks"]:
                found[_key(configuration)] = median(_seconds(self._folder, configuration) for _ in range(5))
        self._measured[program] = found
        self._file.write_text(json.dumps(self._measured, indent=1))


def _key(configuration: Mapping[str, Any]) -> str:
    return json.dumps(dict(configuration), sort_keys=True)


def _error(folder: Path, configuration: Mapping[str, Any], seed: int) -> float:
    command = [sys.executable, HERE / "training.py", configuration["rate"], str(configuration["width"]), "9", str(seed)]
    ended = subprocess.run(command, env=_environment(folder), check=True, capture_output=True, text=True)
    return float(ended.stdout.split()[-1])


def _seconds(folder: Path, configuration: Mapping[str, Any]) -> float:
    """Run pw.x and return its wall time."""
    place = folder / "costs"
    place.mkdir(exist_ok=True)
    diagonalization = f"  conv_thr = 1d-10, diagonalization = '{configuration['diagonalization']}'"
    text = DECK.read_text().replace(" 4 4 4 1 1 1", " 10 10 10 1 1 1").replace("  conv_thr = 1d-10", diagonalization)
    (place / "si.in").write_text(text)
    ranks, pools = map(str, (configuration["ranks"], configuration["pools"]))
    command = ["mpirun", "--allow-run-as-root", "-np", ranks, "pw.x", "-nk", pools, "-in", "si.in"]
    environment = _environment(folder) | {"ESPRESSO_PSEUDO": "/usr/share/espresso/pseudo"}
    ended = subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True, text=True)
    return float(re.search(r"PWSCF .*CPU +(\S+)s WALL", ended.stdout)[1])


def _environment(folder: Path) -> dict[str, str]:
    # Other studies of this user must not make a study of this campaign wait for their cores.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AUTOTUNE_")}
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return kept | single | {"PYTHONPATH": str(HERE.parent.parent), "AUTOTUNE_USER_FOLDER": str(folder / "user")}


@contextmanager
def neighbours(folder: Path, kind: str, load: float) -> Iterator[None]:
    """Start the neighbours, and end them."""
    count = 0 if kind == QUIET else round(load * len(os.sched_getaffinity(0)))
    # A session of its own for each: else the kernel gives all of them together the share of one program (autogroup).
    started = [
        subprocess.Popen([folder / "programs", kind, folder / f"file{one}"], start_new_session=True)
        for one in range(count)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def run_study(folder: Path, program: str, kind: str, load: float, number: int) -> dict[str, Any]:
    """Run a study beside its neighbours in a new folder, and return what it reports."""
    name = f"{program}-{kind}-{load:g}-{number}"
    place = folder / name
    place.mkdir(exist_ok=True)
    for file in place.glob("autotune.db*"):
        file.unlink()
    given = {"programs": folder / "programs", "python": sys.executable, "here": HERE, "deck": DECK}
    (place / "mine.toml").write_text(STUDIES[program].format(**given) + f"{_BUDGET}{number}\n")
    environment, autotune = _environment(folder), [sys.executable, "-m", "autotune"]
    busy, begun = os.getloadavg()[0], time.monotonic()
    with neighbours(folder, kind, load), (place / "log").open("w") as log:
        try:
            code = subprocess.run(
                [*autotune, "study", "./mine.toml"],
                cwd=place, env=environment, stdout=log, stderr=log, timeout=MOST_S, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = 124
        wall_s = time.monotonic() - begun
    told = subprocess.run(
        [*autotune, "best", "mine", "--json"], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    result = {"program": program, "kind": kind, "load": load, "number": number, "code": code, "wall_s": wall_s}
    result |= {"machine_load": busy}
    try:
        best = json.loads(told.stdout)
    except ValueError:
        return result
    verdict = best["verdict"] or {}
    kept = {key: verdict.get(key) for key in ("speed_up", "low", "high", "significant", "mode", "doubt", "sentence")}
    kept["pairs"] = len(verdict.get("pairs", ()))
    if verdict:
        command = [*autotune, "trials", "mine", "--json"]
        rows = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True).stdout
        row = next(one for one in json.loads(rows) if one["trial"] == verdict["winner"])
        kept["winner"] = {name: row[name] for name in best["default"]["configuration"]}
    return result | kept | {"best": best["best"], "default": best["default"], "ledger": best["ledger"]}


@dataclass(frozen=True)
class Cell:
    """The studies of one program beside one kind of neighbour."""

    program: str
    kind: str
    load: float
    studies: Sequence[Mapping[str, Any]]

    def row(self, quiet: Sequence[Mapping[str, Any]], costs: Costs) -> dict[str, str]:
        """Return the figures, with costs as multiples of those of `quiet` studies.

        That no configuration is better than the default is a verdict, too, without an interval.
        """
        ended = [one for one in self.studies if one["code"] == 0]
        known = [one for one in ended if one.get("low")]
        truths = [self._truth(one, costs) for one in known]
        held = sum(one["low"] <= truth <= one["high"] for one, truth in zip(known, truths, strict=True))
        false = sum(bool(one["significant"]) and truth <= 1.0 for one, truth in zip(known, truths, strict=True))
        near = sum(self._chosen(one, costs) <= _NEAR * costs.least(self.program) for one in ended)
        row = {
            "program": self.program,
            "neighbour": self.kind if self.kind == QUIET else f"{self.kind} {self.load:g}",
            "with a verdict": share(len(ended), len(self.studies)),
            "false gains": share(false, len(ended)) if ended else "",
            "holds the truth": share(held, len(known)) if known else "",
            "within 5 % of the best": share(near, len(ended)) if ended else "",
            "half width": f"{median((one['high'] / one['low']) ** 0.5 - 1 for one in known):.1%}" if known else "",
            "duets": str(sum(one["mode"] == "duet" for one in known)),
            "load before": f"{median(one['machine_load'] for one in self.studies):.1f}",
        }
        costs_of = {"core-seconds": _core_s, "busy": _busy_s, "wall": _wall_s, "verdict of tuning": _verdict_share}
        for name, cost in costs_of.items():
            ours, theirs = [list(map(cost, some)) for some in (ended, quiet)]
            if ours and theirs:
                usual = median(theirs)
                row[name] = f"{median(ours):.3g} ({median(ours) / usual:.2f} x, {max(ours) / usual:.2f} x at most)"
        return row

    def _truth(self, study: Mapping[str, Any], costs: Costs) -> float:
        default = costs.of(self.program, study["default"]["configuration"])
        return default / costs.of(self.program, study["winner"])

    def _chosen(self, study: Mapping[str, Any], costs: Costs) -> float:
        """Return the true cost of the configuration that the study tells its user to use."""
        gains = study.get("significant")
        return costs.of(self.program, study["winner"] if gains else study["default"]["configuration"])


def _core_s(study: Mapping[str, Any]) -> float:
    return float(study["ledger"]["spent"])


def _busy_s(study: Mapping[str, Any]) -> float:
    return float(study["ledger"]["cores"]["busy_s"])


def _verdict_share(study: Mapping[str, Any]) -> float:
    """Return the core-seconds of the verdict as a share of those of the tuning, without runs set aside."""
    spent = study["ledger"]
    tuning = ("first_runs", "repeats", "baseline", "capped", "failed")
    return float(spent["verdict"] / sum(spent[name] for name in tuning))


def _wall_s(study: Mapping[str, Any]) -> float:
    return float(study["wall_s"])


def report(folder: Path) -> None:
    """Print a line for each cell, then for each program over all its neighbours."""
    costs, results = Costs(folder), _results(folder)
    for program in STUDIES:
        own = [one for one in results if one["program"] == program]
        quiet = [one for one in own if one["kind"] == QUIET and one.get("ledger")]
        beside = [one for one in own if one["kind"] != QUIET]
        cells = sorted({(one["kind"], one["load"]) for one in own}, key=lambda cell: (cell[0] != QUIET, cell))
        for kind, load in cells:
            studies = [one for one in own if (one["kind"], one["load"]) == (kind, load)]
            _print(Cell(program, kind, load, studies).row(quiet, costs))
        if beside:
            _print(Cell(program, "all", 0.0, beside).row(quiet, costs))


def _print(row: Mapping[str, str]) -> None:
    print("  " + "; ".join(f"{key}: {value}" for key, value in row.items()), flush=True)


def _results(folder: Path) -> list[dict[str, Any]]:
    file = folder / "results.jsonl"
    return list(map(json.loads, file.read_text().splitlines())) if file.exists() else []


def campaign(folder: Path, options: argparse.Namespace) -> None:
    """Run the studies that FOLDER lacks, in turns over all cells."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-o", folder / "programs", HERE / "programs.c"], check=True)
    costs, loads = Costs(folder), list(map(float, options.loads.split(",")))
    until = time.monotonic() + 60.0 * options.minutes
    cells = [(QUIET, 0.0), *product(options.neighbours.split(","), loads)]
    done = {(one["program"], one["kind"], one["load"], one["number"]) for one in _results(folder)}
    for number, program, (kind, load) in product(range(options.studies), options.programs.split(","), cells):
        if (program, kind, load, number) in done:
            continue
        if time.monotonic() > until:
            break
        costs.measure(program)
        result = run_study(folder, program, kind, load, number)
        with (folder / "results.jsonl").open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(program, kind, load, number, f"exit {result['code']}, {result['wall_s']:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--programs", default=",".join(STUDIES))
    parser.add_argument("--neighbours", default=",".join(NEIGHBOURS))
    parser.add_argument("--loads", default=".5,1,2", help="processes of a neighbour for each core")
    parser.add_argument("--studies", type=int, default=5, help="studies in each cell")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no study after this time")
    parser.add_argument("--report", action="store_true", help="only print what FOLDER holds")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not options.report:
        campaign(folder, options)
    report(folder)


if __name__ == "__main__":
    main()
