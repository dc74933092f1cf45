"""Accelerators that a job has to itself, and the variables by which programs see them and no others."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

VISIBLE = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "ROCR_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}
"""The variable of each vendor that names the cards a program may use: CUDA C++ Programming Guide ("CUDA Environment
Variables"), ROCm ("GPU isolation techniques"), oneAPI Level Zero ("Environment Variables")."""


@dataclass(frozen=True)
class Card:
    """An accelerator, or an instance of one that was divided. `name` is its UUID, or its number where it has none.

    Cards without a vendor stand for whatever a program finds: nobody can tell them apart. `cpus` are the cores near it.
    """

    name: str
    vendor: str = ""
    cpus: tuple[int, ...] = ()


def visible(cards: Sequence[Card]) -> dict[str, str]:
    """Return the variables that let a program see these cards only."""
    names: dict[str, list[str]] = {}
    for card in cards:
        if card.vendor in VISIBLE:
            names.setdefault(VISIBLE[card.vendor], []).append(card.name)
    return {variable: ",".join(found) for variable, found in names.items()}


def may_see(card: Card, number: int) -> bool:
    """Whether the environment of this process lets programs use a card, the vendor's `number`-th: by number or name."""
    allowed = os.environ.get(VISIBLE.get(card.vendor, ""))
    if allowed is None:
        return True
    words = [word.strip() for word in allowed.split(",")]
    # A UUID may be cut short where the rest is not needed to tell it from others.
    return any(word == str(number) or (len(word) > 4 and card.name.startswith(word)) for word in words)
