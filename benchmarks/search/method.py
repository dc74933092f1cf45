"""The methods by name, with their scripts, options and packages."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from benchmarks.search.ours import InProcess, ours, own_version, random

# Largest number of evaluations of a slow method, unless --slow is given.
SLOW_BUDGET = 50

_STRATEGIES = (
    "genetic_algorithm",
    "diff_evo",
    "pso",
    "firefly_algorithm",
    "simulated_annealing",
    "dual_annealing",
    "basinhopping",
    "bayes_opt",
    "greedy_ils",
    "greedy_mls",
    "mls",
    "hybrid_vndx",
    "adaptive_tabu_greywolf",
)


@dataclass(frozen=True, eq=False)
class Method:
    """A method runs in this process (`run`), or as a child: a script of `peers/` that needs `package`."""

    name: str
    run: InProcess | None = None
    script: str = ""
    package: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    slow: bool = False

    def budget(self, largest: int, *, slow: bool) -> int:
        """Return its number of evaluations, given the largest requested one."""
        return largest if slow or not self.slow else min(largest, SLOW_BUDGET)


def _all() -> list[Method]:
    optuna = [
        Method(
            f"optuna-{sampler}-{mode}",
            script="with_optuna.py",
            package="optuna",
            options={"sampler": sampler, "mode": mode},
            slow=sampler == "gp",
        )
        for sampler in ("tpe", "gp")
        for mode in ("valid", "reject", "penalty")
    ]
    kernel_tuner = [
        Method(f"kt-{name}", script="with_kernel_tuner.py", package="kernel_tuner", options={"strategy": name})
        for name in _STRATEGIES
    ]
    smac = [
        Method(f"smac-{name}", script="with_smac.py", package="smac", options={"facade": name}, slow=True)
        for name in ("hpo", "blackbox")
    ]
    nevergrad = [
        Method("nevergrad-ngopt", script="with_nevergrad.py", package="nevergrad", options={"optimiser": "NGOpt"})
    ]
    deephyper = [Method("deephyper-cbo", script="with_deephyper.py", package="deephyper", slow=True)]
    return [
        Method("ours", run=ours),
        Method("random", run=random),
        *kernel_tuner,
        *optuna,
        *nevergrad,
        *smac,
        *deephyper,
    ]


METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _all()})


@dataclass(frozen=True)
class Installed:
    """An installed method: the interpreter that has its package, and the version."""

    python: str
    version: str


def find(method: Method, pythons: Sequence[str]) -> Installed | None:
    """Return the first of the interpreters that has the method's package."""
    if method.run is not None:
        return Installed("", own_version() if method.run is ours else "exact")
    for python in pythons:
        version = _versions(python).get(method.package.lower())
        if version is not None:
            return Installed(python, version)
    return None


_LISTING = (
    "import importlib.metadata as m, json;"
    "print(json.dumps({d.name.lower().replace('-', '_'): d.version for d in m.distributions()}))"
)


@cache
def _versions(python: str) -> Mapping[str, str]:
    done = subprocess.run([python, "-c", _LISTING], capture_output=True, text=True, check=True)
    found: Mapping[str, str] = json.loads(done.stdout)
    return found
