"""The version of autotune's tables."""

VERSION = 3
"""The version that this autotune reads and writes."""
