"""Inputs of pw.x, and what a dry run of pw.x 6.7 said of each: k-points, bands, the dense grid, the smooth one.

Of two spins it says one k-point of two.
"""

_METAL = "occupations = 'smearing', degauss = 0.02"


def _input(system, species, atoms, kpoints, *, unit="crystal", cell=""):
    atoms = [line.strip() for line in atoms.strip().split("\n")]
    return (
        f"&control\n/\n&system\n  {system}, nat = {len(atoms)}, ntyp = {len(species)}\n/\n&electrons\n/\n"
        "ATOMIC_SPECIES\n"
        + "".join(f" {name.split('.')[0].split('_')[0]} 1.0 {name}\n" for name in species)
        + f"ATOMIC_POSITIONS {unit}\n"
        + "".join(f" {atom}\n" for atom in atoms)
        + f"{cell}K_POINTS {kpoints}\n"
    )


AL, SI, MG, FE = "Al.pz-vbc.UPF", "Si.pz-vbc.UPF", "Mg.pz-n-vbc.UPF", "Fe.pbe-nd-rrkjus.UPF"
OXYGEN, H = "O.pbe-rrkjus.UPF", "H.pbe-kjpaw.UPF"
VALENCE = {AL: 3.0, SI: 4.0, MG: 2.0, FE: 8.0, OXYGEN: 6.0, H: 1.0}
TWO_AL = "Al 0 0 0\nAl 0.3 0.3 0.1"
ANGSTROM = "CELL_PARAMETERS angstrom\n 4.05 0 0\n 0 4.05 0\n 0 0 4.05\n"

INPUTS = {
    "fcc metal": (
        _input(f"ibrav = 2, celldm(1) = 7.5, ecutwfc = 15, {_METAL}", [AL], "Al 0 0 0", "automatic\n 8 8 8 1 1 1"),
        (60, 6, (15, 15, 15), (15, 15, 15)),
    ),
    "hexagonal, with a fractional translation": (
        _input(
            f"ibrav = 4, A = 3.2, C = 5.2, ecutwfc = 20, {_METAL}",
            [MG],
            "Mg 1/3 2/3 0.25\nMg 2/3 1/3 0.75",
            "automatic\n 6 6 4 0 0 1",
        ),
        (14, 6, (18, 18, 30), (18, 18, 30)),
    ),
    "molecule at Gamma, ultrasoft": (
        _input(
            "ibrav = 1, celldm(1) = 15, ecutwfc = 25, ecutrho = 200",
            [OXYGEN, H],
            "O 0.1 0.2 0.3\nH 1.2 1.1 0.3\nH -1.0 1.1 0.3",
            "gamma",
            unit="bohr",
        ),
        (1, 4, (72, 72, 72), (48, 48, 48)),
    ),
    "a list of k-points, which the crystal lacks symmetries of": (
        _input(
            "ibrav = 2, celldm(1) = 10.2, ecutwfc = 18, nosym = .true.",
            [SI],
            "Si 0 0 0\nSi 0.25 0.25 0.25",
            "tpiba\n 3\n 0.25 0.25 0.25 1\n 0.25 0.25 0.75 3\n 0.3 0.1 0.05 3",
            unit="alat",
        ),
        (3, 4, (20, 20, 20), (20, 20, 20)),
    ),
    "a list that stands for more points": (
        _input(
            f"ibrav = 2, celldm(1) = 7.5, ecutwfc = 13, {_METAL}",
            [AL],
            TWO_AL,
            "crystal\n 2\n 0.5 0 0 1\n 0.1 0.2 0.3 1",
        ),
        (4, 7, (15, 15, 15), (15, 15, 15)),
    ),
    "spin": (
        _input(
            "ibrav = 3, celldm(1) = 5.4, ecutwfc = 25, ecutrho = 200,"
            f" nspin = 2, {_METAL}, starting_magnetization(1) = 0.5",
            [FE],
            "Fe 0 0 0",
            "automatic\n 5 5 5 0 0 0",
        ),
        (20, 8, (24, 24, 24), (15, 15, 15)),
    ),
    "a supercell with a grid that has not its symmetry": (
        _input(
            f"ibrav = 0, ecutwfc = 20, {_METAL}",
            [AL],
            "Al 0 0 0\nAl 0.5 0.5 0\nAl 0.5 0 0.5\nAl 0 0.5 0.5",
            "automatic\n 4 4 4 1 0 0",
            cell=ANGSTROM,
        ),
        (12, 10, (24, 24, 24), (24, 24, 24)),
    ),
    "triclinic and charged": (
        _input(
            "ibrav = 14, A = 4, B = 5, C = 6, cosBC = 0.1, cosAC = 0.05,"
            f" cosAB = 0.2, ecutwfc = 13, tot_charge = 1, {_METAL}",
            [AL, SI],
            "Al 0.1 0.2 0.3\nSi 1.3 1.4 1.5",
            "automatic\n 3 2 2 1 0 1",
            unit="angstrom",
        ),
        (6, 7, (18, 24, 25), (18, 24, 25)),
    ),
    "bands and grid of the input": (
        _input(
            f"ibrav = 1, celldm(1) = 7.5, ecutwfc = 13, nbnd = 20, nr1 = 32, nr2 = 32, nr3 = 30, {_METAL}",
            [AL],
            "Al 0 0 0",
            "automatic\n 2 2 2 0 0 0",
        ),
        (4, 20, (32, 32, 30), (32, 32, 30)),
    ),
    "noncollinear without magnetism": (
        _input(
            f"ibrav = 1, celldm(1) = 7.5, ecutwfc = 13, noncolin = .true., {_METAL}",
            [AL],
            TWO_AL,
            "automatic\n 2 2 2 1 1 1",
        ),
        (3, 14, (18, 18, 18), (18, 18, 18)),
    ),
    **{
        f"ibrav {ibrav}": (
            _input(f"ibrav = {ibrav}, {cell}, ecutwfc = 13, {_METAL}", [AL], TWO_AL, "automatic\n 4 4 3 1 0 1"),
            (kpoints, 7, grid, grid),
        )
        for ibrav, cell, kpoints, grid in (
            (-3, "celldm(1) = 6", 238, (12, 12, 12)),
            (5, "celldm(1) = 8, celldm(4) = 0.4", 70, (20, 20, 20)),
            (-5, "celldm(1) = 8, celldm(4) = 0.4", 70, (20, 20, 20)),
            (7, "celldm(1) = 7, celldm(3) = 2.5", 156, (24, 24, 24)),
            (8, "celldm(1) = 7, celldm(2) = 1.2, celldm(3) = 1.5", 24, (18, 20, 25)),
            (9, "A = 4, B = 5, C = 6", 24, (15, 15, 27)),
            (-9, "A = 4, B = 5, C = 6", 24, (15, 15, 27)),
            (91, "A = 4, B = 5, C = 6", 46, (18, 18, 18)),
            (10, "A = 4, B = 5, C = 6", 96, (15, 15, 18)),
            (11, "A = 4, B = 5, C = 6", 92, (20, 20, 20)),
            (12, "A = 4, B = 5, C = 6, cosAB = 0.2", 24, (18, 24, 27)),
            (-12, "A = 4, B = 5, C = 6, cosAC = -0.2", 24, (18, 24, 27)),
            (13, "A = 4, B = 5, C = 6, cosAB = 0.2", 48, (15, 24, 15)),
            (-13, "A = 4, B = 5, C = 6, cosAC = -0.2", 48, (15, 15, 27)),
        )
    },
}
