"""Routes of predictions: the best configurations of a study on a machine, also one where it has not run."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from autotune.formatting import quantity
from autotune.held_folders import temporary_folder
from autotune.machines.catalogue import THIS, machine_files
from autotune.machines.description import MachineError, load
from autotune.machines.facts import flat_facts
from autotune.service.catalogue import Catalogue, CatalogueStudy
from autotune.service.json_values import json_value, with_tilde
from autotune.service.models.values import Facts, Given, MetricModel, Values
from autotune.service.problems import ProblemError, answers
from autotune.service.summaries import metric_model
from autotune.service.workers import Answer, answer_long, as_json
from autotune.statistics.speed_up import SpeedUp
from autotune.storage.studies import StoredStudies
from autotune.studyfile import StudyFile
from objectives.base import Metric

if TYPE_CHECKING:
    from autotune.performance.measured_here import MeasuredHere
    from autotune.performance.predict import Target
    from autotune.performance.regression import prediction as predicted
    from autotune.performance.regression.prediction import Interval, Prediction

_SHOWN = 100


class Question(Given):
    """A question: the best `k` configurations of a study on a machine.

    `machine` is the name of a described machine, null for the service's host, or the facts of a machine, with the names
    that `autotune machine --json` prints (`cores` is required). `workload` is the name of an input in the study's
    file, or facts of the problem that differ from the study's; null for the study's own.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"study": "qe", "machine": "gadi", "nodes": 1, "k": 5}]},
    )

    study: str = Field(max_length=200)
    machine: Annotated[str, Field(max_length=100)] | Facts | None = None
    nodes: int = Field(1, ge=1, le=10_000)
    workload: Annotated[str, Field(max_length=100)] | Facts | None = None
    k: int = Field(5, ge=1, le=100)
    where: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=20)


class Proposal(BaseModel):
    """A configuration with its value and speed-up, each with the ends of its interval; null if not known.

    They are predicted, or measured in `measured_runs` on the machine. A speed-up is `by_verdict`, or only looks so.
    """

    configuration: Values
    value: tuple[float, float, float] | None
    speed_up: tuple[float, float, float] | None
    measured_runs: int
    by_verdict: bool = False
    text: str = Field(description="The value with its unit, and its interval if it is predicted.")
    gain: str = Field(description="The gain over the default, with how sure it is; empty for the default itself.")


class MeasuredValue(BaseModel):
    """A configuration with the median of its runs."""

    configuration: Values
    value: float
    runs: int
    text: str


class Predicted(BaseModel):
    """The best configurations by the model; `doubts` name what it does not know.

    The answer is `promising` if the first configuration beats the default by more than the uncertainty, or by a verdict
    if both were measured.
    """

    study: str
    machine: str
    metric: MetricModel
    default: Proposal
    proposals: list[Proposal]
    promising: bool
    grounds: list[str]
    doubts: list[str]
    reasons: list[tuple[str, float]]
    measured: list[MeasuredValue] = Field(
        description="The configurations measured there, best first, a verdict's winner before what it beat."
    )


class MachineBrief(BaseModel):
    """A described machine."""

    name: str
    description: str


class Predictor:
    """Predicts from the measurements in storage, and from those that ship."""

    def __init__(self, catalogue: Catalogue, url: str, stored: StoredStudies) -> None:
        """Predict for studies of the catalogue."""
        self._catalogue = catalogue
        self._url = url
        self._stored = stored

    def key(self, question: Question) -> str:
        """Return a text that changes with the question, and the measurements and files that its answer depends on."""
        measured = (sorted(self._stored.versions().items()), self._stored.imported_version())
        # The files of all machines count, because imported measurements may come from any of them.
        files = (self._entry(question).file, *machine_files().values())
        return f"{question.model_dump_json()} {measured} {[_time_of_change(file) for file in files]}"

    def _entry(self, question: Question) -> CatalogueStudy:
        entry = self._catalogue.find(question.study)
        if entry is None:
            raise ProblemError(404, f"the catalogue has no study {question.study!r}")
        return entry

    def predict(self, question: Question) -> Predicted:
        """Return the best configurations that the model predicts."""
        # XGBoost takes a second to import.
        from autotune.performance.measured_here import MeasuredHere  # noqa: PLC0415
        from autotune.performance.measurements.dataset import measurements  # noqa: PLC0415
        from autotune.performance.predict import for_problem, predict, restrict, with_known_installation  # noqa: PLC0415
        from autotune.performance.predict import question as question_about  # noqa: PLC0415
        from autotune.performance.recognition import of_program, unify_names  # noqa: PLC0415
        from launchers.local import local_launcher  # noqa: PLC0415

        entry, target = self._entry(question), _target(question)
        study = _of_input(entry.study, question.workload)
        with temporary_folder("predict") as scratch:
            asked = question_about(study, target, local_launcher(), scratch)
            remarks: tuple[str, ...] = ()
            if isinstance(question.workload, dict) and question.workload:
                asked = for_problem(asked, question.workload)
                remarks = ("the facts of the workload are the question's, the space is that of the study's own",)
            known = measurements([self._url])
            prepared = restrict(with_known_installation(asked, known), question.where, "where")
            notes = (*prepared.plan.notes, *remarks)
            prediction = predict(prepared, known, question.k)
        setting = prediction.setting
        rows = unify_names(of_program(known, setting), setting)
        here = MeasuredHere.of(prepared.space, setting, rows, prepared.limits)
        return _answer(entry.name, target, prediction, here, notes)


