"""Find machines by name: shipped descriptions, the user's own, files, this machine, cards by their printed names."""

import importlib.resources
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from autotune.machines.description import MachineDescription, MachineError, load
from autotune.machines.detect import describe_this_machine
from autotune.machines.user_files import config_folder
from autotune.tomlfiles.reading import toml_files
from spaces.parameters.errors import did_you_mean

THIS = "this"
"""The name of the machine that the process runs on."""

_BRACKETS = re.compile(r"\[([^\]]+)\]")
_WORD = re.compile(r"[a-z0-9.]+")
_NOISE = frozenset(
    {
        *("nvidia", "amd", "ati", "intel", "advanced", "micro", "devices", "corporation", "inc", "inc.", "r", "tm"),
        *("tesla", "quadro", "graphics", "gpu", "device", "card", "series", "oam", "ac", "mba", "mcm"),
    }
)


def machine_files() -> dict[str, Path]:
    """Return the described machines: name -> file. A user's own wins over a shipped one with the same name."""
    shipped = importlib.resources.files("studies") / "machines"
    return toml_files(shipped) | toml_files(config_folder() / "machines")


def find_machine(name_or_path: str) -> MachineDescription:
    """Return a machine by its name (`gadi`), by the path of its description (`./mine.toml`), or as `this`.

    A card is also found by the name that programs print: `NVIDIA A100-PCIE-40GB`. The description of `this` machine
    includes the figures measured on a machine like it, if any are stored.

    Raises:
        MachineError: there is no such machine, or its description has errors.
    """
    if name_or_path == THIS:
        return describe_this_machine()
    known = machine_files()
    if name_or_path in known:
        return load(known[name_or_path])
    path = Path(name_or_path)
    if path.suffix == ".toml" or "/" in name_or_path:
        return load(path)
    if (card := _find_card(name_or_path, _readable(known))) is not None:
        return card
    names = [*sorted(known), THIS]
    msg = (
        f"no machine is called {name_or_path!r}{did_you_mean(name_or_path, names)}; known: {', '.join(names)}; "
        f"give a description of your own by its path, ./{name_or_path}.toml, "
        f"or put it into {config_folder()}/machines"
    )
    raise MachineError(msg)


def _find_card(name: str, described: Iterable[MachineDescription]) -> MachineDescription | None:
    """Return the described card that programs print as `name`; None unless exactly one matches.

    Programs print one card in several ways: "NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"; "AMD Radeon PRO W7800",
    "Navi 31 [Radeon Pro W7800]". Names match if they have the same words apart from vendor and form of the card.
    """
    words = _words(name)
    cards = [card for card in described if _is_card(card) and words and _words(card.gpu.model or "") == words]
    return cards[0] if len(cards) == 1 else None


def _is_card(machine: MachineDescription) -> bool:
    """Return whether a description is of a single card, not of a node with cards."""
    return machine.gpu.model is not None and machine.gpu.count in {None, 1} and machine.cpu.model is None


def _words(name: str) -> frozenset[str]:
    # A description may add a remark after a comma: "one die".
    lowered = name.lower().partition(",")[0]
    bracketed = _BRACKETS.search(lowered)
    return frozenset(_WORD.findall(bracketed[1] if bracketed else lowered)) - _NOISE


def _readable(files: Mapping[str, Path]) -> Iterator[MachineDescription]:
    for path in files.values():
        with suppress(MachineError):
            yield load(path)
