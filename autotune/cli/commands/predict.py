"""`autotune predict`: predict the best configurations on machines where nothing has run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.choices import SCRIPT_FORM
from autotune.cli.common import (
    check_has_script,
    check_one_form,
    errors,
    known_storages,
    output,
    print_json,
    write_script,
)
from autotune.cli.options import (
    DEFAULT_STORAGE,
    AlsoOption,
    AnyStudyArgument,
    AsJson,
    InputOption,
    InstallationOption,
    ScriptFileOption,
    SetOption,
    Storage,
)
from autotune.cli.study_request import choose
from autotune.errors import CannotRunHereError
from autotune.formatting import configuration_text
from autotune.held_folders import temporary_folder
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.performance.predict import Question, Target
    from autotune.performance.regression.prediction import Interval, Prediction, Proposal
    from objectives.base import Metric

MachineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--machine",
        metavar="NAME|FILE",
        help="A machine (`autotune machine --list`), a file, or `this`. Repeat to compare.",
    ),
]


def predict(
    name: AnyStudyArgument,
    machine: MachineOption = None,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Number of nodes that a run may use.")] = 1,
    installation: InstallationOption = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Number of configurations to propose.")] = 5,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="RULE", help="Propose only configurations like 'np <= 24'. Repeatable."),
    ] = None,
    changes: SetOption = None,
    input_file: InputOption = None,
    facts_file: Annotated[
        str | None,
        typer.Option("--facts", metavar="FILE", help="Read the size of the problem from this TOML file."),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    also: AlsoOption = None,
    script: Annotated[
        str | None, typer.Option("--script", help="Print a job script for the first proposal.", **SCRIPT_FORM)
    ] = None,
    target: ScriptFileOption = None,
    as_json: AsJson = False,
) -> None:
    """Predict the best configurations; compare machines.

    The model learns from measurements on other machines. Nothing is run.
    """
    check_one_form(script, as_json=as_json)
    check_has_script(script, target)
    if script is not None and facts_file is not None and input_file is None:
        msg = "a job needs the input itself, but --facts gives only its size: name the input with --input FILE"
        raise typer.BadParameter(msg, param_hint="--script")
    if script is not None and len(machine or ()) > 1:
        msg = "a job script is for one machine: give one --machine"
        raise typer.BadParameter(msg, param_hint="--script")
    from autotune.performance.measurements.dataset import measurements, program_of
    from autotune.performance.measurements.shipped import load_shipped_measurements
    from autotune.performance.predict import predict as predicted
    from autotune.performance.predict import question, restrict, with_known_installation
    from launchers.local import local_launcher

    chosen = choose(name, changes, input_file, facts_file=facts_file, url=storage_url(storage))
    targets = _targets(machine or [], nodes, installation or [])
    program = program_of(chosen.objective, chosen.name, mixed=chosen.is_mix)
    is_shipped = any(row.setting.program == program for row in load_shipped_measurements())
    known = measurements(known_storages(storage, also or (), may_be_new=is_shipped))
    predictions: dict[str, Prediction] = {}
    for one in targets:
        with temporary_folder("predict") as scratch:
            asked = question(chosen, one, local_launcher(), scratch)
            prepared = restrict(with_known_installation(asked, known), where or ())
            for note in prepared.plan.notes:
                errors().print(note if len(targets) == 1 else f"{one.machine}: {note}")
            predictions[one.machine] = prediction = predicted(prepared, known, top)
            if script is not None:
                write_script(_script(prepared, one, prediction, script, scratch), target)
                return
    if len(targets) > 1:
        _compare(predictions, as_json=as_json)
    elif as_json:
        print_json(prediction.to_dict())
    else:
        _print(prediction, str(prepared.space.size))


def _targets(machines: list[str], nodes: int, installation: list[str]) -> "list[Target]":
    """Return the machines to predict for; this machine if the command line names none.

    Raises:
        typer.BadParameter: A machine is named twice.
    """
    from autotune.machines.catalogue import THIS
    from autotune.performance.predict import find_target

    targets = [find_target(machine, nodes, installation) for machine in machines or [THIS]]
    if len({target.machine for target in targets}) < len(targets):
        msg = "a machine is named twice: name each once"
        raise typer.BadParameter(msg, param_hint="--machine")
    return targets


def _print(prediction: "Prediction", size: str) -> None:
    from rich.table import Table

    from autotune.statistics.ratio_words import ratio_title

    metric = prediction.setting.metric
    for line in _remarks(prediction):
        output().print(line)
    table = Table("", "configuration", _title(metric), ratio_title(metric))
    for number, proposal in enumerate(prediction.proposals, start=1):
        cells = (_cell(proposal.value, proposal.measured_runs), _gain(prediction, proposal))
        table.add_row(str(number), configuration_text(proposal.configuration), *cells)
    of_default = _cell(prediction.default_value, prediction.default_runs)
    table.add_row("default", configuration_text(prediction.default), of_default, "")
    output().print(table)
    if prediction.layout:
        output().print(f"the first: {'; '.join(prediction.layout)}")
    if prediction.reasons:
        reasons = ", ".join(f"{name} {factor:.2f}x" for name, factor in prediction.reasons)
        output().print(f"what each option of the first is worth, by the model: {reasons}")
    if not prediction.proposals:
        output().print(f"nothing can be proposed for {prediction.setting.machine}")
        return
    measured = sum(1 for proposal in prediction.proposals if proposal.measured_runs)
    how = "predicted, not measured"
    if measured:
        how = f"{measured} of the {len(prediction.proposals)} were measured there, the others are predicted"
    if measured == len(prediction.proposals):
        how = "each of these proposals was measured there" if measured > 1 else "this proposal was measured there"
    output().print(
        f"{how}; {size} valid configurations on {prediction.setting.machine}; `autotune model` shows how often such "
        "intervals were right",
    )


def _compare(predictions: "Mapping[str, Prediction]", *, as_json: bool) -> None:
    """Print the best configuration of each machine, and the ratio of the first machine to each other."""
    from rich.table import Table

    from autotune.performance.machine_ratio import machine_ratios
    from autotune.statistics.ratio_words import ratio_title

    ratios = machine_ratios(predictions)
    if as_json:
        machines = {machine: found.to_dict() for machine, found in predictions.items()}
        print_json({"machines": machines, "ratios": [ratio.to_dict() for ratio in ratios]})
        return
    machines_of: dict[str, list[str]] = {}
    for machine, prediction in predictions.items():
        for line in _remarks(prediction):
            machines_of.setdefault(line, []).append(machine)
    for line, about_machines in machines_of.items():
        about = "" if len(about_machines) == len(predictions) else f"{'; '.join(about_machines)}: "
        output().print(f"{about}{line}")
    metrics = list(dict.fromkeys(prediction.setting.metric for prediction in predictions.values()))
    table = Table("machine", "best configuration", *map(_title, metrics), ratio_title(metrics[0]))
    for machine, prediction in predictions.items():
        first = prediction.proposals[0] if prediction.proposals else None
        value = "not known" if first is None else _cell(first.value, first.measured_runs)
        values = [value if prediction.setting.metric == metric else "" for metric in metrics]
        words = ("nothing can be proposed", *values, "")
        if first is not None:
            words = (configuration_text(first.configuration), *values, _gain(prediction, first))
        table.add_row(machine, *words)
    output().print(table)
    for ratio in ratios:
        output().print(ratio.sentence())


def _remarks(prediction: "Prediction") -> list[str]:
    """Return the grounds of a prediction, and its doubts."""
    return [*prediction.grounds, *(f"doubt: {line}" for line in prediction.doubts)]


def _title(metric: "Metric") -> str:
    """Return the title of a column of values."""
    return f"{metric.name} [{metric.unit}]" if metric.unit else metric.name


def _cell(interval: "Interval | None", runs: int = 0) -> str:
    if interval is not None and runs:
        return f"{interval.value:.4g}, measured{f' in {runs} runs' if runs > 1 else ''}"
    return "not known" if interval is None else str(interval)


def _gain(prediction: "Prediction", proposal: "Proposal") -> str:
    gain = proposal.speed_up
    if proposal.configuration == prediction.default:
        return "the default"
    if gain is None or not prediction.is_unconfirmed(proposal):
        return f"{_cell(gain)}{', by a verdict' if proposal.by_verdict else ''}"
    return f"looks {gain.value:.4g}"


def _expected_text(prediction: "Prediction", proposal: "Proposal") -> str:
    from autotune.statistics.ratio_words import times

    gain = proposal.speed_up
    if proposal.configuration == prediction.default:
        return "the default configuration; no other is sure to beat it"
    if gain is None:
        return "how it compares with the default configuration is not known"
    ratio = f"{times(gain.value, prediction.setting.metric)} the default configuration"
    if prediction.is_unconfirmed(proposal):
        return f"looks {ratio}; no verdict confirms it"
    return f"{ratio} ({gain.low:.3g} to {gain.high:.3g})"


def _script(question: "Question", target_machine: "Target", prediction: "Prediction", form: str, scratch: Path) -> str:
    from autotune.batch.job_script import JobScript, job_script
    from autotune.execution.task import describe_job
    from launchers import Usage
    from launchers.detect import detect
    from launchers.mpi import script_flavour
    from objectives.base import Context

    if not prediction.proposals:
        raise CannotRunHereError("\n".join(("nothing can be proposed, so there is no job script", *prediction.doubts)))
    first = prediction.proposals[0]
    folder = scratch / "job"
    folder.mkdir()
    job = describe_job(
        question.plan.objective.job(first.configuration, Context(folder, steps=question.whole_steps)),
        detect() if target_machine.here else None,
    )
    machine = target_machine.machine
    how = f"measured on {machine}" if first.measured_runs else f"predicted for {machine}, not measured"
    remarks = [
        f"{how}: {_expected_text(prediction, first)}",
        "the time and the memory asked for are guesses; set them, the project and the queue",
    ]
    needs = Usage(elapsed_s=first.value.high if first.value and prediction.setting.metric.is_seconds else 0.0)
    name = f"autotune-{question.setting.workload}".replace(" ", "-")  # a folder, and the name of a job
    flavour = script_flavour(job)
    return job_script(form, JobScript(name, first.configuration, job, needs, flavour, remarks, measured=False))