def routes(predictor: Predictor) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["predictions"])

    @router.get("/machines", responses=answers())
    def list_machines() -> list[MachineBrief]:
        """List the machines that are described."""
        briefs = []
        for name, file in sorted(machine_files().items()):
            with suppress(MachineError):
                briefs.append(MachineBrief(name=name, description=load(file).title))
        return briefs

    @router.post("/predict", response_model=Predicted, responses=answers(404, 413, 415))
    async def predict_best(question: Question, request: Request) -> Response:
        """Predict the best configurations on a machine; nothing runs there."""

        def make(_: str) -> Answer:
            return as_json(predictor.predict(question))

        return await answer_long(request, partial(predictor.key, question), make)

    return router


def _time_of_change(file: Path) -> tuple[str, int]:
    """Return a file with the time of its last change; 0 if it has gone."""
    try:
        return (str(file), file.stat().st_mtime_ns)
    except OSError:
        return (str(file), 0)


def _target(question: Question) -> "Target":
    from autotune.performance.predict import Target, find_target  # noqa: PLC0415

    machine = question.machine
    if isinstance(machine, dict):
        facts = flat_facts({}, question.nodes)
        return Target("the described machine", {**facts, **machine})
    if machine is None:
        return find_target(THIS, question.nodes)
    if machine not in machine_files():
        # Clients name machines, never paths.
        known = ", ".join(sorted(machine_files()))
        raise ProblemError(404, f"no machine is called {machine!r}; described are: {known}")
    return find_target(machine, question.nodes)


def _of_input(study: StudyFile, workload: str | dict[str, float | str | bool] | None) -> StudyFile:
    """Return the study of one of its inputs alone: clients cannot send options."""
    if not isinstance(workload, str):
        return study
    for one in study.inputs:
        if one.name == workload:
            return study.model_copy(update={"options": study.options_of(one), "inputs": []})
    known = ", ".join(one.name for one in study.inputs) or "none"
    raise ProblemError(404, f"study {study.name!r} has no input {workload!r}; it has: {known}")


def _answer(
    name: str, target: "Target", prediction: "Prediction", here: "MeasuredHere", notes: tuple[str, ...]
) -> Predicted:
    metric = prediction.setting.metric
    values = sorted((row for row in here.measured if row.value is not None), key=here.cost)
    return Predicted(
        study=name,
        machine=with_tilde(target.machine),
        metric=metric_model(metric),
        default=Proposal(
            configuration=json_value(dict(prediction.default)),
            value=_ends(prediction.default_value),
            speed_up=None,
            measured_runs=prediction.default_runs,
            text=_value_text(prediction.default_value, prediction.default_runs, metric),
            gain="",
        ),
        proposals=[
            Proposal(
                configuration=json_value(dict(proposal.configuration)),
                value=_ends(proposal.value),
                speed_up=_ends(proposal.speed_up),
                measured_runs=proposal.measured_runs,
                by_verdict=proposal.by_verdict,
                text=_value_text(proposal.value, proposal.measured_runs, metric),
                gain=_gain_text(prediction, proposal),
            )
            for proposal in prediction.proposals
        ],
        promising=prediction.promising,
        grounds=json_value(prediction.grounds),
        doubts=json_value((*notes, *prediction.doubts)),
        reasons=list(prediction.reasons),
        measured=[
            MeasuredValue(
                configuration=json_value(dict(row.configuration)),
                value=row.value,
                runs=row.runs,
                text=quantity(row.value, metric),
            )
            for row in values[:_SHOWN]
            if row.value is not None
        ],
    )


def _value_text(value: "Interval | None", runs: int, metric: Metric) -> str:
    if value is None:
        return "not known"
    if runs:
        return f"{quantity(value.value, metric)}, measured in {runs} run{'' if runs == 1 else 's'}"
    return f"{quantity(value.value, metric)} ({quantity(value.low, metric)} to {quantity(value.high, metric)})"


def _gain_text(prediction: "Prediction", proposal: "predicted.Proposal") -> str:
    gain = proposal.speed_up
    if proposal.configuration == prediction.default:
        return "the default"
    if gain is None:
        return "not known"
    interval = None if prediction.is_unconfirmed(proposal) else (gain.low, gain.high)
    return SpeedUp(gain.value, interval).text()


def _ends(interval: "Interval | None") -> tuple[float, float, float] | None:
    return None if interval is None else (interval.value, interval.low, interval.high)
