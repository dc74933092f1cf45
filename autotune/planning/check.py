"""Check a study file without a run, and report all mistakes at once."""

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from autotune import studyfile
from autotune.errors import AutotuneError, CannotRunHereError, StudyFileError
from autotune.execution.task import run_job
from autotune.held_folders import temporary_folder
from autotune.machines.this_machine import Machine
from autotune.planning.check_warnings import study_warnings, uncopied_files
from autotune.planning.duets import duet_obstacle, duet_refusal, halves_of
from autotune.planning.metering import meter_obstacle, shared_meter
from autotune.planning.missing_values import missing_values
from autotune.planning.named_programs import named_programs
from autotune.planning.prepare import check_secrets, options_planner, plan_facts, secret_notes
from autotune.planning.typed_options import blame_option, changed_keys, input_keys
from autotune.studyfile import OWN_SAMPLER, StudyFile
from autotune.studyfile.misplaced import with_right_table
from autotune.studyfile.paths import with_absolute_paths
from autotune.studyfile.plans import StudyPlans, of_input, plan_input, plans_of, together
from autotune.studyfile.software import plan_with_software
from autotune.studyfile.space import join_space
from autotune.tomlfiles.lines import lines_of, locate
from launchers import Job, Launcher, LaunchError, Resources
from objectives import registry
from objectives.base import Context, Metric, Plan, PlanError
from objectives.command import CommandObjective, CommandOptions, make_plan
from objectives.command_check import find_mentions, missing_programs, read_command_options
from objectives.file_options import RunFile
from objectives.mentions.nodes import Nodes
from objectives.toml_text import parse_toml, read_toml_text
from spaces import Configuration, Space
from spaces.mention import Mention
from spaces.parameters.problem import ConditionProblem, ConstraintProblem, Problem

RUN_FOLDER = "RUN-FOLDER"
"""The name shown for the folder of a run that does not exist yet."""


