"""Where the programs are that ship with the studies that measure them."""

from pathlib import Path

PROGRAMS = Path(__file__).parents[1] / "studies" / "programs"
