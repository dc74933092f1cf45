"""Problems of a TOML file with the lines that they are on."""

import re
from collections.abc import Mapping
from dataclasses import replace

from autotune.tomlfiles.lines import line_of
from spaces.parameters.problem import Problem


def located(problem: Problem, places: Mapping[str, int]) -> Problem:
    """Return a problem with its line, its path as `lines_of` writes paths; `places` are the lines of the file."""
    if problem.path is None:
        return problem
    path = re.sub(r"\[(-?\d+)\]", r".\1", problem.path)
    return replace(problem, path=path, line=line_of(places, path))
