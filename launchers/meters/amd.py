"""Read AMD's cards from the kernel's driver.

Source: Linux, Documentation/gpu/amdgpu (`gpu_busy_percent`, `mem_info_vram_used`, `unique_id`), and its hwmon files:
`power1_average` or `power1_input` in microwatts, and on some cards `energy1_input` in microjoules.
"""

import re
from collections.abc import Sequence
from functools import partial

from .cards import CardReader, Reading
from .kernel import list_names, read_number, read_text
from .visible_cards import visible_readers

SYS = "/sys"
VISIBLE = "ROCR_VISIBLE_DEVICES"

_VENDOR = "0x1002"
_CARD = re.compile(r"card(\d{1,4})")


def amd_cards(sys: str = SYS) -> list[tuple[str, CardReader]]:
    """Return the UUID (empty if it has none) and the reader of each card, in the order of the kernel's numbers."""
    top = f"{sys}/class/drm"
    numbers = sorted(int(match[1]) for name in list_names(top) if (match := _CARD.fullmatch(name)))
    folders = [f"{top}/card{number}/device" for number in numbers]
    return [(_uuid(folder), partial(_read, folder)) for folder in folders if read_text(f"{folder}/vendor") == _VENDOR]


def amd_readers(visible: str | None, wanted: int, sys: str = SYS) -> Sequence[CardReader]:
    """Return the readers of the cards that a job sees by its ROCR_VISIBLE_DEVICES (`visible_cards.visible_readers`).

    Raises:
        OSError: There are no cards, or it is not known which the job sees.
    """
    return visible_readers(amd_cards(sys), (VISIBLE, visible), wanted)


def _uuid(folder: str) -> str:
    digits = read_text(f"{folder}/unique_id").removeprefix("0x")
    return f"GPU-{digits}" if digits else ""


def _read(folder: str) -> Reading:
    busy = read_number(f"{folder}/gpu_busy_percent")
    sensors = f"{folder}/hwmon/{next(iter(list_names(f'{folder}/hwmon')), '')}"
    powers = (read_number(f"{sensors}/{name}") for name in ("power1_average", "power1_input"))
    power_uw = next((power for power in powers if power is not None), None)
    energy_uj = read_number(f"{sensors}/energy1_input")
    return Reading(
        None if busy is None else min(busy, 100) / 100,
        read_number(f"{folder}/mem_info_vram_used"),
        None if power_uw is None else power_uw / 1e6,
        None if energy_uj is None else energy_uj / 1e6,
    )
