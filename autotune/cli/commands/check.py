"""`autotune check`: is a study file right? Everything that can be known without running it, all mistakes at once."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.common import errors, output, print_json
from autotune.cli.options import AsJson, InputOption, SetOption, StudyArgument, WaitOption
from autotune.cli.where import CoresOption, restrict
from autotune.errors import ExitCode
from autotune.formatting import with_derived

if TYPE_CHECKING:
    from autotune.planning.check import CheckReport
    from autotune.planning.trial_run import TrialRun
    from objectives.base import Reading


def check(
    name: StudyArgument,
    changes: SetOption = None,
    input_file: InputOption = None,
    cores: CoresOption = None,
    run: Annotated[
        bool,
        typer.Option("--run", help="Run the default configuration once, and show the values that are read."),
    ] = False,
    static: Annotated[
        bool,
        typer.Option(
            "--static", help="Only read the file: run and import nothing that it names, and say what that is."
        ),
    ] = False,
    wait: WaitOption = False,
    as_json: AsJson = False,
) -> None:
    """Check a study file, and say every mistake.

    Each mistake has its line. If there is none, `check` prints the size of the space and the command of the default
    configuration, which --run runs once. For that it asks programs that the file names for their version; with --static
    it only reads, for a file of others. Exit codes: 0 the study can be tuned, 2 the file has mistakes, 3 this machine
    lacks something, 4 the run of --run failed.
    """
    from autotune import studyfile
    from autotune.machines.this_machine import this_machine
    from autotune.planning.check import check as examined
    from launchers.local import local_launcher

    path = studyfile.find(name)
    machine, launcher = restrict(this_machine(), cores), local_launcher()
    if static and run:
        raise typer.BadParameter("it runs nothing: leave out --run", param_hint="--static")
    report = examined(path, changes or (), machine, launcher, input_file, static=static)
    tried = None
    if run and report.study and report.plan and report.space is not None and report.job and not report.missing:
        from autotune.execution.core_pool import CoreClaim, work_on
        from autotune.planning.trial_run import trial_run

        def say(text: str) -> None:
            errors().print(text, markup=False)

        work = f"the check of {work_on(report.study.name)}"
        claim = CoreClaim.claim(machine.cpus, wait_by=say if wait else None, work=work)
        try:
            tried = trial_run(report.plan, report.space.default(), machine, launcher, report.study)
        finally:
            claim.release()
    code = _exit_code(report, tried)
    if as_json:
        print_json(_to_dict(path, report, tried) | {"exit_code": int(code)})
    else:
        _print(path, report)
        if tried is not None:
            _print_run(tried)
        if code is ExitCode.OK:
            own = "" if input_file is None else f" --input {shlex.quote(input_file)}"
            right = "read" if static else "right"
            output().print(f"{right}: autotune study {_quoted(name)}{own}", markup=False)
    raise typer.Exit(code)


def _exit_code(report: "CheckReport", tried: "TrialRun | None") -> ExitCode:
    if report.mistakes:
        return ExitCode.USAGE
    if report.missing:
        return ExitCode.CANNOT_RUN_HERE
    return ExitCode.NOTHING_WORKED if tried is not None and tried.failure is not None else ExitCode.OK


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name


def _print(path: Path, report: "CheckReport") -> None:
    from spaces.parameters.problem import OptionProblem

    if report.mistakes:
        plural = "mistake" if len(report.mistakes) == 1 else "mistakes"
        typed = all(isinstance(problem, OptionProblem) for problem in report.mistakes)
        errors().print(f"{'command line' if typed else path}: {len(report.mistakes)} {plural}", markup=False)
    for problem in report.mistakes:
        errors().print(_indented(str(problem)), markup=False)
    for problem in report.missing:
        errors().print(f"missing here: {_indented(str(problem)).lstrip()}", markup=False)
    for note in report.notes:
        errors().print(note, markup=False)
    if report.plan is not None and report.space is not None:
        _print_plan(report)
    for warning in report.warnings:
        output().print(f"warning: {warning}", markup=False)


def _print_plan(report: "CheckReport") -> None:
    assert report.space is not None
    size = report.space.size
    about = "" if size.exact else "about "
    output().print(
        f"space: {about}{size.value} valid configurations of {report.space.raw_size} combinations", markup=False
    )
    target, *others = report.metrics
    aim = "as large as possible" if target.direction == "maximize" else "as small as possible"
    also = f"; also recorded: {', '.join(metric.name for metric in others)}" if others else ""
    unit = f" in {target.unit}" if target.unit else ""
    output().print(f"optimised: {target.name}{unit}, {aim}{also}", markup=False)
    output().print(f"default: {with_derived(report.space, report.space.default())}", markup=False)
    if report.command:
        for line in report.command.splitlines():
            output().print(f"command: {line}", markup=False)


def _print_run(tried: "TrialRun") -> None:
    output().print(f"run: exit code {tried.exit_code}, {tried.usage.elapsed_s:.3g} s", markup=False)
    for reading in (*tried.metrics, *([tried.answer] if tried.answer else [])):
        output().print(f"  {_told(reading)}", markup=False)
    if tried.steps:
        asked = "" if tried.asked_steps is None else f"; asked to stop after step {tried.asked_steps}"
        output().print(f"  progress: {tried.steps} steps, the last {tried.last_step}{asked}", markup=False)
    if tried.steps_doubt:
        output().print(f"warning: {tried.steps_doubt}", markup=False)
    if tried.failure is not None:
        errors().print(f"the run is no good: {tried.failure}", markup=False)
        for line in tried.tail:
            errors().print(f"  {line}", markup=False)


def _told(reading: "Reading") -> str:
    if reading.value is None:
        return reading.why or f"{reading.name}: not read"
    return f"{reading.name}: {reading.value:.10g} {reading.unit}".rstrip()


def _indented(text: str) -> str:
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
