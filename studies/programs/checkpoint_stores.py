"""Stores of the study `checkpoint` for the states of its ranks: memory, disks, a slow file system."""

import os
import time
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

SLOTS = 2
HEAD = 8


class Store(ABC):
    """Two slots for checkpoints of one rank, each a state and its step; an empty slot has step 0."""

    def put(self, step: int, state: bytes, but: int) -> None:
        """Store a state, but do not overwrite step `but`, the newest one that every rank has."""
        held = self._held()
        self._write(next(slot for slot in range(SLOTS) if not but or held[slot] != but), step, state)

    def get(self, step: int) -> bytes | None:
        """Return the state of a step, if it is stored here."""
        held = self._held()
        return self._read(held.index(step)) if step and step in held else None

    def steps(self) -> set[int]:
        """Return the stored steps."""
        return set(self._held())

    @abstractmethod
    def _held(self) -> list[int]:
        """Return the step of each slot."""

    @abstractmethod
    def _write(self, slot: int, step: int, state: bytes) -> None: ...

    @abstractmethod
    def _read(self, slot: int) -> bytes: ...


class Memory(Store):
    """Files in memory of the process that starts the ranks: they outlive a rank, but not the job."""

    def __init__(self) -> None:
        self._slots = [os.memfd_create("checkpoint") for _ in range(SLOTS)]

    def lose(self) -> None:
        """Lose all of it."""
        for slot in self._slots:
            os.ftruncate(slot, 0)

    def _held(self) -> list[int]:
        return [int.from_bytes(os.pread(slot, HEAD, 0), "little") for slot in self._slots]

    def _write(self, slot: int, step: int, state: bytes) -> None:
        target, begun = self._slots[slot], time.monotonic()
        os.ftruncate(target, 0)
        _write_at(target, state, HEAD)
        self._arrive(len(state), begun)
        # Last, so that an incomplete state has no step.
        os.pwrite(target, step.to_bytes(HEAD, "little"), 0)

    def _read(self, slot: int) -> bytes:
        source = self._slots[slot]
        return os.pread(source, os.fstat(source).st_size, HEAD)

    def _arrive(self, size: int, begun: float) -> None:
        """Wait until `size` bytes, sent from `begun` on, have arrived."""


class FarMemory(Memory):
    """The memory of another node, over a link of `rate` bytes a second that all `writers` share."""

    def __init__(self, rate: float, writers: int = 1) -> None:
        super().__init__()
        self.rate, self.writers = rate, writers

    def _arrive(self, size: int, begun: float) -> None:
        wait_until(begun + size * self.writers / self.rate)


class PartnerMemory(FarMemory):
    """A copy of a rank's state on its partner's node; reading it back takes the link, too."""

    def _read(self, slot: int) -> bytes:
        begun = time.monotonic()
        state = super()._read(slot)
        self._arrive(len(state), begun)
        return state


@dataclass(frozen=True)
class Disk(Store):
    """Files of a folder, each synced before it replaces the one before."""

    folder: Path

    def lose(self) -> None:
        """Lose all of it."""
        for slot in range(SLOTS):
            self._file(slot).unlink(missing_ok=True)

    def _held(self) -> list[int]:
        return [_step_in(self._file(slot)) for slot in range(SLOTS)]

    def _write(self, slot: int, step: int, state: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        part, begun = self._file(slot).with_suffix(".part"), time.monotonic()
        with part.open("wb") as file:
            file.write(step.to_bytes(HEAD, "little"))
            file.write(state)
            file.flush()
            os.fsync(file.fileno())
        self._transfer(len(state), begun, reads=False)
        part.replace(self._file(slot))

    def _read(self, slot: int) -> bytes:
        return self._file(slot).read_bytes()[HEAD:]

    def _transfer(self, size: int, begun: float, *, reads: bool) -> None:
        """Wait until `size` bytes, sent from `begun` on, have been transferred."""

    def _file(self, slot: int) -> Path:
        return self.folder / f"{slot}.state"


@dataclass(frozen=True)
class SlowDisk(Disk):
    """A disk behind a network of `rate` bytes a second, shared by all `writers`, or all `readers`.

    A checkpoint exists once all of it has arrived.
    """

    rate: float
    writers: int
    readers: int
    compress: bool

    def _write(self, slot: int, step: int, state: bytes) -> None:
        super()._write(slot, step, zlib.compress(state, 1) if self.compress else state)

    def _read(self, slot: int) -> bytes:
        begun = time.monotonic()
        packed = super()._read(slot)
        self._transfer(len(packed), begun, reads=True)
        return zlib.decompress(packed) if self.compress else packed

    def _transfer(self, size: int, begun: float, *, reads: bool) -> None:
        at_once = self.readers if reads else self.writers
        wait_until(begun + size * at_once / self.rate)


@dataclass
class Stores:
    """The stores of all ranks: memory, a copy on the next rank's node, local disks, the file system."""

    ranks: int
    file_system: list[SlowDisk]
    local: list[Disk]
    copy: list[PartnerMemory]
    memory: list[Memory] = field(init=False)

    def __post_init__(self) -> None:
        self.memory = [Memory() for _ in range(self.ranks)]

    def of(self, rank: int) -> list[Store]:
        """Return the stores of a rank, the fastest first."""
        return [self.memory[rank], self.copy[rank], self.local[rank], self.file_system[rank]]

    def lose_node(self, rank: int) -> None:
        """Lose everything on a rank's node, also the copy for the rank before."""
        for store in (self.memory[rank], self.local[rank], self.copy[rank - 1]):
            store.lose()

    def newest(self) -> int:
        """Return the newest step that every rank still has; 0, the start, if there is none."""
        return newest([{step for store in self.of(rank) for step in store.steps()} for rank in range(self.ranks)])

    def state(self, rank: int, step: int) -> bytes | None:
        """Return a rank's state of a step from the fastest store that has it."""
        return next((state for store in self.of(rank) if (state := store.get(step)) is not None), None)


def newest(steps: list[set[int]]) -> int:
    """Return the newest step that all ranks have."""
    return max(set.intersection(*steps), default=0)


def wait_until(at_s: float) -> None:
    """Wait until a time of the monotonic clock."""
    time.sleep(max(0.0, at_s - time.monotonic()))


def _step_in(file: Path) -> int:
    try:
        with file.open("rb") as opened:
            return int.from_bytes(opened.read(HEAD), "little")
    except FileNotFoundError:
        return 0


def _write_at(descriptor: int, content: bytes, place: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, place)
        view, place = view[written:], place + written
