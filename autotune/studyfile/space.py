"""The space of a study: the objective's parameters and rules, and those of the study file."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from autotune.errors import StudyFileError
from autotune.studyfile.limits import limit_errors
from autotune.studyfile.misplaced import with_right_table
from autotune.studyfile.model import AUTO, OWN_SAMPLER, StudyFile
from autotune.studyfile.shape import mentioned_terms, shape_of, term_errors
from autotune.studyfile.sizes import identity_of_sizes, sizes_of
from autotune.studyfile.target import with_target
from objectives.base import Plan, PlanError
from objectives.computing import ComputingObjective
from objectives.efficiency.objective import with_mpi_times
from objectives.run_files import NO_DELIMITERS
from objectives.shapes.shape import HARDWARE
from spaces import (
    Constraint,
    Parameter,
    Space,
    SpaceError,
    Value,
    constraints_from_tables,
    parameters_from_tables,
)
from spaces.expressions.derived import constants
from spaces.mention import Mention, values_of_mentions
from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import ExpressionProblem, Problem

_FILES = "options.files."
_MOST_UNKNOWN = 2


def join_space(study: StudyFile, plan: Plan, machine: Mapping[str, Value]) -> tuple[Plan, Space]:
    """Join the objective's space with the study file's, whose parameters win by name.

    Return the plan, whose jobs get the values that the space computes for them, and the space. The plan has the shape
    of the study file, if that gives terms. `machine` are the facts of the machine.

    Raises:
        StudyFileError: The space has errors, or no valid configuration.
    """
    facts = {**machine, **plan.facts}
    errors: list[Problem] = []
    if study.efficiency.mpi:
        try:
            plan = with_mpi_times(plan, "efficiency.mpi")
        except PlanError as error:
            errors.extend(error.problems)
    plan, wrong = with_target(study, plan)
    errors += wrong
    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    derived = study.space.derived
    fixed = constants(derived, facts)
    try:
        parameters = parameters_from_tables(study.space.parameters, {**fixed, **facts})
    except SpaceError as error:
        errors.extend(with_right_table(_of_bound(problem, derived)) for problem in error.problems)
    try:
        constraints = constraints_from_tables(study.space.constraints)
    except SpaceError as error:
        errors.extend(error.problems)
    known = {*_parameters(study, plan), *derived, *facts}
    errors.extend(_run_value_errors(study, plan))
    errors.extend(_mention_errors(plan.mentions, known))
    errors.extend(_mention_errors([*mentioned_terms(study)], known | HARDWARE))
    errors.extend(_tradeoff_errors(study, plan))
    errors.extend(_auto_errors(study))
    errors.extend(_decisions_errors(study, _parameters(study, plan)))
    errors.extend(limit_errors(study, plan))
    if plan.name_errors is not None:
        errors.extend(Problem(line, "space.parameters") for line in plan.name_errors(study.space.parameters))
    errors.extend(_stopping_errors(study, plan))
    if not errors:
        own = {parameter.name: parameter for parameter in parameters}
        merged = [own.pop(parameter.name, parameter) for parameter in plan.parameters]
        try:
            space = Space([*merged, *own.values()], [*plan.constraints, *constraints], facts, derived)
            ready, space = _computing(plan, space)
            errors.extend(term_errors(study, space))
            if not errors:
                sizes = sizes_of(study, plan, fixed)
                identity = {**plan.identity, **identity_of_sizes(sizes)}
                facts = {**plan.facts, **sizes}
                return replace(ready, shape=shape_of(study, plan, space), identity=identity, facts=facts), space
        except SpaceError as error:
            errors.extend(error.problems)
    msg = f"the space of study {study.name!r} has errors:"
    raise StudyFileError(msg, errors)


def _run_value_errors(study: StudyFile, plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each name of the space that already stands for a value which only a run knows."""
    for name in plan.run_values:
        wrong = f"{{{name}}} is a value that each run gives its server: call this something else"
        for table, names in (("parameters", study.space.parameters), ("derived", study.space.derived)):
            if name in names:
                yield Problem(wrong, f"space.{table}.{name}")


def _mention_errors(mentions: Sequence[Mention], known: set[str]) -> Iterator[Problem]:
    """Yield what is wrong with mentions; a single problem for a file with many, whose braces mean something else."""
    found = [(mention.path, problem) for mention in mentions if (problem := mention.problem(known)) is not None]
    wrong = Counter(path for path, _ in found if path.startswith(_FILES))
    shown: set[str] = set()
    for path, problem in found:
        if wrong[path] <= _MOST_UNKNOWN:
            yield problem
        elif path not in shown:
            shown.add(path)
            others = f"nor {wrong[path] - 1} others of this file"
            yield replace(problem, message=f"{problem.message}, {others}; if none is one, {NO_DELIMITERS}")


def _of_bound(problem: Problem, derived: Mapping[str, str]) -> Problem:
    """Return the problem of a bound, which cannot use derived values that depend on parameters."""
    if not isinstance(problem, ExpressionProblem):
        return problem
    message = problem.message
    if problem.unknown in derived:
        written = f"{problem.unknown} = {derived[problem.unknown]!r}"
        message = f"{written} has no value here without parameters, and a bound or a default needs one"
    return Problem(message, problem.path)


