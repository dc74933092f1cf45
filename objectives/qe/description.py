"""The size of a problem of pw.x without running it: from its input, or from facts that a user states."""

import hashlib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from objectives.base import PlanError
from objectives.qe import pseudo, symmetry
from objectives.qe.deck import Deck
from objectives.qe.input_check import find_problems
from objectives.qe.known_sizes import KnownSizes
from objectives.qe.lattice import BOHR_ANGSTROM, Lattice, Matrix, UndescribedError, read_lattice
from objectives.qe.options import QeOptions, input_text
from objectives.qe.output import Workload, number

_FACTORS = (2, 3, 5)  # the factors for which FFTW, MKL and pw.x's own FFT are fast; only ESSL also takes 7 and 11


def _fft_grid(lattice: Lattice, cutoff_ry: float, factors: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the sides of the grid that holds all G with G^2 below the cut-off; each is a multiple of its factor.

    Source: FFTXlib, realspace_grid_init and good_fft_order.
    """
    radius_squared = cutoff_ry / (2 * math.pi / lattice.alat) ** 2
    lengths = np.linalg.norm(lattice.vectors, axis=1)
    most = [int(math.sqrt(radius_squared) * length) + 1 for length in lengths]
    reciprocal = lattice.reciprocal
    reached = np.zeros(3, dtype=int)
    plane = np.array(list(product(range(-most[0], most[0] + 1), range(-most[1], most[1] + 1))))
    in_plane = plane @ reciprocal[:2]
    for k in range(most[2] + 1):  # k >= 0 is enough, since -G is as long as G
        inside = ((in_plane + k * reciprocal[2]) ** 2).sum(axis=1) < radius_squared
        if inside.any():
            reached = np.maximum(reached, [*np.abs(plane[inside]).max(axis=0), k])
    sides = [_next_good_side(2 * int(reach) + 1, factor) for reach, factor in zip(reached, factors, strict=True)]
    return sides[0], sides[1], sides[2]


def _next_good_side(least: int, factor: int) -> int:
    side = least
    while side % factor or not _is_good(side):
        side += 1
    return side


def _is_good(side: int) -> bool:
    for factor in _FACTORS:
        while side % factor == 0:
            side //= factor
    return side == 1


_SMEARED = ("smearing", "tetrahedra", "tetrahedra_lin", "tetrahedra_opt")
_DUAL, _EPS = 4.0, 1e-8
_HEAD = 2**20  # bytes; the header of a pseudopotential is near its beginning
_VALENCE = (
    re.compile(r"""\bz_valence\s*=\s*["']\s*([^"'\s]+)"""),
    re.compile(r"^\s*(\S+)\s+Z valence", re.MULTILINE),
)
_COORDINATES = 3
_SPINS = 2


def describe(deck: Deck, valence: Mapping[str, float], known: KnownSizes) -> Workload:
    """Return the size of the problem.

    Args:
        deck: The input.
        valence: The valence electrons of an atom, by the name of its pseudopotential.
        known: Sizes that are already known; they are not worked out.

    Raises:
        UndescribedError: The input does not determine the size, or in a way that only pw.x understands.
    """
    electrons = known.electrons if known.electrons is not None else _electrons(deck, valence)
    wave, density = _cutoffs(deck, known)
    kpoints, dense, smooth = known.kpoints, known.dense_grid, known.smooth_grid
    if kpoints is None or dense is None:
        _refuse_what_only_pwx_knows(deck)
        lattice = read_lattice(deck)
        found = _crystal(deck, lattice)
        kpoints = kpoints or _kpoints(deck, lattice, found)
        dense = dense or _sides(deck, "nr{}") or _fft_grid(lattice, density, found.grid_factors)
        if smooth is None and density > (_DUAL + _EPS) * wave:
            smooth = _sides(deck, "nr{}s") or _fft_grid(lattice, _DUAL * wave, found.grid_factors)
    return Workload(
        kpoints=kpoints,
        bands=known.bands or _bands(deck, electrons),
        electrons=round(electrons, 2),
        atoms=known.atoms or round(deck.get_float("nat", 0)),
        dense_grid=dense,
        smooth_grid=smooth or dense,
        cutoff_ry=round(wave, 4),
        density_cutoff_ry=round(density, 4),
    )


def valence_electrons(path: Path) -> float:
    """Return the valence electrons of an atom from the header of its pseudopotential in UPF.

    Raises:
        UndescribedError: The file has another format.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD).decode("utf-8", errors="replace")
    for pattern in _VALENCE:
        if match := pattern.search(head):
            try:
                return number(match[1])
            except ValueError:
                break
    msg = f"{path} is not a pseudopotential in UPF with its valence electrons (z_valence) in the header"
    raise UndescribedError(msg)


def _refuse_what_only_pwx_knows(deck: Deck) -> None:
    if _is_set(deck, "noncolin") and any(
        deck.get(f"starting_magnetization({kind})") for kind in range(1, round(deck.get_float("ntyp", 1)) + 1)
    ):
        msg = "noncollinear magnetism: only pw.x finds out which symmetries it leaves"
        raise UndescribedError(msg)
    if deck.get("space_group"):
        msg = "space_group: only pw.x finds out which atoms it makes of those of the input"
        raise UndescribedError(msg)


def _is_set(deck: Deck, name: str) -> bool:
    return (deck.get(name) or "").lower().lstrip(".").startswith("t")


def _species(deck: Deck) -> dict[str, str]:
    """Return the pseudopotential of each label."""
    card = deck.card("ATOMIC_SPECIES")
    words = [line.split() for line in card[1]] if card else []
    return {line[0]: line[2] for line in words if len(line) > 2}


def _rows(deck: Deck) -> tuple[str, list[str], list[list[str]]]:
    """Return the unit of the positions, and the label and the words of each atom."""
    card = deck.card("ATOMIC_POSITIONS")
    count = round(deck.get_float("nat", 0))
    rows = [line.split() for line in card[1][:count]] if card else []
    if card is None or count < 1 or len(rows) < count or any(len(row) <= _COORDINATES for row in rows):
        msg = "the input has no card ATOMIC_POSITIONS with a line for each of its nat atoms"
        raise UndescribedError(msg)
    return card[0] or "alat", [row[0] for row in rows], [row[1 : 1 + _COORDINATES] for row in rows]


def _atoms(deck: Deck, lattice: Lattice) -> tuple[Matrix, list[str]]:
    """Return the positions in crystal axes, (n, 3), and the label of each atom."""
    unit, labels, words = _rows(deck)
    places = np.array([[_place(word) for word in row] for row in words])
    lengths = {"alat": 1.0, "bohr": 1 / lattice.alat, "angstrom": 1 / BOHR_ANGSTROM / lattice.alat}
    if unit == "crystal":
        return places, labels
    if unit not in lengths:
        msg = f"ATOMIC_POSITIONS {unit}: only pw.x knows what that is"
        raise UndescribedError(msg)
    return places * lengths[unit] @ np.linalg.inv(lattice.vectors), labels


def _place(word: str) -> float:
    """Return a coordinate; pw.x also accepts fractions such as `1/3`."""
    above, slash, below = word.partition("/")
    try:
        return number(above) / (number(below) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        msg = f"a coordinate {word!r} in ATOMIC_POSITIONS: only pw.x works that out"
        raise UndescribedError(msg) from None


def _electrons(deck: Deck, valence: Mapping[str, float]) -> float:
    files, (_, labels, _) = _species(deck), _rows(deck)
    unknown = sorted({label for label in labels if label not in files})
    if unknown:
        msg = f"ATOMIC_POSITIONS has atoms of {', '.join(unknown)}, which ATOMIC_SPECIES does not name"
        raise UndescribedError(msg)
    return math.fsum(valence[files[label]] for label in labels) - deck.get_float("tot_charge", 0.0)


def _crystal(deck: Deck, lattice: Lattice) -> symmetry.Crystal:
    positions, labels = _atoms(deck, lattice)
    found = symmetry.crystal(lattice.vectors, positions, np.unique(labels, return_inverse=True)[1])
    if _is_set(deck, "nosym"):
        return found.without_symmetry
    return replace(found, grid_factors=(1, 1, 1)) if _is_set(deck, "use_all_frac") else found


def _cutoffs(deck: Deck, known: KnownSizes) -> tuple[float, float]:
    wave = known.cutoff_ry or deck.get_float("ecutwfc", 0.0)
    if wave <= 0:
        msg = "the input has no ecutwfc"
        raise UndescribedError(msg)
    return wave, known.density_cutoff_ry or deck.get_float("ecutrho", 0.0) or _DUAL * wave


def _sides(deck: Deck, name: str) -> tuple[int, int, int] | None:
    sides = [round(deck.get_float(name.format(axis), 0)) for axis in (1, 2, 3)]
    return (sides[0], sides[1], sides[2]) if all(sides) else None


def _bands(deck: Deck, electrons: float) -> int:
    """Return how many bands pw.x computes for this number of electrons.

    Source: PW/src/setup.f90.
    """
    if given := round(deck.get_float("nbnd", 0)):
        return given
    difference = deck.get_float("tot_magnetization", -1.0)
    if difference < 0:
        difference = 1.0 if round(electrons) % 2 and abs(electrons - round(electrons)) < _EPS else 0.0
    largest = max(electrons, electrons + difference) / 2
    bands = max(_nearest(electrons / 2), _nearest(largest))
    if (deck.get("occupations") or "").lower() in _SMEARED:
        bands = max(_nearest(1.2 * electrons / 2), _nearest(1.2 * largest), bands + 4)
    return 2 * bands if _is_set(deck, "noncolin") else bands


def _nearest(value: float) -> int:
    """Round as Fortran does: halves away from zero."""
    return math.floor(value + 0.5)


def _kpoints(deck: Deck, lattice: Lattice, found: symmetry.Crystal) -> int:
    option, lines = deck.card("K_POINTS") or ("", ())
    spins = 2 if round(deck.get_float("nspin", 1)) == _SPINS else 1
    if option == "gamma":
        return spins
    sign = not _is_set(deck, "noinv")
    try:
        if option == "automatic":
            sides, shifts = _triple(lines[0].split()[:3]), _triple(lines[0].split()[3:6])
            points = symmetry.grid_points(sides, shifts, found.of_lattice, sign=sign)
        else:
            points = np.array([_triple_of_numbers(line) for line in lines[1 : 1 + int(lines[0].split()[0])]])
    except (ValueError, IndexError):
        msg = f"the card K_POINTS {option} cannot be read"
        raise UndescribedError(msg) from None
    if option not in {"automatic", "crystal", "tpiba", ""}:
        msg = f"K_POINTS {option}: only pw.x knows which points those are"
        raise UndescribedError(msg)
    if option in {"tpiba", ""}:
        points = points @ lattice.vectors.T
    if deck.calculation == "bands" and option != "automatic":
        return spins * len(points)  # taken as they are
    return spins * symmetry.count_kpoints(points, found, sign=sign)


def _triple(words: list[str]) -> tuple[int, int, int]:
    x, y, z = (int(word) for word in words)
    return x, y, z


def _triple_of_numbers(line: str) -> tuple[float, float, float]:
    x, y, z = (number(word) for word in line.split()[:3])
    return x, y, z


_NO_INPUT = Deck("&CONTROL\n/\n&SYSTEM\n/\n&ELECTRONS\n/\n")
_FROM_FACTS = "the facts of the file count"


@dataclass(frozen=True)
class DescribedInput:
    """A problem of pw.x that is not run.

    Args:
        name: Its name in messages.
        deck: Its input.
        size: Its size.
        identity: The digests that distinguish it from other problems.
        note: How its size is known.
    """

    name: str
    deck: Deck
    size: Workload
    identity: Mapping[str, str]
    note: str


def describe_input(options: QeOptions) -> DescribedInput:
    """Return the problem that the options name; stated facts override what the input says.

    Raises:
        PlanError: A file is missing or has errors, or the files do not determine the size of the problem.
    """
    known, identity = KnownSizes(), {}
    if options.facts is not None:
        path = Path(options.facts).expanduser()
        known = KnownSizes.read(path)
        identity["facts"] = hashlib.sha256(path.read_bytes()).hexdigest()
        if "input" not in options.model_fields_set:
            return DescribedInput(
                options.facts, _NO_INPUT, known.workload(), identity, f"nothing is run: {_FROM_FACTS}"
            )
    name, home, text = input_text(options.input)
    identity["input"] = hashlib.sha256(text).hexdigest()
    deck = Deck(text.decode("utf-8", errors="surrogateescape"))
    if wrong := find_problems(deck, has_saved=True):
        raise PlanError(f"{name}: {problem}" for problem in wrong)
    try:
        valence = {} if known.electrons is not None else _valence(deck, home)
        how = _FROM_FACTS if options.facts else f"{options.program} is not here"
        note = f"nothing is run: the size is worked out from the input; {how}"
        return DescribedInput(f"input {name}", deck, describe(deck, valence, known), identity, note)
    except UndescribedError as error:
        msg = (
            f"{name} alone does not determine the size of the problem: {error}; add what is missing in a TOML file "
            f"(--facts FILE), or predict where {options.program} is installed"
        )
        raise PlanError(msg) from error


def _valence(deck: Deck, home: Path) -> dict[str, float]:
    """Return the valence electrons of the atom of each pseudopotential; recipes that ship need not be run for it."""
    ours = {name: electrons for name in deck.pseudopotentials if (electrons := pseudo.recipe_valence(name))}
    others = [name for name in deck.pseudopotentials if name not in ours]
    files, missing = pseudo.locate(others, pseudo.search_folders(deck, home, os.environ))
    if missing:
        msg = f"{'; '.join(missing)} (it holds the number of electrons: electrons = N)"
        raise UndescribedError(msg)
    return ours | {name: valence_electrons(path) for name, path in files.items()}
