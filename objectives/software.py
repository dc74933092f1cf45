"""One program from several places: the software that a run uses is a parameter."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from launchers import Job
from launchers.software.software import LoadedSoftware
from objectives.base import Alike, Context, Measurement, Metric, Objective, Output, Plan, PlanError, ProgressReader
from objectives.joint import differing_facts, join_spaces, merge_by_name
from spaces import Configuration, Constraint, SpaceError
from spaces.expressions.names import names_of
from spaces.parameters.parameter import Choice

SOFTWARE = "software"
"""The parameter that names the software of a run."""


@dataclass(frozen=True)
class Variant:
    """A software, and the objective as it was planned with it."""

    software: LoadedSoftware
    objective: Objective


@dataclass(frozen=True)
class SoftwareObjective:
    """Runs each configuration with the software that it names.

    The output is read the same way whatever the software, so the first variant reads it.
    """

    variants: Mapping[str, Variant]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the program."""
        return self._first.metrics

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the job of a configuration, started with its software."""
        variant = self.variants[str(configuration[SOFTWARE])]
        job = variant.objective.job(configuration, context)
        return with_software(job, variant.software)

    def progress_reader(self) -> ProgressReader:
        """Return a reader for the live output of one run."""
        return self._first.progress_reader()

    def measure(self, output: Output) -> Measurement:
        """Check that the run is valid, then read its metrics."""
        return self._first.measure(output)

    @property
    def _first(self) -> Objective:
        return next(iter(self.variants.values())).objective


def with_software(job: Job, software: LoadedSoftware) -> Job:
    """Return a job that uses a software; its commands run inside the image if the software is one."""
    return replace(
        job,
        argv=software.command(job.argv, job.folder),
        prepare=tuple(software.command(step, job.folder) for step in job.prepare),
        server=None if job.server is None else job.server.map_commands(partial(software.command, folder=job.folder)),
        environment={**software.secrets, **software.variables, **job.environment},
        software=software,
    )


@dataclass(frozen=True)
class PlannedSoftware:
    """A software, and the plan that was made with it."""

    name: str
    software: LoadedSoftware
    plan: Plan


def join_software(planned: Sequence[PlannedSoftware]) -> Plan:
    """Return the plan in which the software is a parameter, whose default is the first.

    Raises:
        PlanError: The program's parameters differ too much between the softwares.
    """
    first = planned[0].plan
    names = tuple(each.name for each in planned)
    software = Choice(SOFTWARE, names, default=names[0], help="where the programs come from")
    plans = [(each.name, each.plan) for each in planned]
    differing = differing_facts(plans)
    # A rule over facts that differ is not the same rule for each software.
    common = {
        rule
        for rule in set[Constraint].intersection(*(set(each.plan.constraints) for each in planned))
        if differing.isdisjoint(names_of(rule.rule))
    }
    try:
        space = join_spaces([(each.name, _limit_to_software(each, software, common)) for each in planned], SOFTWARE)
    except SpaceError as error:
        raise PlanError(error.problems) from error
    return replace(
        first,
        objective=SoftwareObjective({each.name: Variant(each.software, each.plan.objective) for each in planned}),
        parameters=space.parameters,
        constraints=space.constraints,
        facts=space.facts,
        identity=_identity(planned),
        notes=(
            *_notes(planned),
            *dict.fromkeys(note for each in planned for note in (*each.plan.notes, *space.notes)),
        ),
        warnings=tuple(dict.fromkeys(warning for each in planned for warning in each.plan.warnings)),
        name_errors=None if first.name_errors is None else _unknown(first.name_errors),
        alike=_alike({each.name: each.plan.alike for each in planned if each.plan.alike is not None}),
        installation=tuple(name for name in first.installation if name in space.facts),
        is_described=any(each.plan.is_described for each in planned),
    )


def _limit_to_software(each: PlannedSoftware, software: Choice, common: Container[Constraint]) -> Plan:
    """Return a plan whose own rules apply only to configurations with its software."""
    return replace(
        each.plan,
        parameters=(software, *each.plan.parameters),
        constraints=tuple(
            rule if rule in common else replace(rule, rule=f"{SOFTWARE} != {each.name!r} or ({rule.rule})")
            for rule in each.plan.constraints
        ),
    )


def _identity(planned: Sequence[PlannedSoftware]) -> dict[str, str]:
    """Return what makes runs comparable: what all softwares share once, and the identity of each software."""
    by_name = {each.name: each.plan.identity for each in planned}
    identity = merge_by_name(by_name, lambda key, name: f"{key} ({name})", missing="none")
    return identity | {f"{SOFTWARE} {each.name}": _describe(each) for each in planned}


def _describe(each: PlannedSoftware) -> str:
    return "; ".join(f"{kind} {text}" for kind, text in each.software.identity.items()) or "as it is here"


def _notes(planned: Sequence[PlannedSoftware]) -> list[str]:
    return [f"software {each.name!r}: {_describe(each)}" for each in planned]


def _unknown(judge: Callable[[Iterable[str]], list[str]]) -> Callable[[Iterable[str]], list[str]]:
    return lambda names: judge(name for name in names if name != SOFTWARE)


def _alike(judges: Mapping[str, Alike]) -> Alike | None:
    """Return what recognises configurations of the same effect; two softwares never have it."""
    if not judges:
        return None

    def alike(configuration: Configuration, measured: Configuration, details: Mapping[str, Any]) -> bool:
        name = str(configuration[SOFTWARE])
        if measured.get(SOFTWARE) != name or name not in judges:
            return False
        return judges[name](configuration, measured, details)

    return alike
