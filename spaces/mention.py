"""Mentions: references to a space in a job, and what the space computes for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spaces.expressions.evaluate import can_fail
from spaces.expressions.names import names_of, unknown_name
from spaces.expressions.node import Node
from spaces.expressions.text import clean
from spaces.parameters.constraint import Constraint
from spaces.parameters.errors import ExpressionError, did_you_mean
from spaces.parameters.parameter import Configuration, Value
from spaces.parameters.problem import Problem
from spaces.space import Space


@dataclass(frozen=True)
class Mention:
    """A parameter, derived value or fact, or an expression over these, at a `path` of the study file.

    With `least` its value must be a whole number of at least that.
    """

    text: str
    path: str
    least: int | None = None

    @property
    def key(self) -> str:
        """The name under which a job finds the value."""
        return key_of(self.text)

    @property
    def is_name(self) -> bool:
        """Whether it is a name rather than an expression."""
        return self.text.isidentifier()

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it mentions; empty if it cannot be parsed."""
        try:
            return (self.text,) if self.is_name else names_of(self.text)
        except ExpressionError:
            return ()

    def problem(self, known: set[str]) -> Problem | None:
        """Return why it is wrong whatever the names mean: it cannot be parsed, or a name is not in `known`."""
        if self.is_name and self.text in known:
            return None
        if self.is_name:
            msg = f"the space has no parameter {self.text!r}{did_you_mean(self.text, known)}, which is mentioned here"
            return Problem(msg, self.path)
        try:
            error = unknown_name(self.text, known)
        except ExpressionError as unreadable:
            error = unreadable
        return None if error is None else Problem(str(error), self.path)


def key_of(text: str) -> str:
    """Return the key of a mention: the name of a parameter, or "= EXPRESSION"."""
    return text if text.isidentifier() else f"= {clean(text)}"


@dataclass(frozen=True)
class Values:
    """Computes the values that mentions have in a configuration."""

    space: Space
    nodes: Mapping[str, Node]

    @property
    def computes(self) -> bool:
        """Whether the mentions are more than names of parameters."""
        return not self.nodes.keys() <= {parameter.name for parameter in self.space.parameters}

    def of(self, configuration: Configuration) -> dict[str, Value]:
        """Return the values of a configuration's mentions by key, leaving out those without a value."""
        return self.space.values_of(self.nodes, configuration)


def values_of_mentions(space: Space, mentions: Iterable[Mention]) -> tuple[Values, list[Constraint], list[Problem]]:
    """Return the computation of the mentions in a space, and their problems; the names are known.

    The constraints hold where each mention has a usable value.
    """
    nodes: dict[str, Node] = {}
    needed: dict[str, Constraint] = {}
    problems: list[Problem] = []
    for mention in mentions:
        try:
            node = space.expression(mention.text)
        except ExpressionError as error:
            problems.append(Problem(str(error), mention.path))
            continue
        nodes[mention.key] = node
        if mention.least is not None and (wrong := _count_error(node, mention.least)):
            text = clean(mention.text)
            problems.append(
                Problem(str(ExpressionError(wrong, text, 0, len(text), "use // or floor(...)")), mention.path)
            )
        elif rule := _rule(mention, node):
            reason = "it cannot be computed elsewhere"
            if mention.least is not None:
                reason = f"it is a whole number from {mention.least} up"
            taken = {one.name for one in needed.values()}
            name = mention.path if mention.path not in taken else f"{mention.path}: {clean(mention.text)}"
            needed.setdefault(rule, Constraint(name, rule, reason))
    return Values(space, nodes), list(needed.values()), problems


def _count_error(node: Node, least: int) -> str | None:
    if node.kind != "int":
        kind = {"float": "a number", "bool": "true or false", "str": "a word"}[node.kind]
        return f"this must be a whole number; it is {kind}"
    return f"this must be at least {least}; it is at most {node.high}" if node.high < least else None


def _rule(mention: Mention, node: Node) -> str | None:
    """Return the rule that keeps a mention usable; None if it always is."""
    if mention.least is not None and node.low < mention.least:
        return f"({mention.text}) >= {mention.least}"
    if not can_fail(node):
        return None
    return f"({mention.text}) != ''" if node.kind == "str" else f"abs({mention.text}) >= 0"
