"""Migration: one step from a version of a storage to the next."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection


@dataclass(frozen=True)
class Migration:
    """A step to the next version.

    `what` names the old form in a few words. `needed` tells whether a storage has anything of the old form, which is
    not readable as it is; it only reads, and any storage may be shown to it. `apply` changes it to the new form, in the
    transaction of the connection that it is given.
    """

    what: str
    needed: Callable[[Connection], bool]
    apply: Callable[[Connection], None]
