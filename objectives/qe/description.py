"""The size of a problem of pw.x without running it: from its input, or from facts that a user states."""

import hashlib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from objectives.base import PlanError
from objectives.qe import pseudo, symmetry
from objectives.qe.deck import Deck
from objectives.qe.input_check import find_problems
from objectives.qe.known_sizes import KnownSizes
from objectives.qe.kpoints import count_kpoints, has_pools
from objectives.qe.lattice import (
    BOHR_ANGSTROM,
    Lattice,
    Matrix,
    UndescribedError,
    read_count,
    read_lattice,
    read_number,
)
from objectives.qe.namelists import wrong_variables
from objectives.qe.options import QeOptions, input_text
from objectives.qe.output import Workload, number
from objectives.qe.saved import reads_structure
from spaces.expressions.constant import constant_value
from spaces.parameters.errors import ExpressionError

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


# The words of pw.x, in small letters only where it takes no capitals (PW/src/set_occupations.f90 and input.f90).
_SMEARED = {"smearing", "tetrahedra", *(f"tetrahedra{sign}{kind}" for sign in "_-" for kind in ("lin", "opt"))}
_WORDS = {
    "occupations": {"fixed", "from_input", *_SMEARED},
    "smearing": {
        *("gaussian", "gauss", "Gaussian", "Gauss"),
        *("methfessel-paxton", "m-p", "mp", "Methfessel-Paxton", "M-P", "MP"),
        *("marzari-vanderbilt", "cold", "m-v", "mv", "Marzari-Vanderbilt", "M-V", "MV"),
        *("fermi-dirac", "f-d", "fd", "Fermi-Dirac", "F-D", "FD"),
    },
    "mixing_mode": {"plain", "TF", "local-TF"},
    "diagonalization": {
        *("david", "davidson", "cg", "ppcg", "paro", "ParO", "direct"),
        *("rmm", "rmm-diis", "rmm-davidson", "rmm-paro"),
    },
}
_FLAGS = (
    *("noncolin", "lspinorb", "nosym", "nosym_evc", "noinv", "no_t_rev", "force_symmorphic", "use_all_frac"),
    *("tefield", "gate", "lberry", "lelfield", "lorbm", "lecrpa"),
)
_SPIN_KINDS = {1, 2, 4}  # one density, up and down, and a direction (noncolin)
_DUAL, _EPS = 4.0, 1e-8
_HEAD = 2**20  # bytes; the header of a pseudopotential is near its beginning
_VALENCE = (
    re.compile(r"""\bz_valence\s*=\s*["']\s*([^"'\s]+)"""),
    re.compile(r"^\s*(\S+)\s+Z valence", re.MULTILINE),
)
_COORDINATES = 3
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[edED][-+]?\d+)?", re.ASCII)
_FORMULA = re.compile(r"[-+*/^().\deEdD]+", re.ASCII)
_EXPONENT = re.compile(r"(?<=[\d.])[dD](?=[-+\d])")
_SPINS = 2
_NO_MOMENT = 1e-6


