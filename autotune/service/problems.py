"""Problems: the answers to requests that cannot be carried out (RFC 9457)."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from autotune.errors import AutotuneError, BusyError, CannotRunHereError, DifferentStudyError, StorageError
from autotune.service.invalid import field_errors
from autotune.service.json_values import with_tilde

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """Why a request was not carried out: `detail` says what was given, the rule, and what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    fields: dict[str, str] = Field(default_factory=dict, description="The wrong fields of the request, and why.")


class ProblemError(Exception):
    """A request that cannot be carried out."""

    def __init__(self, status: int, detail: str, retry_after_s: int | None = None) -> None:
        """Answer `status` with `detail`; the client may try again after `retry_after_s` seconds."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}


_STATUS = {DifferentStudyError: 409, StorageError: 503, BusyError: 409, CannotRunHereError: 422}

_WHY = {
    400: "The request is malformed, or names another host.",
    401: "A token is needed.",
    403: "The token's scope is too small, the service is read-only, or the request comes from another site.",
    404: "It does not exist.",
    405: "The address does not have this method.",
    408: "The body did not arrive in time.",
    409: "Not in this state; `detail` says what is.",
    410: "The study is finished, or the lease has ended.",
    413: "The body is too long.",
    415: "The body is not JSON.",
    422: "The request breaks a rule; `detail` says which.",
    503: "Too many requests at once, or the storage is away; ask again after `Retry-After` seconds.",
}


def answers(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of problems: of these codes, and of those that every request can get."""
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    wanted = sorted({400, 401, 403, 422, 503, *codes})
    return {code: {"description": _WHY[code], "content": {MEDIA_TYPE: schema}} for code in wanted}


def problem(
    status: int, detail: str, headers: dict[str, str] | None = None, fields: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the answer for a problem."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=with_tilde(detail), fields=dict(fields or {}))
    return JSONResponse(body.model_dump(), status, headers, MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Answer every error as a problem, never with a traceback."""

    @app.exception_handler(ProblemError)
    async def _problem(request: Request, error: ProblemError) -> JSONResponse:
        del request
        return problem(error.status, error.detail, error.headers)

    @app.exception_handler(AutotuneError)
    async def _mistake(request: Request, error: AutotuneError) -> JSONResponse:
        del request
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 422)
        return problem(status, str(error), {"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        del request
        fields = {name: with_tilde(text) for name, text in field_errors(error.errors()).items()}
        return problem(422, "; ".join(f"{name}: {text}" for name, text in fields.items()), fields=fields)

    @app.exception_handler(HTTPException)
    async def _answer_http_error(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_methods(request))
        return problem(error.status_code, f"{request.method}: {error.detail}", headers)

    @app.exception_handler(Exception)
    async def _answer_defect(request: Request, error: Exception) -> JSONResponse:
        del request, error  # the server's log has it
        return problem(500, "this failed by a mistake of the service; its log has the details")


def _methods(request: Request) -> list[str]:
    """Return the methods of an address; the framework names those of one route only."""
    fitting = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    return sorted({method for route in fitting for method in getattr(route, "methods", None) or ()})
