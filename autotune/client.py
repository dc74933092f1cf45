"""A thin client of the service: `Client("http://127.0.0.1:8642").studies()`. It needs nothing but Python.

Answers are what the service sends, as dictionaries and lists; its description is at `/openapi.json`.
"""

import http.client
import json
import logging
import os
import secrets
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from autotune.user_paths import find_user_folder

Json = Any
_TIMEOUT_S = 60.0
_PATIENCE_S = 120.0
# The factor between the pauses before requests to a busy service are repeated; the first pause is 1 s.
_GROWTH = 1.5
_LONGEST_PAUSE_S = 10.0
_UNIX = "unix:"
_BUSY = frozenset({429, 503})  # 429 comes from a proxy in front of the service
_NOTHING = 204
_ERRORS_FROM = 400
TOKEN_VARIABLE = "AUTOTUNE_TOKEN"  # noqa: S105  a name, no token
TOKEN_HEADER = "Authorization: Bearer "  # noqa: S105  the text before a token
_HTTP_PORT = 80
_log = logging.getLogger(__name__)


class ServiceError(Exception):
    """The service refused a request: `status` is the answer's, the message says why."""

    def __init__(self, status: int, detail: str) -> None:
        """Make an error from the status and the message of an answer."""
        super().__init__(detail)
        self.status = status


def start_token_file(host: str, port: int) -> Path:
    """Return the file with the token of this user's service at an address of this host.

    Its one line is the header that shows the token, for `curl -H @FILE`: a token on a command line could be read by
    other users of the host.
    """
    return find_user_folder() / f"service-{host}-{port}"


def read_start_token(host: str, port: int) -> str | None:
    """Return the token of this user's service; None without one, and where others could have written or read it."""
    path = start_token_file(host, port)
    try:
        folder = path.parent.lstat()
        if not (stat.S_ISDIR(folder.st_mode) and is_only_ours(folder)):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="ascii") as file:
        if not is_only_ours(os.fstat(descriptor)):
            _log.warning("the token in %s is not used, since others may read it: start the service again", path)
            return None
        header = file.read().strip()
    return header.removeprefix(TOKEN_HEADER) if header.startswith(TOKEN_HEADER) else None


