"""`autotune check`: list every mistake of a study file, or print its space."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.common import errors, output, print_json
from autotune.cli.options import AsJson, InputOption, SetOption, StudyArgument, WaitOption
from autotune.cli.placement import CoresOption, find_study_cluster, machine_and_launcher, restrict_cores
from autotune.cli.study_request import choose
from autotune.errors import ExitCode, StudyFileError
from autotune.formatting import value_text, with_derived
from autotune.held_folders import temporary_folder

if TYPE_CHECKING:
    from rich.table import Table

    from autotune.machines.this_machine import Machine
    from autotune.planning.check import CheckReport
    from autotune.planning.trial_run import TrialRun
    from launchers import Launcher
    from objectives.base import Reading
    from spaces import Configuration, Space

_SAMPLE = 5


def check(
    name: StudyArgument,
    changes: SetOption = None,
    input_file: InputOption = None,
    cores: CoresOption = None,
    run: Annotated[bool, typer.Option("--run", help="Run the default configuration once.")] = False,
    static: Annotated[bool, typer.Option("--static", help="Only read the file; run nothing that it names.")] = False,
    space: Annotated[
        bool, typer.Option("--space", help="Print the parameters, the rules and a few configurations.")
    ] = False,
    configuration: Annotated[
        str | None,
        typer.Option("--configuration", metavar="NAME=VALUE ...", help="Check one configuration: 'np=3 npool=2'."),
    ] = None,
    wait: WaitOption = False,
    share: Annotated[
        bool, typer.Option("--share", help="With --run: run on these cores even if a study uses them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a study file, and list every mistake.

    Exit codes: 0 it can be tuned, 1 the configuration is not valid, 2 it has mistakes, 3 this machine lacks something,
    4 the run failed.
    """
    if [run, static, space, configuration is not None].count(True) > 1:
        msg = "give one of --run, --static, --space and --configuration"
        raise typer.BadParameter(msg)
    for option, given in (("--wait", wait), ("--share", share)):
        if given and not run:
            msg = "is for the cores that the run of --run uses: add --run, or leave it out"
            raise typer.BadParameter(msg, param_hint=option)
    if space or configuration is not None:
        _show_space(name, changes, input_file, cores, configuration, as_json=as_json)
        return
    from autotune import studyfile
    from autotune.machines.this_machine import this_machine
    from autotune.planning.check import check as check_study
    from launchers.local import local_launcher

    path = studyfile.find(name)
    machine, launcher = restrict_cores(this_machine(), cores), local_launcher()
    report = check_study(path, changes or (), machine, launcher, input_file, static=static)
    tried = None
    if run:
        tried = _run_once(report, machine, launcher, wait=wait, share=share)
    code = _exit_code(report, tried)
    if as_json:
        print_json(_to_dict(path, report, tried) | {"exit_code": int(code)})
    else:
        _print(path, report)
        if tried is not None:
            _print_run(tried)
        if code is ExitCode.OK:
            result = "read" if static else "right"
            output().print(f"{result}; next: {_next_step(name, path, input_file, report)}")
    raise typer.Exit(code)


def _run_once(
    report: "CheckReport", machine: "Machine", launcher: "Launcher", *, wait: bool, share: bool
) -> "TrialRun | None":
    """Run the default configuration once; None if the study has mistakes.

    Raises:
        BusyError: A study uses the cores, and this neither waits nor shares them.
    """
    if not report.study or not report.plan or report.space is None or not report.job or report.missing:
        return None
    if _is_told(report):
        msg = "another program makes the runs of this study: leave --run out"
        raise typer.BadParameter(msg, param_hint="--run")
    from autotune.errors import BusyError
    from autotune.execution.core_pool import CoreClaim, claim_purpose
    from autotune.planning.trial_run import run_default

    def say(text: str) -> None:
        errors().print(text)

    work = f"the check of {claim_purpose(report.study.name)}"
    try:
        claim = CoreClaim.claim(() if share else machine.cpus, wait_by=say if wait else None, work=work)
    except BusyError as error:
        msg = f"{error}; or run beside it with --share, since a check compares nothing"
        raise BusyError(msg) from None
    try:
        return run_default(report.plan, report.space.default(), machine, launcher, report.study)
    finally:
        claim.release()


