"""Errors that are not defects of the program."""


class RefusedError(Exception):
    """An option, the data or the checkpoint is wrong. The message says what to do."""


class DivergedError(Exception):
    """A loss is infinite or undefined: these settings do not train."""
