"""Programs of studies, as modules: their parts are tested without a process."""

import importlib.util
from pathlib import Path
from types import ModuleType

PROGRAMS = Path("studies/programs").absolute()


def loaded(name: str) -> ModuleType:
    """Return a new module of a program of `studies/programs`."""
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
