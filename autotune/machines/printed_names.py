"""Accelerators as programs print them: nvidia-smi, rocm-smi, and tuners that ask the driver.

One card has several names: "NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"; "AMD Radeon PRO W7800",
"Navi 31 [Radeon Pro W7800]". What is left without the vendor and the form of the card tells it from others.
"""

import re
from collections.abc import Iterable

from autotune.machines.description import MachineDescription

_BRACKETS = re.compile(r"\[([^\]]+)\]")
_WORD = re.compile(r"[a-z0-9.]+")
_NOISE = frozenset(
    {
        *("nvidia", "amd", "ati", "intel", "advanced", "micro", "devices", "corporation", "inc", "inc.", "r", "tm"),
        *("tesla", "quadro", "graphics", "gpu", "device", "card", "series", "oam", "ac", "mba", "mcm"),
    }
)


def card_called(name: str, described: Iterable[MachineDescription]) -> MachineDescription | None:
    """Return the description of the one card that a program calls `name`; None where none or several could be it."""
    words = _words(name)
    cards = [card for card in described if _is_card(card) and words and _words(card.gpu.model or "") == words]
    return cards[0] if len(cards) == 1 else None


def _is_card(machine: MachineDescription) -> bool:
    """Return whether a description is of one accelerator, not of a node that has some."""
    return machine.gpu.model is not None and machine.gpu.count in {None, 1} and machine.cpu.model is None


def _words(name: str) -> frozenset[str]:
    # What follows a comma is a remark: "one die".
    lowered = name.lower().partition(",")[0]
    bracketed = _BRACKETS.search(lowered)
    return frozenset(_WORD.findall(bracketed[1] if bracketed else lowered)) - _NOISE
