"""Python packages that only some commands need: requirements/light.lock leaves them out."""

import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from autotune.errors import CannotRunHereError
from autotune.formatting import join_words

# The packages of modules with another name.
_PACKAGES = {
    "anyio": "fastapi",
    "sklearn": "scikit-learn",
    "starlette": "fastapi",
    "xgboost": "xgboost-cpu",
}


def require_modules(*modules: str) -> None:
    """Refuse a command, before it runs anything, if this installation lacks a module that the command needs.

    Raises:
        CannotRunHereError: A module is missing.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise missing_packages(missing) or ModuleNotFoundError(f"No module named {missing[0]!r}", name=missing[0])


def missing_packages(modules: Sequence[str]) -> CannotRunHereError | None:
    """Return the error for modules that are missing; None if autotune does not name their packages."""
    from importlib.metadata import PackageNotFoundError, requires

    packages = [_PACKAGES.get(module, module) for module in modules]
    try:
        listed = [line.partition(";") for line in requires("autotune-hpc") or ()]
    except PackageNotFoundError:
        return None
    found = [(name.strip(), extra) for name, _, extra in listed if re.split(r"[^\w-]", name)[0] in packages]
    if not found:
        return None
    names = join_words([re.split(r"[^\w-]", requirement)[0] for requirement, _ in found])
    why, also = "this installation leaves out", "; ./run without AUTOTUNE_LIGHT=1 installs all packages"
    if any(extra for _, extra in found):
        why, also = "is not installed", ""
    install = " ".join(f"'{requirement}'" for requirement, _ in found)
    return CannotRunHereError(f"this needs {names}, which {why}: {sys.executable} -m pip install {install}{also}")
