"""Reads the figures of one load of a search: `python -I load_judge.py NUMBER EXIT_CODE`, in the run's folder.

`launchers.server` starts it after each load. It prints a line of JSON: the load's `metrics`, and as `breaks` the limit
that they break, or why the load failed; with `is_lost` that was no fault of the load.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from launchers import STDERR, STDOUT, EndReason, JobState, JobStatus
from launchers.server import SERVER_FILE, output_of
from objectives.base import FailureKind, Output, RunFailure
from objectives.command import CommandObjective
from objectives.command_options import CommandOptions
from objectives.figure import read_text
from objectives.server_options import HighestOptions


def main() -> None:
    """Judge the load."""
    number, exit_code = int(sys.argv[1]), int(sys.argv[2])
    spec = json.loads(Path(SERVER_FILE).read_bytes())
    options = json.loads(spec["search"]["options"])
    load = CommandObjective(CommandOptions.model_validate(options["load"]))
    highest = HighestOptions.model_validate(options["highest"])
    texts = [read_text(Path(output_of(number, name))) or "" for name in (STDOUT, STDERR)]
    output = Output(texts[0], texts[1], JobStatus(JobState.ENDED, EndReason.EXITED, exit_code), Path())
    answer: dict[str, Any]
    try:
        metrics = dict(load.measure(output).metrics)
        answer = {"metrics": metrics, "breaks": highest.broken_limit(load.metrics, metrics)}
    except RunFailure as failure:
        # A load that the machine or an operator has ended says nothing about the server.
        is_lost = failure.kind is FailureKind.INFRASTRUCTURE_ERROR
        answer = {"metrics": {}, "breaks": str(failure), **({"is_lost": True} if is_lost else {})}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