def describe(deck: Deck, valence: Mapping[str, float], known: KnownSizes) -> Workload:
    """Return the size of the problem.

    Args:
        deck: The input.
        valence: The valence electrons of an atom, by the name of its pseudopotential.
        known: Sizes that are already known; they are not worked out.

    Raises:
        UndescribedError: The input does not determine the size, or in a way that only pw.x understands.
    """
    kpoints, dense, smooth = known.kpoints, known.dense_grid, known.smooth_grid
    needs_all = kpoints is None or dense is None
    if needs_all:
        _refuse_what_only_pwx_knows(deck)
    _refuse_what_pwx_refuses(deck)
    electrons = known.electrons if known.electrons is not None else _electrons(deck, valence)
    wave, density = _cutoffs(deck, known)
    if needs_all:
        lattice = read_lattice(deck)
        found = _crystal(deck, lattice)
        factors = _grid_factors(deck, found)
        kpoints = kpoints or count_kpoints(deck, lattice, found)
        dense = dense or _sides(deck, "nr{}") or _fft_grid(lattice, density, factors)
        if smooth is None and density > (_DUAL + _EPS) * wave:
            smooth = _sides(deck, "nr{}s") or _fft_grid(lattice, _DUAL * wave, factors)
    return Workload(
        kpoints=kpoints,
        bands=known.bands or _bands(deck, electrons),
        electrons=round(electrons, 2),
        atoms=known.atoms or read_count(deck, "nat"),
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


def _refuse_what_pwx_refuses(deck: Deck) -> None:
    """Refuse words for which pw.x stops: another spelling may have been meant, with another size."""
    for name, words in _WORDS.items():
        if (word := deck.get(name)) is not None and word not in words:
            msg = f"pw.x has no {name} = {word!r}; it has {', '.join(sorted(words))}"
            raise UndescribedError(msg)
    for name in _FLAGS:
        if (text := deck.get(name)) is not None and text.lower().removeprefix(".")[:1] not in {"t", "f"}:
            msg = f"{name} = {text} is neither .true. nor .false."
            raise UndescribedError(msg)
    smears = deck.get("occupations") == "smearing"
    spins = read_count(deck, "nspin", 1)
    wrong = {
        "occupations = 'smearing' needs degauss above 0": smears and read_number(deck, "degauss") <= 0,
        f"nspin is {spins}, and pw.x has 1, 2 and 4": spins not in _SPIN_KINDS,
        "noncolin and nspin = 2 exclude each other": deck.is_set("noncolin") and spins == _SPINS,
        "Berry phases are for insulators, without smearing or tetrahedra": (
            deck.get("occupations") in _SMEARED and not has_pools(deck)
        ),
        "lspinorb needs noncolin": deck.is_set("lspinorb") and not _is_noncollinear(deck),
        "a comment in a namelist begins with '!', not with '#'": deck.has_wrong_comments,
    }
    for reason, applies in wrong.items():
        if applies:
            msg = f"pw.x stops: {reason}"
            raise UndescribedError(msg)


def _refuse_what_only_pwx_knows(deck: Deck) -> None:
    if wrong := list(wrong_variables(deck)):
        raise UndescribedError("; ".join(wrong))
    wanting = {
        "space_group: only pw.x finds out which atoms it makes of those of the input": read_count(deck, "space_group"),
        "ion_positions = 'from_file': the cell and the atoms are those that another run saved": reads_structure(deck),
        "gate: only pw.x finds out which symmetries a charged plate leaves": deck.is_set("gate"),
    }
    for reason, applies in wanting.items():
        if applies:
            raise UndescribedError(reason)


def _is_noncollinear(deck: Deck) -> bool:
    return deck.is_set("noncolin") or read_count(deck, "nspin", 1) == max(_SPIN_KINDS)


def _rows(deck: Deck) -> tuple[str, list[str], list[list[str]]]:
    """Return the unit of the positions, and the label and the words of each atom."""
    card = deck.card("ATOMIC_POSITIONS")
    count, kinds = read_count(deck, "nat"), read_count(deck, "ntyp")
    if kinds < 1 or len(deck.species) < kinds:
        msg = f"the card ATOMIC_SPECIES has {len(deck.species)} of the ntyp = {kinds} species"
        raise UndescribedError(msg)
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
    """Return a coordinate: a number, or a formula of `+ - * / ^` and brackets, but no functions."""
    try:
        if _PLAIN.fullmatch(word):
            return number(word)
        formula = word if _FORMULA.fullmatch(word) and "**" not in word else ""
        return float(constant_value(_EXPONENT.sub("e", formula).replace("^", "**"), {}))
    except (ValueError, ExpressionError):
        msg = f"pw.x stops: a coordinate {word!r} in ATOMIC_POSITIONS, which may have numbers, + - * / ^ and brackets"
        raise UndescribedError(msg) from None


def _electrons(deck: Deck, valence: Mapping[str, float]) -> float:
    files, (_, labels, _) = dict(deck.species), _rows(deck)
    unknown = sorted({label for label in labels if label not in files})
    if unknown:
        msg = f"ATOMIC_POSITIONS has atoms of {', '.join(unknown)}, which ATOMIC_SPECIES does not name"
        raise UndescribedError(msg)
    return math.fsum(valence[files[label]] for label in labels) - read_number(deck, "tot_charge")


def _crystal(deck: Deck, lattice: Lattice) -> symmetry.Crystal:
    positions, labels = _atoms(deck, lattice)
    species = np.unique(labels, return_inverse=True)[1]
    moments = _moments(deck, labels) if _is_noncollinear(deck) else None
    found = symmetry.crystal(
        lattice.vectors,
        positions,
        species,
        None if moments is None else moments @ np.linalg.inv(lattice.vectors),
        symmorphic=deck.is_set("force_symmorphic"),
    )
    found = found.without_time_reversal if deck.is_set("no_t_rev") else found
    # With `nosym_evc` a grid is reduced by the lattice's symmetry, and then has all points that the crystal lacks.
    return found.of_lattice_alone if deck.is_set("nosym_evc") else found


def _moments(deck: Deck, labels: list[str]) -> Matrix | None:
    """Return the magnetic moment that each atom begins with, (n, 3); None if all are zero."""
    of_species = {}
    for kind, (label, _) in enumerate(deck.species, 1):
        size, polar, azimuth = (
            read_number(deck, f"{name}({kind})") for name in ("starting_magnetization", "angle1", "angle2")
        )
        theta, phi = math.radians(polar), math.radians(azimuth)
        direction = (math.sin(theta) * math.cos(phi), math.sin(theta) * math.sin(phi), math.cos(theta))
        of_species[label] = np.array(direction) * max(-1.0, min(1.0, size))
    moments = np.array([of_species.get(label, np.zeros(3)) for label in labels])
    return moments if np.abs(moments).max() > _NO_MOMENT else None


def _grid_factors(deck: Deck, found: symmetry.Crystal) -> tuple[int, int, int]:
    """Return the factors of the FFT grid: with fewer symmetries it need not hold fractional translations."""
    unbound = any(deck.is_set(name) for name in ("nosym", "tefield", "use_all_frac", "lecrpa", "lelfield"))
    in_automatic_grid = any(deck.is_set(name) for name in ("lberry", "lorbm"))
    is_automatic = (deck.card("K_POINTS") or ("", ()))[0] == "automatic"
    return (1, 1, 1) if unbound or (in_automatic_grid and is_automatic) else found.grid_factors


def _cutoffs(deck: Deck, known: KnownSizes) -> tuple[float, float]:
    wave = known.cutoff_ry or read_number(deck, "ecutwfc")
    if wave <= 0:
        msg = "the input has no ecutwfc"
        raise UndescribedError(msg)
    return wave, known.density_cutoff_ry or read_number(deck, "ecutrho") or _DUAL * wave


def _sides(deck: Deck, name: str) -> tuple[int, int, int] | None:
    sides = [read_count(deck, name.format(axis)) for axis in (1, 2, 3)]
    return (sides[0], sides[1], sides[2]) if all(sides) else None


def _bands(deck: Deck, electrons: float) -> int:
    """Return how many bands pw.x computes for this number of electrons.

    Source: PW/src/setup.f90.
    """
    if given := read_count(deck, "nbnd"):
        return given
    difference = read_number(deck, "tot_magnetization", -1.0)
    if difference < 0:
        difference = 1.0 if round(electrons) % 2 and abs(electrons - round(electrons)) < _EPS else 0.0
    largest = max(electrons, electrons + difference) / 2
    bands = max(_nearest(electrons / 2), _nearest(largest))
    if deck.get("occupations") in _SMEARED:
        bands = max(_nearest(1.2 * electrons / 2), _nearest(1.2 * largest), bands + 4)
    return 2 * bands if _is_noncollinear(deck) else bands


def _nearest(value: float) -> int:
    """Round as Fortran does: halves away from zero."""
    return math.floor(value + 0.5)


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
        _refuse_a_changing_cell(options.prepared_by)
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


def _refuse_a_changing_cell(prepared_by: str | None) -> None:
    path = Path(prepared_by or "").expanduser()
    if prepared_by is not None and path.is_file() and Deck.read(path).calculation == "vc-relax":
        msg = f"its cell is the one with which {prepared_by}, a vc-relax, ends"
        raise UndescribedError(msg)


def _valence(deck: Deck, home: Path) -> dict[str, float]:
    """Return the valence electrons of the atom of each pseudopotential; recipes that ship need not be run for it."""
    ours = {name: electrons for name in deck.pseudopotentials if (electrons := pseudo.recipe_valence(name))}
    others = [name for name in deck.pseudopotentials if name not in ours]
    files, missing = pseudo.locate(others, pseudo.search_folders(deck, home, os.environ))
    if missing:
        msg = f"{'; '.join(missing)} (it holds the number of electrons: electrons = N)"
        raise UndescribedError(msg)
    return ours | {name: valence_electrons(path) for name, path in files.items()}
