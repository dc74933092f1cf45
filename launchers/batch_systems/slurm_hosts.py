"""Parse Slurm's lists of hosts and of counts (sbatch(1), "OUTPUT ENVIRONMENT VARIABLES")."""

import re
from itertools import product
from math import prod

_MOST = 100_000  # hosts of an allocation; a few characters can stand for more hosts than fit into memory


def expand_hosts(text: str) -> list[str]:
    """Return the hosts of a Slurm host list: `gadi-cpu-[0001-0003,0007],x1` are five.

    Raises:
        ValueError: The text is not a host list, or stands for more hosts than any cluster has.
    """
    hosts: list[str] = []
    for part in _split(text):
        words = [piece for piece in re.split(r"(\[[^\[\]]*\])", part) if piece]
        choices = [_expand_range(word[1:-1]) if word.startswith("[") else [word] for word in words]
        if any("[" in choice or "]" in choice for alternatives in choices for choice in alternatives):
            msg = f"{text!r} is not a list of hosts: its brackets do not match"
            raise ValueError(msg)
        _check(len(hosts) + prod(len(alternatives) for alternatives in choices), text)
        hosts += ["".join(chosen) for chosen in product(*choices)]
    return hosts


def expand_counts(text: str) -> list[int]:
    """Return the counts of a list: `48(x3),24` is 48, 48, 48, 24.

    Raises:
        ValueError: The text is not a list of counts, or stands for more hosts than any cluster has.
    """
    counts: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None:
            msg = f"{text!r} is not a list of counts such as 48(x3),24"
            raise ValueError(msg)
        times = int(match[2] or 1)
        _check(len(counts) + times, text)
        counts += [int(match[1])] * times
    return counts


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    return [part for part in (match[0].strip() for match in re.finditer(r"(?:\[[^\]]*\]|[^,])+", text)) if part]


def _expand_range(text: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            msg = f"[{text}] is not a range of numbers such as [0001-0003,0007]"
            raise ValueError(msg)
        first, last = match[1], match[2] or match[1]
        _check(len(numbers) + int(last) - int(first) + 1, text)
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers


def _check(hosts: int, text: str) -> None:
    if hosts > _MOST:
        msg = f"{text!r} stands for more than {_MOST} hosts"
        raise ValueError(msg)
