"""The space (interface first; the implementation lands in this file shortly)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from spaces.constraint import Constraint
from spaces.parameter import Configuration, Parameter, Value

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Count:
    """A number of configurations; `relative_error` is one standard error where it is not exact."""

    value: int
    exact: bool = True
    relative_error: float = 0.0


class Space:
    """Parameters, constraints and facts."""

    def __init__(
        self,
        parameters: Iterable[Parameter],
        constraints: Iterable[Constraint] = (),
        facts: Mapping[str, Value] | None = None,
    ) -> None:
        self.parameters = tuple(parameters)
        self.constraints = tuple(constraints)
        self.facts = dict(facts or {})
