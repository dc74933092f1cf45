"""The length of runs in a study's space: what is wrong with it, and jobs that are shorter than whole ones."""

from collections.abc import Mapping, Sequence

from autotune.studyfile.model import StudyFile
from objectives.base import Plan
from spaces import Space, SpaceError, Value
from spaces.expressions.names import names_of
from spaces.mention import Mention, Values, values_of_mentions
from spaces.parameters.errors import ExpressionError, did_you_mean
from spaces.parameters.problem import Problem

_PARAMETER = "fidelity.parameter"


def fidelity_errors(
    study: StudyFile, plan: Plan, parameters: Sequence[str], facts: Mapping[str, Value]
) -> list[Problem]:
    """Return what is wrong with the lengths of a study's runs, each with its path."""
    section = study.fidelity
    if section is None:
        return []
    name, mentioned, errors = section.parameter, told_names(study, plan.mentioned), []
    if name in parameters:
        msg = f"{name!r} is a parameter that is tuned, and cannot be the length of a run: take it out of the space"
        errors.append(Problem(msg, _PARAMETER))
    elif name in facts:
        errors.append(Problem(f"{name!r} is a fact, and cannot be the length of a run", _PARAMETER))
    elif name not in mentioned:
        near = did_you_mean(name, [other for other in mentioned if other not in parameters])
        msg = f"the options do not mention {{{name}}}{near}: nothing would tell the program how long a run is"
        errors.append(Problem(msg, _PARAMETER))
    metric = plan.objective.metrics[0]
    if metric.kind not in {"time", "rate"}:
        msg = (
            f"short runs stand for long ones where a time or a rate is measured, and {metric.name} is neither: "
            'say kind = "time" or "rate" where it is declared, or take [fidelity] out'
        )
        errors.append(Problem(msg, "fidelity"))
    clashing = {
        "stopping": (study.stopping is not None, "a training is stopped at its steps already"),
        "decisions": (study.decisions is not None, "each cell would need whole runs of its own"),
        "tradeoff": (study.tradeoff is not None, "a short run tells of one metric only"),
        "limits": (bool(study.limits), "a short run does not tell whether a limit is kept"),
        "inputs": (bool(study.inputs), "inputs differ in their lengths"),
    }
    return errors + [
        Problem(f"[fidelity] and {other} cannot go together: {why}", other)
        for other, (given, why) in clashing.items()
        if given
    ]


def derived_values(study: StudyFile) -> dict[str, str]:
    """Return the derived values of a study's space in whole runs."""
    own, section = study.space.derived, study.fidelity
    return own if section is None else section.derived(own, section.high)


def shorter_jobs(study: StudyFile, plan: Plan, space: Space) -> dict[int, Values]:
    """Return what the `space` of whole runs computes for those of other lengths, by their length.

    Raises:
        SpaceError: something cannot be computed for a length.
    """
    section = study.fidelity
    if section is None:
        return {}
    derived = section.derived(study.space.derived, section.low)
    short = Space(space.parameters, space.constraints, space.facts, derived)
    values, _, errors = values_of_mentions(short, plan.mentioned)
    if errors:
        raise SpaceError(errors)
    return {section.low: values}


def told_names(study: StudyFile, mentions: Sequence[Mention]) -> set[str]:
    """Return the names that a study's options mention, also by way of derived values."""
    names = {name for mention in mentions for name in mention.names}
    while True:
        behind = {other for name in names for other in _names_in(study.space.derived.get(name, ""))}
        if behind <= names:
            return names
        names |= behind


def _names_in(text: str) -> Sequence[str]:
    try:
        return names_of(text) if text else ()
    except ExpressionError:
        return ()
