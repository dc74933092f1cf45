"""The endings that are no defect of the program."""


class RefusedError(Exception):
    """Something that was given is wrong: an option, the data, the checkpoint. The message says what to do."""


class DivergedError(Exception):
    """A loss is no finite number: these settings do not train."""
