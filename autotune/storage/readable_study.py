"""Reading studies: the interface of every readable study, and the names of the stored attributes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from autotune.errors import DifferentStudyError
from autotune.records.labels import Labels
from autotune.records.series import Series
from autotune.records.stored import read_as
from autotune.records.study import Run, TrialRecord
from autotune.statistics.verdict import Verdict
from autotune.storage.address import hide_password
from autotune.storage.damage import content_errors
from autotune.studyfile.definition import Definition

DEFINITION = "definition"
VERDICT = "verdict"
ABLATION = "worth of options"
VERIFIED_INPUTS = "verified inputs"
BRACKETS = "brackets"
OUTLOOK = "outlook"
WARM_START = "warm start"
READINGS = "readings"
ACCEPTED = "accepted"

CONCLUSIONS = (VERDICT, ABLATION, VERIFIED_INPUTS, OUTLOOK)
"""The attributes that no longer hold once runs that count have changed."""

HINT = "hint "
"""The prefix of the attributes that hold hints. Each hint has its own attribute, so that none is lost."""

MARK = "mark"
"""The attribute that identifies a study; only copies of it have the same."""

HOME = "home"
"""The attribute with the storage in which a study was made; copies keep the original's."""

CORRECTED = "amended"
"""The attribute of a study with a token for each correction of its runs."""

LABELS = "labels"
"""The attribute of a study with its tags, its note, and whether it is archived."""

ABANDONED = "abandoned"
"""The attribute of a trial that cannot run, because another program left it without parameters."""


def study_key(study_id: int, mark: str | None) -> str:
    """Return the key of a study's runs and leases, which no other study in the storage ever gets.

    It needs both parts: SQLite reuses the number of a deleted study, and copies of a study share its mark.
    """
    return f"{study_id}-{mark or ''}"


class ReadableStudy(Protocol):
    """A study that can be read."""

    @property
    def name(self) -> str:
        """The study's name."""

    @property
    def definition(self) -> Definition:
        """The definition of the study."""

    def attribute(self, name: str) -> Mapping[str, Any] | None:
        """Return a stored attribute, such as `VERDICT` or `ABLATION`; None if it is not stored."""

    def runs(self) -> list[Run]:
        """Return every run of the study, in the order in which they ended."""

    def trials(self) -> list[TrialRecord]:
        """Return every proposed trial by number, each with the runs that count for it."""


def labels_of(study: ReadableStudy) -> Labels:
    """Return the tags and the note that users gave a study."""
    with content_errors(f"study {study.name!r}"):
        return Labels.of(study.attribute(LABELS))


def stored_verdict(study: ReadableStudy) -> Verdict | None:
    """Return the stored verdict, at the confidence that the study file asks for now.

    None if there is none, or if the study no longer looks for one winner.
    """
    stored = study.attribute(VERDICT)
    if not stored or not study.definition.study_file.has_one_winner:
        return None
    return Verdict.from_dict(stored).with_settings_of(study.definition.study)


def check_same(url: str, name: str, stored: Definition, definition: Definition) -> None:
    """Check that measurements of the stored definition can be compared with those of a new one.

    Raises:
        DifferentStudyError: The definitions differ; the message lists the differences.
    """
    differences = stored.differences(definition)
    if differences:
        raise DifferentStudyError(difference_message(url, name, differences), differences)


def difference_message(url: str, name: str, differences: Iterable[str], remedy: str = "") -> str:
    """Return the message that a stored study cannot be continued, and what to do."""
    lines = "\n".join(f"  {line}" for line in differences)
    return (
        f"study {name!r} in {hide_password(url)} is about something else, "
        f"its measurements cannot be continued:\n{lines}\n"
        f"{remedy or 'start another one with --name NEW-NAME, or use another --storage'}"
    )


def runs_of_tuning(runs: Iterable[Run]) -> Mapping[int, list[Run]]:
    """Return the tuning runs by the number of their trial; an empty list for a trial without runs."""
    found: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        if run.trial is not None and run.series.is_tuning:
            found[run.trial].append(run)
    return found


def stored_run(record: Mapping[str, Any], trial: int | None, series: str, round_number: int) -> Run:
    """Return the run of a row of the log."""
    return read_as(Run, {**record, "trial": trial, "series": Series.parse(series), "round": round_number})
