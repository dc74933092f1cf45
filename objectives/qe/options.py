"""The options of a study of pw.x, and the input that they name."""

import difflib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.base import PlanError
from objectives.options import read_options
from spaces.parameters.problem import OptionProblem

SHIPPED_INPUTS = ("tio2", "ceo2")


class QeOptions(BaseModel):
    """The `[options]` of a study of pw.x.

    Args:
        input: A shipped input (`tio2`, `ceo2`) or the path of a user's.
        program: pw.x, by name or path.
        change_path: Also tune what changes the path to the solution (diagonalisation, mixing, first wave functions).
        change_output: Also tune which scratch files pw.x leaves (`disk_io`).
        oversubscribe: Allow more ranks and threads than cores.
        max_ranks: The largest number of ranks; by default the number of cores.
        facts: The path of a TOML file with the size of the problem, for a prediction without pw.x.
        energy_tolerance_ry: How far a run's total energy may be from the default's; by default the input's `conv_thr`.
        saved: The files of an earlier run from which the input continues: its `outdir`, or PREFIX.save.
        prepared_by: The input of a run that is made once, and from which the study's input continues.
        pseudo_cache: The folder for pseudopotentials that autotune generates; by default `~/.cache/autotune/pseudo`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    input: str = "tio2"
    program: str = "pw.x"
    change_path: bool = False
    change_output: bool = False
    oversubscribe: bool = False
    max_ranks: int | None = Field(default=None, ge=1)
    facts: str | None = None
    energy_tolerance_ry: float | None = Field(default=None, gt=0)
    saved: str | None = None
    prepared_by: str | None = None
    pseudo_cache: str | None = None

    @model_validator(mode="after")
    def _continues_from_one(self) -> Self:
        if self.saved is not None and self.prepared_by is not None:
            msg = "saved and prepared_by both say what to continue from; keep one of them"
            raise ValueError(msg)
        return self

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "QeOptions":
        """Check options from a study file.

        Raises:
            PlanError: The options have errors; all are reported, each with its path.
        """
        return read_options(cls, options, "pw.x")


def input_text(name: str) -> tuple[str, Path, bytes]:
    """Return the input's name, the folder from which its relative paths start, and its text.

    Raises:
        PlanError: There is no such file, or it cannot be read.
    """
    path = Path(name).expanduser()
    if not path.is_file() and name in SHIPPED_INPUTS:
        return name, Path.cwd(), shipped_input(name)
    try:
        return str(path), path.resolve().parent, path.read_bytes()
    except FileNotFoundError:
        close = difflib.get_close_matches(name, SHIPPED_INPUTS, n=1)
        suggestion = f" (did you mean {close[0]!r}?)" if close else ""
        msg = f"there is no input {name!r}{suggestion}; give the path of a pw.x input, or one of: {_shipped_names()}"
    except OSError as error:
        msg = f"input {name!r} cannot be read: {error.strerror}"
    raise PlanError(msg)


def with_own_input(options: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the options with a user's input: a path, or the name of a shipped input.

    Raises:
        PlanError: There is no such file, or it cannot be read.
    """
    try:
        input_text(path)
    except PlanError as error:
        raise PlanError(OptionProblem(one.message, option=f"--input {path}") for one in error.problems) from None
    return {**options, "input": path}


def shipped_input(name: str) -> bytes:
    """Return the text of a shipped input.

    Raises:
        PlanError: No shipped input has this name.
    """
    if name not in SHIPPED_INPUTS:
        msg = f"no shipped input is called {name!r}; known: {_shipped_names()}"
        raise PlanError(msg)
    return (resources.files("studies") / "inputs" / f"{name}.in").read_bytes()


def _shipped_names() -> str:
    return ", ".join(SHIPPED_INPUTS)
