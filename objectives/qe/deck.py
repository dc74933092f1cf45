"""The input file of pw.x: read as far as tuning needs, and edited without changing the rest.

Syntax: Fortran namelists (`&CONTROL ... /`), then cards; see INPUT_PW of Quantum ESPRESSO. Cards are read as pw.x
does (Modules/read_cards.f90): their names are in capitals and end with a blank, other lines are ignored, and an option
is found anywhere in the line of the name, also in a comment.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path

from objectives.qe.output import number

_GROUP = re.compile(r"^[ \t\ufeff]*[&$](\w+)", re.MULTILINE)  # also behind the mark with which Windows begins files
_GROUP_END = re.compile(r"/|[&$]end\b", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"(?<![\w%])([A-Za-z]\w*)[ \t]*(\([^()=]*\))?\s*=")
# A value of a list, with its number of repetitions (`2*0.5`), and the comma behind it.
_LISTED = re.compile(r"""\s*((?:\d{1,4}\*)?)('(?:[^']|'')*'|"(?:[^"]|"")*"|[^\s,;'"]*)\s*([,;]?)""")
_SUBSCRIPT = re.compile(r"\((\d{1,4})(?::\d{0,4})?\)$")
_CARDS = (
    "ATOMIC_SPECIES|ATOMIC_POSITIONS|K_POINTS|CELL_PARAMETERS|REF_CELL_PARAMETERS|CONSTRAINTS|OCCUPATIONS|ATOMIC_FORCES"
    "|ATOMIC_VELOCITIES|ADDITIONAL_K_POINTS|SOLVENTS|TOTAL_CHARGE|HUBBARD"
)
_CARD = re.compile(rf"^\s*({_CARDS})(?=[\s,;]|$)(.*)")
_UNLIKE_A_CARD = re.compile(rf"^\s*({_CARDS})(?!\w)", re.IGNORECASE)
# The options of a card, in the order in which pw.x looks for them.
_OPTIONS = {
    "ATOMIC_POSITIONS": ("crystal_sg", "crystal", "bohr", "angstrom", "alat"),
    "CELL_PARAMETERS": ("bohr", "angstrom", "alat"),
    "K_POINTS": ("automatic", "crystal", "tpiba", "gamma"),
}
_OPTIONS["ADDITIONAL_K_POINTS"] = _OPTIONS["K_POINTS"]

DEFAULT_CONV_THR_RY = 1e-6
DEFAULT_ETOT_CONV_THR_RY = 1e-4
_DEFAULT_ITERATIONS = 100
FEW_ITERATIONS = 30
"""A limit on iterations below this is on purpose, as in benchmarks: most runs converge in 8 to 25 iterations."""
_PRINTED_RY = 2e-8  # energies have eight decimals: equal results may differ by one in the last

Value = str | int | float | bool


