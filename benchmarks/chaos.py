"""Kill -9 of every role, alone and two at once: what is lost, doubled, left behind, or other than in a twin left alone.

    python benchmarks/chaos.py [--seconds 600] [--events 1000] [--target "local coordinator"] [--json]

A target is a session and a role of it, or two that are killed at the same instant: `local worker+supervisor`. A short
session of a program whose times are recorded is started, who plays the role is killed at a random instant, and the same
command is given again until the study is complete. Then every value that was acknowledged is stored, once, and winner,
verdict and values are those of a twin that was left alone; no process, lease, job, segment or folder is left. `served`
is a study that a service supervises: it, the shim that records the study's end, and the study are killed. In
`postgresql` the storage is a server's: when a part of it is killed, it ends all connections and recovers. `slurm` is a
real Slurm (where one can be started): its controller is killed, or stopped, and comes back within 5 s, and the answers
of sbatch are lost after the submission, with its command, without a word, or with the words of Slurm. `3/n` is
the upper end of the 95 % interval of a share that was never seen in n events.

So far 45 events of `slurm` (30 of its controller or with it, 15 of answers alone or with the coordinator) and 14 of
`served` were struck. Three kills of one submission in a row were three tries of its run, which then failed, though the
job had run: a submission that was killed is none any more. A job that Slurm showed as running for ever had ended just
before its controller was killed, which had not noted that. The others did nothing. On 24 November 2026 there were 99
events of `batch` and 97 of `postgresql`, beside other work: one study left folders of runs that were made again
elsewhere, which is mended, and in another a job was killed with its coordinator in eleven sessions in a row, so that
a run had no try left in the last one (left, different): the same command once more would make it.

The target `training` is a study with Hyperband whose coordinator is killed: it must end as one that was left alone.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.chaos import kill_once, nothing_left
from tests.support.kills.campaign import HARMS, Request, start, targets
from tests.support.quick_training import TrainingStudy

TRAINING = "training"


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


def torture(request: Request) -> list[dict[str, object]]:
    """Kill as requested; return a row for each target, and one for all."""
    events: Counter[str] = Counter()
    harms: Counter[tuple[str, str]] = Counter()
    # Ray puts sockets there, whose paths must be short. Whoever is interrupted may leave processes that still write.
    with (
        tempfile.TemporaryDirectory(prefix="k", dir="/tmp", ignore_cleanup_errors=True) as folder,
        suppress(KeyboardInterrupt),
    ):
        for report in start(request, Path(folder)):
            events[report.target] += report.events
            print(f"{events.total()} events; {report.target}: {report.events}", file=sys.stderr, flush=True)
            for kind, found in report.harm.items():
                harms[report.target, kind] += 1
                print(f"{report.target}: {kind}: {found}"[:2000], file=sys.stderr, flush=True)
    rows = [_row(target, count, {kind: harms[target, kind] for kind in HARMS}) for target, count in events.items()]
    sums = {kind: sum(harms[target, kind] for target in events) for kind in HARMS}
    return [*rows, _row("all", events.total(), sums)]


def _row(target: str, events: int, harms: dict[str, int]) -> dict[str, object]:
    return {"target": target, "events": events, **harms, "bound": round(3 / events, 4) if events else None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--target", choices=(*targets(), TRAINING), action="append", metavar="TARGET")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    # Whoever ends it sees what came of the events until then, also of one in the background.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    began_s = time.monotonic()
    wanted = options.target or targets()
    rows = []
    if chosen := [target for target in wanted if target != TRAINING]:
        rows += torture(Request(chosen, options.events, options.seconds, options.seed))
    if not options.json:
        print(f"{'target':34}{'events':>8}{'lost':>6}{'doubled':>9}{'left':>6}{'different':>11}{'unsaid':>8}{'3/n':>8}")
        for row in rows:
            shown = f"{row['bound']:8.2%}" if row["bound"] is not None else f"{'-':>8}"
            print("{target:34}{events:8}{lost:6}{doubled:9}{left:6}{different:11}{unsaid:8}".format(**row) + shown)
    if TRAINING in wanted:
        trained = torture_training(options.events or 30, random.Random(options.seed))
        rows.append(trained)
        if not options.json:
            print("  ".join(f"{name}: {value}" for name, value in trained.items()), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