def _exit_code(report: "CheckReport", tried: "TrialRun | None") -> ExitCode:
    if report.mistakes:
        return ExitCode.USAGE
    if report.missing:
        return ExitCode.CANNOT_RUN_HERE
    return ExitCode.NOTHING_WORKED if tried is not None and tried.failure is not None else ExitCode.OK


def _next_step(name: str, path: Path, input_file: str | None, report: "CheckReport") -> str:
    if _is_told(report):
        folder = shlex.quote(str(path.parent))
        return f"autotune serve --catalogue {folder}, which another program asks for runs (docs/ask-tell.md)"
    own = "" if input_file is None else f" --input {shlex.quote(input_file)}"
    return f"autotune study {_quote(name)}{own}"


def _is_told(report: "CheckReport") -> bool:
    """Whether another program makes the runs of the study."""
    from objectives import registry

    return report.study is not None and registry.runs(report.study.objective) == "told"


def _quote(name: str) -> str:
    return f"'{name}'" if " " in name else name


def _print(path: Path, report: "CheckReport") -> None:
    from spaces.parameters.problem import OptionProblem

    if report.mistakes:
        plural = "mistake" if len(report.mistakes) == 1 else "mistakes"
        typed = all(isinstance(problem, OptionProblem) for problem in report.mistakes)
        errors().print(f"{'command line' if typed else path}: {len(report.mistakes)} {plural}")
    for problem in report.mistakes:
        errors().print(_indent(str(problem)))
    for problem in report.missing:
        errors().print(f"missing here: {_indent(str(problem)).lstrip()}")
    for note in report.notes:
        errors().print(note)
    if report.plan is not None and report.space is not None:
        _print_plan(report)
    for warning in report.warnings:
        output().print(f"warning: {warning}")


def _print_plan(report: "CheckReport") -> None:
    assert report.space is not None
    size = report.space.size
    about = "" if size.exact else "about "
    output().print(f"space: {about}{size.value} valid configurations of {report.space.raw_size} combinations")
    target, *others = report.metrics
    aim = "as large as possible" if target.direction == "maximize" else "as small as possible"
    also = f"; also recorded: {', '.join(metric.name for metric in others)}" if others else ""
    unit = f" in {target.unit}" if target.unit else ""
    output().print(f"optimised: {target.name}{unit}, {aim}{also}")
    output().print(f"default: {with_derived(report.space, report.space.default())}")
    if report.command:
        for line in report.command.splitlines():
            output().print(f"command: {line}")


def _print_run(tried: "TrialRun") -> None:
    output().print(f"run: exit code {tried.exit_code}, {tried.usage.elapsed_s:.3g} s")
    for reading in (*tried.metrics, *([tried.answer] if tried.answer else [])):
        output().print(f"  {_reading_text(reading)}")
    if tried.steps:
        asked = "" if tried.asked_steps is None else f"; asked to stop after step {tried.asked_steps}"
        output().print(f"  progress: {tried.steps} steps, the last {tried.last_step}{asked}")
    if tried.steps_doubt:
        output().print(f"warning: {tried.steps_doubt}")
    if tried.complaint and tried.failure is None:
        output().print(f"warning: the run printed an error: {tried.complaint}")
    if tried.failure is not None:
        errors().print(f"the run failed: {tried.failure}")
        for line in tried.tail:
            errors().print(f"  {line}")


def _reading_text(reading: "Reading") -> str:
    if reading.value is None:
        return reading.why or f"{reading.name}: not read"
    return f"{reading.name}: {reading.value:.10g} {reading.unit}".rstrip()


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _to_dict(path: Path, report: "CheckReport", tried: "TrialRun | None") -> dict[str, Any]:
    size = report.space.size if report.space is not None else None
    return {
        "file": str(path),
        "mistakes": [asdict(problem) for problem in report.mistakes],
        "missing": [asdict(problem) for problem in report.missing],
        "warnings": report.warnings,
        "size": None if size is None else size.value,
        "exact": None if size is None else size.exact,
        "default": None if report.default is None else dict(report.default),
        "command": report.command or None,
        "metrics": [asdict(metric) for metric in report.metrics],
        "notes": report.notes,
        "run": None if tried is None else asdict(tried),
    }


