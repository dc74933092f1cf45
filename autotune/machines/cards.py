"""The cards of this machine, each by the name that no other card has."""

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from autotune.machines.this_machine import read_or_empty
from launchers.card import Card, may_see
from launchers.cpus import parse_cpu_list

_PATIENCE_S = 10.0
_PCI = Path("/sys/bus/pci/devices")
_GPU = re.compile(r"^GPU (\d+): .*\(UUID: (GPU-[^)]+)\)")
_INSTANCE = re.compile(r"^\s+MIG .*\(UUID: (MIG-[^)]+)\)")

Ask = Callable[[Sequence[str]], str]


def find_cards(ask: Ask | None = None) -> tuple[Card, ...]:
    """Return the cards that this process may use; instances of a divided card count as cards, not the card itself.

    Empty where no tool of a vendor lists them. `ask` runs a tool and returns what it prints.
    """
    ask = ask or _asked
    return _nvidia(ask) or _amd(ask)


def _nvidia(ask: Ask) -> tuple[Card, ...]:
    listed = ask(["nvidia-smi", "-L"])
    near = _near(ask(["nvidia-smi", "--query-gpu=uuid,pci.bus_id", "--format=csv,noheader"])) if listed else {}
    cards: list[tuple[int, Card, list[Card]]] = []
    for line in listed.splitlines():
        if match := _GPU.match(line):
            cards.append((int(match[1]), Card(match[2], "nvidia", near.get(match[2], ())), []))
        elif cards and (match := _INSTANCE.match(line)):
            cards[-1][2].append(Card(match[1], "nvidia", cards[-1][1].cpus))
    usable: list[Card] = []
    for number, card, instances in cards:
        whole = may_see(card, number)
        usable += [part for part in instances or [card] if whole or (instances and may_see(part, -1))]
    return tuple(usable)


def _near(told: str) -> dict[str, tuple[int, ...]]:
    """Return the cores near each card, by its UUID."""
    found = {}
    for line in told.splitlines():
        uuid, _, bus = (word.strip() for word in line.partition(","))
        # nvidia-smi writes eight digits of the domain, the kernel four.
        text = read_or_empty(_PCI / bus.lower()[-12:] / "local_cpulist") if bus else ""
        found[uuid] = tuple(sorted(parse_cpu_list(text)))
    return found


def _amd(ask: Ask) -> tuple[Card, ...]:
    try:
        told = json.loads(ask(["rocm-smi", "--showuniqueid", "--json"]) or "{}")
        numbered = {int(key.removeprefix("card")): value["Unique ID"] for key, value in told.items() if "card" in key}
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()
    cards = {number: Card(f"GPU-{text.removeprefix('0x')}", "amd") for number, text in sorted(numbered.items())}
    return tuple(card for number, card in cards.items() if may_see(card, number))


def _asked(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(list(command), capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
