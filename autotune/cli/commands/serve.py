"""`autotune serve` and `autotune token`: the service, and the tokens of its users on other hosts."""

import logging
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from autotune.cli.common import errors, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage
from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError, CannotRunHereError
from autotune.storage.address import shown, state_folder, storage_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from autotune.service.settings import Settings
    from autotune.service.tokens import KeptToken

FolderOption = Annotated[
    Path | None,
    typer.Option("--folder", help="Folder for the service's files; by default autotune-service beside the storage."),
]

_BACKLOG = 512


def serve(
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at. Any address but the loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen at; 0 takes any free port.")
    ] = 8642,
    catalogue: Annotated[
        Path | None,
        typer.Option("--catalogue", help="Folder of the study files that may be started; by default those that ship."),
    ] = None,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Only show studies: nobody can start, change or delete one."),
    ] = False,
    unix: Annotated[
        Path | None,
        typer.Option("--socket", help="Listen at this Unix socket, too; only you may connect to it."),
    ] = None,
    always_token: Annotated[
        bool,
        typer.Option(
            "--always-token",
            help="You need a token on this host, too. This suits a forwarder that hides callers.",
        ),
    ] = False,
    storage: Storage = DEFAULT_STORAGE,
    folder: FolderOption = None,
    as_json: AsJson = False,
) -> None:
    """Serve studies to browsers and programs.

    Clients start and follow studies, predict, ask and tell. Ctrl-C ends the service and leaves the studies running.
    """
    from autotune.service.catalogue import Catalogue
    from autotune.service.peers.unix_socket import unix_socket
    from autotune.service.routes.app import create_app
    from autotune.service.server import run
    from autotune.service.settings import Settings

    url = storage_url(storage)
    settings = Settings(
        url, _folder(folder, url), catalogue, host, port, read_only=read_only, always_token=always_token
    )
    _check_tokens(settings)
    for mistake in Catalogue(catalogue).check():
        errors().print(f"not in the catalogue: {mistake}", markup=False)
    listening = _listening(host, port)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("autotune").setLevel(logging.INFO)
    app = create_app(settings)
    address = _address(host, listening.getsockname()[1])
    if as_json:
        described = {"url": address, "storage": shown(url), "folder": str(settings.folder), "read_only": read_only}
        print_json(described)
    else:
        _say(address, settings)
    with unix_socket(unix) if unix is not None else nullcontext() as private:
        run(app, *filter(None, (listening, private)))


def token(
    name: Annotated[
        str | None, typer.Argument(help="The name of the token's user. Without a name, the tokens are listed.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the token.")] = False,
    scope: Annotated[
        Literal["look", "ask", "operate"],
        typer.Option(
            "--scope",
            metavar="look|ask|operate",
            help="What it is for: to look; also to ask and tell; or also to start, pause, stop and delete studies.",
        ),
    ] = "operate",
    expires: Annotated[
        str | None, typer.Option("--expires", help="How long it is good for: 12h, 30d; for ever unless given.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    folder: FolderOption = None,
    as_json: AsJson = False,
) -> None:
    """Make, list or remove access tokens of the service.

    A user on another host needs a token. It is shown once; the service keeps only a digest.
    """
    from autotune.service.audit import AuditLog
    from autotune.service.scopes import Scope
    from autotune.service.settings import Settings
    from autotune.service.tokens import TokenBook

    url = storage_url(storage)
    settings = Settings(url, _folder(folder, url))
    book, audit = TokenBook(settings.tokens), AuditLog(settings.audit)
    if name is None:
        if remove:
            msg = "--remove needs the name of the token: autotune token NAME --remove"
            raise AutotuneError(msg)
        _list(book.known(), as_json=as_json)
        return
    if remove:
        with audit.order(_this_user(), "remove token", name):
            book.remove(name)
        errors().print(f"{name} has no token any more", markup=False)
        return
    expires_s = _lasting(expires)
    with audit.order(_this_user(), "make token", name, {"scope": scope, "expires": expires}):
        made = book.add(name, Scope(scope), expires_s)
    if as_json:
        print_json({"name": name, "token": made, "scope": scope, "expires": book.known()[name].expires})
        return
    errors().print(f"the token of {name}, which is not shown again (Authorization: Bearer TOKEN):", markup=False)
    typer.echo(made)


def _folder(given: Path | None, url: str) -> Path:
    return given or state_folder(url) / "autotune-service"


def _check_tokens(settings: "Settings") -> None:
    from autotune.service.tokens import TokenBook

    if settings.loopback and not settings.always_token:
        return
    if TokenBook(settings.tokens).known():
        return
    if settings.loopback:
        msg = (
            f"--always-token, and nobody has a token: make one first with "
            f"`autotune token NAME --folder {settings.folder}`"
        )
    else:
        msg = (
            f"--host {settings.host} can be reached from elsewhere, and nobody has a token: make one first with "
            f"`autotune token NAME --folder {settings.folder}`, or leave --host out and use an SSH tunnel"
        )
    raise AutotuneError(msg)


def _lasting(expires: str | None) -> float | None:
    try:
        return None if expires is None else parse_duration_s(expires)
    except ValueError as error:
        msg = f"--expires: {error}"
        raise AutotuneError(msg) from None


def _this_user() -> str:
    import getpass

    return getpass.getuser()


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        CannotRunHereError: the address is not this host's, or the port is taken.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:  # a name that cannot be one, too
        why = getattr(error, "strerror", None) or error
        msg = f"cannot listen at {host} port {port}: {why}; --host and --port choose another"
        raise CannotRunHereError(msg) from error
    return listener


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _say(address: str, settings: "Settings") -> None:
    output().print(f"autotune serves {shown(settings.url)} at {address}", markup=False)
    if settings.always_token:
        clients = "users of this host who have a token (autotune token NAME); you need one, too"
    elif settings.loopback:
        clients = "only you, from this host; other users of it need a token (autotune token NAME)"
    else:
        clients = (
            "everybody who can reach this host and has a token; the connection is not encrypted: put TLS before it"
        )
    output().print(f"open to: {clients}", markup=False)
    if settings.read_only:
        output().print("read-only: studies can be looked at, not changed; Ctrl-C ends the service", markup=False)
        return
    output().print("Ctrl-C ends the service; the studies that it started go on", markup=False)


def _list(known: "Mapping[str, KeptToken]", *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"name": owner, "made": kept.made, "scope": kept.scope, "expires": kept.expires}
                for owner, kept in known.items()
            ]
        )
        return
    from rich.table import Table

    table = Table("token of", "made", "for", "expires")
    for owner, kept in known.items():
        table.add_row(owner, kept.made, kept.scope, "expired" if kept.expired else kept.expires or "never")
    output().print(table)
