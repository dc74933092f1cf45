"""The sizes of a study's problem: derived values that runs, or terms of their time, use and that no parameter changes.

They are facts of the workload. Measurements of another size are not comparable, but a model can learn from them.
"""

from collections.abc import Mapping, Sequence

from autotune.studyfile.model import StudyFile
from autotune.studyfile.shape import mentioned_terms
from objectives.base import Plan
from objectives.mentions.templates import value_text
from spaces import Value
from spaces.expressions.names import names_of
from spaces.mention import Mention

_IDENTITY = "space.derived."


def sizes_of(study: StudyFile, plan: Plan, fixed: Mapping[str, Value]) -> dict[str, Value]:
    """Return those `fixed` derived values that runs or terms use, directly or through other derived values."""
    told = _names_mentioned(study, [*plan.mentions, *mentioned_terms(study)])
    return {name: value for name, value in fixed.items() if name in told}


def identity_of_sizes(sizes: Mapping[str, Value]) -> dict[str, str]:
    """Return the part of a study's identity that differs between sizes."""
    return {f"{_IDENTITY}{name}": value_text(value) for name, value in sizes.items()}


def is_size(name: str, identity: Mapping[str, str]) -> bool:
    """Return whether a fact is a size, according to the identity of its study."""
    return f"{_IDENTITY}{name}" in identity


def _names_mentioned(study: StudyFile, mentions: Sequence[Mention]) -> set[str]:
    """Return the names that a study's options mention, directly or through derived values."""
    derived = study.space.derived
    names = {name for mention in mentions for name in mention.names}
    while True:
        behind = {other for name in names & derived.keys() for other in names_of(derived[name])}
        if behind <= names:
            return names
        names |= behind
