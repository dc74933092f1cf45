"""Routes of ask and tell, for programs that make the runs themselves. Times are in seconds."""

from asyncio import wrap_future
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from autotune import asktell
from autotune.asktell.errors import LaterError
from autotune.service.asktell_studies import AskTellStudies
from autotune.service.callers import is_own
from autotune.service.models.values import Given, Values
from autotune.service.problems import ProblemError, answers
from autotune.service.routes.studies import StudyName, by

_NOTHING: dict[int | str, dict[str, Any]] = {
    204: {"description": "There is no run to make now. Ask again after `Retry-After` seconds."}
}


Failure = Literal["invalid result", "out of memory", "timed out", "application error", "infrastructure error"]


class Ask(Given):
    """A request for a run: how long its lease is to last, and how long to wait for one."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"lease_s": 3600}]})

    lease_s: float = Field(600.0, gt=0, le=30 * 86400, description="After that another client gets the run.")
    wait_s: float = Field(0.0, ge=0, le=10, description="How long to wait for a run.")
    key: str = Field(
        "",
        max_length=200,
        description="A word of your own for this request. If its answer is lost, asking again with the same key gives "
        "the same run while its lease lasts.",
    )


class Asked(BaseModel):
    """A configuration to measure, and the lease under which to tell its result.

    A run whose metric is sure to be worse than `cap` may be stopped; tell its bound then.
    """

    lease: str
    trial: int
    run: int
    series: str = Field(description="The purpose: empty for tuning; others compare the winner and the default.")
    configuration: Values
    cap: float | None
    expires_s: float = Field(description="In how many seconds the lease ends.")


class Tell(Given):
    """The result of a run: exactly one of `value`, `metrics`, `failure` and `bound`."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [
                {"lease": "k3Jx0W...", "value": 2.01, "elapsed_s": 2.4},
                {"lease": "k3Jx0W...", "failure": "out of memory", "message": "killed"},
                {"lease": "k3Jx0W...", "bound": 3.5},
            ]
        },
    )

    lease: str = Field(max_length=200)
    value: float | None = None
    metrics: dict[Annotated[str, Field(max_length=100)], float] | None = Field(None, max_length=100)
    failure: Failure | None = None
    bound: float | None = None
    message: str = Field("", max_length=2000)
    elapsed_s: float | None = Field(None, ge=0)
    cores: int = Field(1, ge=1, le=10**8)


class Told(BaseModel):
    """The state of the trial after its result was stored."""

    trial: int
    state: str
    best: bool


class Renew(Given):
    """A request for a longer lease."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"lease": "k3Jx0W...", "lease_s": 600}]}
    )

    lease: str = Field(max_length=200)
    lease_s: float = Field(600.0, gt=0, le=30 * 86400)


class Renewed(BaseModel):
    """In how many seconds the lease ends."""

    expires_s: float


def routes(opened: AskTellStudies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/studies/{name}", tags=["ask and tell"])

    @router.post("/ask", response_model=Asked, responses={**answers(404, 409, 410, 413, 415), **_NOTHING})
    async def ask(name: StudyName, wanted: Ask, request: Request) -> Asked | Response:
        """Ask for a configuration to measure. No other client gets it until its lease ends."""
        session, who = opened.session(name, asks=True), "" if is_own(request) else by(request)
        with _problems():
            leased = await wrap_future(
                session.ask_future(wanted.lease_s, wait_s=wanted.wait_s, who=who, key=wanted.key)
            )
        if leased is None:
            return Response(status_code=204, headers={"Retry-After": "1"})
        return Asked(
            lease=leased.lease,
            trial=leased.trial,
            run=leased.run,
            series=leased.series,
            configuration=dict(leased.configuration),
            cap=leased.cap,
            expires_s=leased.lease_s,
        )

    @router.post("/tell", responses=answers(404, 409, 410, 413, 415))
    async def tell(name: StudyName, result: Tell) -> Told:
        """Tell the result of a run. It is stored before this is answered; telling it again changes nothing."""
        session = opened.session(name, asks=False)
        words = result.model_dump(exclude={"lease"}, exclude_none=True)
        with _problems():
            reply = await wrap_future(session.tell_future(result.lease, asktell.RunReport(**words)))
        return Told(trial=reply.trial, state=reply.state, best=reply.best)

    @router.post("/renew", responses=answers(404, 409, 410, 413, 415))
    async def renew(name: StudyName, wanted: Renew) -> Renewed:
        """Ask for more time for a run."""
        session = opened.session(name, asks=False)
        with _problems():
            await run_in_threadpool(session.renew, wanted.lease, wanted.lease_s)
        return Renewed(expires_s=wanted.lease_s)

    return router


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except (asktell.FinishedError, asktell.LeaseGoneError) as error:
        raise ProblemError(410, str(error)) from error
    except asktell.LeaseConflictError as error:
        raise ProblemError(409, str(error)) from error
    except (asktell.ClosedError, LaterError) as error:
        raise ProblemError(503, str(error), retry_after_s=1) from error
