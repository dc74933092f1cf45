"""Parse UCX's output: its variables (`ucx_info -c -f`), and the transports that it chooses (`ucx_info -e`).

The format is that of `ucs_config_parser_print_opts` in UCX's src/ucs/config/parser.c, seen alike in 1.13 and 1.21:
comment lines with the description, `# syntax: ...`, at times `# inherits: ...`, and then `UCX_NAME=default`.
"""

import re
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"(UCX_[A-Z0-9_]+)=(.*)")
_FIELD = re.compile(r" ?(syntax|inherits|alias of): *(.*)")
_LANE = re.compile(r"lane\[\d+\]: +\d+:(\w+)/.*[ \]](?:am|tag|rma|amo|\w+_bw)\b")


@dataclass(frozen=True)
class Variable:
    """A variable of UCX.

    Args:
        name: Its name in the environment: `UCX_RNDV_THRESH`.
        syntax: UCX's description of its values: `<y|n>`, `unsigned integer`, `memory units: ...`.
        default: Its default value, as UCX writes it.
        help: The first sentence of UCX's description.
        inherits: Names that also set this variable, together with others: `UCX_RC_TM_ENABLE`.
    """

    name: str
    syntax: str
    default: str
    help: str
    inherits: tuple[str, ...] = ()


def parse(text: str) -> tuple[Variable, ...]:
    """Return the variables in the output of `ucx_info -c -f`, ignoring everything else."""
    found: dict[str, Variable] = {}
    notes: list[str] = []
    for line in text.splitlines():
        assignment = _ASSIGNMENT.fullmatch(line.strip())
        if assignment:
            name, default = assignment.groups()
            found.setdefault(name, _variable(name, default.strip(), notes))
        if line.startswith("#"):
            notes.append(line[1:])
        else:
            notes = []
    return tuple(found.values())


def lanes(text: str) -> frozenset[str]:
    """Return the transports that carry data, from the output of `ucx_info -e -u t -P intra` (or `inter`)."""
    return frozenset(match[1] for match in map(_LANE.search, text.splitlines()) if match)


def _variable(name: str, default: str, notes: list[str]) -> Variable:
    fields = {match[1]: match[2].strip() for match in map(_FIELD.fullmatch, notes) if match}
    words = [note for note in notes if not _FIELD.fullmatch(note)]
    inherits = tuple(re.findall(r"\w+", fields.get("inherits", "")))
    return Variable(name, fields.get("syntax", ""), default, _first_sentence(words), inherits)


def _first_sentence(notes: list[str]) -> str:
    """Return the first sentence; without a full stop it ends where a list or an empty line follows."""
    lines: list[str] = []
    for note in notes:
        of_a_list = note.startswith("  ")
        if lines and (of_a_list or not note.strip()):
            break
        if note.strip():
            lines.append(note.strip())
    return re.split(r"(?<=\.)\s", " ".join(lines), maxsplit=1)[0]