def is_only_ours(status: os.stat_result) -> bool:
    """Return whether a file or folder is this user's, and closed to all others."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077


@dataclass(frozen=True)
class LeasedRun:
    """A configuration to measure, under a lease. A run that is sure to be worse than `cap` may be stopped."""

    lease: str
    trial: int
    run: int
    series: str
    configuration: Mapping[str, Any]
    cap: float | None
    expires_s: float


class Client:
    """Talks to a service; one connection, for one thread."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        timeout_s: float = _TIMEOUT_S,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """Connect to a service.

        A request that fails because a study is being opened or the service is busy is repeated, with growing pauses and
        a logged warning.

        Args:
            address: The service's URL, or `unix:PATH` for `autotune serve --socket PATH`.
            token: The token to send. By default it is AUTOTUNE_TOKEN of the environment; without that, for a service
                of this user on this host, the token that the service wrote to a file for its user.
            timeout_s: The time to wait for an answer, in seconds.
            patience_s: The sum of the pauses before a request fails, in seconds.

        Raises:
            ValueError: The address is not valid.
        """
        self._connect, self._root, self._at = _way_to(address)
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._connection = self._connect(timeout_s)
        self._token = token or os.environ.get(TOKEN_VARIABLE)
        # By study: the key of a request for a run that has not been answered yet.
        self._asked: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Use it in a `with` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def catalogue(self) -> list[Json]:
        """Return the studies that may be started."""
        return list(self._call("GET", "/catalogue"))

    def studies(self) -> list[Json]:
        """Return all studies, in short."""
        return list(self._call("GET", "/studies"))

    def known(self) -> list[Json]:
        """Return the best known configuration of each program on each machine."""
        return list(self._call("GET", "/known"))

    def start(self, study: str, **options: Json) -> Json:
        """Start a study of the catalogue.

        Options are `name`, `trials`, `timeout`, `workers`, `seed`, `cores`, `launcher` and `budget`.
        """
        return self._call("POST", "/studies", {"study": study} | options)

    def estimate(self, study: str, **options: Json) -> Json:
        """Return the cost of `start` with the same options; None if nothing similar was measured."""
        return self._call("POST", "/estimate", {"study": study} | options)

    def extend(self, name: str, trials: int) -> Json:
        """Make this number of further trials of a study that does not run."""
        return self._call("POST", _path(name, "extend"), {"trials": trials})

    def confirm(self, name: str, pairs: int | None = None, weights: str | None = None) -> Json:
        """Compare the winner of a study that does not run with the default in fresh runs, in `pairs` pairs in all.

        For a trade-off, `weights` such as `time_s=2,energy_j=1` choose the point of its front.
        """
        return self._call("POST", _path(name, "confirm"), {"pairs": pairs, "weights": weights})

    def ablate(self, name: str) -> Json:
        """Measure the worth of each changed option of the winner; `ablation` returns the result."""
        return self._call("POST", _path(name, "ablate"))

    def study(self, name: str) -> Json:
        """Return the state of a study."""
        return self._call("GET", _path(name))

    def pause(self, name: str) -> Json:
        """Let the runs in flight end, and start no other."""
        return self._call("POST", _path(name, "pause"))

    def resume(self, name: str) -> Json:
        """Continue a study."""
        return self._call("POST", _path(name, "resume"))

    def stop(self, name: str) -> Json:
        """End a study now."""
        return self._call("POST", _path(name, "stop"))

    def delete(self, name: str) -> None:
        """Delete a study that does not run, and the folders of its runs."""
        self._call("DELETE", _path(name))

    def label(self, name: str, tags: Sequence[str] = (), note: str = "", *, archived: bool = False) -> Json:
        """Replace the tags and the note of a study; lists leave out an archived study."""
        return self._call("PUT", _path(name, "labels"), {"tags": list(tags), "note": note, "archived": archived})

    def trials(self, name: str) -> Iterator[Json]:
        """Yield every trial of a study, by number."""
        after: int | None = -1
        while after is not None:
            page = self._call("GET", f"{_path(name, 'trials')}?{urlencode({'after': after})}")
            yield from page["trials"]
            after = page["next"]

    def table(self, name: str, **query: Json) -> Json:
        """Return a page of the trials by `where`, `state`, `sort`, `down`, `offset` and `limit`, and their number."""
        given = {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items()}
        return self._call("GET", f"{_path(name, 'table')}?{urlencode(given)}")

    def trial(self, name: str, trial: int) -> Json:
        """Return a trial with its runs, and the ends of what they printed."""
        return self._call("GET", _path(name, "trials", str(trial)))

    def incumbent(self, name: str) -> Json:
        """Return the best valid trial so far."""
        return self._call("GET", _path(name, "incumbent"))

    def decisions(self, name: str) -> Json:
        """Return the decision table of a study, what to use where; None before enough runs have ended."""
        return self._call("GET", _path(name, "decisions"))

    def ablation(self, name: str) -> Json:
        """Return the worth of each changed option of the winner."""
        return self._call("GET", _path(name, "ablation"))

    def space(self, name: str) -> Json:
        """Return the valid configurations as a JSON schema, with the default and the rules."""
        return self._call("GET", _path(name, "space"))

    def hint(self, name: str, configuration: Mapping[str, Json], why: str = "") -> Json:
        """Propose a configuration; the results of earlier hints decide whether and when it is tried."""
        return self._call("POST", _path(name, "hints"), {"configuration": dict(configuration), "why": why})

    def hints(self, name: str) -> list[Json]:
        """Return the hints of a study, with the trial of each that was tried."""
        return list(self._call("GET", _path(name, "hints")))

    def verdict(self, name: str) -> Json:
        """Return the comparison of the winner with the default configuration."""
        return self._call("GET", _path(name, "verdict"))

    def predict(  # noqa: PLR0913  by keyword
        self,
        study: str,
        machine: str | Mapping[str, Json] | None = None,
        k: int = 5,
        *,
        nodes: int = 1,
        workload: str | Mapping[str, Json] | None = None,
        where: Sequence[str] = (),
    ) -> Json:
        """Return the `k` configurations that should be best on a machine; None means the service's machine."""
        asked = {"study": study, "machine": machine, "k": k, "nodes": nodes, "workload": workload, "where": list(where)}
        return self._call("POST", "/predict", asked)

    def ask(self, name: str, lease_s: float = 600.0, wait_s: float = 0.0) -> LeasedRun | None:
        """Return a run to make; None if there was nothing to do for `wait_s` seconds, while other runs are in flight.

        Asking again after a lost answer returns the same run.

        Raises:
            ServiceError: 410: the study is finished.
        """
        asked = {"lease_s": lease_s, "wait_s": wait_s, "key": self._asked.setdefault(name, secrets.token_hex(8))}
        found = self._call("POST", _path(name, "ask"), asked, wait_s=wait_s)
        del self._asked[name]
        return None if found is None else LeasedRun(**found)

    def tell(self, name: str, lease: str, **result: Json) -> Json:
        """Report the result of a run: `value`, `metrics`, `failure` or `bound`. Repeating a report changes nothing."""
        return self._call("POST", _path(name, "tell"), {"lease": lease} | result)

    def renew(self, name: str, lease: str, lease_s: float = 600.0) -> float:
        """Extend the lease of a run; return the seconds until its end."""
        return float(self._call("POST", _path(name, "renew"), {"lease": lease, "lease_s": lease_s})["expires_s"])

    def follow(self, name: str | None = None) -> Iterator[Json]:
        """Yield the state of a study, or the list of all, now and at each change; end when the study is deleted."""
        connection = self._connect(self._timeout_s)
        try:
            path = "/events" if name is None else _path(name, "events")
            connection.request("GET", self._root + path, headers=self._headers())
            answer = connection.getresponse()
            if answer.status >= _ERRORS_FROM:
                raise _refusal(answer.status, answer.read())
            event = ""
            for line in answer:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    event = value
                elif field == "data" and event == "gone":
                    return
                elif field == "data":
                    yield json.loads(value)
        finally:
            connection.close()

    def _call(self, method: str, path: str, body: Json = None, wait_s: float = 0.0) -> Json:
        """Send a request, which the service may answer after `wait_s` seconds; repeat it while the service is busy."""
        self._wait_for(self._timeout_s + wait_s)
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers() | ({} if content is None else {"Content-Type": "application/json"})
        waited_s, growing_s = 0.0, 1.0
        while True:
            try:
                status, pause_s, text = self._send(method, self._root + path, content, headers)
            except BaseException:
                # A late answer must not be mistaken for the answer to the next request.
                self._connection.close()
                raise
            if status not in _BUSY or waited_s >= self._patience_s:
                break
            if not waited_s:
                _log.warning("%s (asking again for up to %g s)", _refusal(status, text), self._patience_s)
            pause_s = min(max(pause_s, growing_s), self._patience_s - waited_s)
            time.sleep(pause_s)
            waited_s += pause_s
            growing_s = min(growing_s * _GROWTH, _LONGEST_PAUSE_S)
        if status >= _ERRORS_FROM:
            raise _refusal(status, text, waited_s)
        return None if status == _NOTHING else json.loads(text)

    def _headers(self) -> dict[str, str]:
        # Read for each request, since a restarted service has another token.
        token = self._token or (None if self._at is None else read_start_token(*self._at))
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _wait_for(self, seconds: float) -> None:
        self._connection.timeout = seconds
        if self._connection.sock is not None:
            self._connection.sock.settimeout(seconds)

    def _send(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, float, bytes]:
        """Return the status of an answer, the pause that a busy service wants in seconds, and the text."""
        try:
            self._connection.request(method, path, content, dict(headers))
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The service closes connections that were idle for some seconds.
            self._connection.close()
            self._connection.request(method, path, content, dict(headers))
            answer = self._connection.getresponse()
        return answer.status, _pause_s(answer.headers.get("Retry-After", "")), answer.read()


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.close()
            raise


