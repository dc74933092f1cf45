"""`autotune serve` and `autotune serve token`: run the service, and manage the tokens of its other users."""

import logging
import signal
import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from autotune.cli.common import echo, errors, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage
from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError, CannotRunHereError
from autotune.storage.address import hide_password, state_folder, storage_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from autotune.service.settings import Settings
    from autotune.service.tokens import KeptToken

FolderOption = Annotated[
    Path | None,
    typer.Option("--folder", help="Folder for the service's files; by default autotune-service beside the storage."),
]

_BACKLOG = 512
# Seconds that `--url` waits for the running service.
_ANSWERS_S = 10.0


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen at; 0 takes any free port.")
    ] = 8642,
    catalogue: Annotated[
        Path | None,
        typer.Option("--catalogue", help="Folder of the study files that may be started; by default those that ship."),
    ] = None,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Only show studies; forbid starting, changing and deleting."),
    ] = False,
    unix: Annotated[
        Path | None,
        typer.Option("--socket", help="Listen at this Unix socket, too; only you can connect."),
    ] = None,
    show_url: Annotated[
        bool, typer.Option("--url", help="Print the address of your running service, with its token.")
    ] = False,
    show_token_file: Annotated[
        bool, typer.Option("--token-file", help="Print the file with its token, for curl -H @FILE.")
    ] = False,
    storage: Storage = DEFAULT_STORAGE,
    folder: FolderOption = None,
    as_json: AsJson = False,
) -> None:
    """Serve studies to browsers and programs.

    Clients start and follow studies, predict, ask and tell. Ctrl-C ends the service and leaves the studies running.
    """
    if context.invoked_subcommand is not None:
        return
    if show_url or show_token_file:
        _show_running(_reachable(host), port, as_file=show_token_file)
        return
    from autotune.cli.packages import require_modules

    require_modules("fastapi", "uvicorn", "matplotlib", "sklearn", "xgboost")
    from autotune.cli.plain_output import PlainFormatter
    from autotune.client import start_token_file
    from autotune.service.catalogue import Catalogue
    from autotune.service.routes.app import create_app
    from autotune.service.server import ending_at_once, run
    from autotune.service.settings import Settings
    from autotune.service.tokens import start_token
    from autotune.service.unix_socket import unix_socket

    url = storage_url(storage)
    for mistake in Catalogue(catalogue).check():
        errors().print(f"not in the catalogue: {mistake}")
    listening = _listen(host, port)
    log = logging.StreamHandler()
    log.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[log])
    logging.getLogger("autotune").setLevel(logging.INFO)
    # Exit normally on SIGTERM (`kill`, systemd), so that the process removes its token and its socket.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    number, port = listening.getsockname()[:2]
    at = (_reachable(number), port)
    own_socket = unix_socket(unix) if unix is not None else nullcontext()
    with ending_at_once(), start_token(*at) as made, own_socket as private:
        settings = Settings(url, _folder(folder, url), catalogue, host, port, read_only=read_only, start_token=made)
        app = create_app(settings)
        # The address is a number, as the token file is named: a name may resolve to ::1, where another user can listen.
        address = _address(*at)
        if as_json:
            described = {"url": address, "token_file": str(start_token_file(*at)), "storage": hide_password(url)}
            print_json(described | {"folder": str(settings.folder), "read_only": read_only})
        else:
            _print_start(*at, settings)
        run(app, *filter(None, (listening, private)))


def token(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The name of the token's user. Without a name, the tokens are listed."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the token.")] = False,
    scope: Annotated[
        Literal["look", "ask", "operate"],
        typer.Option(
            "--scope",
            metavar="look|ask|operate",
            help="Allow to look, also to ask and tell, or also to start, pause, stop and delete studies.",
        ),
    ] = "operate",
    expires: Annotated[
        str | None, typer.Option("--expires", help="Let the token expire after this time (12h, 30d). Default: never.")
    ] = None,
    studies: Annotated[
        int | None,
        typer.Option("--studies", min=0, help="Only let it start this many new studies, named NAME-..."),
    ] = None,
    trials: Annotated[
        int, typer.Option("--trials", min=1, help="With --studies: most trials of each of these studies.")
    ] = 50,
    timeout: Annotated[
        str, typer.Option("--timeout", help="With --studies: longest time of each of these studies.")
    ] = "1h",
    storage: Storage = DEFAULT_STORAGE,
    folder: FolderOption = None,
    as_json: AsJson = False,
) -> None:
    """Make, list or remove access tokens of the service.

    Each other user of the service needs a token. It is printed once; the service stores only a digest.
    """
    from autotune.service.audit import AuditLog
    from autotune.service.models.budgets import Budget
    from autotune.service.scopes import Scope
    from autotune.service.settings import Settings
    from autotune.service.tokens import TokenBook

    url = storage_url(storage)
    settings = Settings(url, _folder(folder, url))
    book, audit = TokenBook(settings.tokens), AuditLog(settings.audit)
    if name is None:
        if remove:
            msg = "--remove needs the name of the token: autotune serve token NAME --remove"
            raise AutotuneError(msg)
        _list(book.known(), as_json=as_json)
        return
    if remove:
        with audit.order(_this_user(), "remove token", name):
            book.remove(name)
        errors().print(f"removed the token of {name}")
        return
    expires_s = None if expires is None else _parse_option("--expires", expires)
    budget = None
    if studies is not None:
        if scope != "operate":
            msg = f"--studies needs --scope operate, which allows to start studies; --scope {scope} was given"
            raise AutotuneError(msg)
        budget = Budget(studies=studies, trials=trials, time_s=_parse_option("--timeout", timeout))
    details = {"scope": scope, "expires": expires, "budget": budget and budget.model_dump()}
    with audit.order(_this_user(), "make token", name, details):
        made = book.add(name, Scope(scope), expires_s, budget)
    if as_json:
        print_json({"token": made} | _token_row(name, book.known()[name]))
        return
    errors().print(f"the token of {name}, printed only this once (Authorization: Bearer TOKEN):")
    echo(f"{made}\n")