@dataclass
class CheckReport:
    """The findings of a check; a field is None or empty if a mistake kept it from being determined.

    Attributes:
        study: The study file; sections with mistakes have their defaults.
        mistakes: Mistakes of the study file, or of options that change it.
        missing: Programs, nodes and the like that this machine lacks for the study.
        warnings: Parts of the study that are probably not meant.
        notes: Further information for the user.
        plan: The objective, ready for this machine.
        space: The space of the study.
        job: The run of the default configuration.
        command: The command line of that run.
    """

    study: StudyFile | None = None
    mistakes: list[Problem] = field(default_factory=list)
    missing: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plan: Plan | None = None
    space: Space | None = None
    job: Job | None = None
    command: str = ""

    @property
    def default(self) -> Configuration | None:
        """The default configuration."""
        return None if self.space is None else self.space.default()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics; the first is optimised."""
        return () if self.plan is None else self.plan.objective.metrics


def check(  # noqa: PLR0913
    path: Path,
    changes: Iterable[str],
    machine: Machine,
    launcher: Launcher,
    own_input: str | None = None,
    *,
    static: bool = False,
) -> CheckReport:
    """Check a study file for a machine.

    Args:
        path: The study file.
        changes: Changes of its keys, as `key=value`; the last change of a key counts.
        machine: The machine to check for.
        launcher: The launcher for the runs.
        own_input: An input of the user's that replaces that of the study.
        static: Run and import nothing that the file names; list those names in the notes instead.
    """
    report = CheckReport()
    try:
        text = read_toml_text(path)
        table = parse_toml(text)
    except OSError as error:
        report.mistakes.append(Problem(f"cannot read {path}: {error.strerror}"))
        return report
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        report.mistakes.append(Problem(f"not a TOML file: {error}"))
        return report
    lines, changes = lines_of(text), list(changes)
    typed = changed_keys(changes)
    table = {"name": path.stem, **with_absolute_paths(table, path.parent)}
    objective, options = table.get("objective"), table.get("options", {})
    # Other types are a mistake that the check of the whole table reports.
    if own_input is not None and isinstance(objective, str) and isinstance(options, dict):
        try:
            table["options"] = registry.with_own_input(objective, options, own_input)
        except PlanError as error:
            report.mistakes += error.problems
            return report
        typed += input_keys(own_input, options, table["options"])
    # Warnings about the options of a shipped study are for its author; a user who left them unchanged cannot act on
    # them.
    is_own = path not in studyfile.catalogue().values() or any(
        key.startswith("options") for key, _ in changed_keys(changes)
    )
    folders = (path.absolute().parent, Path.cwd())
    checkup = _Check(report, machine, launcher, lines, folders, is_own=is_own)
    if static:
        checkup.inspect(table, changes)
        report.notes += [f"it names {key}: {what}" for key, what in named_programs(table)]
    else:
        checkup.examine(table, changes)
    report.mistakes = sorted(
        (blame_option(problem, typed, lines) for problem in report.mistakes), key=lambda problem: problem.line or 0
    )
    report.missing = [blame_option(problem, typed, lines) for problem in report.missing]
    return report


@dataclass(frozen=True)
class _Check:
    """A check in progress.

    Attributes:
        report: The findings so far.
        lines: The line of each key in the file, by path.
        folders: Folders that may contain files that the command names.
        relabel: Adds to a problem which input or workload it is about.
        is_own: Whether the options are the user's own, not those of a shipped study.
    """

    report: CheckReport
    machine: Machine
    launcher: Launcher
    lines: Mapping[str, int]
    folders: Sequence[Path]
    relabel: Callable[[Problem], Problem] = lambda problem: problem
    is_own: bool = True

    def examine(self, table: dict[str, Any], changes: Sequence[str]) -> None:
        study = self.read(table, changes)
        if study is None:
            return
        self.report.study = study
        self._check_sampler(study)
        plans = self._plan_commands(study) if study.objective == registry.COMMAND else self._plan_objective(study)
        plan = self._check_space(study, None if plans is None else plans.tuned)
        if plans is not None and not self.report.mistakes:
            self._check_verified_inputs(study, plans)
        try:
            check_secrets(study)
        except CannotRunHereError as error:
            self._add_missing(_problems_of(error))
        if self.report.mistakes or self.report.missing or plan is None:
            return
        self.report.plan = plan
        self._check_job(study, plan)
        job = self.report.job
        if why := meter_obstacle(study, plan, self.launcher, job.resources.gpus if job is not None else 0):
            self._add_missing([Problem(why)])
        if doubt := shared_meter(study, plan, self.launcher):
            self.report.warnings.append(doubt)
        self.report.notes += [*plan.notes, *secret_notes(study)]
        self.report.warnings += study_warnings(study, plan, self.report.space)
        self.report.warnings += plan.warnings if self.is_own else ()

    def inspect(self, table: dict[str, Any], changes: Sequence[str]) -> None:
        """Find what is wrong in the file itself; run, import and open nothing that it names."""
        study = self.report.study = self.read(table, changes)
        if study is None:
            return
        if not registry.is_known(study.objective):
            try:
                registry.find_kind(study.objective)
            except PlanError as error:
                self._add_mistakes(replace(problem, path="objective") for problem in error.problems)
        elif study.objective == registry.COMMAND:
            for options in [study.options_of(one) for one in study.inputs] or [study.options]:
                checked, files, errors = read_command_options(options, make=False, read=False)
                self._add_mistakes(errors)
                if checked is not None:
                    self._check_space(study, _plan_without_runs(checked, files))

    def _add_mistakes(self, problems: Iterable[Problem]) -> None:
        self.report.mistakes += [locate(self.relabel(with_right_table(problem)), self.lines) for problem in problems]

    def _add_missing(self, problems: Iterable[Problem]) -> None:
        self.report.missing += [locate(self.relabel(problem), self.lines) for problem in problems]

    def read(self, table: dict[str, Any], changes: Sequence[str]) -> StudyFile | None:
        """Return the study file in a table, with defaults for wrong sections; None if that is impossible."""
        try:
            return studyfile.apply_overrides(table, changes, "study")
        except StudyFileError as error:
            self._add_mistakes(_problems_of(error))
            if not error.problems:
                return None
            wrong = {(problem.path or "").partition(".")[0] for problem in error.problems}
        with suppress(StudyFileError):  # a wrong change is reported already
            table = studyfile.with_overrides(table, changes)
        left = {key: value for key, value in table.items() if key not in wrong}
        left.setdefault("name", "study")
        if "argv" in (left.get("options") or {}):
            left.setdefault("objective", registry.COMMAND)
        try:
            return studyfile.parse(left, "study")
        except StudyFileError:
            return None

    def _check_sampler(self, study: StudyFile) -> None:
        if study.sampler.name == OWN_SAMPLER and not study.sampler.options:
            return
        from autotune.search.registry import check_sampler  # noqa: PLC0415  Optuna takes a second to import

        try:
            check_sampler(study.sampler)
        except StudyFileError as error:
            self._add_mistakes(_problems_of(error))
        except CannotRunHereError as error:
            self._add_missing(_problems_of(error))

    def _plan_commands(self, study: StudyFile) -> StudyPlans | None:
        """Return the plans of a command, or those of the commands of all inputs."""
        if not study.inputs:
            plan = self._plan_command(study)
            return None if plan is None else StudyPlans(plan)
        plans = []
        for index, one in enumerate(study.inputs):
            inner = replace(self, report=CheckReport(), relabel=partial(of_input, index=index, one=one))
            plan = inner._plan_command(study.model_copy(update={"options": study.options_of(one), "inputs": []}))
            plans += [plan_input(plan, index, one)] if plan is not None else []
            self.report.mistakes += [found for found in inner.report.mistakes if found not in self.report.mistakes]
            self.report.missing += [found for found in inner.report.missing if found not in self.report.missing]
        if len(plans) < len(study.inputs) or self.report.mistakes:
            return None
        try:
            return together(plans)
        except PlanError as error:
            self._add_mistakes(error.problems)
            return None

    def _plan_command(self, study: StudyFile) -> Plan | None:
        checked, files, errors = read_command_options(study.options)
        self._add_mistakes(errors)
        if checked is None:
            return None
        if errors:
            return _plan_without_runs(checked, files)
        options, wanted, nodes = checked, files, Nodes.of(plan_facts(self.machine, self.launcher))

        def plan(_: Mapping[str, Any], __: Path, /, *, is_elsewhere: bool = False) -> Plan:
            missing = nodes.missing(options.nodes, options.threads_per_core)
            missing += [] if is_elsewhere else missing_programs(options)
            if missing:
                raise PlanError(missing)
            return make_plan(options, wanted, nodes, is_elsewhere=is_elsewhere)

        try:
            return plan_with_software(study, study.options, Path(), plan)
        except PlanError as error:
            self._add_missing(error.problems)
            return make_plan(checked, files, nodes)

    def _plan_objective(self, study: StudyFile) -> StudyPlans | None:
        with temporary_folder("plan") as scratch:
            folder = scratch / "plan"
            try:
                facts = plan_facts(self.machine, self.launcher)
                planner = options_planner(study, facts, lambda job: run_job(job, self.launcher))
                return plans_of(study, folder, planner)
            except PlanError as error:
                if not registry.is_known(study.objective):
                    self._add_mistakes(replace(problem, path="objective") for problem in error.problems)
                else:
                    self._add_mistakes(problem for problem in error.problems if problem.path is not None)
                    self._add_missing(problem for problem in error.problems if problem.path is None)
            except StudyFileError as error:
                self._add_mistakes(_problems_of(error))
        return None

    def _check_space(self, study: StudyFile, plan: Plan | None) -> Plan | None:
        """Check the space; return the plan completed with the values that the space derives."""
        if plan is None and study.objective != registry.COMMAND:
            return None  # the objective defines most of the space
        try:
            ready, space = join_space(study, plan or _NO_PLAN, self.machine.facts)
        except StudyFileError as error:
            self._add_mistakes(_as_file_problem(problem, study) for problem in error.problems)
            return plan
        if plan is None:
            return None
        self.report.space = space
        return ready

    def _check_verified_inputs(self, study: StudyFile, plans: StudyPlans) -> None:
        """Check the space of each input of weight 0, on which only winner and default will be compared."""
        for index, one in enumerate(study.inputs):
            if one.name in plans.verified:
                inner = replace(self, report=CheckReport(), relabel=partial(of_input, index=index, one=one))
                inner._check_space(study, plans.verified[one.name])
                self.report.mistakes += inner.report.mistakes
                self.report.missing += inner.report.missing

    def _check_duet(self, study: StudyFile, plan: Plan, job: Job | None) -> None:
        wanted = job.resources if job is not None else Resources()
        why = duet_obstacle(study, halves_of(plan, self.machine, self.launcher), lambda: wanted)
        if why:
            self._add_missing([Problem(duet_refusal(why), "verdict.mode")])

    def _check_job(self, study: StudyFile, plan: Plan) -> None:
        if plan.recorded is not None or self.report.space is None:
            self._check_duet(study, plan, None)
            return
        with temporary_folder("plan") as scratch:
            folder = scratch / "run"
            folder.mkdir()
            job = plan.objective.job(self.report.space.default(), Context(folder, steps=study.whole_steps))
            cpus = self.machine.cpus[: job.resources.cores]
            job = replace(job, resources=replace(job.resources, cpus=cpus))
            self.report.job = job
            self._check_duet(study, plan, job)
            if plan.runs != "launched":
                return
            self.report.warnings += uncopied_files(job, self.folders)
            as_jobs = study.launcher.submits_jobs
            missing = missing_values(plan, self.report.space, study.whole_steps, as_jobs=as_jobs)
            if as_jobs:
                self.report.warnings += map(str, missing)
            else:
                self._add_missing(missing)
            try:
                lines = [f"input {part.name}: {self.launcher.preview(part)}" for part in job.placed_parts]
                shown = "\n".join(lines) or self.launcher.preview(job)
                self.report.command = shown.replace(os.fspath(folder), RUN_FOLDER)
            except LaunchError as error:
                self.report.missing.append(Problem(str(error)))


def _problems_of(error: AutotuneError) -> tuple[Problem, ...]:
    return error.problems or (Problem(str(error)),)


def _plan_without_runs(options: CommandOptions, files: tuple[RunFile, ...]) -> Plan:
    """Return a plan to check a space with: its facts have names, but no values."""
    mentioned: tuple[Mention, ...] = ()
    with suppress(ValueError):  # an unreadable template is reported already
        mentioned = find_mentions(options, files)
    facts = dict.fromkeys(options.facts, False)
    values = options.run_values
    return Plan(CommandObjective(options, files), (), (), facts, {}, mentions=mentioned, run_values=values)


def _as_file_problem(problem: Problem, study: StudyFile) -> Problem:
    """Return a problem of the space with its path in the study file, which rules do not know."""
    if isinstance(problem, ConditionProblem):
        return Problem(problem.message, f"space.parameters.{problem.parameter}.when")
    if isinstance(problem, ConstraintProblem):
        indices = {constraint["name"]: index for index, constraint in enumerate(study.space.constraints)}
        index = indices.get(problem.constraint)
        return Problem(problem.message, None if index is None else f"space.constraints.{index}.rule")
    return problem


_NO_PLAN = Plan(CommandObjective(CommandOptions(argv=["true"])), (), (), {}, {})
