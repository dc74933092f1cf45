"""The input file of pw.x: read as far as tuning needs, and edited without changing the rest.

Syntax: Fortran namelists (`&CONTROL ... /`), then cards; see INPUT_PW of Quantum ESPRESSO.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from objectives.qe.output import number

_GROUP = re.compile(r"^[ \t]*[&$](\w+)", re.MULTILINE)
_GROUP_END = re.compile(r"/|^[ \t]*[&$]end\b", re.MULTILINE | re.IGNORECASE)
_ASSIGNMENT = re.compile(r"(?<![\w%])([A-Za-z]\w*)[ \t]*(\([^()=]*\))?\s*=")
_CARDS = (
    "ATOMIC_SPECIES|ATOMIC_POSITIONS|K_POINTS|CELL_PARAMETERS|CONSTRAINTS|OCCUPATIONS|ATOMIC_FORCES"
    "|ATOMIC_VELOCITIES|ADDITIONAL_K_POINTS|SOLVENTS|HUBBARD"
)
_CARD = re.compile(rf"^\s*({_CARDS})\b[\s{{(]*([\w-]*)", re.IGNORECASE)

DEFAULT_CONV_THR_RY = 1e-6
DEFAULT_ETOT_CONV_THR_RY = 1e-4
_DEFAULT_ITERATIONS = 100
FEW_ITERATIONS = 30
"""A limit on iterations below this is on purpose, as in benchmarks: most runs converge in 8 to 25 iterations."""
_PRINTED_RY = 2e-8  # energies have eight decimals: equal results may differ by one in the last

Value = str | int | float | bool


@dataclass(frozen=True)
class _Assignment:
    group: str
    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Deck:
    """An input of pw.x as text. Names of variables are those of pw.x in lower case (`celldm(1)`, `conv_thr`)."""

    text: str

    @classmethod
    def read(cls, path: Path) -> "Deck":
        """Read a file; bytes that are not UTF-8 (in comments) survive an edit unchanged.

        Raises:
            OSError: The file cannot be read.
        """
        return cls(path.read_bytes().decode("utf-8", errors="surrogateescape"))

    def write(self, path: Path) -> None:
        """Write the text, byte for byte."""
        path.write_bytes(self.text.encode("utf-8", errors="surrogateescape"))

    @property
    def groups(self) -> tuple[str, ...]:
        """The namelists of the input, in lower case."""
        return tuple(name for name, _, _ in _groups(_mask(self.text)))

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return a namelist variable as text without quotes; of two assignments the last counts."""
        found = [a for a in _assignments(self.text) if a.name == name.lower()]
        return _unquote(self.text[found[-1].start : found[-1].end]) if found else default

    def get_float(self, name: str, default: float) -> float:
        """Return a number in Fortran's notation (`1.0d-6`); the default if the variable is unset or not a number."""
        try:
            return number(self.get(name) or "")
        except ValueError:
            return default

    def with_values(self, group: str, values: Mapping[str, Value]) -> "Deck":
        """Return a copy with variables of a namelist set; every other character stays as it is.

        Raises:
            KeyError: The input has no such namelist.
        """
        deck = self
        for name, value in values.items():
            deck = deck._with_value(group.lower(), name.lower(), to_fortran(value))
        return deck

    def card(self, name: str) -> tuple[str, tuple[str, ...]] | None:
        """Return a card's option (`automatic`) and its lines without comments; None if there is no such card."""
        option, lines, found = "", [], False
        for line in self._card_lines():
            if match := _CARD.match(line):
                if found:
                    break
                found = match[1].upper() == name.upper()
                option = match[2].lower()
            elif found:
                lines.append(line.strip())
        return (option, tuple(lines)) if found else None

    @property
    def pseudopotentials(self) -> tuple[str, ...]:
        """The names of the pseudopotential files, without repetition."""
        card = self.card("ATOMIC_SPECIES")
        fields = [line.split() for line in card[1]] if card else []
        return tuple(dict.fromkeys(words[2] for words in fields if len(words) >= 3))

    @property
    def calculation(self) -> str:
        """The kind of calculation: `scf`, `relax`, `nscf`, ..."""
        return (self.get("calculation") or "scf").lower()

    @property
    def prefix(self) -> str:
        """The prefix of the names of saved files."""
        return self.get("prefix") or "pwscf"

    @property
    def energy_tolerance_ry(self) -> float:
        """How far apart the energies of two converged runs may be, in Ry: the input's own convergence threshold.

        Band structures have no total energy; their levels have a tolerance of their own.
        """
        threshold = max(_PRINTED_RY, self.get_float("conv_thr", DEFAULT_CONV_THR_RY))
        if self.calculation in {"scf", "nscf", "bands"}:
            return threshold
        return max(threshold, self.get_float("etot_conv_thr", DEFAULT_ETOT_CONV_THR_RY))

    @property
    def iteration_limit(self) -> int | None:
        """The iterations after which the input ends a self-consistency on purpose; None if it must converge.

        It is on purpose if `scf_must_converge` is false, without which pw.x does not move ions afterwards, or if there
        are few.
        """
        if self.calculation in {"nscf", "bands"}:
            return None
        limit = round(self.get_float("electron_maxstep", _DEFAULT_ITERATIONS))
        must_converge = not (self.get("scf_must_converge") or "t").lower().lstrip(".").startswith("f")
        is_on_purpose = not must_converge or (limit < FEW_ITERATIONS and self.calculation == "scf")
        return limit if is_on_purpose else None

    def _with_value(self, group: str, name: str, value: str) -> "Deck":
        found = [a for a in _assignments(self.text) if a.group == group and a.name == name]
        if found:
            return Deck(self.text[: found[-1].start] + value + self.text[found[-1].end :])
        masked = _mask(self.text)
        for name_there, start, _ in _groups(masked):
            if name_there == group:
                line_end = _line_end(masked, start)
                rest = "" if not masked[start:line_end].strip() else "\n  "
                return Deck(f"{self.text[:start]}\n  {name} = {value}{rest}{self.text[start:]}")
        raise KeyError(f"the input has no namelist &{group.upper()}")

    def _card_lines(self) -> Iterator[str]:
        masked = _mask(self.text)
        ends = [end for _, _, end in _groups(masked)]
        for line in self.text[max(ends, default=0) :].splitlines():
            stripped = re.split(r"[!#]", line, maxsplit=1)[0]
            if stripped.strip():
                yield stripped


