"""Warnings of a check: a doubtful space or budget, idle rules and parameters, and files that no run will find."""

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
_MOST_COMBINATIONS = 10**7  # above this, counting several spaces takes too long
_OUTPUT = "-o"


def study_warnings(study: StudyFile, plan: Plan, space: Space | None) -> Iterator[str]:
    """Yield a warning for each part of a valid study that is probably not meant."""
    size = space.size if space is not None else None
    if size is not None and size.exact and size.value == 1:
        yield "the space has one configuration: there is nothing to tune"
    elif size is not None and size.exact and not study.budget.auto and size.value < study.budget.most:
        yield f"budget.trials is {study.budget.trials}, but there are {size.value} configurations: no more are tried"
    if space is not None:
        # A value that is itself an option may be left out without leaving another word behind.
        missing = {p.name for p in space.parameters if p.may_be_missing and not str(p.values[0]).startswith("-")}
        unset = {name for name in (*missing, *space.derived) if space.behind(name) & missing}
        for table in (study.tuned_options, study.tuned_options.get("server", {})):
            groups = [table.get(key, []) for key in ("prepare", "warm_up", "reset")]
            for words in (table.get("argv", []), *(step for group in groups for step in group)):
                yield from find_dangling_options(words, unset)
        yield from idle_rules(space, study.space)
    # An objective with parameters of its own need not mention them in its options.
    if space is not None and (study.objective == registry.COMMAND or (plan.mentions and not plan.parameters)):
        reached = {parameter for mention in plan.mentions for name in mention.names for parameter in space.behind(name)}
        unreached = [name for name in study.space.parameters if name not in reached]
        yield from (f"parameter {name!r} reaches nothing: no option mentions it" for name in unreached)
    if study.stopping is not None and plan.steps_source == "unclear":
        yield (
            f"the program may not stop after the steps that it is given: no option contains {{steps}}, and no file in "
            f"argv mentions {STEPS_VARIABLE}; a program that continues is stopped at its next step; --run tests it"
        )


def idle_rules(space: Space, section: SpaceSection) -> Iterator[str]:
    """Yield a sentence for each rule of the study file that forbids no configuration on any machine.

    That is usually a mistake in the rule, or in the values of a parameter. Rules that mention facts, or parameters
    whose values depend on facts, are not judged: they may forbid something on another machine.
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
    """Return why a rule is never false; None if some configuration breaks it."""
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
    """Return the number of configurations that the values, the conditions and `constraints` allow."""
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
    values = table.get("values")
    # Words between numbers are expressions; words alone are the values of a choice.
    if isinstance(values, list) and (table.get("type") in {"integer", "float"} or {*map(type, values)} > {str}):
        given += values
    return any(isinstance(one, str) for one in given)


def uncopied_files(job: Job, folders: Sequence[Path]) -> Iterator[str]:
    """Yield a warning for each file that a command names but that will be missing in the folder of a run.

    Args:
        job: The job, with its input files in its folder.
        folders: Folders in which the user may have the files.
    """
    prepared = {word for step in job.prepare for word in step}
    named = [word for step in job.prepare for word in _relative_paths(step)]
    others = [job.argv, *(job.server.commands if job.server else ())]
    named += [word for argv in others for word in _relative_paths(argv) if word not in prepared]
    for name in dict.fromkeys(named):
        home = next((folder for folder in folders if _is_file(folder / name)), None)
        if home is not None and not (job.folder / name).exists():
            yield (
                f"{name} lies in {home}, but each run has a folder of its own without it: give its full path, "
                f"or have it copied: [[options.files]] with name = {name!r} and copy = {name!r}"
            )


def _relative_paths(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command that may be relative paths, except for the output of a compiler."""
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
    except (OSError, ValueError):  # not a possible file name: too long, or with a NUL
        return False
