"""Check and complete the arguments of a sampler's class that a study file gives."""

import inspect
from collections.abc import Mapping
from typing import Any

from optuna.samplers import BaseSampler

from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import Problem

_SIMPLE: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "None": (),
    "dict": (dict,),
    "list": (list,),
    "Sequence": (list,),
    "tuple": (list,),
    "Any": (int, float, bool, str, dict, list),
}
# Arguments that we set: the seed comes from the study file.
_OURS = ("self", "seed")


def argument_errors(made: type[BaseSampler], options: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of `options` as arguments of `made`, each with its path in the study file."""
    known = _parameters(made)
    errors = []
    for name, value in options.items():
        wrong = ""
        if name == "seed":
            wrong = "set the seed by sampler.seed"
        elif name not in known and not _takes_any(made):
            wrong = f"{made.__name__} has no option {name!r}{did_you_mean(name, known)}; {_list_names(known)}"
        elif name in known and not _fits(value, known[name].annotation):
            wrong = f"must be {known[name].annotation}, got {value!r}"
        if wrong:
            errors.append(Problem(wrong, f"sampler.options.{name}"))
    needed = [
        name
        for name, parameter in known.items()
        if parameter.default is inspect.Parameter.empty and name not in options
    ]
    errors += [Problem(f"{made.__name__} needs an option {name!r}", "sampler.options") for name in needed]
    return errors


def arguments_of(made: type[BaseSampler], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments: `options`, and defaults that suit a sampler behind the adapter."""
    known = _parameters(made)
    arguments = dict(options)
    if "n_startup_trials" in known:
        # The adapter itself draws the first trials, from the valid set.
        arguments.setdefault("n_startup_trials", 1)
    if "scramble" in known:
        # Without scrambling the seed has no effect.
        arguments.setdefault("scramble", True)
    if "warn_independent_sampling" in known and known["warn_independent_sampling"].default is True:
        arguments.setdefault("warn_independent_sampling", False)
    return arguments


def _parameters(made: type[BaseSampler]) -> dict[str, inspect.Parameter]:
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = inspect.signature(made).parameters
    return {
        name: parameter
        for name, parameter in parameters.items()
        if name not in _OURS and parameter.kind not in variadic
    }


def _takes_any(made: type[BaseSampler]) -> bool:
    return any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in inspect.signature(made).parameters.values()
    )


def _list_names(known: Mapping[str, Any]) -> str:
    return f"it has {', '.join(known)}" if known else "it has none"


def _fits(value: object, annotation: object) -> bool:
    """Whether a value of a TOML file may be one of `annotation`, as far as that can be told without evaluating it."""
    if annotation is inspect.Parameter.empty or not isinstance(annotation, str | type):
        return True
    text = annotation if isinstance(annotation, str) else annotation.__name__
    kinds = [part.partition("[")[0].strip() for part in _alternatives(text)]
    allowed = {kind for name in kinds for kind in _SIMPLE.get(name, ())}
    if "Literal" in kinds:
        allowed.add(str)
    return type(value) in allowed


def _alternatives(text: str) -> list[str]:
    """Split `A | B[C | D]` at the bars outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1, "(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
