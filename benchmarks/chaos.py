"""Kill -9 at random instants: what is lost, doubled, or left behind.

    python benchmarks/chaos.py [--instants 30] [--json]

For each target (the coordinator, the Ray worker that runs a trial, the MPI start command) a study of a quick command
is killed again and again and resumed with the same command. After every kill the finished trials in storage are
compared with those before, and the processes of the study are counted; at the end the study must complete. The target
"training" is a study with Hyperband, whose coordinator is killed: it must end as one that was left alone.
"""

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.chaos import TARGETS, ChaosStudy, kill_often, kill_once, nothing_left
from tests.support.quick_training import TrainingStudy

TRAINING = "training"


def torture(target: str, instants: int, rng: random.Random) -> dict[str, object]:
    kills = lost = doubled = left = incomplete = studies = 0
    while kills < instants:
        with tempfile.TemporaryDirectory() as folder:
            study = ChaosStudy(Path(folder), trials=60)
            study.write(mpi=target == "start command")
            studies += 1
            while kills < instants:
                before, runs_before = study.finished(), study.stored_runs()
                once = target == "coordinator"
                struck = kill_once(study, target, rng) if once else kill_often(study, target, rng, instants - kills)
                kills += struck
                left += len(nothing_left(study))
                after = study.finished()
                lost += sum(after.get(number) != found for number, found in before.items())
                lost += study.stored_runs()[: len(runs_before)] != runs_before
                if len(after) == study.trials or not struck:
                    break
            incomplete += study.start().wait() != 0
            finished = study.finished()
            incomplete += len(finished) != study.trials
            doubled += len(finished) - len({configuration for configuration, _ in finished.values()})
            runs = study.stored_runs()
            doubled += len(runs) - len(set(runs))
    return {
        "target": target,
        "kills": kills,
        "studies": studies,
        "finished trials lost": lost,
        "trials doubled": doubled,
        "processes left": left,
        "studies not completed": incomplete,
    }


def torture_training(instants: int, rng: random.Random) -> dict[str, object]:
    """Kill the coordinator of studies with Hyperband; each must end as one that was left alone."""
    kills = left = different = studies = repeated = 0
    with tempfile.TemporaryDirectory() as folder:
        alone = TrainingStudy(Path(folder), trials=20)
        alone.write()
        alone.start().wait()
        expected, steps = alone.outcome(), sum(alone.trained().values())
    while kills < instants:
        with tempfile.TemporaryDirectory() as folder:
            study = TrainingStudy(Path(folder), trials=20)
            study.write()
            studies += 1
            struck = 1
            while struck and kills < instants:
                struck = kill_once(study, "coordinator", rng)
                kills += struck
                left += len(nothing_left(study))
            different += study.start().wait() != 0 or study.outcome() != expected
            repeated += sum(study.trained().values()) - steps
    return {
        "target": TRAINING,
        "kills": kills,
        "studies": studies,
        "processes left": left,
        "studies that ended otherwise": different,
        "steps trained again": repeated,
        "steps of a study": steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instants", type=int, default=30)
    parser.add_argument("--target", choices=(*TARGETS, TRAINING), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for target in options.target or (*TARGETS, TRAINING):
        rng = random.Random(f"{options.seed} {target}")
        tortured = (
            torture_training(options.instants, rng) if target == TRAINING else torture(target, options.instants, rng)
        )
        rows.append(tortured)
        if not options.json:
            print("  ".join(f"{name}: {value}" for name, value in rows[-1].items()), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