def _way_to(
    address: str,
) -> tuple[Callable[[float | None], http.client.HTTPConnection], str, tuple[str, int] | None]:
    """Return what connects to a service, where its paths begin, and its host and port if it may be on this host.

    Raises:
        ValueError: The address is not valid.
    """
    if address.startswith(_UNIX) and len(address) > len(_UNIX):
        return partial(_UnixConnection, address.removeprefix(_UNIX)), "", None
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = f"{address!r} is not the address of a service, which looks like http://127.0.0.1:8642, or unix:PATH"
        raise ValueError(msg)
    root, port = parts.path.rstrip("/"), parts.port
    # Python would try ::1 first, where another user may listen at the same port, and would be sent the token.
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname
    if parts.scheme == "https":
        return lambda wait_s: http.client.HTTPSConnection(host, port, timeout=wait_s), root, None
    at = (host, port or _HTTP_PORT)
    return lambda wait_s: http.client.HTTPConnection(*at, timeout=wait_s), root, at


def _path(name: str, *rest: str) -> str:
    return "/".join(("/studies", quote(name, safe=""), *rest))


def _pause_s(text: str) -> float:
    """Return the minimum pause of a Retry-After header, in seconds; 0 for a date, which a proxy may send."""
    return float(text) if text.isdigit() else 0.0


def _refusal(status: int, text: bytes, waited_s: float = 0.0) -> ServiceError:
    try:
        detail = json.loads(text)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = text.decode(errors="replace")[:500]
    waited = f" (still so after {waited_s:g} s)" if status in _BUSY and waited_s else ""
    return ServiceError(status, f"{detail}{waited}")
