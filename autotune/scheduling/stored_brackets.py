"""The brackets of a study in storage: they stay as they are when trials are added."""

from autotune.scheduling.hyperband import Bracket
from autotune.scheduling.successive_halving import extend_brackets
from autotune.storage.readable import BRACKETS, ReadableStudy
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StoppingSection, StudyFile


def brackets_of(store: StudyStore, study: StudyFile, rules: StoppingSection) -> tuple[Bracket, ...]:
    """Return the brackets of a study, extend_brackets to its present number of trials."""
    known = stored_brackets(store)
    brackets = extend_brackets(known, study.budget.most - 1, rules)
    if len(brackets) > len(known):
        tables = [{"sizes": list(bracket.sizes), "steps": list(bracket.steps)} for bracket in brackets]
        store.set_attribute(BRACKETS, {"brackets": tables})
    return brackets


def stored_brackets(store: ReadableStudy) -> tuple[Bracket, ...]:
    """Return the brackets that a study has so far; empty for a program that does not work in steps."""
    stored = store.attribute(BRACKETS) or {}
    return tuple(Bracket(tuple(bracket["sizes"]), tuple(bracket["steps"])) for bracket in stored.get("brackets", ()))
