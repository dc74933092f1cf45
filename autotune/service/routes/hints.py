"""Routes of hints: the space of a study, the configurations that clients propose, and the trial of each."""

from collections.abc import Mapping
from functools import partial
from threading import Lock
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from autotune.records.hint import Hint
from autotune.records.study import TrialRecord
from autotune.search.guidance.hints import give_hint, hints_of
from autotune.service.json_values import json_value
from autotune.service.models.values import Given, Values
from autotune.service.problems import ProblemError, answers
from autotune.service.routes.studies import StudyName, by
from autotune.service.studies import AnswerKey, Studies, StudiesSnapshot
from autotune.service.workers import Answer, answer_long, as_json, work_long
from autotune.storage.study_store import StudyStore
from autotune.supervision import StateName
from spaces import Space
from spaces.json_schema import json_schema

MOST_WAITING = 100
_MOST = 1000
_OVER = frozenset({StateName.FINISHED, StateName.FAILED, StateName.STOPPING, StateName.STOPPED})
_Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=500)]


class SpaceDescription(BaseModel):
    """The valid configurations of a study: a JSON schema, with the rules that it cannot express in its description."""

    study: str
    configuration: Values = Field(description="The JSON schema of a configuration.")
    default: Values
    rules: list[dict[str, str]] = Field(description="Each with its name, the rule, and its reason.")


class NewHint(Given):
    """A configuration that the study may try, and why."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"configuration": {"np": 4, "npool": 2}, "why": "two k-points"}]},
    )

    configuration: dict[Annotated[str, Field(max_length=200)], _Value] = Field(max_length=500)
    why: str = Field("", max_length=500)


class HintState(BaseModel):
    """A hint: its configuration, who gave it, when and why; `trial` is None until it is tried."""

    configuration: Values
    by: str
    given: str
    why: str
    trial: int | None


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/studies/{name}", tags=["hints"])
    turn = Lock()

    @router.get("/space", response_model=SpaceDescription, responses=answers(404))
    async def show_space(name: StudyName, request: Request) -> Response:
        """Show the valid configurations of a study."""

        def make(_: AnswerKey) -> Answer:
            return as_json(_description_of(name, Space.from_dict(studies.store(name).definition.space)))

        return await answer_long(request, partial(studies.key, name, "space"), make)

    @router.get("/hints", response_model=list[HintState], responses=answers(404))
    async def list_hints(name: StudyName, request: Request) -> Response:
        """List the hints of a study, with their trials."""

        def make(_: AnswerKey) -> Answer:
            store = studies.store(name)
            trials = _by_configuration(store.trials())
            return as_json([_state_of(hint, trials.get(_key(hint.configuration))) for hint in hints_of(store)])

        return await answer_long(request, partial(studies.key, name, "hints"), make)

    @router.post("/hints", status_code=201, responses=answers(404, 409, 413, 415))
    async def give_hint(name: StudyName, new: NewHint, request: Request) -> HintState:
        """Propose a configuration. The results of earlier hints decide when it is tried, and whether."""
        return await work_long(request, partial(_give, studies, turn, name, new, by(request)))

    return router


def _give(studies: Studies, turn: Lock, name: str, new: NewHint, giver: str) -> HintState:
    store = studies.store(name)
    _check_goes_on(name, studies.snapshot(), store)
    violations = Space.from_dict(store.definition.space).violations(new.configuration)
    if violations:
        raise ProblemError(422, f"this configuration is not valid: {'; '.join(violations)}")
    with turn:
        given, trials = hints_of(store), _by_configuration(store.trials())
        trial = trials.get(_key(new.configuration))
        if trial is not None:
            raise ProblemError(409, f"study {name!r} has this configuration already: trial {trial}")
        if any(_key(hint.configuration) == _key(new.configuration) for hint in given):
            raise ProblemError(409, f"study {name!r} has this hint already; it waits")
        waiting = sum(_key(hint.configuration) not in trials for hint in given)
        if waiting >= MOST_WAITING or len(given) >= _MOST:
            raise ProblemError(409, f"{waiting} hints wait; a study takes {MOST_WAITING} at once, {_MOST} in all")
        writing = StudyStore.read(store.url, name, read_only=False)
        return _state_of(give_hint(writing, new.configuration, giver, new.why), None)


def _description_of(name: str, space: Space) -> SpaceDescription:
    return SpaceDescription(
        study=name,
        configuration=json_value(json_schema(space)),
        default=json_value(dict(space.default())),
        rules=[
            {"name": rule.name, "rule": json_value(rule.rule), "reason": json_value(rule.reason)}
            for rule in space.constraints
        ],
    )


def _check_goes_on(name: str, snapshot: StudiesSnapshot, store: StudyStore) -> None:
    # A study of the command line takes its hints when somebody continues it there.
    state = snapshot.state(name).state
    if snapshot.is_managed(name) and state in _OVER:
        raise ProblemError(409, f"study {name!r} is {state.value}: it tries no more configurations")
    if store.definition.replay:
        raise ProblemError(409, f"study {name!r} replays recorded runs: it takes no hints")


def _by_configuration(trials: list[TrialRecord]) -> Mapping[frozenset[tuple[str, Any]], int]:
    return {_key(trial.configuration): trial.number for trial in trials}


def _key(configuration: Mapping[str, Any]) -> frozenset[tuple[str, Any]]:
    return frozenset(configuration.items())


def _state_of(hint: Hint, trial: int | None) -> HintState:
    return HintState(
        configuration=json_value(dict(hint.configuration)),
        by=hint.by,
        given=hint.given,
        why=json_value(hint.why),
        trial=trial,
    )
