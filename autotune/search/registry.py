"""Samplers by their names in a study file: ours, and through the adapter those of Optuna, OptunaHub and users."""

import importlib
import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeGuard

import optuna
from optuna.samplers import BaseSampler

from autotune.errors import CannotRunHereError, StudyFileError
from autotune.search.base import Proposer
from autotune.search.exhaustive_sampler import ExhaustiveSampler
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.mirror_study import InnerSampler
from autotune.search.options import argument_errors, arguments_of
from autotune.search.optuna_adapter import AdaptedSampler
from autotune.studyfile import SamplerSection
from spaces import Space, SpaceError
from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import Problem

_OWN = ("autotune", "random", "exhaustive")
_OPTUNA = {"tpe": "TPESampler", "gp": "GPSampler", "cmaes": "CmaEsSampler"}
_NEEDED = {"GPSampler": ("torch", "scipy"), "CmaEsSampler": ("cmaes",)}
# Samplers that learn from the trials alone; all others may store notes on their proposals.
_FORGETFUL = ("TPESampler", "GPSampler", "RandomSampler", "BruteForceSampler")
# It uses Optuna's GP for the first few hundred trials, which would be slow to replay.
_FORGETFUL_PACKAGES = ("samplers/auto_sampler",)
_USELESS = {"GridSampler": "a grid of valid configurations is sampler.name = 'exhaustive'"}
_HUB = "optunahub:"
_OPTUNA_CLASS = "optuna:"


def sampler_of(space: Space, settings: SamplerSection, waiting: Callable[[], int] = lambda: 0) -> Proposer:
    """Return the sampler of a study file's `[sampler]` for `space`.

    `waiting` returns the number of unanswered requests for a proposal, in a study whose runs another program makes.

    Raises:
        StudyFileError: the sampler is unknown, its options are wrong, or it cannot search this space.
        CannotRunHereError: a package that it needs is not installed, or cannot be fetched.
    """
    inner = check_sampler(settings)
    if inner is not None:
        return AdaptedSampler(space, inner, seed=settings.seed, startup=settings.startup)
    if settings.name != "exhaustive":
        model = settings.name == "autotune"
        return ValidSetSampler(space, seed=settings.seed, startup=settings.startup, model=model, waiting=waiting)
    try:
        return ExhaustiveSampler(space)
    except SpaceError as error:
        raise StudyFileError(Problem(str(error), "sampler.name")) from None


def check_sampler(settings: SamplerSection) -> InnerSampler | None:
    """Check a sampler before anything runs; return the Optuna sampler behind its name, None for our own samplers.

    Raises:
        StudyFileError: the sampler is unknown, or its options are wrong: all of them are listed.
        CannotRunHereError: a package that it needs is not installed, or cannot be fetched.
    """
    if settings.name in _OWN:
        if settings.options:
            msg = f"sampler {settings.name!r} has no options, got {', '.join(settings.options)}"
            raise StudyFileError(Problem(msg, "sampler.options"))
        return None
    if settings.name.startswith(_HUB):
        return _from_hub(settings)
    if ":" in settings.name and not settings.name.startswith(_OPTUNA_CLASS):
        return InnerSampler(_builder(_class_of_user(settings.name), settings))
    made = _optuna_class(_OPTUNA.get(settings.name) or settings.name.removeprefix(_OPTUNA_CLASS))
    _check_installed(settings.name, _NEEDED.get(made.__name__, ()))
    return InnerSampler(
        _builder(made, settings),
        remembers=made.__name__ not in _FORGETFUL,
        numeric=made.__name__ == "CmaEsSampler",
        steady=made.__name__ == "QMCSampler",
    )


def _optuna_class(name: str) -> type[BaseSampler]:
    classes = [getattr(optuna.samplers, known) for known in optuna.samplers.__all__]
    samplers = {made.__name__: made for made in classes if _is_sampler(made) and made.__name__ not in _USELESS}
    if name in _USELESS:
        msg = f"{name} cannot be used over a valid set: {_USELESS[name]}"
        raise StudyFileError(Problem(msg, "sampler.name"))
    if name not in samplers:
        msg = f"Optuna has no sampler {name!r}{did_you_mean(name, samplers)}; it has {', '.join(samplers)}"
        raise StudyFileError(Problem(msg, "sampler.name"))
    return samplers[name]


def _check_installed(name: str, packages: tuple[str, ...]) -> None:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        what = " and ".join(missing)
        msg = f"sampler {name!r} needs {what}: {sys.executable} -m pip install {' '.join(missing)}"
        raise CannotRunHereError(Problem(msg, "sampler.name"))


