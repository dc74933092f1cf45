"""Processes that train together on one machine."""

import os
import signal
import socket


def stay_on_this_machine() -> None:
    """Let workers connect over the loopback interface, which always exists, unless the environment names another."""
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    if loopback:
        for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(variable, loopback)


def describe_exit(exit_code: int) -> str:
    """Return how a process ended unexpectedly, as words that follow its name and `has`."""
    if exit_code >= 0:
        return f"ended early, with exit code {exit_code}"
    hint = "; unless a user did that, the machine ran out of memory" if -exit_code == signal.SIGKILL else ""
    return f"been killed by {signal.Signals(-exit_code).name}{hint}"
