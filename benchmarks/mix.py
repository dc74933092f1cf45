"""A mix of three inputs of pw.x against three studies of one input each: what each costs, and what the mix gives up.

    python benchmarks/mix.py [--trials 10] [--folder mix]

The inputs are small, and made here: a metal with many k-points, a semiconductor, a molecule at Gamma alone. Their
pseudopotentials are those of Debian's quantum-espresso-data. All four studies have the same budget of trials. Each own
winner is compared with the mix's winner by their verdicts on that input. It takes a few minutes on two cores, which
must be free: spinning ranks on a busy machine take ten times as long.
"""

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from autotune.records.study import State
from autotune.results.summary import Summary, summarise
from autotune.storage.address import storage_url
from autotune.storage.study_store import StudyStore

_DECK = """&control
  calculation = 'scf', prefix = '{name}', pseudo_dir = '/usr/share/espresso/pseudo'
/
&system
  {system}
/
&electrons
  conv_thr = 1d-8
/
ATOMIC_SPECIES
{species}
ATOMIC_POSITIONS {unit}
{positions}
K_POINTS {kpoints}
"""
_DIAMOND = [(0, 0, 0), (2, 2, 0), (2, 0, 2), (0, 2, 2), (1, 1, 1), (3, 3, 1), (3, 1, 3), (1, 3, 3)]
INPUTS = {
    "metal": {
        "system": "ibrav = 2, celldm(1) = 7.5, nat = 1, ntyp = 1\n"
        "  ecutwfc = 20, occupations = 'smearing', degauss = 0.05",
        "species": "Al 26.98 Al.pz-vbc.UPF",
        "unit": "alat",
        "positions": "Al 0 0 0",
        "kpoints": "automatic\n10 10 10 1 1 1",
    },
    "semiconductor": {
        "system": "ibrav = 1, celldm(1) = 10.2, nat = 8, ntyp = 1, ecutwfc = 24",
        "species": "Si 28.08 Si.pz-vbc.UPF",
        "unit": "alat",
        "positions": "\n".join(f"Si {x / 4} {y / 4} {z / 4}" for x, y, z in _DIAMOND),
        "kpoints": "automatic\n2 2 2 0 0 0",
    },
    "molecule": {
        "system": "ibrav = 1, celldm(1) = 14.0, nat = 3, ntyp = 2, ecutwfc = 30",
        "species": "O 16.0 O.pz-rrkjus.UPF\nH 1.0 H.pz-vbc.UPF",
        "unit": "bohr",
        "positions": "O 0 0 0\nH 1.43 1.1 0\nH -1.43 1.1 0",
        "kpoints": "gamma",
    },
}
_STUDY = """objective = "qe"

[budget]
trials = {trials}

[repeats]
max_runs = 2
baseline_runs = 2
warm_up_runs = 0

[sampler]
warm_start = false

[verdict]
candidates = 2
rounds = 2
pairs = {pairs}
max_pairs = {pairs}
confidence = {confidence}
"""


def main() -> None:
    """Run the four studies, unless they are there, and print what they cost and found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=6, help="of the verdicts; fewer than 6 are for 75 %% intervals")
    parser.add_argument("--max-ranks", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("mix"))
    wanted = parser.parse_args()
    folder: Path = wanted.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    confidence = 0.95 if wanted.pairs >= 6 else 0.75
    common = _STUDY.format(trials=wanted.trials, pairs=wanted.pairs, confidence=confidence)
    common += f"\n[options]\nmax_ranks = {wanted.max_ranks}\n"
    for name, parts in INPUTS.items():
        (folder / f"{name}.in").write_text(_DECK.format(name=name, **parts), encoding="utf-8")
        (folder / f"{name}.toml").write_text(f'{common}input = "{folder}/{name}.in"\n', encoding="utf-8")
    inputs = "".join(f'[[inputs]]\nname = "{name}"\noptions = {{ input = "{folder}/{name}.in" }}\n' for name in INPUTS)
    (folder / "together.toml").write_text(common + inputs, encoding="utf-8")
    found = {name: _studied(folder, name) for name in ("together", *INPUTS)}
    mix = found.pop("together")
    print(f"{'study':14} core-s: tuning  verdict  trials  capped  speed-up")
    for name, summary in {"mix": mix, **found}.items():
        capped, verdict_s = sum(trial.state is State.CAPPED for trial in summary.trials), summary.ledger.comparisons
        numbers = f"{_tuning_s(summary):14.0f}  {verdict_s:7.0f}  {summary.finished:6}  {capped:6}"
        print(f"{name:14} {numbers}  {_speed_up(summary)}")
    tuning_s, verdict_s = (sum(map(cost, found.values())) for cost in (_tuning_s, lambda one: one.ledger.comparisons))
    print(f"{'three studies':14} {tuning_s:14.0f}  {verdict_s:7.0f}")
    on_inputs = {one.name: one for one in mix.on_inputs}
    for name, summary in found.items():
        print(f"{name}: the mix's winner {on_inputs.get(name, 'the default')}; its own {_speed_up(summary)}")
    for name, summary in {"mix": mix, **found}.items():
        print(f"{name}: {dict(summary.best.configuration) if summary.best else None}")


def _studied(folder: Path, name: str) -> Summary:
    command = [sys.executable, "-m", "autotune", "study", f"{folder}/{name}.toml", "--wait"]
    storage = folder / "autotune.db"
    subprocess.run([*command, "--storage", storage, "--runs", folder / "runs"], check=True)
    return summarise(StudyStore.read(storage_url(str(storage)), name))


def _tuning_s(summary: Summary) -> float:
    return summary.ledger.spent - summary.ledger.comparisons


def _speed_up(summary: Summary) -> str:
    verdict = summary.present_verdict
    if verdict is None:
        return "the default is best"
    middle, low, high = verdict.interval(summary.standings.metric)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
