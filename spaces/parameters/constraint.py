"""Constraints: named rules, each with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Constraint:
    """A rule that is false for no valid configuration.

    `rule` is an expression of `spaces.expressions.syntax` over parameters and facts; parameters without a value may
    leave it unknown, which forbids nothing. `reason` says to people why the rule holds.
    """

    name: str
    rule: str
    reason: str = ""
