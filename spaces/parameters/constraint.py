"""Constraints: named rules, each with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Constraint:
    """A rule that every valid configuration satisfies.

    `rule` is an expression of `spaces.expressions.syntax` over parameters and facts. It does not apply (is satisfied)
    where it mentions, outside `is_set(...)`, a parameter that has no value. `reason` says to people why the
    rule holds.
    """

    name: str
    rule: str
    reason: str = ""
