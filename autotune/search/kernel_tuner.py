"""Our sampler as a strategy of Kernel Tuner: `tune_kernel(..., strategy=AutotuneStrategy())`.

Kernel Tuner makes the space and the runs, and counts the budget; the sampler chooses the configurations. A strategy is
an object with a method `tune`; kernel_tuner/strategies/{wrapper,common}.py of Kernel Tuner 1.5 show its arguments.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import optuna
from optuna.trial import TrialState

from autotune.search.base import SpaceExhaustedError
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.suggest import ask
from objectives.replay.domains import parameter_of, usable_names, value_of
from spaces import Configuration, Constraint, Space, SpaceError, Value
from spaces.parameters.listed import Listed

Element = tuple[Any, ...]
"""A configuration of Kernel Tuner: a value for every parameter, in their order."""


class Searchspace(Protocol):
    """The part of Kernel Tuner's space used here: the values of every parameter, and all allowed configurations."""

    tune_params: Mapping[str, Sequence[Any]]
    list: Sequence[Element]


class CostFunction(Protocol):
    """The part of Kernel Tuner's cost function used here: it runs a configuration, or raises without budget."""

    tuning_options: Mapping[str, Any]

    def __call__(self, x: Element) -> Any: ...  # noqa: ANN401, D102  a number, or a list of several objectives


class AutotuneStrategy:
    """A strategy for `kernel_tuner.tune_kernel` that optimises a single, positive objective.

    `strategy_options` may have `max_fevals`, `time_limit`, and `x0`, the configuration to begin with: the one in use
    today. The proposals depend on `seed`.
    """

    costfunc_kwargs: Mapping[str, Any] = {"scaling": False, "snap": False}

    def __init__(self, seed: int = 0) -> None:
        """Set the seed; the search starts with `tune`."""
        self.seed = seed

    def tune(self, searchspace: Searchspace, runner: object, tuning_options: object) -> Any:  # noqa: ANN401
        """Search in the way that Kernel Tuner demands of its strategies; return its results."""
        from kernel_tuner.strategies.wrapper import OptAlgWrapper  # noqa: PLC0415  only its users have it

        return OptAlgWrapper(self).tune(searchspace, runner, tuning_options)

    def __call__(self, func: CostFunction, searchspace: Searchspace) -> tuple[Element | None, float]:
        """Run configurations until the budget or the space is exhausted; return the best and its cost.

        Raises:
            ValueError: the tuning has several objectives, or a value that is not positive.
        """
        options = func.tuning_options
        maximized = options["objective_higher_is_better"]
        if len(maximized) > 1:
            msg = f"AutotuneStrategy looks for the best of one objective, got {', '.join(options['objective'])}"
            raise ValueError(msg)
        kernel = KernelSpace.of(searchspace, _texts(options.get("restrictions_unmodified")), _begin(options))
        study = _quiet_study("maximize" if maximized[0] else "minimize", kernel.space, self.seed)
        best: tuple[Element | None, float] = (None, sys.float_info.max)
        while True:
            try:
                trial = ask(study, kernel.space)
            except SpaceExhaustedError:
                return best
            element = kernel.element(trial.params)
            cost = float(func(element))
            if cost == sys.float_info.max:  # how Kernel Tuner tells a failure
                study.tell(trial, state=TrialState.FAIL)
                continue
            value = -cost if maximized[0] else cost
            if not 0.0 < value < np.inf:
                msg = f"{options['objective'][0]} is {value:g}: an objective is compared by ratio and must be positive"
                raise ValueError(msg)
            study.tell(trial, value)
            best = min(best, (element, cost), key=lambda one: one[1])


@dataclass(frozen=True)
class KernelSpace:
    """A space of Kernel Tuner as one of ours.

    Attributes:
        space: Our space.
        values: By parameter, the value of Kernel Tuner for each of our values.
    """

    space: Space
    values: tuple[tuple[str, Mapping[Value, Any]], ...]

    @classmethod
    def of(
        cls, searchspace: Searchspace, restrictions: Sequence[str] = (), default: Sequence[Any] | None = None
    ) -> "KernelSpace":
        """Return the space with exactly the configurations that Kernel Tuner allows.

        The `restrictions` that are expressions become rules, whose quantities the sampler learns from (threads of a
        block, elements of a tile). Restrictions of other kinds (functions, limits of the device) become a list of the
        allowed configurations.
        """
        names = usable_names(list(searchspace.tune_params))
        first = default if default is not None else _middle(searchspace)
        parameters, values = [], []
        for (column, given), start in zip(searchspace.tune_params.items(), first, strict=True):
            plain = [_plain(value) for value in given]
            made = parameter_of(column, names[column], plain, _plain(start))
            parameters.append(made)
            theirs = {value_of(made, value): theirs for value, theirs in zip(plain, given, strict=True)}
            values.append((made.name, {value: one for value, one in theirs.items() if value is not None}))
        ours = [{value: own for own, value in known.items()} for _, known in values]
        rows = [tuple(own[value] for own, value in zip(ours, element, strict=True)) for element in searchspace.list]
        called = [parameter.name for parameter in parameters]
        configurations = [dict(zip(called, row, strict=True)) for row in rows]
        rules = [rule for rule in _rules(restrictions) if _holds(Space(parameters), rule, configurations)]
        space = Space(parameters, rules)
        if not space.size.exact or space.size.value != len(rows):
            listed = Listed.of("allowed", called, rows, "Kernel Tuner allows no other configuration")
            space = Space(parameters, [*rules, listed])
        return cls(space, tuple(values))

    def element(self, configuration: Configuration) -> Element:
        """Return a configuration in Kernel Tuner's form."""
        return tuple(known[configuration[name]] for name, known in self.values)


def _middle(searchspace: Searchspace) -> Element:
    """Return the configuration whose values are nearest to the middle of their lists."""
    places = [
        {value: (place + 0.5) / len(given) for place, value in enumerate(given)}
        for given in searchspace.tune_params.values()
    ]
    return min(
        searchspace.list,
        key=lambda element: sum((known[one] - 0.5) ** 2 for one, known in zip(element, places, strict=True)),
    )


def _plain(value: Any) -> Value:  # noqa: ANN401  whatever a kernel's author has given
    item = value.item() if isinstance(value, np.generic) else value
    return item if isinstance(item, bool | int | float | str) else str(item)


def _texts(restrictions: object) -> list[str]:
    given = restrictions if isinstance(restrictions, list | tuple) else [restrictions]
    return [text for text in given if isinstance(text, str)]


def _rules(restrictions: Sequence[str]) -> list[Constraint]:
    return [Constraint(f"restriction {number}", text) for number, text in enumerate(restrictions, 1)]


def _holds(space: Space, rule: Constraint, configurations: Sequence[Configuration]) -> bool:
    """Return whether a rule is readable and satisfied by all the configurations."""
    try:
        ruled = Space(space.parameters, [rule])
        return bool(ruled.valid_indices(ruled.indices(configurations)).all())
    except SpaceError:
        return False


def _begin(options: Mapping[str, Any]) -> Sequence[Any] | None:
    begin: Sequence[Any] | None = options["strategy_options"].get("x0")
    return begin


def _quiet_study(direction: Literal["minimize", "maximize"], space: Space, seed: int) -> optuna.Study:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # users do not know about this study
    try:
        return optuna.create_study(direction=direction, sampler=ValidSetSampler(space, seed=seed))
    finally:
        optuna.logging.set_verbosity(verbosity)