def _from_hub(settings: SamplerSection) -> InnerSampler:
    _check_installed(settings.name, ("optunahub",))
    place, _, name = settings.name.removeprefix(_HUB).partition(":")
    package, _, commit = place.partition("@")
    try:
        module = importlib.import_module("optunahub").load_module(package, ref=commit)
    except Exception as error:  # foreign code and the network may raise anything, and the user must see the reason
        reason = " ".join(str(error).split()) or type(error).__name__
        msg = (
            f"OptunaHub's package {package!r} cannot be loaded: {reason}; it is fetched from GitHub when it is first "
            "used: check its name on hub.optuna.org, the network, and that its dependencies are installed"
        )
        raise CannotRunHereError(Problem(msg, "sampler.name")) from error
    made = _hub_class(_samplers_in(module), place, name)
    return InnerSampler(_builder(made, settings), remembers=package not in _FORGETFUL_PACKAGES)


def _class_of_user(name: str) -> type[BaseSampler]:
    """Return the class that `module:Class` names, by importing the module.

    Raises:
        StudyFileError: the module has no such sampler.
        CannotRunHereError: the module is missing, or cannot be imported.
    """
    module_name, _, wanted = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # users' code may raise anything, and they must see the reason
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        close = did_you_mean(module_name, (_OPTUNA_CLASS.removesuffix(":"), _HUB.removesuffix(":")))
        msg = (
            f"sampler {name!r}: module {module_name!r} cannot be imported{close}: {reason}; install its package in the "
            "environment of autotune, or name its folder in PYTHONPATH"
        )
        raise CannotRunHereError(Problem(msg, "sampler.name")) from error
    made = getattr(module, wanted, None)
    if _is_sampler(made):
        return made
    known = _samplers_in(module)
    there = ", ".join(known) or "none"
    if made is not None:
        rule = "is no sampler: it must be a class derived from optuna.samplers.BaseSampler, with all abstract methods"
        msg = f"{wanted!r} in module {module_name!r} {rule}; the module has these samplers: {there}"
    else:
        close = did_you_mean(wanted, known)
        msg = f"module {module_name!r} has no sampler {wanted!r}{close}; it has these: {there}"
    raise StudyFileError(Problem(msg, "sampler.name"))


def _samplers_in(module: ModuleType) -> dict[str, type[BaseSampler]]:
    """Return the samplers that a module defines, without those that it imports from Optuna."""
    samplers = ((name, value) for name, value in vars(module).items() if _is_sampler(value))
    return {name: value for name, value in samplers if not value.__module__.startswith("optuna.")}


def _is_sampler(value: object) -> TypeGuard[type[BaseSampler]]:
    return inspect.isclass(value) and issubclass(value, BaseSampler) and not inspect.isabstract(value)


def _hub_class(own: Mapping[str, type[BaseSampler]], package: str, name: str) -> type[BaseSampler]:
    if name in own:
        return own[name]
    if len(own) == 1 and not name:
        return next(iter(own.values()))
    there = ", ".join(own) or "none"
    msg = (
        f"OptunaHub's package {package!r} has these samplers: {there}{did_you_mean(name, own)}; "
        f"name one, optunahub:{package}:CLASS"
    )
    raise StudyFileError(Problem(msg, "sampler.name"))


def _builder(made: type[BaseSampler], settings: SamplerSection) -> Callable[[int], BaseSampler]:
    errors = argument_errors(made, settings.options)
    if not errors:
        arguments = arguments_of(made, settings.options)
        build = _building(made, arguments)
        try:
            build(0)
        except (TypeError, ValueError, ImportError) as error:
            refusal = f"{made.__name__} refuses these options: {' '.join(str(error).split())}"
            errors = [Problem(refusal, "sampler.options")]
        else:
            return build
    msg = f"sampler {settings.name!r} has errors:"
    raise StudyFileError(msg, errors)


def _building(made: type[BaseSampler], arguments: Mapping[str, Any]) -> Callable[[int], BaseSampler]:
    seeded = "seed" in inspect.signature(made).parameters

    def build(seed: int) -> BaseSampler:
        given = {**arguments, "seed": seed} if seeded else dict(arguments)
        with warnings.catch_warnings():
            # Each proposal makes a sampler, so warnings of experimental or deprecated features would be repeated.
            warnings.simplefilter("ignore")
            return made(**given)

    return build