def to_fortran(value: Value) -> str:
    """Return a value in the notation of a Fortran namelist."""
    if isinstance(value, bool):
        return ".true." if value else ".false."
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def _assignments(text: str) -> Iterator[_Assignment]:
    masked = _mask(text)
    for group, start, end in _groups(masked):
        found = list(_ASSIGNMENT.finditer(masked, start, end))
        for place, match in enumerate(found):
            stop = found[place + 1].start() if place + 1 < len(found) else end
            first = match.end() + len(masked[match.end() : stop]) - len(masked[match.end() : stop].lstrip())
            last = max(first, match.end() + len(masked[match.end() : stop].rstrip(" \t\r\n,/&$")))
            name = match[1].lower() + re.sub(r"\s", "", match[2] or "")
            yield _Assignment(group, name, first, last)


def _groups(masked: str) -> list[tuple[str, int, int]]:
    """Return the name of each namelist, and where its contents begin and end."""
    found: list[tuple[str, int, int]] = []
    place = 0
    while match := _GROUP.search(masked, place):
        if match[1].lower() == "end":
            place = match.end()
            continue
        end = _GROUP_END.search(masked, match.end())
        stop = end.end() if end else len(masked)
        found.append((match[1].lower(), match.end(), end.start() if end else stop))
        place = stop
    return found


def _mask(text: str) -> str:
    """Return `text` with comments and the contents of quotes masked, every other character in its place."""
    shown: list[str] = []
    quote = ""
    comment = False
    for character in text:
        if character == "\n":
            quote, comment = "", False
            shown.append(character)
        elif comment:
            shown.append(" ")
        elif quote:
            shown.append("x" if character != quote else character)
            quote = "" if character == quote else quote
        elif character in "!#":
            comment = True
            shown.append(" ")
        else:
            quote = character if character in "'\"" else ""
            shown.append(character)
    return "".join(shown)


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] in "'\"" and value[-1] == value[0]:
        return value[1:-1].replace(value[0] * 2, value[0]).strip()
    return value


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)
