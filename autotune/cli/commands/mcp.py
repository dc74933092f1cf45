"""`autotune mcp`: let agents use studies through the Model Context Protocol."""

from typing import Annotated, Literal

import typer

from autotune.cli.packages import require_modules
from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError


def mcp(
    service: Annotated[
        str, typer.Option("--service", help="Address of the service: http://HOST:PORT, or unix:PATH.")
    ] = "http://127.0.0.1:8642",
    scope: Annotated[
        Literal["look", "ask", "operate"],
        typer.Option(
            "--scope",
            metavar="look|ask|operate",
            help="Let the agent look, also ask and tell, or also start studies.",
        ),
    ] = "ask",
    studies: Annotated[int, typer.Option("--studies", min=0, help="Number of studies that the agent may start.")] = 1,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Most trials of each of these studies.")] = 50,
    timeout: Annotated[
        str, typer.Option("--timeout", help="Longest time of each of these studies: 90s, 15m, 1h30m.")
    ] = "1h",
    prefix: Annotated[str, typer.Option("--prefix", help="Begin the names of these studies with this.")] = "agent-",
) -> None:
    """Let an agent use studies, by the Model Context Protocol.

    The agent's program starts this command. It needs a service, `autotune serve`, and the token in AUTOTUNE_TOKEN
    (default: that of your own service). A budget of the token replaces the limits of studies.
    """
    require_modules("mcp")
    from autotune.agents.server import Agent, serve
    from autotune.client import Client
    from autotune.service.models.budgets import Budget
    from autotune.service.scopes import Scope

    try:
        time_s = parse_duration_s(timeout)
        Client(service).close()
    except ValueError as error:
        raise AutotuneError(str(error)) from None
    try:
        budget = Budget(studies=studies, trials=trials, time_s=time_s, prefix=prefix)
    except ValueError:
        msg = (
            f"--prefix: {prefix!r} was given; it must be the start of a study's name, of letters, digits and . _ -, "
            "such as agent-"
        )
        raise AutotuneError(msg) from None
    serve(Agent(service, None, Scope(scope), budget))
