"""The symmetry of a crystal and its k-points, as pw.x finds them (PW/src/symm_base.f90, kpoint_grid.f90, irrek.f90).

pw.x knows the symmetries of cubic and hexagonal axes only. It keeps fractional translations of halves to sixths, and
none in a supercell. It reduces a grid by the lattice's symmetry first, and then adds the points that the crystal's
lower symmetry needs. A crystallographer's irreducible wedge may have fewer points; what matters is how many pw.x
computes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from objectives.qe.lattice import Matrix

Integers = npt.NDArray[np.int64]

_LATTICE_EPS, _TRANSLATION_EPS, _SAME_PLACE = 1e-6, 1e-5, 1e-5
_ORDERS = {1, 2, 4, 6, 8, 12, 24}
_FRACTIONS = {2, 3, 4, 6}
_SAME_K = 1e-5
_ATOMS_AT_A_TIME = 8


@dataclass(frozen=True)
class Crystal:
    """The symmetries of a crystal.

    Args:
        of_lattice: The symmetries of the lattice, (n, 3, 3) in crystal axes.
        of_crystal: Those that also map the atoms, and their magnetic moments, onto each other, (m, 3, 3).
        grid_factors: The factors that the three sides of a grid must have, because of fractional translations.
        signs: -1 for an operation of `of_crystal` that needs time reversal, else 1, (m,); None without moments.
    """

    of_lattice: Integers
    of_crystal: Integers
    grid_factors: tuple[int, int, int]
    signs: Integers | None = None

    @property
    def is_magnetic(self) -> bool:
        """Whether there are magnetic moments with a direction, so that a k-point and its opposite differ."""
        return self.signs is not None

    @property
    def of_lattice_alone(self) -> "Crystal":
        """The same crystal as if its atoms had no symmetry."""
        signs = None if self.signs is None else self.signs[:1]
        return replace(self, of_crystal=self.of_lattice[:1], signs=signs)

    @property
    def without_symmetry(self) -> "Crystal":
        """The same crystal with the identity alone."""
        return replace(self.of_lattice_alone, of_lattice=self.of_lattice[:1], grid_factors=(1, 1, 1))

    @property
    def without_time_reversal(self) -> "Crystal":
        """The same crystal with the operations alone that keep the magnetic moments."""
        if self.signs is None:
            return self
        return replace(self, of_crystal=self.of_crystal[self.signs > 0], signs=self.signs[self.signs > 0])


def crystal(
    vectors: Matrix,
    positions: Matrix,
    species: Integers,
    moments: Matrix | None = None,
    *,
    symmorphic: bool = False,
) -> Crystal:
    """Return the symmetries of a crystal.

    Args:
        vectors: The lattice vectors as rows, (3, 3).
        positions: The atoms in crystal axes, (n, 3).
        species: The species of each atom, (n,).
        moments: Their magnetic moments in crystal axes, (n, 3), if they have a direction.
        symmorphic: Whether to leave out operations with a fractional translation.
    """
    lattice = _lattice_symmetries(vectors)
    translations = not symmorphic and not _is_supercell(positions, species)
    kept: list[Integers] = []
    signs: list[int] = []
    factors = [1, 1, 1]
    for operation in lattice:
        shift = _translation(operation, positions, species, translations=translations)
        if shift is not None:
            sign = 1 if moments is None else _magnetic_sign(operation, positions, shift, moments)
            if sign:
                kept.append(operation)
                signs.append(sign)
            nonzero = [abs(part) > _TRANSLATION_EPS for part in shift]
            sides = [round(1 / abs(part)) if is_there else 1 for part, is_there in zip(shift, nonzero, strict=True)]
            factors = [math.lcm(factor, side) for factor, side in zip(factors, sides, strict=True)]
    symmetries, reversals = np.array(kept), None if moments is None else np.array(signs)
    if not _is_group(symmetries):
        return Crystal(lattice, lattice[:1], (1, 1, 1), reversals if reversals is None else reversals[:1])
    return Crystal(lattice, symmetries, (factors[0], factors[1], factors[2]), reversals)


def grid_points(
    sides: tuple[int, int, int], shifts: tuple[int, int, int], symmetries: Integers, *, sign: bool
) -> Matrix:
    """Return the points of a uniform grid, (n, 3) in crystal axes, one for each set of equal points.

    Args:
        sides: The points along each axis.
        shifts: 1 for an axis that is shifted by half a step, else 0.
        symmetries: Operations that make points equal, (m, 3, 3).
        sign: Whether a point is equal to its opposite.
    """
    nk, moved = np.array(sides), np.array(shifts) / 2
    indices = np.array(list(product(*(range(side) for side in sides))))
    points = (indices + moved) / nk
    first = np.arange(len(points))
    for place, point in enumerate(points):
        if first[place] != place:
            continue
        images = np.einsum("nji,j->ni", symmetries, point)
        images = np.concatenate([images, -images]) if sign else images
        steps = (images - np.rint(images)) * nk - moved
        on_grid = np.abs(steps - np.rint(steps)).max(axis=1) <= _SAME_K
        there = np.rint(steps[on_grid]).astype(int) % nk
        equal = np.ravel_multi_index(tuple(there.T), sides)
        later = equal[(equal > place) & (first[equal] == equal)]
        first[later] = place
    chosen: Matrix = points[first == np.arange(len(points))]
    return chosen


def count_kpoints(points: Matrix, found: Crystal, *, sign: bool) -> int:
    """Return how many k-points pw.x computes for `points`; each stands for its images under the lattice."""
    return sum(_stars(point, found, sign=sign) for point in points)


def _stars(point: Matrix, found: Crystal, *, sign: bool) -> int:
    """Return how many of a point's images under the lattice are different for the crystal."""
    images = np.einsum("nji,j->ni", found.of_lattice, point)
    representatives: list[Matrix] = []
    for image in images:
        own = np.einsum("nji,j->ni", found.of_crystal, image)
        own = own if found.signs is None else own * found.signs[:, None]
        own = np.concatenate([own, -own]) if sign else own
        differences = (own - other for other in representatives)
        if not any((np.abs(d - np.rint(d)).max(axis=1) < _SAME_K).any() for d in differences):
            representatives.append(image)
    return len(representatives)


