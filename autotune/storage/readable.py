"""What can be read of a study, wherever it is kept, and the names under which its attributes are stored."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from autotune.errors import DifferentStudyError
from autotune.records.labels import Labels
from autotune.records.outcome import Outcome
from autotune.records.series import Series
from autotune.records.study import Definition, Run, TrialRecord
from autotune.statistics.verdict import Verdict
from autotune.storage.address import shown

DEFINITION = "definition"
VERDICT = "verdict"
ABLATION = "worth of options"
VERIFIED_INPUTS = "verified inputs"
BRACKETS = "brackets"
OUTLOOK = "outlook"
WARM_START = "warm start"
READINGS = "readings"
ACCEPTED = "accepted"

HINT = "hint "
"""What the names of the attributes that hold hints begin with; each has one of its own, so none is lost."""

MARK = "mark"
"""The attribute of a study that tells it from all others, copies of it excepted."""

HOME = "home"
"""The attribute of a study that says in which storage it was made; copies of it have that of the original."""

AMENDED = "amended"
"""The attribute of a study with a token for each time that runs of it that had ended were changed."""

LABELS = "labels"
"""The attribute of a study with its tags, its note, and whether it is archived."""

ABANDONED = "abandoned"
"""The attribute of a trial that nobody can run: another program left it without parameters."""


def study_key(study_id: int, mark: str | None) -> str:
    """Return the key of a study's runs and leases, which no other study ever gets.

    SQLite gives the number of a study that was deleted to the next one; copies of a study share its mark.
    """
    return f"{study_id}-{mark or ''}"


class ReadableStudy(Protocol):
    """A study that can be read."""

    @property
    def name(self) -> str:
        """The study's name."""

    @property
    def definition(self) -> Definition:
        """What the study is about."""

    def attribute(self, name: str) -> Mapping[str, Any] | None:
        """Return what was stored of a comparison: `VERDICT`, `ABLATION` and so on; None where nothing was."""

    def runs(self) -> list[Run]:
        """Return every run of the study, in the order in which they ended."""

    def trials(self) -> list[TrialRecord]:
        """Return every trial that was proposed, by number, with those of its runs that count."""


def labels_of(study: ReadableStudy) -> Labels:
    """Return what users have noted of a study."""
    return Labels.of(study.attribute(LABELS))


def stored_verdict(study: ReadableStudy) -> Verdict | None:
    """Return the verdict that was stored, on whatever winner, with the confidence that is asked for now."""
    stored = study.attribute(VERDICT)
    return Verdict.from_dict(stored).asked_now(study.definition.study) if stored else None


def check_same(url: str, name: str, stored: Definition, definition: Definition) -> None:
    """Check that what was measured for the `stored` definition can be compared with what is measured for another.

    Raises:
        DifferentStudyError: they are about different things; says which.
    """
    differences = stored.differences(definition)
    if differences:
        lines = "\n".join(f"  {line}" for line in differences)
        msg = (
            f"study {name!r} in {shown(url)} is about something else, "
            f"its measurements cannot be continued:\n{lines}\n"
            "start another one with --name NEW-NAME, or use another --storage"
        )
        raise DifferentStudyError(msg, differences)


def runs_of_tuning(runs: Iterable[Run]) -> Mapping[int, list[Run]]:
    """Return the runs that count for a trial, by its number; none for a trial without any."""
    found: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        if run.trial is not None and run.series.is_tuning:
            found[run.trial].append(run)
    return found


def stored_run(record: Mapping[str, Any], trial: int | None, series: str, round_number: int) -> Run:
    """Return a run as the log of runs has it."""
    outcome = Outcome.from_dict(record["outcome"])
    places = {"outcome": outcome, "trial": trial, "series": Series.parse(series), "round": round_number}
    return Run(**{**record, **places})
