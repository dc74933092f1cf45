"""Tools: what an agent can do, each by a request to the service, which guards it as it guards every client."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from autotune.agents import arguments as given
from autotune.agents.budgets import AgentBudgets
from autotune.client import Client, ServiceError
from autotune.held_folders import temporary_folder
from autotune.service.scopes import Scope

Json = Any
_NOT_THERE = 404
# There may be many studies; `study_status` has the rest.
_IN_SHORT = ("name", "state", "objective", "ask_tell", "trials", "budget", "speed_up", "interval", "verdict")


@dataclass(frozen=True)
class Desk:
    """What tools work with."""

    client: Client
    budgets: AgentBudgets


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it needs, what it does, what it takes, and the function that does it."""

    name: str
    scope: Scope
    description: str
    arguments: type[given.Arguments]
    call: Callable[[Desk, Any], Json]


def _studies(desk: Desk, _: given.Arguments) -> Json:
    return [{name: study[name] for name in _IN_SHORT} for study in desk.client.studies()]


def _catalogue(desk: Desk, _: given.Arguments) -> Json:
    return desk.client.catalogue()


def _status(desk: Desk, of: given.OfStudy) -> Json:
    return desk.client.study(of.study)


def _trials(desk: Desk, of: given.OfTrials) -> Json:
    found = (row for row in desk.client.trials(of.study) if row["trial"] > of.after)
    return list(islice(found, of.limit))


def _space(desk: Desk, of: given.OfStudy) -> Json:
    return desk.client.space(of.study)


def _result(desk: Desk, of: given.OfStudy) -> Json:
    return {
        "best": _if_there(lambda: desk.client.incumbent(of.study)),
        "verdict": _if_there(lambda: desk.client.verdict(of.study)),
        "says": "without a verdict, the best only looks so: its value is from few runs",
    }


def _explain(desk: Desk, of: given.OfTrial) -> Json:
    number = of.trial
    if number is None:
        number = int(desk.client.incumbent(of.study)["trial"])
    trial = desk.client.trial(of.study, number)
    hint = next((each for each in desk.client.hints(of.study) if each["trial"] == number), None)
    return {
        "trial": trial["trial"],
        "proposed": _proposed(number, hint),
        "hint": hint,
        "runs": trial["made"][-10:],
        "worth_of_the_winner's_options": _if_there(lambda: desk.client.ablation(of.study)),
    }


def _proposed(number: int, hint: Json) -> str:
    if number == 0:
        return "it is the default configuration, which is measured first"
    return "by the search of the study" if hint is None else f"as a hint of {hint['by']}"


def _suggest(desk: Desk, of: given.Suggest) -> Json:
    return desk.client.hint(of.study, of.configuration, of.why)


def _hints(desk: Desk, of: given.OfStudy) -> Json:
    return desk.client.hints(of.study)


def _ask(desk: Desk, of: given.Ask) -> Json:
    leased = desk.client.ask(of.study, of.lease_s, of.wait_s)
    return {"nothing_to_do": "others are being measured; ask again later"} if leased is None else asdict(leased)


def _tell(desk: Desk, of: given.Tell) -> Json:
    result = of.model_dump(exclude={"study", "lease"}, exclude_none=True)
    return desk.client.tell(of.study, of.lease, **result)


def _renew(desk: Desk, of: given.Renew) -> Json:
    return {"expires_s": desk.client.renew(of.study, of.lease, of.lease_s)}


def _predict(desk: Desk, of: given.Predict) -> Json:
    return desk.client.predict(of.study, of.machine, of.k)


def _check(_: Desk, of: given.CheckFile) -> Json:
    return checked(of.text)


def _start(desk: Desk, of: given.Start) -> Json:
    there = {study["name"] for study in desk.client.studies()}
    options: dict[str, Json] = {
        "name": desk.budgets.name_of(of.name or of.study, there),
        "trials": desk.budgets.trials_of(of.trials),
        "timeout": desk.budgets.time_of(of.timeout),
    }
    return desk.client.start(of.study, **options, **({} if of.seed is None else {"seed": of.seed}))


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("list_studies", Scope.LOOK, "List the studies, each in short.", given.Arguments, _studies),
        Tool("list_catalogue", Scope.LOOK, "List the studies that may be started.", given.Arguments, _catalogue),
        Tool("study_status", Scope.LOOK, "Show how a study stands.", given.OfStudy, _status),
        Tool("list_trials", Scope.LOOK, "List trials of a study, by number.", given.OfTrials, _trials),
        Tool(
            "describe_space",
            Scope.LOOK,
            "Show which configurations of a study are valid: a JSON schema, with the rules in words, and the default.",
            given.OfStudy,
            _space,
        ),
        Tool(
            "get_result",
            Scope.LOOK,
            "Show the best configuration, and the verdict: the comparison with the default in fresh runs.",
            given.OfStudy,
            _result,
        ),
        Tool(
            "explain",
            Scope.LOOK,
            "Show why a configuration was tried, its runs with the ends of what they printed, and what its options are "
            "worth.",
            given.OfTrial,
            _explain,
        ),
        Tool(
            "predict",
            Scope.LOOK,
            "Predict the best configurations of a study of the catalogue on a machine; nothing is run there.",
            given.Predict,
            _predict,
        ),
        Tool(
            "check_study_file",
            Scope.LOOK,
            "Check a study file that you wrote. It is only read: nothing that it names is run. Only the owner can put "
            "it into the catalogue.",
            given.CheckFile,
            _check,
        ),
        Tool("list_hints", Scope.LOOK, "List the hints of a study, and the trial of each.", given.OfStudy, _hints),
        Tool(
            "suggest",
            Scope.ASK,
            "Propose a configuration to a study, as a hint. It must be valid and new. What was measured of earlier "
            "hints decides when it is tried, and whether.",
            given.Suggest,
            _suggest,
        ),
        Tool(
            "ask",
            Scope.ASK,
            "Ask an open study for a configuration that you measure yourself; tell its result under the lease.",
            given.Ask,
            _ask,
        ),
        Tool("tell", Scope.ASK, "Tell what came of a run that you asked for.", given.Tell, _tell),
        Tool("renew", Scope.ASK, "Ask for more time for a run.", given.Renew, _renew),
        Tool(
            "start_study",
            Scope.OPERATE,
            "Start a study of the catalogue, within the budgets that the owner has set.",
            given.Start,
            _start,
        ),
    )
}


def _if_there(get: Callable[[], Json]) -> Json:
    """Return what the service has, None where it has nothing yet."""
    try:
        return get()
    except ServiceError as error:
        if error.status != _NOT_THERE:
            raise
        return None


def checked(text: str) -> dict[str, Any]:
    """Return what is wrong with a study file, and what it names that its owner would run."""
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
        "next": "nothing was run; only the owner can put a study file into the catalogue",
    }
