"""Migrations: what brings a storage from one version to the next, a module each.

A storage without a version, which is what autotune wrote before there were any, is of version 0. It may be of several
ages, so each migration looks at what is there, and finds nothing to do the second time. Of what was not stored then
nothing is guessed.
"""

from autotune.storage.migration import Migration
from autotune.storage.version1 import TEXTS
from autotune.storage.version2 import RUNS
from autotune.storage.version3 import ABLATIONS

MIGRATIONS: tuple[Migration, ...] = (TEXTS, RUNS, ABLATIONS)
"""In their order: the first one leads to version 1."""

__all__ = ["MIGRATIONS", "Migration"]