@dataclass(frozen=True)
class _Assignment:
    """`name = value ...` in a namelist: where its values are, and without comments."""

    group: str
    name: str
    start: int
    end: int
    values: str


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

    @cached_property
    def _assignments(self) -> tuple["_Assignment", ...]:
        return tuple(_assignments(self.text))

    @property
    def variables(self) -> tuple[tuple[str, str, str], ...]:
        """The namelist, the name and the text of the values of each assignment, both names in lower case."""
        return tuple((found.group, found.name, found.values) for found in self._assignments)

    @property
    def has_wrong_comments(self) -> bool:
        """Whether a comment in a namelist begins with `#`, as it may elsewhere."""
        masked = _mask(self.text, keep="#")
        return any("#" in masked[start:end] for _, start, end in _groups(masked))

    @property
    def groups(self) -> tuple[str, ...]:
        """The namelists of the input, in lower case."""
        return tuple(name for name, _, _ in _groups(_mask(self.text)))

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return a namelist variable, or an element of an array (`celldm(1)`), as text without quotes.

        Of two assignments the last counts.
        """
        wanted, found = _element(name.lower()), default
        for assignment in self._assignments:
            array, first = _element(assignment.name)
            if array == wanted[0]:
                for place, value in enumerate(list_values(assignment.values), first):
                    if place == wanted[1] and value is not None:
                        found = value
        return found

    def is_set(self, name: str) -> bool:
        """Return whether a logical variable is true; Fortran looks at its first letter (`.TRUE.`, `t`)."""
        return (self.get(name) or "").lower().removeprefix(".").startswith("t")

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
        """Return a card's option (`automatic`) and its lines without comments; None if there is no such card.

        The option is empty if there is none, or one for which pw.x takes the default.
        """
        option, lines, found = "", [], False
        for line in self._card_lines():
            if match := _CARD.match(line):
                if found:
                    break
                found = match[1] == name
                option = _option(name, match[2])
            elif found and (text := re.split(r"[!#]", line, maxsplit=1)[0].strip()):
                lines.append(text)
        return (option, tuple(lines)) if found else None

    @property
    def ignored_cards(self) -> tuple[str, ...]:
        """The lines that look like cards, and that pw.x ignores: small letters, or no blank behind the name."""
        return tuple(
            line.strip() for line in self._card_lines() if _UNLIKE_A_CARD.match(line) and not _CARD.match(line)
        )

    @property
    def species(self) -> tuple[tuple[str, str], ...]:
        """The label and the pseudopotential file of each of the `ntyp` species."""
        card = self.card("ATOMIC_SPECIES")
        count = round(self.get_float("ntyp", 0)) or None
        rows = [list(list_values(line)) for line in card[1][:count]] if card else []
        return tuple((row[0], row[2]) for row in rows if len(row) > 2 and row[0] and row[2])

    @property
    def pseudopotentials(self) -> tuple[str, ...]:
        """The names of the pseudopotential files, without repetition."""
        return tuple(dict.fromkeys(file for _, file in self.species))

    @property
    def calculation(self) -> str:
        """The kind of calculation: `scf`, `relax`, `nscf`, ..."""
        return self.get("calculation") or "scf"

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
        must_converge = self.get("scf_must_converge") is None or self.is_set("scf_must_converge")
        is_on_purpose = not must_converge or (limit < FEW_ITERATIONS and self.calculation == "scf")
        return limit if is_on_purpose else None

    def _with_value(self, group: str, name: str, value: str) -> "Deck":
        found = [a for a in self._assignments if a.group == group and a.name == name]
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
        """Yield the lines behind the namelists, except comments."""
        masked = _mask(self.text)
        ends = [end for _, _, end in _groups(masked)]
        for line in self.text[max(ends, default=0) :].splitlines():
            if line.strip() and line[0] not in "!#":
                yield line


def list_values(text: str) -> Iterator[str | None]:
    """Yield the values of a list as Fortran reads it: `2*0.5` is two, and nothing between commas is None, no change."""
    place = 0
    while match := _LISTED.match(text, place):
        if match.end() == place or (match.end() == len(text) and not match[1] + match[2]):
            return
        place = match.end()
        yield from repeat(_unquote(match[2]) if match[2] else None, int(match[1][:-1] or 1))


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
            kept = (
                shown if mask != " " else " " for shown, mask in zip(text[first:last], masked[first:last], strict=True)
            )
            yield _Assignment(group, name, first, last, "".join(kept))


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


def _mask(text: str, keep: str = "") -> str:
    """Return `text` with comments and the contents of quotes masked, every other character in its place.

    The sign that begins a comment stays if it is in `keep`.
    """
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
            shown.append(character if character in keep else " ")
        else:
            quote = character if character in "'\"" else ""
            shown.append(character)
    return "".join(shown)


def _element(name: str) -> tuple[str, int]:
    """Return the array of a name and the index of its first element: `celldm(2:3)`, `celldm`."""
    match = _SUBSCRIPT.search(name)
    return (name[: match.start()], int(match[1])) if match else (name, 1)


def _option(card: str, rest: str) -> str:
    line = rest.lower()
    option = next((option for option in _OPTIONS.get(card, ()) if option in line), "")
    if option in {"crystal", "tpiba"} and "K_POINTS" in card:
        return option + next((kind for kind in ("_b", "_c") if kind in line), "")
    # Of the three, only this card must not have another word.
    return option or (line.strip() if card == "ATOMIC_POSITIONS" else "")


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] in "'\"" and value[-1] == value[0]:
        return value[1:-1].replace(value[0] * 2, value[0]).strip()
    return value


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)
