"""The tools of an agent. Each is a request to the service, which checks it like that of any client."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from autotune.agents import arguments as given
from autotune.client import Client, ServiceError
from autotune.held_folders import temporary_folder
from autotune.service.models.budgets import Budget
from autotune.service.scopes import Scope

Json = Any
_NOT_THERE = 404
# The fields of a study in a list, which may be long; `study_status` returns all fields.
_IN_SHORT = ("name", "state", "objective", "ask_tell", "trials", "budget", "speed_up", "interval", "verdict")


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
        call: The function that runs it.
    """

    name: str
    scope: Scope
    description: str
    arguments: type[given.Arguments]
    call: Callable[[ToolContext, Any], Json]


def _studies(context: ToolContext, _: given.Arguments) -> Json:
    return [{name: study[name] for name in _IN_SHORT} for study in context.client.studies()]


def _catalogue(context: ToolContext, _: given.Arguments) -> Json:
    return context.client.catalogue()


def _status(context: ToolContext, of: given.StudyArguments) -> Json:
    return context.client.study(of.study)


def _trials(context: ToolContext, of: given.TrialsArguments) -> Json:
    found = (row for row in context.client.trials(of.study) if row["trial"] > of.after)
    return list(islice(found, of.limit))


def _space(context: ToolContext, of: given.StudyArguments) -> Json:
    return context.client.space(of.study)


def _result(context: ToolContext, of: given.StudyArguments) -> Json:
    return {
        "best": _or_none(lambda: context.client.incumbent(of.study)),
        "verdict": _or_none(lambda: context.client.verdict(of.study)),
        "says": "without a verdict, the best trial is uncertain: its value comes from few runs",
    }


def _explain(context: ToolContext, of: given.TrialArguments) -> Json:
    number = of.trial
    if number is None:
        number = int(context.client.incumbent(of.study)["trial"])
    trial = context.client.trial(of.study, number)
    hint = next((each for each in context.client.hints(of.study) if each["trial"] == number), None)
    return {
        "trial": trial["trial"],
        "proposed": _hint_line(number, hint),
        "hint": hint,
        "runs": trial["made"][-10:],
        "worth_of_the_winner's_options": _or_none(lambda: context.client.ablation(of.study)),
    }


def _hint_line(number: int, hint: Json) -> str:
    if number == 0:
        return "it is the default configuration, which is measured first"
    return "by the search of the study" if hint is None else f"as a hint of {hint['by']}"


def _suggest(context: ToolContext, of: given.Suggest) -> Json:
    return context.client.hint(of.study, of.configuration, of.why)


def _hints(context: ToolContext, of: given.StudyArguments) -> Json:
    return context.client.hints(of.study)


def _ask(context: ToolContext, of: given.Ask) -> Json:
    leased = context.client.ask(of.study, of.lease_s, of.wait_s)
    return {"nothing_to_do": "others are being measured; ask again later"} if leased is None else asdict(leased)


def _tell(context: ToolContext, of: given.Tell) -> Json:
    result = of.model_dump(exclude={"study", "lease"}, exclude_none=True)
    return context.client.tell(of.study, of.lease, **result)


def _renew(context: ToolContext, of: given.Renew) -> Json:
    return {"expires_s": context.client.renew(of.study, of.lease, of.lease_s)}


def _predict(context: ToolContext, of: given.Predict) -> Json:
    return context.client.predict(of.study, of.machine, of.k)


def _check(_: ToolContext, of: given.CheckFile) -> Json:
    return check_study_text(of.text)


def _start(context: ToolContext, of: given.Start) -> Json:
    options = of.model_dump(exclude={"study"}, exclude_none=True)
    return context.client.start(of.study, **options, budget=context.budget.model_dump())


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("list_studies", Scope.LOOK, "List the studies in brief.", given.Arguments, _studies),
        Tool("list_catalogue", Scope.LOOK, "List the studies that may be started.", given.Arguments, _catalogue),
        Tool("study_status", Scope.LOOK, "Show the state of a study.", given.StudyArguments, _status),
        Tool("list_trials", Scope.LOOK, "List trials of a study, by number.", given.TrialsArguments, _trials),
        Tool(
            "describe_space",
            Scope.LOOK,
            "Show which configurations of a study are valid: a JSON schema, with the rules in words, and the default.",
            given.StudyArguments,
            _space,
        ),
        Tool(
            "get_result",
            Scope.LOOK,
            "Show the best configuration, and the verdict: the comparison with the default in fresh runs.",
            given.StudyArguments,
            _result,
        ),
        Tool(
            "explain",
            Scope.LOOK,
            "Show why a configuration was tried, its runs with the end of their output, and the worth of its options.",
            given.TrialArguments,
            _explain,
        ),
        Tool(
            "predict",
            Scope.LOOK,
            "Predict the best configurations of a study of the catalogue on a machine, without running anything.",
            given.Predict,
            _predict,
        ),
        Tool(
            "check_study_file",
            Scope.LOOK,
            "Check a study file that you wrote. No program that it names is run. Only the owner can put it into the "
            "catalogue.",
            given.CheckFile,
            _check,
        ),
        Tool(
            "list_hints", Scope.LOOK, "List the hints of a study, and the trial of each.", given.StudyArguments, _hints
        ),
        Tool(
            "suggest",
            Scope.ASK,
            "Propose a configuration to a study, as a hint. It must be valid and new. The results of earlier hints "
            "decide whether and when it is tried.",
            given.Suggest,
            _suggest,
        ),
        Tool(
            "ask",
            Scope.ASK,
            "Ask an open study for a configuration that you measure yourself; report its result with `tell`.",
            given.Ask,
            _ask,
        ),
        Tool("tell", Scope.ASK, "Report the result of a run from `ask`.", given.Tell, _tell),
        Tool("renew", Scope.ASK, "Ask for more time for a run.", given.Renew, _renew),
        Tool(
            "start_study",
            Scope.OPERATE,
            "Start a study of the catalogue, within the budget that the owner has set.",
            given.Start,
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
