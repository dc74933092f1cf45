"""Routes for programs that make the runs themselves: ask for a configuration, tell what came of it."""

from asyncio import wrap_future
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from autotune import asktell
from autotune.asktell.errors import LaterError
from autotune.service.asktell_studies import AskTellStudies
from autotune.service.models.asking import Ask, Asked, Renew, Renewed, Tell, Told
from autotune.service.problems import ProblemError, answers
from autotune.service.routes.studies import StudyName, by

_NOTHING: dict[int | str, dict[str, Any]] = {
    204: {"description": "Nothing is to be done now: others are at it. Ask again after `Retry-After` seconds."}
}


def routes(opened: AskTellStudies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/studies/{name}", tags=["ask and tell"])

    @router.post("/ask", response_model=Asked, responses={**answers(404, 409, 410, 413, 415), **_NOTHING})
    async def ask(name: StudyName, wanted: Ask, request: Request) -> Asked | Response:
        """Ask for a configuration to measure, which is the caller's until its lease ends."""
        session = opened.session(name, asks=True)
        with _problems():
            leased = await wrap_future(
                session.asking(wanted.lease_s, wait_s=wanted.wait_s, who=by(request), key=wanted.key)
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
        """Tell what came of a run. It is stored when this is answered; the same once more changes nothing."""
        session = opened.session(name, asks=False)
        words = result.model_dump(exclude={"lease"}, exclude_none=True)
        with _problems():
            reply = await wrap_future(session.telling(result.lease, asktell.RunReport(**words)))
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
