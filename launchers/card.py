"""Accelerators that a job has to itself, and the variables by which programs see them and no others."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

VISIBILITY_VARIABLE = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "ROCR_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}
"""The variable of each vendor that names the cards a program may use: CUDA C++ Programming Guide ("CUDA Environment
Variables"), ROCm ("GPU isolation techniques"), oneAPI Level Zero ("Environment Variables")."""

# Counts among the cards that ROCR_VISIBLE_DEVICES names.
_HIP = "HIP_VISIBLE_DEVICES"
# CUDA's own numbers put the fastest card first. Those of nvidia-smi, of batch systems and of Ray follow the PCI bus.
_CUDA_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
# A batch system may say in words that there are none.
_NAME = re.compile(r"\d+(?:\.\d+)?|(?:GPU|MIG)-[\w-]+")


@dataclass(frozen=True)
class Card:
    """An accelerator, or an instance of one that was divided. `name` is its UUID, or its number where it has none.

    Cards without a vendor stand for whatever a program finds: nobody can tell them apart. `cpus` are the cores near it.
    """

    name: str
    vendor: str = ""
    cpus: tuple[int, ...] = ()


def visibility_variables(cards: Sequence[Card], wanted: int) -> dict[str, str]:
    """Return the variables of a job that wants GPUs: they let it see these cards only, by the numbers that others use.

    Without cards of its own it sees what a batch system, or Ray, shows it by number.
    """
    names: dict[str, list[str]] = {}
    for card in cards:
        if card.vendor in VISIBILITY_VARIABLE:
            names.setdefault(VISIBILITY_VARIABLE[card.vendor], []).append(card.name)
    found = {variable: ",".join(its) for variable, its in names.items()}
    if VISIBILITY_VARIABLE["amd"] in found:
        found[_HIP] = ",".join(map(str, range(len(names[VISIBILITY_VARIABLE["amd"]]))))
    return found | (_CUDA_ORDER if wanted or cards else {})


def is_visible(card: Card, number: int | None) -> bool:
    """Whether the environment of this process lets programs use a card, the vendor's `number`-th: by number or name.

    A part of a card has no number.
    """
    allowed = os.environ.get(VISIBILITY_VARIABLE.get(card.vendor, ""))
    if allowed is None:
        return True
    words = [word.strip() for word in allowed.split(",")]
    # A UUID may be cut short where the rest is not needed to tell it from others.
    own = None if number is None else str(number)
    return any(word == own or (len(word) > 4 and card.name.startswith(word)) for word in words)


def visible_to_hip(cards: Sequence[Card]) -> tuple[Card, ...]:
    """Return those of AMD's cards that HIP's own variable leaves: it counts among the cards that are visible."""
    allowed = os.environ.get(_HIP)
    words = None if allowed is None else [word.strip() for word in allowed.split(",")]
    return tuple(card for number, card in enumerate(cards) if words is None or str(number) in words)


def cards_in_environment() -> tuple[Card, ...]:
    """Return the cards that a vendor's variable names, for machines on which nothing lists them."""
    for vendor, variable in VISIBILITY_VARIABLE.items():
        words = [word.strip() for word in os.environ.get(variable, "").split(",")]
        if words != [""] and all(_NAME.fullmatch(word) for word in words):
            return tuple(Card(word, vendor) for word in dict.fromkeys(words))
    return ()