def _show_space(
    name: str,
    changes: list[str] | None,
    input_file: str | None,
    cores: str | None,
    configuration: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the space of a study on the machine of its runs, or check one configuration against it."""
    import numpy as np

    from autotune.planning.prepare import prepare
    from launchers.local import local_launcher

    with temporary_folder("plan") as scratch:
        chosen = choose(name, changes, input_file)
        machine, _, _ = machine_and_launcher(find_study_cluster(chosen), cores, chosen.name)
        prepared = prepare(chosen, machine, local_launcher(), scratch)
    built = prepared.space
    if configuration is not None:
        _check_configuration(built, configuration, as_json=as_json)
        return
    drawn = built.sample(np.random.default_rng(0), _SAMPLE)
    size = built.size
    if as_json:
        print_json(
            {
                "size": size.value,
                "exact": size.exact,
                "combinations": built.raw_size,
                "sampling": built.sampling,
                "default": dict(built.default()),
                "derived": built.derived_values(built.default()),
                "sample": [dict(one) for one in drawn],
                "space": built.to_dict(),
            }
        )
        return
    for note in prepared.plan.notes:
        errors().print(note)
    about = "" if size.exact else f"about (+-{size.relative_error:.0%}) "
    output().print(
        f"{about}{size.value} valid configurations of {built.raw_size} combinations; sampling: {built.sampling}",
    )
    output().print(_parameters(built))
    output().print(_constraints(built))
    if built.derived:
        output().print(_table_of_derived_values(built))
    output().print(f"default: {with_derived(built, built.default())}")
    for one in drawn:
        output().print(f"sample:  {with_derived(built, one)}")


def _check_configuration(built: "Space", text: str, *, as_json: bool) -> None:
    violations = built.violations({**built.default(), **read_configuration(built, text)})
    if as_json:
        print_json({"valid": not violations, "violations": violations})
    else:
        for violation in violations or ["valid"]:
            output().print(violation)
    if violations:
        raise typer.Exit(1)


def read_configuration(built: "Space", text: str) -> "Configuration":
    """Parse a configuration such as `np=2 npool=1 blas=openblas`, with values in the spelling of each domain.

    Raises:
        StudyFileError: A part is not `name=value`, or names no parameter.
    """
    from spaces.parameters.errors import did_you_mean

    domains = {parameter.name: parameter.values for parameter in built.parameters}
    configuration: dict[str, int | float | str | bool] = {}
    for part in text.replace(",", " ").split():
        key, equals, value = part.partition("=")
        if not equals:
            msg = f"--configuration: {part!r} is not name=value"
            raise StudyFileError(msg)
        if key not in domains:
            known_names = ", ".join(domains)
            msg = f"--configuration: no parameter is called {key!r}{did_you_mean(key, domains)}; known: {known_names}"
            raise StudyFileError(msg)
        known = {value_text(item): item for item in domains.get(key, ())}
        configuration[key] = known.get(value, _number(value))
    return configuration


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _parameters(built: "Space") -> "Table":
    from rich.table import Table

    table = Table("parameter", "values", "default", "exists when", "what it is")
    for parameter in built.parameters:
        values = [value_text(value) for value in parameter.values]
        listed = ", ".join(values if len(values) <= 8 else [*values[:4], "...", values[-1]])
        if parameter.optional:
            listed = f"unset, {listed}"
        default = "" if parameter.default is None else value_text(parameter.default)
        table.add_row(parameter.name, listed, default, parameter.when or "", parameter.help)
    return table


def _table_of_derived_values(built: "Space") -> "Table":
    from rich.table import Table

    table = Table("derived value", "expression")
    for name, expression in built.derived.items():
        table.add_row(name, expression)
    return table


def _constraints(built: "Space") -> "Table":
    from rich.table import Table

    table = Table("constraint", "rule", "reason")
    for constraint in built.constraints:
        table.add_row(constraint.name, constraint.rule, constraint.reason)
    return table
