"""The lattice vectors of an input of pw.x, from `ibrav` with `celldm` or A, B, C and angles, or from a card.

The conventions are those of INPUT_PW, `ibrav`.
"""

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from objectives.qe.deck import Deck, list_values
from objectives.qe.output import number

Matrix = npt.NDArray[np.float64]

BOHR_ANGSTROM = 0.529177210903
_CELLDM = 6
_COUNT = re.compile(r"[-+]?\d{1,9}")
# Which of celldm(4) to celldm(6) hold cosines of angles; the other lattices have none.
_COSINES = {
    **{ibrav: {4: "cosab"} for ibrav in (5, -5, 12, 13)},
    **{ibrav: {5: "cosac"} for ibrav in (-12, -13)},
    14: {4: "cosbc", 5: "cosac", 6: "cosab"},
}


class UndescribedError(ValueError):
    """The input alone does not determine what pw.x would find out."""


@dataclass(frozen=True)
class Lattice:
    """A lattice.

    Args:
        alat: The unit of length, in bohr.
        vectors: The lattice vectors as rows, (3, 3), in units of `alat`.
    """

    alat: float
    vectors: Matrix

    @property
    def reciprocal(self) -> Matrix:
        """The reciprocal vectors as rows, in units of 2 pi / alat."""
        return np.asarray(np.linalg.inv(self.vectors).T, dtype=np.float64)


def read_number(deck: Deck, name: str, default: float = 0.0) -> float:
    """Return a number of the input; the default if it has none.

    Raises:
        UndescribedError: The input has other text.
    """
    text = deck.get(name)
    try:
        return default if text is None else number(text)
    except ValueError:
        msg = f"{name} = {text} is not a number"
        raise UndescribedError(msg) from None


def read_count(deck: Deck, name: str, default: int = 0) -> int:
    """Return a whole number of the input; the default if it has none.

    Raises:
        UndescribedError: The input has other text; pw.x does not take `2.0` either.
    """
    text = deck.get(name)
    if text is not None and not _COUNT.fullmatch(text):
        msg = f"{name} = {text} is not a whole number"
        raise UndescribedError(msg)
    return default if text is None else int(text)


def read_lattice(deck: Deck) -> Lattice:
    """Return the lattice of an input.

    Raises:
        UndescribedError: The input has no lattice, or pw.x knows none of that kind.
    """
    if not deck.get("ibrav"):
        msg = "the input has no ibrav"
        raise UndescribedError(msg)
    ibrav = read_count(deck, "ibrav")
    celldm = _celldm(deck, ibrav)
    if ibrav == 0:
        return _of_card(deck, celldm[0])
    if celldm[0] <= 0:
        msg = f"ibrav = {ibrav} needs the length of its first axis: celldm(1) or A"
        raise UndescribedError(msg)
    with np.errstate(invalid="ignore"):
        vectors = np.array(_vectors(ibrav, celldm), dtype=float)
    if not np.isfinite(vectors).all() or abs(np.linalg.det(vectors)) < 1e-9:
        msg = f"ibrav = {ibrav} with this celldm has no volume: it needs more of celldm, or of A, B, C and the cosines"
        raise UndescribedError(msg)
    if deck.card("CELL_PARAMETERS") is not None:
        msg = f"the input has both ibrav = {ibrav} and the card CELL_PARAMETERS, and pw.x takes only one of them"
        raise UndescribedError(msg)
    return Lattice(celldm[0], vectors)


def _celldm(deck: Deck, ibrav: int) -> tuple[float, ...]:
    """Return celldm(1) to celldm(6), also if the input gives A, B, C and cosines instead."""
    length = read_number(deck, "a")
    celldm = tuple(read_number(deck, f"celldm({k})") for k in range(1, _CELLDM + 1))
    if length != 0 and celldm[0] != 0:
        msg = "the input has both celldm(1) and A, and pw.x takes only one of them"
        raise UndescribedError(msg)
    if length <= 0:
        return celldm
    angles = [read_number(deck, _COSINES.get(ibrav, {}).get(k, "")) for k in range(4, _CELLDM + 1)]
    return (
        length / BOHR_ANGSTROM,
        read_number(deck, "b") / length,
        read_number(deck, "c") / length,
        *angles,
    )


