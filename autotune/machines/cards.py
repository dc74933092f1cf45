"""The cards of this machine, each by a unique name."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from autotune.errors import CannotRunHereError
from autotune.machines.this_machine import read_or_empty
from launchers.card import Card, cards_in_environment, is_visible, visible_to_hip
from launchers.cpus import parse_cpu_list
from launchers.software.ask import ask

_PATIENCE_S = 60.0  # the tool may first have to load the driver, for one card after the other
_PCI = Path("/sys/bus/pci/devices")
_BUS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_GPU = re.compile(r"^GPU (\d{1,9}): .*\(UUID: (GPU-[^)]+)\)")
_INSTANCE = re.compile(r"^\s+MIG .*\(UUID: (MIG-[^)]+)\)")

Ask = Callable[[Sequence[str]], str]


def find_cards(ask: Ask | None = None) -> tuple[Card, ...]:
    """Return the cards that this process may use.

    A divided card is replaced by its instances. If no vendor's tool lists any card, the result is the cards that the
    vendor's variable names (`CUDA_VISIBLE_DEVICES` and the like).

    Args:
        ask: Runs a command and returns what it prints; empty if the command is missing or fails.

    Raises:
        CannotRunHereError: a tool is installed but does not answer.
    """
    ask = ask or _run_tool
    nvidia = _nvidia(ask)
    if nvidia:
        return nvidia
    # A user may hide all NVIDIA cards in order to use the AMD ones.
    amd = _amd(ask)
    return cards_in_environment() if nvidia is None and amd is None else amd or ()


def _nvidia(ask: Ask) -> tuple[Card, ...] | None:
    listed = ask(["nvidia-smi", "-L"])
    near = _cores_near(ask(["nvidia-smi", "--query-gpu=uuid,pci.bus_id", "--format=csv,noheader"])) if listed else {}
    cards: list[tuple[int, Card, list[Card]]] = []
    for line in listed.splitlines():
        if match := _GPU.match(line):
            cards.append((int(match[1]), Card(match[2], "nvidia", near.get(match[2], ())), []))
        elif cards and (match := _INSTANCE.match(line)):
            cards[-1][2].append(Card(match[1], "nvidia", cards[-1][1].cpus))
    if not cards:
        return None
    usable: list[Card] = []
    for number, card, instances in cards:
        whole = is_visible(card, number)
        usable += [part for part in instances or [card] if whole or (instances and is_visible(part, None))]
    return tuple(usable)


def _cores_near(printed: str) -> dict[str, tuple[int, ...]]:
    """Return the cores near each card, by its UUID."""
    found = {}
    for line in printed.splitlines():
        uuid, _, bus = (word.strip() for word in line.partition(","))
        found[uuid] = _cpus_near(bus)
    return found


def _cpus_near(bus: str) -> tuple[int, ...]:
    # nvidia-smi writes eight digits of the domain, the kernel four.
    name = bus.lower()[-12:]
    text = read_or_empty(_PCI / name / "local_cpulist") if _BUS.fullmatch(name) else ""
    return tuple(sorted(parse_cpu_list(text)))


def _amd(ask: Ask) -> tuple[Card, ...] | None:
    try:
        printed = json.loads(ask(["rocm-smi", "--showuniqueid", "--showbus", "--json"]) or "{}")
        listed = {
            int(key.removeprefix("card")): dict(value) for key, value in printed.items() if key.startswith("card")
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if not listed:
        return None
    # rocm-smi has the numbers of the kernel, in which other graphics cards count; the variable counts AMD's.
    cards = [
        Card(_amd_name(number, value.get("Unique ID")), "amd", _cpus_near(str(value.get("PCI Bus", ""))))
        for number, (_, value) in enumerate(sorted(listed.items()))
    ]
    return visible_to_hip([card for number, card in enumerate(cards) if is_visible(card, number)])


def _amd_name(number: int, unique: object) -> str:
    """Return the UUID of a card; its number if it has no unique ID, like old cards and processors with graphics."""
    digits = str(unique).removeprefix("0x")
    return f"GPU-{digits}" if re.fullmatch(r"[0-9a-f]{16}", digits) else str(number)


def _run_tool(command: Sequence[str]) -> str:
    try:
        done = ask(command, _PATIENCE_S)
    except TimeoutError as error:
        # Without the tool's list this study would name the cards differently from others, and both would use them.
        msg = (
            f"{command[0]} has not answered for {_PATIENCE_S:g} s, so the cards of this machine are unknown; "
            "try again when it answers"
        )
        raise CannotRunHereError(msg) from error
    except OSError:
        return ""
    return done.text if done.exit_code == 0 else ""
