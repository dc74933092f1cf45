"""Import programs of studies as modules, so that their parts are tested without a process."""

import importlib.util
from pathlib import Path
from types import ModuleType

PROGRAMS = Path("studies/programs").absolute()


def loaded(name: str) -> ModuleType:
    """Import a program of `studies/programs` as a new module."""
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
