"""Processes of one machine that train together."""

import os
import signal
import socket


def stay_on_this_machine() -> None:
    """Let the workers connect over the loopback interface, unless somebody said otherwise: it is always there."""
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    if loopback:
        for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(variable, loopback)


def ending(exit_code: int) -> str:
    """Return how a process ended that should not have, in words that follow its name and `has`."""
    if exit_code >= 0:
        return f"ended early, with exit code {exit_code}"
    hint = "; if nobody did that, the machine's memory ran out" if -exit_code == signal.SIGKILL else ""
    return f"been killed by {signal.Signals(-exit_code).name}{hint}"