def _folder(given: Path | None, url: str) -> Path:
    return given or state_folder(url) / "autotune-service"


def _parse_option(option: str, duration: str) -> float:
    try:
        return parse_duration_s(duration)
    except ValueError as error:
        msg = f"{option}: {error}"
        raise AutotuneError(msg) from None


def _this_user() -> str:
    import getpass

    return getpass.getuser()


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        CannotRunHereError: The address is not this host's, or the port is taken.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:  # UnicodeError: not a valid host name
        why = getattr(error, "strerror", None) or error
        msg = f"cannot listen at {host} port {port}: {why}; choose another with --host and --port"
        raise CannotRunHereError(msg) from error
    return listener


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _reachable(host: str) -> str:
    """Return the number at which this host reaches a server that listens at `host`, as token files are named."""
    known = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host)  # noqa: S104  read, not set
    try:
        return known or str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return host


def _page(address: str, token: str) -> str:
    # Browsers do not send the part behind the #, so no log and no Referer contains the token.
    return f"{address}#token={token}"


def _show_running(host: str, port: int, *, as_file: bool) -> None:
    """Print the address of this user's running service with its token, or the file with that token.

    Raises:
        CannotRunHereError: No service of this user answers at the address.
    """
    from http.client import HTTPException

    from autotune.client import Client, ServiceError, read_start_token, start_token_file

    address, made = _address(host, port), read_start_token(host, port)
    try:
        if made is None:
            raise ConnectionRefusedError
        # A killed service leaves its token file behind, so ask the service whether it accepts the token.
        with Client(address, made, timeout_s=_ANSWERS_S) as client:
            client.catalogue()
    except (ServiceError, OSError, HTTPException) as error:
        msg = (
            f"no service of yours answers at {address}: start one with `autotune serve`, or name its --host and --port"
        )
        raise CannotRunHereError(msg) from error
    echo(f"{start_token_file(host, port) if as_file else _page(address, made)}\n")


def _print_start(host: str, port: int, settings: "Settings") -> None:
    address = _address(host, port)
    output().print(f"autotune serves {hide_password(settings.url)} at {address}")
    if sys.stdout.isatty() and settings.start_token:
        # Print the token on a terminal only: others may be able to read a file or a journal.
        echo(f"open {_page(address, settings.start_token)}\n")
    else:
        where = "" if host == "127.0.0.1" else f" --host {host}"
        command = f"autotune serve --url{where} --port {port}"
        output().print(f"`{command}` prints the address with its token")
    if settings.loopback:
        output().print("that token gives all your rights; `autotune serve token NAME` makes tokens for other users")
    else:
        output().print(
            "everyone with a token who can reach this host has access; the connection is not encrypted: use TLS",
        )
    if settings.read_only:
        output().print("read-only: clients can see studies but not change them; Ctrl-C ends the service")
        return
    output().print("Ctrl-C ends the service; the studies that it started keep running")


def _list(known: "Mapping[str, KeptToken]", *, as_json: bool) -> None:
    if as_json:
        print_json([_token_row(owner, kept) for owner, kept in known.items()])
        return
    from rich.table import Table

    table = Table("token of", "made", "for", "expires", "most studies")
    for owner, kept in known.items():
        most = str(kept.budget.studies) if kept.budget else ""
        table.add_row(owner, kept.made, kept.scope, "expired" if kept.expired else kept.expires or "never", most)
    output().print(table)


def _token_row(owner: str, kept: "KeptToken") -> "dict[str, Any]":
    budget = kept.budget and kept.budget.model_dump()
    return {"name": owner, "made": kept.made, "scope": kept.scope, "expires": kept.expires, "budget": budget}
