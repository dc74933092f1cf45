"""Accelerators ("cards") reserved for a job, and the variables that restrict programs to them."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

VISIBILITY_VARIABLE = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "ROCR_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}
"""The variable of each vendor that names the cards a program may use.

Sources: CUDA C++ Programming Guide, "CUDA Environment Variables"; ROCm, "GPU isolation techniques"; oneAPI Level Zero,
"Environment Variables".
"""

# HIP's own variable; its numbers index the cards that ROCR_VISIBLE_DEVICES leaves visible.
_HIP = "HIP_VISIBLE_DEVICES"
# By default CUDA numbers the fastest card first. nvidia-smi, batch systems and Ray number cards in PCI bus order.
_CUDA_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
# A batch system may set the variable to a word instead ("NoDevFiles") when a job has no cards.
_NAME = re.compile(r"\d+(?:\.\d+)?|(?:GPU|MIG)-[\w-]+")


@dataclass(frozen=True)
class Card:
    """An accelerator, or an instance of a divided one.

    Attributes:
        name: Its UUID, or its number if it has none.
        vendor: A key of `VISIBILITY_VARIABLE`; empty for a card of unknown kind, which cannot be restricted.
        cpus: The cores near it.
    """

    name: str
    vendor: str = ""
    cpus: tuple[int, ...] = ()


def visibility_variables(cards: Sequence[Card], wanted: int) -> dict[str, str]:
    """Return the variables that let a job see only `cards`, and that fix the order of card numbers if it uses any.

    A job without reserved cards sees those that a batch system or Ray assigns by number, which follow the PCI bus.
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
    """Whether the environment of this process lets programs use `card`, by its name or as the vendor's card `number`.

    `number` is None for an instance of a divided card, which has none.
    """
    allowed = os.environ.get(VISIBILITY_VARIABLE.get(card.vendor, ""))
    if allowed is None:
        return True
    words = [word.strip() for word in allowed.split(",")]
    # A UUID may be abbreviated as long as it stays unique.
    own = None if number is None else str(number)
    return any(word == own or (len(word) > 4 and card.name.startswith(word)) for word in words)


def visible_to_hip(cards: Sequence[Card]) -> tuple[Card, ...]:
    """Return the AMD cards that HIP_VISIBLE_DEVICES leaves; its numbers index the cards that are visible already."""
    allowed = os.environ.get(_HIP)
    words = None if allowed is None else [word.strip() for word in allowed.split(",")]
    return tuple(card for number, card in enumerate(cards) if words is None or str(number) in words)


def cards_in_environment() -> tuple[Card, ...]:
    """Return the cards that a vendor's variable names, for machines on which no tool lists the cards."""
    for vendor, variable in VISIBILITY_VARIABLE.items():
        words = [word.strip() for word in os.environ.get(variable, "").split(",")]
        if words != [""] and all(_NAME.fullmatch(word) for word in words):
            return tuple(Card(word, vendor) for word in dict.fromkeys(words))
    return ()
