"""The space: parameters, constraints and facts as one value that knows its valid configurations."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from spaces import encoding, serialised
from spaces.explain import constraint_text, violations
from spaces.expressions.node import Array, Node
from spaces.expressions.quantities import column_of
from spaces.expressions.syntax import parse
from spaces.parameters.constraint import Constraint
from spaces.parameters.errors import SpaceError
from spaces.parameters.parameter import Configuration, Parameter, Value, index_of
from spaces.parameters.problem import Problem
from spaces.traits import Traits
from spaces.valid_set.compiled import Compiled, compile_space
from spaces.valid_set.conflict import minimal_conflict
from spaces.valid_set.neighbourhood import Neighbourhood
from spaces.valid_set.particles import MORE, PARTICLES, RUNS, NoneFoundError, Particles
from spaces.valid_set.rule import ConstraintRule
from spaces.valid_set.valid_set import LISTABLE_ROWS, EmptyError, Indices, ValidSet, valid_set
from spaces.values import values_in

FloatArray = npt.NDArray[np.float64]

_NOTHING_FOUND = (
    f"no valid configuration was found in {RUNS * (1 + MORE) * PARTICLES} random attempts; the constraints tie"
    " too many parameters together to prove that none exists. Relax them, or give the parameters fewer values"
)
_TRAIT_ROWS = 2_000  # enough to learn the ranges of quantities from
_CHUNK_ROWS = 10_000  # configurations decoded at a time when all are iterated over


@dataclass(frozen=True)
class Count:
    """A number of configurations; `relative_error` is one standard error, relative, where it is an estimate."""

    value: int
    exact: bool = True
    relative_error: float = 0.0

    def __str__(self) -> str:
        return f"{self.value:,}" if self.exact else f"about {self.value:.3g} (± {self.relative_error:.1%})"


@dataclass(frozen=True, init=False)
class Space:
    """Parameters, constraints over them, and facts (numbers and words that do not change) that both may use.

    `derived` are names for expressions over parameters, facts and one another, which conditions and constraints may
    use, too: what they compute is no part of a configuration.

    The valid set is constructed, not filtered, when it is first needed (`spaces.valid_set.diagram`); equal spaces
    sample alike from equal generators. A configuration is valid if every parameter that exists has a value of
    its domain (or is unset, where that is allowed), none other has one, and no constraint is false. A
    constraint may be unknown, where parameters without a value leave it open (Kleene's logic; `is_set` is always
    known); what cannot be computed (division by zero, ...) is false.

    Raises:
        SpaceError: all mistakes at once: names, domains, defaults, expressions.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    facts: Mapping[str, Value]
    derived: Mapping[str, str]

    def __init__(
        self,
        parameters: Iterable[Parameter],
        constraints: Iterable[Constraint] = (),
        facts: Mapping[str, Value] = MappingProxyType({}),
        derived: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        object.__setattr__(self, "parameters", tuple(parameters))
        object.__setattr__(self, "constraints", tuple(constraints))
        object.__setattr__(self, "facts", MappingProxyType(dict(facts)))
        object.__setattr__(self, "derived", MappingProxyType(dict(derived)))
        object.__setattr__(
            self, "_compiled", compile_space(self.parameters, self.constraints, self.facts, self.derived)
        )

    def __hash__(self) -> int:
        return hash((self.parameters, self.constraints, frozenset(self.facts.items()), frozenset(self.derived.items())))

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return (type(self), (self.parameters, self.constraints, dict(self.facts), dict(self.derived)))

    @property
    def raw_size(self) -> int:
        """The size of the product of the domains, "no value" counted where it is possible."""
        return math.prod(domain.radix for domain in self._ready.domains)

    @property
    def size(self) -> Count:
        """The number of valid configurations.

        Raises:
            SpaceError: No configuration is valid; the message names a minimal set of conflicting constraints.
        """
        valid = self._valid
        return Count(valid.size, valid.exact, valid.relative_error)

    @property
    def sampling(self) -> str:
        """How nearly uniform `sample` is: "uniform", or a phrase that says which part is not."""
        entangled = [part for part in self._valid.parts if isinstance(part, Particles)]
        if not entangled:
            return "uniform"
        names = [self.parameters[position].name for part in entangled for position in sorted(part.positions)]
        return f"nearly uniform (sequential Monte Carlo with Gibbs moves over {', '.join(names)})"

    @property
    def listable(self) -> bool:
        """Whether `configurations` and `all_indices` may be asked for: up to 2e7 rows of known number."""
        return self._valid.listable

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of `encode`: `np`, `np is unset`, `mixing=plain`, ..."""
        return encoding.feature_names(self._ready.domains)

    def default(self) -> Configuration:
        """Return the configuration of the defaults, without parameters that do not exist then.

        Raises:
            SpaceError: It is not valid; the message names the constraints that it breaks.
        """
        configuration = self.unchecked_default()
        broken = self.violations(configuration)
        if broken:
            raise SpaceError([self._default_problem(sentence) for sentence in broken])
        return configuration

    def unchecked_default(self) -> Configuration:
        """Return the configuration of the defaults, which may break constraints, as in files of others."""
        configuration: dict[str, Value] = {}
        columns: dict[int, Any] = {}
        for domain in self._ready.domains:
            rule, value = self._ready.existence.get(domain.position), domain.parameter.default
            exists = rule is None or bool(np.all(rule.active(columns)))
            columns[domain.position] = np.array([-1], dtype=np.int32)
            if exists and value is not None:
                columns[domain.position] = np.array([index_of(domain.parameter, value)], dtype=np.int32)
                configuration[domain.parameter.name] = value
        return configuration

    def existing(self, configuration: Configuration) -> frozenset[str]:
        """Return the parameters that exist with the values of a configuration, which may be invalid and incomplete."""
        columns: dict[int, Any] = {}
        for domain in self._ready.domains:
            value = configuration.get(domain.parameter.name)
            index = None if value is None else index_of(domain.parameter, value)
            columns[domain.position] = np.array([-1 if index is None else index], dtype=np.int32)
        conditions = self._ready.existence
        return frozenset(
            domain.parameter.name
            for domain in self._ready.domains
            if (rule := conditions.get(domain.position)) is None or bool(np.all(rule.active(columns)))
        )

    def _default_problem(self, sentence: str) -> Problem:
        wrong = f"the default configuration is not valid: {sentence}"
        for parameter in self.parameters:
            if parameter.default is None and sentence.startswith(f"{parameter.name}: has no value"):
                hint = "give it a default, or optional = true"
                return Problem(f"{wrong}; {hint}", f"space.parameters.{parameter.name}")
        return Problem(wrong)

    def contains(self, configuration: Configuration) -> bool:
        """Return whether `configuration` is valid."""
        return not self.violations(configuration)

    def violations(self, configuration: Configuration) -> list[str]:
        """Return what is wrong with `configuration`, a sentence each, with the rule, its reason and the values."""
        return violations(self._ready, configuration, self.facts)

    def derived_values(self, configuration: Configuration) -> dict[str, Value]:
        """Return the derived values of a configuration by name, leaving out those without a value."""
        return self.values_of(self._ready.derived, configuration)

    def behind(self, name: str) -> set[str]:
        """Return the parameters behind a derived value; any other name stands for itself."""
        if name not in self.derived:
            return {name}
        return {self.parameters[position].name for position in self._ready.derived[name].positions}

    def expression(self, text: str) -> Node:
        """Parse an expression over the parameters, facts and derived values.

        Raises:
            ExpressionError: It is not an expression of the language, or mentions another name.
        """
        return parse(text, self._ready.scope)

    def values_of(self, expressions: Mapping[str, Node], configuration: Configuration) -> dict[str, Value]:
        """Return what expressions compute from a configuration, by name; those without a value are left out."""
        return values_in(self._ready, expressions, configuration)

    def sample(self, rng: np.random.Generator, n: int) -> list[Configuration]:
        """Return `n` distinct valid configurations in random order, or all if there are fewer.

        Raises:
            SpaceError: No configuration is valid.
        """
        return self.decode(self.sample_indices(rng, n))

    def configurations(self) -> Iterator[Configuration]:
        """Yield all valid configurations in lexicographic order: parameters as declared, "no value" before values.

        Raises:
            SpaceError: There are too many to list, or none.
        """
        rows = self.all_indices()
        for first in range(0, len(rows), _CHUNK_ROWS):
            yield from self.decode(rows[first : first + _CHUNK_ROWS])

    def neighbours(self, configuration: Configuration) -> list[Configuration]:
        """Return the valid configurations that differ in one parameter, and in others only as far as that forces.

        An ordered parameter goes one step up or down, skipping invalid values; a choice to any other value; an unset
        one to any value, and back. If the adjacent value is invalid by itself (it ends or begins the existence of
        another parameter, or breaks a constraint), the others are repaired at the least cost: one more parameter
        changes if that suffices, or else the result is the nearest valid configuration in encoded distance.

        Raises:
            SpaceError: `configuration` is not valid.
        """
        broken = self.violations(configuration)
        if broken:
            raise SpaceError(broken)
        domains = self._ready.domains
        row = self.indices([configuration])[0]
        return self.decode(Neighbourhood(domains, self._ready.rules, self._valid).of(row))

    def nearest(self, configuration: Configuration) -> Configuration:
        """Return the valid configuration at the least Euclidean distance in encoded terms.

        `configuration` may be invalid and incomplete: a number off its domain counts by its place on the parameter's
        scale, unknown names and words are ignored, and a missing required value counts as its default. The result is
        exact if `size` is (a shortest path in the diagram), otherwise a local optimum.

        Raises:
            SpaceError: No configuration is valid.
        """
        row = self._valid.cheapest(encoding.costs(self._ready.domains, configuration))
        return self.decode(row[None, :])[0]

    def encode(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Return the configurations (n of them) as numbers for a model, (n, d), with the columns of `feature_names`.

        An ordered parameter is one column from 0 to 1: linear if its values are evenly spaced, logarithmic if they are
        positive, otherwise by rank. A flag is 0 or 1; a choice has a column for each value. A parameter that may be
        without a value has one more column for that, and is then encoded as 0.5 (a choice: as no value). Never NaN.

        Raises:
            SpaceError: A name is unknown, or a value is outside its domain.
        """
        return self.encode_indices(self.indices(configurations))

    def indices(self, configurations: Sequence[Configuration]) -> Indices:
        """Return the configurations (n of them) as value indexes, (n, p) int32; -1 stands for no value.

        Raises:
            SpaceError: A name is unknown, or a value is outside its domain.
        """
        return encoding.indices_of(self._ready.domains, configurations)

    def fitting(self, configurations: Sequence[Configuration]) -> tuple[Indices, npt.NDArray[np.bool_]]:
        """Return the value indexes (n, p) of configurations of other spaces, and a mask (n,) of those valid here."""
        rows, fits = encoding.fitting(self._ready.domains, configurations)
        fits[fits] = self.valid_indices(rows[fits])
        return rows, fits

    def decode(self, indices: Indices) -> list[Configuration]:
        """Return the configurations of value indexes (n, p)."""
        return encoding.decode(self._ready.domains, np.asarray(indices))

    def columns(self, indices: Indices) -> dict[str, Array]:
        """Return the values of value indexes (n, p) as a column for each parameter, (n,)."""
        rows = np.asarray(indices)
        return {
            domain.parameter.name: column_of([*domain.values, None])[rows[:, domain.position]]
            for domain in self._ready.domains
        }

    def encode_indices(self, indices: Indices) -> FloatArray:
        """Return the encoding (n, d) of value indexes (n, p)."""
        return encoding.encode(self._ready.domains, np.asarray(indices))

    def traits_of(self, indices: Indices) -> FloatArray:
        """Return the traits (n, d) of value indexes (n, p): columns from 0 to 1 for a model (`spaces.traits`).

        Raises:
            SpaceError: no configuration is valid.
        """
        return self._traits.of(np.asarray(indices))

    def valid_indices(self, indices: Indices) -> npt.NDArray[np.bool_]:
        """Return the mask (n,) of valid rows of value indexes (n, p)."""
        rows = np.asarray(indices)
        valid = np.ones(len(rows), dtype=bool)
        for domain in self._ready.domains:
            column = rows[:, domain.position]
            valid &= (column >= domain.indexes[0]) & (column < len(domain.values))
        for rule in (*self._ready.rules, *self._ready.constants):
            valid[valid] = rule.mask({position: rows[valid, position] for position in rule.positions})
        return valid

    def sample_indices(self, rng: np.random.Generator, n: int) -> Indices:
        """Return `n` distinct valid configurations as value indexes, (n, p), or all if there are fewer.

        Raises:
            SpaceError: No configuration is valid.
        """
        return self._valid.sample(rng, n)

    def all_indices(self) -> Indices:
        """Return all valid configurations as value indexes, (n, p), in the order of `configurations`.

        Raises:
            SpaceError: there are too many to list, or none.
        """
        if not self.listable:
            raise SpaceError(f"{self.size} configurations are too many to list (at most {LISTABLE_ROWS:,}); use sample")
        return self._valid.rows()

    def to_dict(self) -> dict[str, Any]:
        """Return the space in JSON's terms; `Space.from_dict` gives an equal space."""
        return serialised.to_dict(self.parameters, self.constraints, self.facts, self.derived)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the space that `to_dict` wrote.

        Raises:
            SpaceError: The values were not written by `to_dict`.
        """
        return cls(*serialised.from_dict(stored))

    @property
    def _ready(self) -> Compiled:
        ready: Compiled = self.__dict__["_compiled"]
        return ready

    @cached_property
    def _traits(self) -> Traits:
        sample = self._valid.sample(np.random.default_rng(0), _TRAIT_ROWS)
        return Traits(self._ready.domains, self._ready.rules, sample)

    @cached_property
    def _valid(self) -> ValidSet:
        false = [rule for rule in self._ready.constants if not bool(rule.mask({}))]
        if false:
            raise SpaceError(_clash(false[:1]))
        try:
            return valid_set(self._ready.domains, self._ready.rules)
        except NoneFoundError:
            raise SpaceError(_NOTHING_FOUND) from None
        except EmptyError as error:
            suspects = [rule for rule in error.rules if isinstance(rule, ConstraintRule)]
            background = list(self._ready.existence.values())
            raise SpaceError(_clash(minimal_conflict(self._ready.domains, suspects, background))) from None


def _clash(rules: Sequence[ConstraintRule]) -> list[str]:
    if len(rules) == 1:
        return [f"no configuration is valid: this constraint never holds: {constraint_text(rules[0])}"]
    return [
        "no configuration is valid: these constraints cannot all hold:",
        *(f"  {constraint_text(rule)}" for rule in rules),
    ]
