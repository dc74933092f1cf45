"""The door: a listening socket that turns strangers away who come too often, before a connection costs anything."""

import socket
from collections.abc import Callable
from typing import Any

# So many are turned away before those that are inside get a turn again.
_TURNED_AWAY_AT_ONCE = 100

Admits = Callable[[socket.socket, Any], bool]


class Door(socket.socket):
    """A listening socket from which `accept` returns only connections that are admitted."""

    def __init__(self, listening: socket.socket, admits: Admits) -> None:
        """Take over a listening socket; `admits` is given a connection, and the address of its other end."""
        super().__init__(listening.family, listening.type, listening.proto, listening.detach())
        self._admits = admits

    def accept(self) -> tuple[socket.socket, Any]:
        """Return a connection and its address, as a socket does; those that are not admitted are closed.

        Raises:
            BlockingIOError: there is none now, or enough were turned away for now.
        """
        for _ in range(_TURNED_AWAY_AT_ONCE):
            connection, address = super().accept()
            if self._admits(connection, address):
                return connection, address
            connection.close()
        raise BlockingIOError
