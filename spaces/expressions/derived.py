"""Derived values: names for expressions over parameters, facts and each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from spaces.expressions.evaluate import value_of
from spaces.expressions.fact import fact_symbol
from spaces.expressions.names import names_of, unknown_name
from spaces.expressions.node import Node, Scope, Symbol
from spaces.expressions.syntax import parse
from spaces.parameters.errors import ExpressionError
from spaces.parameters.parameter import Value
from spaces.parameters.problem import Problem


@dataclass
class DerivedValues:
    """The derived values of a space while it is parsed; each becomes known when everything that it mentions is.

    Attributes:
        waiting: The texts of those that are not known yet.
        nodes: The known ones, in order of dependence.
        problems: The mistakes found so far.
    """

    waiting: dict[str, str]
    nodes: dict[str, Node] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def define(self, scope: Scope) -> None:
        """Add to `scope` the derived values that mention only names in it."""
        names = {name: self._names(text) for name, text in self.waiting.items()}
        before = -1
        while before != len(self.waiting):
            before = len(self.waiting)
            for name, text in list(self.waiting.items()):
                if not scope.symbols.keys() >= names[name]:
                    continue
                try:
                    node = parse(text, scope)
                except ExpressionError as error:
                    self._wrong(name, str(error))
                else:
                    scope.symbols[name] = Symbol(node.kind, node.low, node.high, words=node.words, node=node)
                    self.nodes[name] = node
                self.waiting.pop(name)

    def finish(self, scope: Scope) -> None:
        """Report why the remaining values cannot be known: they mention unknown names or each other."""
        wrong = {(problem.path or "").removeprefix("space.derived.") for problem in self.problems}
        known = {*scope.symbols, *self.waiting, *wrong}
        for name, text in self.waiting.items():
            if error := unknown_name(text, known):
                self._wrong(name, str(error))
        if self.waiting and not self.problems:
            circle = _circle({name: set(names_of(text)) & self.waiting.keys() for name, text in self.waiting.items()})
            needs = ", ".join(f"{name} needs {other}" for name, other in pairwise(circle))
            self._wrong(circle[0], f"derived values need each other in a circle: {needs}")

    def _names(self, text: str) -> set[str]:
        """Return the names in a text; empty if it cannot be parsed, which `parse` explains."""
        try:
            return set(names_of(text))
        except ExpressionError:
            return set()

    def _wrong(self, name: str, message: str) -> None:
        self.problems.append(Problem(message, f"space.derived.{name}"))


def constants(texts: Mapping[str, str], facts: Mapping[str, Value]) -> dict[str, Value]:
    """Return the derived values that depend on facts alone and have a value, for bounds and defaults."""
    scope = Scope({}, {})
    for name, value in facts.items():
        scope.symbols[name] = fact_symbol(value, scope)
    derived = DerivedValues(dict(texts))
    derived.define(scope)
    values = {name: value_of(node, {}, scope) for name, node in derived.nodes.items()}
    return {name: value for name, value in values.items() if value is not None}


def _circle(needs: Mapping[str, set[str]]) -> list[str]:
    """Return names that need one another in a circle. Every name in `needs` must need another."""
    path = [next(iter(needs))]
    while path[-1] not in path[:-1]:
        path.append(min(needs[path[-1]]))
    return path[path.index(path[-1]) :]
