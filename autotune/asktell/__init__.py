"""Ask and tell: another program asks for configurations, runs them, and reports the result of each.

with AskTell.open(studyfile.load(Path("mine.toml")), "sqlite:////home/me/autotune.db") as study:
    while (asked := study.ask(wait_s=60)) is not None:
        study.tell(asked.lease, RunReport(value=seconds_of(asked.configuration)))
"""

from autotune.asktell.asktell import AskTell
from autotune.asktell.errors import ClosedError, FinishedError, InvalidRequestError, LeaseConflictError, LeaseGoneError
from autotune.asktell.lease import LeasedRun, Reply
from autotune.asktell.report import RunReport

__all__ = [
    "AskTell",
    "ClosedError",
    "FinishedError",
    "InvalidRequestError",
    "LeaseConflictError",
    "LeaseGoneError",
    "LeasedRun",
    "Reply",
    "RunReport",
]
