"""The plan of a merge: what to do with each study, decided before anything is written.

A study keeps its mark in every copy. So a merge updates the study with the same mark, under any name. Another study of
the same name gets a number. Two studies are never mixed into one, since a verdict compares runs that one study made
close together in time.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

from autotune.errors import StorageError
from autotune.studyfile.definition import Definition

_CHANGED = "runs were read again or set aside"


class Action(StrEnum):
    """The effect of a merge on a study."""

    ADD = "new"
    UPDATE = "brought up to date"
    NOTHING = "there already"


@dataclass(frozen=True)
class StudyContents:
    """The parts of a study that a merge compares.

    Attributes:
        name: The study's name.
        mark: The study's mark, which all copies share.
        definition: The stored definition.
        runs: Digests of the runs.
        attributes: The study's attributes, as stored JSON.
        trials: The number of trials.
        corrected: A token for each correction, oldest first.
    """

    name: str
    mark: str
    definition: Mapping[str, Any]
    runs: frozenset[str]
    attributes: Mapping[str, str]
    trials: int
    corrected: tuple[str, ...] = ()

    def older_than(self, other: "StudyContents") -> bool:
        """Whether the other copy has all corrections of this one, and later ones."""
        return len(self.corrected) < len(other.corrected) and other.corrected[: len(self.corrected)] == self.corrected


@dataclass(frozen=True)
class PlannedStudy:
    """What to do with one study of a source.

    Attributes:
        name: The study's name in the source.
        target: Its name in the target.
        action: The effect of the merge on the study.
        trials: The number of its trials after the merge.
        runs: The number of runs that are new in the target.
        why: The reason for another name or for an update, if there is one.
    """

    name: str
    target: str
    action: Action
    trials: int
    runs: int
    why: str = ""

    def sentence(self) -> str:
        """Return the line for the user."""
        name = self.name if self.name == self.target else f"{self.name} as {self.target}"
        runs = f", {self.runs} new runs" if self.action is not Action.NOTHING else ""
        why = f"; {self.why}" if self.why else ""
        return f"{name}: {self.action.value}{runs}, {self.trials} trials{why}"


def digest(*parts: object) -> str:
    """Return a digest of JSON-able values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def plan_merge(there: Sequence[StudyContents], others: Iterable[StudyContents], source: str) -> list[PlannedStudy]:
    """Return what to do with each study of a source.

    Args:
        there: The studies of the target.
        others: The studies of the source.
        source: The name of the source in messages.

    Raises:
        StorageError: A study was continued in both storages.
    """
    by_mark = {study.mark: study for study in there}
    by_name = {study.name: study for study in there}
    steps = []
    for other in others:
        known = by_mark.get(other.mark)
        if known is not None:
            steps.append(_update(known, other, source))
            continue
        name = _free(other.name, by_name)
        step = PlannedStudy(other.name, name, Action.ADD, other.trials, len(other.runs), _why(by_name, other))
        by_name[name] = other
        by_mark[other.mark] = other
        steps.append(step)
    return steps


def _update(known: StudyContents, other: StudyContents, source: str) -> PlannedStudy:
    news, own = other.runs - known.runs, known.runs - other.runs
    is_older, is_newer = known.older_than(other), other.older_than(known)
    parted = known.corrected != other.corrected and not (is_older or is_newer)
    if parted or ((news or is_older) and (own or is_newer)):
        only = f"{len(own)} runs are only in the target, {len(news)} only in {source} (there {other.name!r})"
        places = {"the target": is_newer or parted, source: is_older or parted}
        changed = " and ".join(place for place, is_changed in places.items() if is_changed)
        msg = (
            f"study {known.name!r} was continued in two copies: {only}"
            f"{f', and in {changed} {_CHANGED}' if changed else ''}; "
            "trials of the same number differ, so they cannot be one study; nothing was written. Merge the copies into "
            "different files, and continue one of them"
        )
        raise StorageError(msg)
    found_more = other.attributes.keys() > known.attributes.keys() or other.trials > known.trials
    if news or is_older or (found_more and not (own or is_newer)):
        return PlannedStudy(
            other.name, known.name, Action.UPDATE, other.trials, len(news), _CHANGED if is_older else ""
        )
    return PlannedStudy(other.name, known.name, Action.NOTHING, known.trials, 0)


def _free(name: str, taken: Mapping[str, StudyContents]) -> str:
    names = (f"{name}-{number}" if number > 1 else name for number in count(1))
    return next(free for free in names if free not in taken)


def _why(taken: Mapping[str, StudyContents], other: StudyContents) -> str:
    first = taken.get(other.name)
    if first is None:
        return ""
    mine, its = (Definition.from_dict(study.definition) for study in (first, other))
    differences = mine.differences(its)
    if not differences:
        return f"another study of the same on a machine like it is called {other.name}"
    return f"another study is called {other.name}: {differences[0]}"
