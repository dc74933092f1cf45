"""The tools of an agent. Each is a request to the service, which checks it like that of any client."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from time import monotonic, sleep
from typing import Any

from autotune.agents import answers
from autotune.agents import arguments as given
from autotune.client import Client, ServiceError
from autotune.held_folders import temporary_folder
from autotune.service.models.budgets import Budget
from autotune.service.scopes import Scope

Json = Any
_NOT_THERE = 404
# The fields of a study in a list, and the further ones of its status.
_IN_SHORT = ("name", "state", "objective", "ask_tell", "trials", "budget", "best", "speed_up", "interval", "verdict")
_IN_FULL = ("message", "trouble", "phase", "left_s", "noise", "failures", "first_error", "next")
_OF_TRIAL = ("trial", "state", "configuration", "value", "bound", "speed_up", "confirmed", "breaks", "message")
_OF_RUN = ("purpose", "state", "value", "bound", "metrics", "message", "disturbance")
_OF_OUTPUT = ("commands", "stdout", "stderr")
_OF_VERDICT = ("sentence", "speed_up", "low", "high", "significant", "doubt", "failures")
_RUNS = 10
_MEASURED = 3
_LOOK_S = 1.0
_AT_WORK = frozenset({"running", "waiting", "pausing", "stopping", "open"})


@dataclass(frozen=True)
class ToolContext:
    """The client that tools use, and the budget of the studies that they start."""

    client: Client
    budget: Budget


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes:
        name: Its name in the protocol.
        scope: The permission that it needs.
        description: Its purpose, for the agent.
        arguments: The model of its arguments.
        answer: The model of its answer.
        call: The function that runs it.
    """

    name: str
    scope: Scope
    description: str
    arguments: type[given.Arguments]
    answer: type[answers.Answer]
    call: Callable[[ToolContext, Any], Json]


def _studies(context: ToolContext, of: given.StudiesArguments) -> Json:
    studies = sorted(context.client.studies(), key=lambda study: str(study["newest"]), reverse=True)
    return {
        "studies": [_in_short(study) for study in studies[: of.limit]],
        "left_out": len(studies[of.limit :]) or None,
    }


def _in_short(study: Json) -> Json:
    metric, fresh = study["metric"], study["fresh"]
    best = {} if fresh is None else {"best": fresh["best"]}
    direction = "" if metric is None else f"{metric['direction']} {metric['name']} [{metric['unit'] or 1}]"
    return {**_only(study, _IN_SHORT), **best, "metric": direction}


def _only(found: Json, names: tuple[str, ...]) -> Json:
    return {name: found[name] for name in names if name in found}


def _catalogue(context: ToolContext, _: given.Arguments) -> Json:
    return {"items": context.client.catalogue()}


def _status(context: ToolContext, of: given.StatusArguments) -> Json:
    first = study = context.client.study(of.study)
    ends = monotonic() + of.wait_s
    while study["state"] in _AT_WORK and monotonic() < ends:
        if of.until == "changed" and any(study[name] != first[name] for name in ("state", "trials", "verdict")):
            break
        sleep(min(_LOOK_S, max(0.0, ends - monotonic())))
        study = context.client.study(of.study)
    return {
        **_in_short(study),
        **_only(study, _IN_FULL),
        "default": study["baseline"] if study["fresh"] is None else study["fresh"]["default"],
        "incumbent": study["incumbent"] and _only(study["incumbent"], _OF_TRIAL),
        "front_points": [_only(point, ("trial", "configuration", "values")) for point in study["front_points"]],
        "running": len(study["running"]),
    }


def _trials(context: ToolContext, of: given.TrialsArguments) -> Json:
    metric = context.client.study(of.study)["metric"]
    order = {"sort": "trial", "down": True}
    if of.sort == "best":
        order = {"sort": "value", "down": metric is not None and metric["direction"] == "maximize"}
    page = context.client.table(of.study, **order, offset=of.offset, limit=of.limit)
    return {"trials": [_only(row, _OF_TRIAL) for row in page["trials"]], "total": page["total"]}


def _space(context: ToolContext, of: given.StudyArguments) -> Json:
    return context.client.space(of.study)


def _result(context: ToolContext, of: given.StudyArguments) -> Json:
    best = _or_none(lambda: context.client.incumbent(of.study))
    verdict = _or_none(lambda: context.client.verdict(of.study))
    return {
        "best": best and _only(best, _OF_TRIAL),
        "verdict": verdict and _only(verdict, _OF_VERDICT),
        "decisions": _or_none(lambda: context.client.decisions(of.study)),
        "next": context.client.study(of.study)["next"],
    }


def _explain(context: ToolContext, of: given.TrialArguments) -> Json:
    number = of.trial
    if number is None:
        number = int(context.client.incumbent(of.study)["trial"])
    trial = context.client.trial(of.study, number)
    hint = next((each for each in context.client.hints(of.study) if each["trial"] == number), None)
    runs = [_only(run, _OF_RUN) for run in trial["made"][-_RUNS:]]
    if runs:
        runs[-1] |= _only(trial["made"][-1], _OF_OUTPUT)
    return {
        **_only(trial["trial"], _OF_TRIAL),
        "proposed": _hint_line(number, hint),
        "hint": hint,
        "runs": runs,
        "worth_of_the_winner's_options": _or_none(lambda: context.client.ablation(of.study)),
    }


def _hint_line(number: int, hint: Json) -> str:
    if number == 0:
        return "it is the default configuration, which is measured first"
    return "by the search of the study" if hint is None else f"as a hint of {hint['by']}"


