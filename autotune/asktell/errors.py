"""Errors of asking and telling."""

from autotune.errors import AutotuneError, BusyError


class FinishedError(AutotuneError):
    """There is nothing more to ask for: the budget is used, and the winner was compared with the default."""


class InvalidRequestError(AutotuneError):
    """What is told is not valid; nothing was stored, and the lease goes on."""


class LeaseConflictError(AutotuneError):
    """Something else was told for this lease before, which stands."""


class LeaseGoneError(AutotuneError):
    """The lease is not known: it ran out and the run was given to somebody else, or it is of another study."""


class LaterError(BusyError):
    """The study goes on from where it was, and is not yet at the run of this lease: tell it again in a moment."""


class ClosedError(AutotuneError):
    """The study was closed; leases stay valid, and results are accepted when it is open again."""
