"""Studies to ask and tell, and clients of them."""

from typing import Any

from autotune.asktell import AskTell, FinishedError, LeasedRun, Reply, RunReport
from autotune.studyfile import StudyFile

ONCE = {"max_runs": 1, "baseline_runs": 1, "baseline_every": 0}
QUICK = {"confidence": 0.75, "pairs": 3, "max_pairs": 3, "rounds": 2, "candidates": 2}


def external(**sections) -> StudyFile:
    """Return a study of a time over two parameters from 1 to 8, with a constraint."""
    values = {
        "name": "mine",
        "objective": "external",
        "options": {
            "metrics": [{"name": "time_s", "unit": "s", "kind": "time"}, {"name": "memory_bytes", "unit": "B"}],
            "identity": {"version": "1.2"},
        },
        "space": {
            "parameters": {
                name: {"type": "integer", "low": 1, "high": 8, "default": 8 if name == "x" else 1} for name in "xy"
            },
            "constraints": [{"name": "even", "rule": "x % y == 0", "reason": "y divides x"}],
        },
        "budget": {"trials": 8},
        "repeats": ONCE,
        "verdict": QUICK,
    }
    return StudyFile.model_validate({**values, **sections})


def seconds(configuration) -> float:
    """Return the time of a run; the best is x = 4, y = 4."""
    return 10.0 + (configuration["x"] - 4) ** 2 + (configuration["y"] - 4) ** 2


def told(study: AskTell, **what: Any) -> tuple[LeasedRun | None, Reply]:
    """Ask, and report `what` as the result of the run."""
    asked = study.ask()
    return asked, study.tell(asked.lease, RunReport(**what))


def started(study: AskTell) -> tuple[LeasedRun | None, Reply]:
    """Report a measurement of the default configuration, which is the first run."""
    return told(study, value=80.0)


def work(study: AskTell, most: int = 10**6, who: str = "") -> list[LeasedRun]:
    """Ask, run and tell until the study is finished or `most` runs were made; return the runs."""
    made: list[LeasedRun] = []
    while len(made) < most:
        try:
            asked = study.ask(wait_s=5.0, who=who)
        except FinishedError:
            break
        if asked is not None:
            study.tell(asked.lease, RunReport(value=seconds(asked.configuration)))
            made.append(asked)
    return made