def _suggest(context: ToolContext, of: given.Suggest) -> Json:
    return context.client.hint(of.study, of.configuration, of.why)


def _hints(context: ToolContext, of: given.StudyArguments) -> Json:
    return {"items": context.client.hints(of.study)}


def _ask(context: ToolContext, of: given.Ask) -> Json:
    leased = context.client.ask(of.study, of.lease_s, of.wait_s)
    return {"nothing_to_do": "others are being measured; ask again later"} if leased is None else asdict(leased)


def _tell(context: ToolContext, of: given.Tell) -> Json:
    result = of.model_dump(exclude={"study", "lease"}, exclude_none=True)
    return context.client.tell(of.study, of.lease, **result)


def _renew(context: ToolContext, of: given.Renew) -> Json:
    return {"expires_s": context.client.renew(of.study, of.lease, of.lease_s)}


def _predict(context: ToolContext, of: given.Predict) -> Json:
    found = context.client.predict(of.study, of.machine, of.k)
    return found | {"measured": found["measured"][:_MEASURED]}


def _check(_: ToolContext, of: given.CheckFile) -> Json:
    return check_study_text(of.text)


def _start(context: ToolContext, of: given.Start) -> Json:
    options = of.model_dump(exclude={"study"}, exclude_none=True)
    return _in_short(context.client.start(of.study, **options, budget=context.budget.model_dump()))


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "list_studies",
            Scope.LOOK,
            "List the studies in brief, the newest first.",
            given.StudiesArguments,
            answers.Studies,
            _studies,
        ),
        Tool(
            "list_catalogue",
            Scope.LOOK,
            "List the studies that may be started.",
            given.Arguments,
            answers.Items,
            _catalogue,
        ),
        Tool(
            "study_status",
            Scope.LOOK,
            "Show the state of a study, its best so far, and what to do next. With `wait_s` it waits until the study "
            "has ended or changed, so that you need not ask again: {study, wait_s: 50, until: 'ended'}.",
            given.StatusArguments,
            answers.Status,
            _status,
        ),
        Tool("list_trials", Scope.LOOK, "List trials of a study.", given.TrialsArguments, answers.Trials, _trials),
        Tool(
            "describe_space",
            Scope.LOOK,
            "Show which configurations of a study are valid: a JSON schema, with the rules in words, and the default.",
            given.StudyArguments,
            answers.Answer,
            _space,
        ),
        Tool(
            "get_result",
            Scope.LOOK,
            "Show the best configuration, and the verdict: the comparison with the default in fresh runs. Without a "
            "verdict the best is uncertain, since its value comes from few runs. A study with [decisions] has a table.",
            given.StudyArguments,
            answers.Result,
            _result,
        ),
        Tool(
            "explain",
            Scope.LOOK,
            "Show why a configuration was tried, its runs with the end of their output, and the worth of its options.",
            given.TrialArguments,
            answers.Explanation,
            _explain,
        ),
        Tool(
            "predict",
            Scope.LOOK,
            "Predict the best configurations of a study of the catalogue on a machine, without running anything.",
            given.Predict,
            answers.Answer,
            _predict,
        ),
        Tool(
            "check_study_file",
            Scope.LOOK,
            "Check a study file that you wrote. No program that it names is run. Only the owner can put it into the "
            "catalogue.",
            given.CheckFile,
            answers.Answer,
            _check,
        ),
        Tool(
            "list_hints",
            Scope.LOOK,
            "List the hints of a study, and the trial of each.",
            given.StudyArguments,
            answers.Items,
            _hints,
        ),
        Tool(
            "suggest",
            Scope.ASK,
            "Propose a configuration to a study, as a hint. It must be valid and new. The results of earlier hints "
            "decide whether and when it is tried.",
            given.Suggest,
            answers.Answer,
            _suggest,
        ),
        Tool(
            "ask",
            Scope.ASK,
            "Ask an open study for a configuration that you measure yourself; report its result with `tell`.",
            given.Ask,
            answers.Answer,
            _ask,
        ),
        Tool("tell", Scope.ASK, "Report the result of a run from `ask`.", given.Tell, answers.Answer, _tell),
        Tool("renew", Scope.ASK, "Ask for more time for a run.", given.Renew, answers.Answer, _renew),
        Tool(
            "start_study",
            Scope.OPERATE,
            "Start a study of the catalogue, within the budget that the owner has set.",
            given.Start,
            answers.Study,
            _start,
        ),
    )
}


def _or_none(get: Callable[[], Json]) -> Json:
    """Return the answer of the service; None if it does not have the item yet."""
    try:
        return get()
    except ServiceError as error:
        if error.status != _NOT_THERE:
            raise
        return None


def check_study_text(text: str) -> dict[str, Any]:
    """Return the mistakes of a study file, and the programs that it names."""
    from autotune.machines.this_machine import this_machine  # noqa: PLC0415  the planning imports much
    from autotune.planning.check import check  # noqa: PLC0415
    from launchers.local import local_launcher  # noqa: PLC0415

    with temporary_folder("agent") as folder:
        path = folder / "study.toml"
        path.write_text(text, encoding="utf-8")
        report = check(path, (), this_machine(), local_launcher(), static=True)
    return {
        "valid": not report.mistakes,
        "mistakes": [str(problem) for problem in report.mistakes],
        "names": report.notes,
        "not_checked": "whether the programs and files are there, and options of other objectives than command",
        "next": "nothing was run; only the owner can put a study file into the catalogue",
    }
