"""The k-points of an input: how many pw.x computes.

Source: PW/src/setup.f90, Modules/read_cards.f90 and PW/src/bp_strings.f90.
"""

from itertools import islice

import numpy as np

from objectives.qe import symmetry
from objectives.qe.deck import Deck, list_values
from objectives.qe.lattice import Lattice, Matrix, UndescribedError, read_count
from objectives.qe.output import number

_SPINS = 2
_MOST_POINTS = 40_000  # pw.x has room for as many (`npk`)
_MOST_EQUAL = 96  # points that 48 operations and time reversal make equal
_CORNERS = 3


def has_pools(deck: Deck) -> bool:
    """Return whether pw.x can share the k-points between pools: it stops with electric fields and Berry phases."""
    return not any(deck.is_set(name) for name in ("lberry", "lelfield", "lorbm"))


def count_kpoints(deck: Deck, lattice: Lattice, found: symmetry.Crystal) -> int:
    """Return how many k-points pw.x computes, of both spins.

    Args:
        deck: The input.
        lattice: Its lattice.
        found: The symmetries of its crystal, whether or not the k-points may use them.

    Raises:
        UndescribedError: Only pw.x knows which k-points those are.
    """
    option, lines = deck.card("K_POINTS") or ("", ())
    spins = 2 if read_count(deck, "nspin", 1) == _SPINS else 1
    usable = found.without_symmetry if deck.is_set("nosym") or deck.is_set("tefield") else found
    sign = not deck.is_set("noinv") and not found.is_magnetic
    try:
        if option == "automatic":
            numbers = [int(value or "") for value in list_values(lines[0])]
            points, usable = _grid(deck, numbers, usable, sign=sign)
        elif option == "gamma":
            points = np.zeros((1, 3))
        else:
            points = _listed(option, lines, lattice)
        more = deck.card("ADDITIONAL_K_POINTS")
        if more is not None:
            points = np.concatenate([points, _added(deck, *more, lattice)])
    except UndescribedError:
        raise
    except (ValueError, IndexError):
        msg = f"the card K_POINTS {option} cannot be read"
        raise UndescribedError(msg) from None
    if deck.is_set("lelfield"):
        usable = usable.without_symmetry
    if deck.calculation == "bands":
        return spins * len(points)  # taken as they are
    if np.isnan(points).any():
        msg = f"K_POINTS {option} with letters: only pw.x knows where those points are"
        raise UndescribedError(msg)
    return spins * symmetry.count_kpoints(points, usable, sign=sign)


def _grid(deck: Deck, numbers: list[int], usable: symmetry.Crystal, *, sign: bool) -> tuple[Matrix, symmetry.Crystal]:
    """Return the points of an automatic grid, and the symmetries of which the crystal may lack some."""
    n1, n2, n3, *shifts = numbers[:6]
    s1, s2, s3 = shifts
    if min(n1, n2, n3) < 1 or not {s1, s2, s3} <= {0, 1} or n1 * n2 * n3 > _MOST_POINTS * _MOST_EQUAL:
        raise ValueError
    if deck.is_set("lelfield") or deck.is_set("lorbm") or deck.is_set("lecrpa"):
        return np.zeros((n1 * n2 * n3, 3)), usable.without_symmetry
    if deck.is_set("lberry"):
        return _strings(deck, (n1, n2, n3), (s1, s2, s3), usable), usable.without_symmetry
    return symmetry.grid_points((n1, n2, n3), (s1, s2, s3), usable.of_lattice, sign=sign), usable


def _strings(deck: Deck, sides: tuple[int, int, int], shifts: tuple[int, int, int], usable: symmetry.Crystal) -> Matrix:
    """Return a string of `nppstr` points along axis `gdir` for each point of the grid across it."""
    axis, length = read_count(deck, "gdir"), read_count(deck, "nppstr")
    if axis not in {1, 2, 3} or not 1 < length < _MOST_POINTS:
        msg = "lberry needs gdir, 1 to 3, and nppstr, at least 2"
        raise UndescribedError(msg)
    n1, n2, n3 = (1 if place == axis else side for place, side in enumerate(sides, 1))
    across = symmetry.grid_points((n1, n2, n3), shifts, usable.of_lattice, sign=True)
    return np.zeros((len(across) * length, 3))


def _listed(option: str, lines: tuple[str, ...], lattice: Lattice) -> Matrix:
    """Return the points of a list, (n, 3) in crystal axes, NaN where letters name them.

    With `_b` and `_c` the list has the corners of lines or of a plane.
    """
    count = int(next(list_values(lines[0]), None) or "")
    rows = lines[1 : 1 + count]
    if len(rows) < count or not rows:
        raise ValueError
    if option.endswith("_b") and any(row[0].isalpha() for row in rows):
        counts = [round(number(row.split()[-1])) for row in rows]
        return np.full((_points_of_lines(counts), 3), np.nan)
    values = np.array([[number(value or "") for value in islice(list_values(row), 4)] for row in rows])
    points, weights = values[:, :3], values[:, 3]
    if option.endswith("_b"):
        points = _along(points, [round(weight) for weight in weights])
    elif option.endswith("_c"):
        points = _in_plane(points, [round(weight) for weight in weights])
    return points if option.startswith("crystal") else points @ lattice.vectors.T


def _points_of_lines(counts: list[int]) -> int:
    if min(counts[:-1], default=0) < 0 or sum(counts[:-1]) > _MOST_POINTS:
        raise ValueError
    return sum(max(1, count) for count in counts[:-1]) + 1


def _along(corners: Matrix, counts: list[int]) -> Matrix:
    """Return the points on the lines between corners; each line has its first corner's number of them."""
    _points_of_lines(counts)
    found = [corners[:1]]
    for start, end, count in zip(corners, corners[1:], counts, strict=False):
        parts = np.arange(1, max(1, count) + 1) / max(1, count)
        found.append(start + parts[:, None] * (end - start))
    return np.concatenate(found)


def _in_plane(corners: Matrix, counts: list[int]) -> Matrix:
    """Return a mesh of points between three corners; the numbers along its sides are those of the second and third."""
    if len(corners) != _CORNERS or min(counts[1:]) < 2 or counts[1] * counts[2] > _MOST_POINTS:
        raise ValueError
    along, across = (np.linspace(0, 1, count) for count in counts[1:])
    mesh = along[:, None, None] * (corners[1] - corners[0]) + across[None, :, None] * (corners[2] - corners[0])
    plane: Matrix = (corners[0] + mesh).reshape(-1, 3)
    return plane


def _added(deck: Deck, option: str, lines: tuple[str, ...], lattice: Lattice) -> Matrix:
    if option == "automatic" or any(read_count(deck, f"nqx{axis}", 1) > 1 for axis in (1, 2, 3)):
        msg = "ADDITIONAL_K_POINTS with exact exchange: only pw.x knows which points it adds"
        raise UndescribedError(msg)
    return np.zeros((1, 3)) if option == "gamma" else _listed(option, lines, lattice)