def _computing(plan: Plan, space: Space) -> tuple[Plan, Space]:
    """Return the plan whose jobs get the values that the space computes for them, and the space in which these are
    defined.

    Raises:
        SpaceError: A mention of the jobs has errors, or the default is not valid.
    """
    values, needed, errors = values_of_mentions(space, plan.mentions)
    if errors:
        raise SpaceError(errors)
    if needed:
        space = Space(space.parameters, [*space.constraints, *needed], space.facts, space.derived)
    space.default()
    if not values.computes:
        return plan, space
    return replace(plan, objective=ComputingObjective(plan.objective, values)), space


def _stopping_errors(study: StudyFile, plan: Plan) -> list[Problem]:
    if study.stopping is None and plan.steps_source == "placeholder":
        return [Problem("the options mention {steps}, but no [stopping] says how many: max_steps = ...", "stopping")]
    if study.stopping is None or plan.works_in_steps:
        return []
    msg = (
        f"objective {study.objective!r} with these options cannot be stopped at a step (a target, or a budget of "
        "time, ends a run by itself)"
    )
    return [Problem(msg, "stopping")]


def _auto_errors(study: StudyFile) -> list[Problem]:
    """Return why the end cannot be automatic: only our own sampler forecasts gains, and only for a single metric."""
    if not study.budget.auto:
        return []
    rule, wrong = f"trials = {AUTO!r}", []
    if study.sampler.name != OWN_SAMPLER:
        why = f"needs the sampler {OWN_SAMPLER!r}, which knows what it still expects, got {study.sampler.name!r}"
        wrong.append(f"{why}; give a number of trials")
    if study.decisions is not None:
        wrong.append("cannot be had with [decisions]: the gain of more runs for a table is not forecast")
    if study.stopping is not None:
        wrong.append("cannot be had with [stopping], whose brackets need a number of trials")
    if study.tradeoff is not None:
        wrong.append("cannot be had with [tradeoff]: there is no single best to gain on")
    if study.limits:
        wrong.append("cannot be had with [limits]: a forecast gain may break them")
    return [Problem(f"{rule} {reason}", "budget.trials") for reason in wrong]


def _weight_errors(weights: Mapping[str, float], known: Sequence[str]) -> list[Problem]:
    errors = [
        Problem(
            f"{name!r} is not in the trade-off{did_you_mean(name, known)}; its metrics are {', '.join(known)}", path
        )
        for name in weights
        if name not in known and (path := f"tradeoff.weights.{name}")
    ]
    if weights and not any(weights.values()):
        errors.append(Problem("all weights are 0: give what matters more than 0", "tradeoff.weights"))
    return errors


def _parameters(study: StudyFile, plan: Plan) -> list[str]:
    """Return the names of all parameters, the objective's first."""
    return list(dict.fromkeys([*(parameter.name for parameter in plan.parameters), *study.space.parameters]))


def _decisions_errors(study: StudyFile, known: Sequence[str]) -> list[Problem]:
    if study.decisions is None:
        return []
    over, errors = study.decisions.over, []
    for name in dict.fromkeys(over):
        if name not in known:
            msg = f"no parameter is called {name!r}{did_you_mean(name, known)}; the parameters are {', '.join(known)}"
            errors.append(Problem(msg, "decisions.over"))
        if over.count(name) > 1:
            errors.append(
                Problem(f"each parameter stands there once, {name!r} does {over.count(name)} times", "decisions.over")
            )
    if not errors and set(over) == set(known):
        errors.append(Problem("nothing is left to decide: every parameter stands there", "decisions.over"))
    clashing = {
        "tradeoff": (study.tradeoff is not None, "each of its cells would need a front"),
        "stopping": (study.stopping is not None, "a cell has no steps"),
        "limits": (bool(study.limits), "each of its cells would need limits of its own"),
        "inputs": (bool(study.inputs), "make the input a parameter, and decide over it"),
    }
    return errors + [
        Problem(f"[decisions] and {name} cannot go together: {why}", name)
        for name, (given, why) in clashing.items()
        if given
    ]


def _tradeoff_errors(study: StudyFile, plan: Plan) -> list[Problem]:
    if study.tradeoff is None:
        return []
    names, known = study.tradeoff.metric, [metric.name for metric in plan.objective.metrics[1:]]
    errors = []
    for name in dict.fromkeys(names):
        if name not in known:
            msg = f"the other metrics are {', '.join(known)}{did_you_mean(name, known)}, got {name!r}"
            errors.append(Problem(msg, "tradeoff.metric"))
        if names.count(name) > 1:
            errors.append(
                Problem(f"each metric stands there once, {name!r} does {names.count(name)} times", "tradeoff.metric")
            )
    errors.extend(_weight_errors(study.tradeoff.weights, [plan.objective.metrics[0].name, *names]))
    if study.verified_inputs:
        msg = "a trade-off has no single winner to compare on inputs of weight 0: give them weight, or remove them"
        errors.append(Problem(msg, "inputs"))
    if study.stopping is not None:
        errors.append(
            Problem(
                "[stopping] compares trials by one metric, so it excludes a trade-off: remove one of them", "tradeoff"
            )
        )
    return errors
