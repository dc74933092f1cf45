"""Warnings of a check: unlikely space, budget and parameters, rules that forbid nothing, files that no run will find."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.studyfile import StudyFile
from autotune.studyfile.model import SpaceSection
from launchers import Job
from objectives import registry
from objectives.base import STEPS_VARIABLE, Plan
from objectives.mentions.words import find_dangling_options
from spaces import Constraint, Listed, Space, SpaceError
from spaces.expressions.node import Node

_MOST_RULES = 40
_MOST_COMBINATIONS = 10**7  # the sizes of a few spaces must be known at once
_OUTPUT = "-o"


def study_warnings(study: StudyFile, plan: Plan, space: Space | None) -> Iterator[str]:
    size = space.size if space is not None else None
    if size is not None and size.exact and size.value == 1:
        yield "the space has one configuration: there is nothing to tune"
    elif size is not None and size.exact and not study.budget.auto and size.value < study.budget.most:
        yield f"budget.trials is {study.budget.trials}, but there are {size.value} configurations: no more are tried"
    if space is not None:
        # A value that is an option itself stands alone.
        missing = {p.name for p in space.parameters if p.may_be_missing and not str(p.values[0]).startswith("-")}
        unset = {name for name in (*missing, *space.derived) if space.behind(name) & missing}
        for words in (study.tuned_options.get("argv", []), *study.tuned_options.get("prepare", [])):
            yield from find_dangling_options(words, unset)
        yield from idle_rules(space, study.space)
    # An objective that has parameters of its own gets them its own way.
    if space is not None and (study.objective == registry.COMMAND or (plan.mentioned and not plan.parameters)):
        reached = {
            parameter for mention in plan.mentioned for name in mention.names for parameter in space.behind(name)
        }
        unreached = [name for name in study.space.parameters if name not in reached]
        yield from (f"parameter {name!r} reaches nothing: no option mentions it" for name in unreached)
    if study.stopping is not None and plan.steps_told == "unclear":
        yield (
            f"it is not known whether the program stops where it is asked to: no option has {{steps}}, and no file of "
            f"argv mentions {STEPS_VARIABLE}; one that goes on is stopped when it tells the next step; --run tries it"
        )


def idle_rules(space: Space, section: SpaceSection) -> Iterator[str]:
    """Yield a sentence for each rule of the study file that no configuration breaks, whatever the machine is.

    Rules that mention facts are left out, and those over parameters whose values depend on facts: they may forbid
    something on another machine.
    """
    own = {constraint["name"] for constraint in section.constraints}
    fixed = {name for name, table in section.parameters.items() if not _depends_on_facts(table)}
    independent = [one for one in space.constraints if _is_independent(space, one, fixed)]
    if len(independent) > _MOST_RULES or space.raw_size > _MOST_COMBINATIONS:
        return
    for rule in independent:
        if rule.name in own and (why := _why(space, rule, [one for one in independent if one != rule])):
            yield f"constraint {rule.name!r} forbids nothing: {why}"


def _why(space: Space, rule: Constraint, others: list[Constraint]) -> str | None:
    """Return why a rule is false nowhere; None where it is false somewhere."""
    alone, beside = _size(space, []), _size(space, others)
    opposite = Constraint("its opposite", f"not ({rule.rule})")
    if _size(space, [*others, rule]) < beside:
        return None
    if _size(space, [*others, opposite]) == beside:
        return "it is unknown wherever the other rules hold: a parameter in it has no value there (is_set asks)"
    if _size(space, [rule]) < alone:
        return "where it is false, other rules forbid the configuration already"
    if _size(space, [opposite]) > 0:
        return "it is true or unknown for all values of its parameters; is_set asks whether one has a value"
    return "it is true for all values of its parameters"


def _size(space: Space, constraints: list[Constraint]) -> int:
    """Return how many configurations the values, conditions and `constraints` allow."""
    try:
        return Space(space.parameters, constraints, space.facts, space.derived).size.value
    except SpaceError:
        return 0


def _is_independent(space: Space, constraint: Constraint, fixed: set[str]) -> bool:
    if isinstance(constraint, Listed):
        return False
    node = space.expression(constraint.rule)
    names = {space.parameters[position].name for position in node.positions}
    return names <= fixed and not _mentions_facts(node)


def _mentions_facts(node: Node) -> bool:
    return any(part.op == "fact" for part in node.parts())


def _depends_on_facts(table: Mapping[str, Any]) -> bool:
    given = [table.get(key) for key in ("low", "high", "step")]
    values = table.get("values") if table.get("type") == "integer" else None
    return any(isinstance(one, str) for one in [*given, *(values if isinstance(values, list) else [])])


def uncopied_files(job: Job, folders: Sequence[Path]) -> Iterator[str]:
    """Yield a warning for each; the job's folder has its input files, `folders` are where its user may mean files."""
    prepared = {word for step in job.prepare for word in step}
    named = [word for step in job.prepare for word in _relative_paths(step)]
    named += [word for word in _relative_paths(job.argv) if word not in prepared]
    for name in dict.fromkeys(named):
        home = next((folder for folder in folders if _is_file(folder / name)), None)
        if home is not None and not (job.folder / name).exists():
            yield (
                f"{name} lies in {home}, but a run has a folder of its own, where it will not be: give its full path, "
                f"or copy it there: [[options.files]] with name = {name!r} and copy = {name!r}"
            )


def _relative_paths(words: Sequence[str]) -> Iterator[str]:
    """Yield the relative paths that the words of a command may be, without what a compiler writes."""
    before = ""
    for word in words[1:]:
        option, equals, value = word.partition("=")
        name = value if equals and option.startswith("-") else word
        if name and before != _OUTPUT and not name.startswith("-") and not Path(name).is_absolute():
            yield name
        before = word


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no name of a file: too long, a NUL
        return False