def _of_card(deck: Deck, alat: float) -> Lattice:
    card = deck.card("CELL_PARAMETERS")
    rows = [list(list_values(line)) for line in card[1][:3]] if card else []
    try:
        vectors = np.array([[number(word or "") for word in row[:3]] for row in rows])
    except ValueError:
        vectors = np.empty(0)
    if card is None or vectors.shape != (3, 3) or abs(np.linalg.det(vectors)) == 0:
        msg = "ibrav = 0 needs the card CELL_PARAMETERS with three vectors"
        raise UndescribedError(msg)
    unit = card[0] or ("alat" if alat > 0 else "bohr")
    if unit == "alat" and alat <= 0:
        msg = "CELL_PARAMETERS alat needs celldm(1) or A"
        raise UndescribedError(msg)
    if unit != "alat" and alat > 0:
        msg = f"CELL_PARAMETERS {unit} has the lengths, and pw.x takes no celldm(1) or A beside it"
        raise UndescribedError(msg)
    in_bohr = vectors * {"bohr": 1.0, "angstrom": 1.0 / BOHR_ANGSTROM}.get(unit, alat)
    length = float(np.linalg.norm(in_bohr[0])) if unit != "alat" else alat
    return Lattice(length, in_bohr / length)


def _vectors(ibrav: int, celldm: tuple[float, ...]) -> list[list[float]]:
    """Return the vectors in units of alat."""
    b, c = celldm[1], celldm[2]
    cubic, hexagonal = {1, 2, 3, -3}, {4}
    if ibrav in cubic | hexagonal | {6, 7}:
        return _of_equal_axes(ibrav, c)
    if ibrav in {5, -5}:
        return _trigonal(ibrav, celldm[3])
    if ibrav in {8, 9, -9, 91, 10, 11}:
        return _orthorhombic(ibrav, b, c)
    if ibrav in {12, -12, 13, -13}:
        return _monoclinic(ibrav, b, c, celldm[3] if ibrav > 0 else celldm[4])
    if ibrav == 14:
        return _triclinic(b, c, celldm[3:])
    msg = f"pw.x has no ibrav = {ibrav}"
    raise UndescribedError(msg)


def _of_equal_axes(ibrav: int, c: float) -> list[list[float]]:
    h = 0.5
    return {
        1: [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]],
        2: [[-h, 0, h], [0, h, h], [-h, h, 0]],
        3: [[h, h, h], [-h, h, h], [-h, -h, h]],
        -3: [[-h, h, h], [h, -h, h], [h, h, -h]],
        4: [[1.0, 0, 0], [-h, math.sqrt(3) / 2, 0], [0, 0, c]],
        6: [[1.0, 0, 0], [0, 1.0, 0], [0, 0, c]],
        7: [[h, -h, c / 2], [h, h, c / 2], [-h, -h, c / 2]],
    }[ibrav]


def _trigonal(ibrav: int, cosine: float) -> list[list[float]]:
    tx, ty, tz = (np.sqrt(np.float64(x)) for x in ((1 - cosine) / 2, (1 - cosine) / 6, (1 + 2 * cosine) / 3))
    if ibrav > 0:
        return [[tx, -ty, tz], [0, 2 * ty, tz], [-tx, -ty, tz]]
    u, v = (tz - 2 * math.sqrt(2) * ty) / math.sqrt(3), (tz + math.sqrt(2) * ty) / math.sqrt(3)
    return [[u, v, v], [v, u, v], [v, v, u]]


def _orthorhombic(ibrav: int, b: float, c: float) -> list[list[float]]:
    h = 0.5
    return {
        8: [[1.0, 0, 0], [0, b, 0], [0, 0, c]],
        9: [[h, b / 2, 0], [-h, b / 2, 0], [0, 0, c]],
        -9: [[h, -b / 2, 0], [h, b / 2, 0], [0, 0, c]],
        91: [[1.0, 0, 0], [0, b / 2, -c / 2], [0, b / 2, c / 2]],
        10: [[h, 0, c / 2], [h, b / 2, 0], [0, b / 2, c / 2]],
        11: [[h, b / 2, c / 2], [-h, b / 2, c / 2], [-h, -b / 2, c / 2]],
    }[ibrav]


def _monoclinic(ibrav: int, b: float, c: float, cosine: float) -> list[list[float]]:
    sine, h = float(np.sqrt(np.float64(1 - cosine**2))), 0.5
    return {
        12: [[1.0, 0, 0], [b * cosine, b * sine, 0], [0, 0, c]],
        -12: [[1.0, 0, 0], [0, b, 0], [c * cosine, 0, c * sine]],
        13: [[h, 0, -c / 2], [b * cosine, b * sine, 0], [h, 0, c / 2]],
        -13: [[h, b / 2, 0], [-h, b / 2, 0], [c * cosine, 0, c * sine]],
    }[ibrav]


def _triclinic(b: float, c: float, cosines: tuple[float, ...]) -> list[list[float]]:
    bc, ac, ab = cosines
    sine = float(np.sqrt(np.float64(1 - ab**2)))
    height = np.sqrt(np.float64(1 + 2 * bc * ac * ab - bc**2 - ac**2 - ab**2))
    return [[1.0, 0, 0], [b * ab, b * sine, 0], [c * ac, c * (bc - ac * ab) / sine, c * height / sine]]
