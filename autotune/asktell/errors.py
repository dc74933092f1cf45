"""Errors of requests to a study whose runs other programs make."""

from autotune.errors import AutotuneError, BusyError


class FinishedError(AutotuneError):
    """The study is finished: its budget is used, and its winner was compared with the default."""


class InvalidRequestError(AutotuneError):
    """A request or a report is not valid; nothing was stored, and the lease continues."""


class LeaseConflictError(AutotuneError):
    """The lease has another result already, which counts."""


class LeaseGoneError(AutotuneError):
    """The lease is unknown: it ran out and another client got the run, or it belongs to another study."""


class LaterError(BusyError):
    """The new session has not resumed the run of this lease yet: report again in a moment."""


class ClosedError(AutotuneError):
    """The study was closed; its leases stay valid, and it accepts results when it is open again."""