def _lattice_symmetries(vectors: Matrix) -> Integers:
    inverse = np.linalg.inv(vectors.T)
    found = []
    for rotation in _rotations():
        operation = inverse @ rotation @ vectors.T
        if np.abs(operation - np.rint(operation)).max() <= _LATTICE_EPS:
            found.append(np.rint(operation).astype(np.int64))
    proper = np.array(found if len(found) in _ORDERS else found[:1])
    both = np.concatenate([proper, -proper])
    return both if _is_group(both) else both[:1]


def _rotations() -> Iterator[Matrix]:
    """Yield the proper rotations of a cube, the identity first, and those of a hexagon around the third axis."""
    signs = np.array(list(product((1.0, -1.0), repeat=3)))
    for order in permutations(range(3)):
        for sign in signs:
            rotation = np.zeros((3, 3))
            rotation[range(3), list(order)] = sign
            if np.linalg.det(rotation) > 0:
                yield rotation
    for sixth in (1, -1, 2, -2):
        cosine, sine = math.cos(sixth * math.pi / 3), math.sin(sixth * math.pi / 3)
        yield np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        yield np.array([[cosine, sine, 0.0], [sine, -cosine, 0.0], [0.0, 0.0, -1.0]])


def _is_group(operations: Integers) -> bool:
    known = {operation.tobytes() for operation in operations}
    return all((one @ other).tobytes() in known for one in operations for other in operations)


def _is_supercell(positions: Matrix, species: Integers) -> bool:
    """Return whether a translation alone maps the atoms onto each other."""
    shifts = positions[1:][species[1:] == species[0]] - positions[0]
    return any(_maps(positions, positions, species, shift) for shift in shifts - np.rint(shifts))


def _translation(operation: Integers, positions: Matrix, species: Integers, *, translations: bool) -> Matrix | None:
    """Return the translation with which an operation maps the atoms onto each other, or None."""
    rotated = positions @ operation.T
    if _maps(positions, rotated, species, np.zeros(3)):
        return np.zeros(3)
    if not translations:
        return None
    shifts = rotated[species == species[0]] - positions[0]
    for shift in shifts - np.rint(shifts):
        if all(_is_fraction(part) for part in shift) and _maps(positions, rotated, species, shift):
            found: Matrix = shift
            return found
    return None


def _magnetic_sign(operation: Integers, positions: Matrix, shift: Matrix, moments: Matrix) -> int:
    """Return 1 if an operation keeps the magnetic moments, -1 if it turns them round, else 0.

    Source: PW/src/symm_base.f90, sgam_at_mag. Moments are axial vectors, which inversion does not change.
    """
    apart = (positions @ operation.T)[:, None, :] - positions[None, :, :] - shift
    image = (np.abs(apart - np.rint(apart)) < _SAME_PLACE).all(axis=2).argmax(axis=1)
    turned = moments @ operation.T * round(np.linalg.det(operation))
    if (np.abs(turned - moments[image]).sum(axis=1) < _SAME_PLACE).all():
        return 1
    return -1 if (np.abs(turned + moments[image]).sum(axis=1) < _SAME_PLACE).all() else 0


def _is_fraction(part: float) -> bool:
    if abs(part) <= _TRANSLATION_EPS:
        return True
    return abs(1 / part - round(1 / part)) <= _TRANSLATION_EPS and round(1 / abs(part)) in _FRACTIONS


def _maps(positions: Matrix, moved: Matrix, species: Integers, shift: Matrix) -> bool:
    """Return whether every moved atom, less the shift, lies on an atom of its species."""
    # A few atoms at a time: of a thousand shifts that are tried, most fail at the first.
    for start in range(0, len(moved), _ATOMS_AT_A_TIME):
        some = slice(start, start + _ATOMS_AT_A_TIME)
        apart = moved[some, None, :] - positions[None, :, :] - shift
        together = (np.abs(apart - np.rint(apart)) < _SAME_PLACE).all(axis=2)
        if not (together & (species[some, None] == species[None, :])).any(axis=1).all():
            return False
    return True
