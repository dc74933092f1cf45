"""Read NVIDIA's cards with the library that comes with their driver.

Source: NVML API Reference Guide, "Device Queries". It is called by ctypes, since six functions do not justify a
dependency.
"""

import ctypes
from collections.abc import Sequence
from functools import partial

from .cards import CardReader, Reading
from .visible_cards import visible_readers

LIBRARY = "libnvidia-ml.so.1"
VISIBLE = "CUDA_VISIBLE_DEVICES"

_UUID_BYTES = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
_MW_PER_W = _MJ_PER_J = 1e3


class _Utilization(ctypes.Structure):
    """The type `nvmlUtilization_t`: percentages of a period between 1/6 s and 1 s."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    """The type `nvmlMemory_t`."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Nvml:
    """The initialised library. Functions that a card, a driver or this user lacks give no value."""

    def __init__(self, library: str = LIBRARY) -> None:
        """Load and initialise the library, which takes seconds if the driver is not loaded.

        Raises:
            OSError: There is no such library, or no driver.
        """
        self._library = ctypes.CDLL(library)
        init = getattr(self._library, "nvmlInit_v2", None)
        code = init() if init is not None else None
        if code != 0:
            msg = f"{library} cannot be used: nvmlInit_v2 returned {code}"
            raise OSError(msg)

    def cards(self) -> list[tuple[str, CardReader]]:
        """Return the UUID and the reader of each card, in the order of their numbers, which is that of the PCI bus."""
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        found: list[tuple[str, CardReader]] = []
        for number in range(count.value):
            card = ctypes.c_void_p()
            if self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(card)):
                found.append((self._uuid(card), partial(self._read, card)))
        return found

    def by_uuid(self, uuid: str) -> CardReader | None:
        """Return the reader of the card, or instance of a divided card, with this UUID; None if it is unknown."""
        card = ctypes.c_void_p()
        found = self._call("nvmlDeviceGetHandleByUUID", ctypes.c_char_p(uuid.encode()), ctypes.byref(card))
        return partial(self._read, card) if found else None

    def _uuid(self, card: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(_UUID_BYTES)
        found = self._call("nvmlDeviceGetUUID", card, text, ctypes.c_uint(_UUID_BYTES))
        return text.value.decode("ascii", errors="replace") if found else ""

    def _read(self, card: ctypes.c_void_p) -> Reading:
        busy, memory, power_mw, energy_mj = _Utilization(), _Memory(), ctypes.c_uint(), ctypes.c_ulonglong()
        return Reading(
            busy.gpu / 100 if self._call("nvmlDeviceGetUtilizationRates", card, ctypes.byref(busy)) else None,
            memory.used if self._call("nvmlDeviceGetMemoryInfo", card, ctypes.byref(memory)) else None,
            power_mw.value / _MW_PER_W if self._call("nvmlDeviceGetPowerUsage", card, ctypes.byref(power_mw)) else None,
            energy_mj.value / _MJ_PER_J
            if self._call("nvmlDeviceGetTotalEnergyConsumption", card, ctypes.byref(energy_mj))
            else None,
        )

    def _call(self, name: str, *arguments: object) -> bool:
        function = getattr(self._library, name, None)
        return function is not None and function(*arguments) == 0


def nvidia_readers(visible: str | None, wanted: int, library: str = LIBRARY) -> Sequence[CardReader]:
    """Return the readers of the cards that a job sees by its CUDA_VISIBLE_DEVICES (`visible_cards.visible_readers`).

    Raises:
        OSError: The library or the driver is missing, or it is not known which cards the job sees.
    """
    nvml = Nvml(library)
    return visible_readers(nvml.cards(), (VISIBLE, visible), wanted, nvml.by_uuid)
