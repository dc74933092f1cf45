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

# One crystal spelt in many ways. Its grid is 18 x 18 x 24; as it stands, pw.x 6.7 says 40 k-points and 7 bands.
SPELT = """&control
/
&system
 ibrav = 4, celldm(1) = 7.5, celldm(3) = 1.3, nat = 2, ntyp = 1, ecutwfc = 13
 occupations = 'smearing', degauss = 0.02
/
&electrons
/
ATOMIC_SPECIES
 Al 26.98 Al.pz-vbc.UPF
ATOMIC_POSITIONS crystal
 Al 0 0 0
 Al 0.3 0.3 0.1
K_POINTS automatic
 4 4 3 1 0 1
"""
_CELL, _OCC, _GRID = "celldm(1) = 7.5, celldm(3) = 1.3", "'smearing', degauss = 0.02", "automatic\n 4 4 3 1 0 1"
_LIST = "\n 2\n 0 0 0 1\n 0.1 0.2 0.3 1"
_UNIT = "crystal\n Al 0 0 0\n Al 0.3 0.3 0.1"
_LATTICE = "ibrav = 4, " + _CELL
_RECTANGLE = "\n 7.5 0 0\n 0 7.5 0\n 0 0 9.75\n"

# What changes, into what, and then the k-points and bands that pw.x 6.7 says.
SPELLINGS = {
    **{
        f"smearing = {word}": (_OCC, f"{_OCC}, smearing = '{word}'", 40, 7)
        for word in ("gauss", "Gaussian", "m-p", "MP", "methfessel-paxton", "cold", "m-v", "MV", "fd", "F-D")
    },
    "a comment with another option": (_GRID, "(automatic) ! gamma\n 4 4 3 1 0 1", 40, 7),
    "capitals of an option": (_GRID, "{Automatic}\n 4 4 3 1 0 1", 40, 7),
    "a comma behind the card's name": (" " + _GRID, "," + _GRID, 40, 7),
    "commas and comments in a card": (_GRID, "automatic\n# x\n\n 4,4,3,1,0,1 ! y", 40, 7),
    "repeated values in a card": (_GRID, "automatic\n 2*4 3 1 0 1", 40, 7),
    "k-points without an option": (" " + _GRID, _LIST, 7, 7),
    "k-points with an unknown option": (_GRID, "foo" + _LIST, 7, 7),
    "k-points in crystal axes": (_GRID, "crystal" + _LIST, 7, 7),
    "lines of k-points": (_GRID, "tpiba_b\n 2\n 0 0 0 5\n 0.5 0 0 1", 11, 7),
    "lines of k-points in crystal axes": (_GRID, "{crystal_b}\n 2\n 0 0 0 5\n 0.5 0 0 1", 11, 7),
    "a plane of k-points": (_GRID, "tpiba_c\n 3\n 0 0 0 1\n 0.5 0 0 3\n 0 0.5 0 4", 29, 7),
    "more k-points": (_GRID, _GRID + "\nADDITIONAL_K_POINTS crystal\n 1\n 0.3 0.1 0.2 0", 46, 7),
    "positions without a unit": (_UNIT, _UNIT.removeprefix("crystal"), 72, 7),
    "positions with a unit in the comment": (_UNIT, _UNIT.replace("crystal", "bohr ! not crystal"), 40, 7),
    "positions in angstrom": (_UNIT, "(Angstrom)\n Al 0 0 0 0 0 0\n Al 1.3 0.3 0.1 1 1 1", 72, 7),
    "positions as formulas": (_UNIT, "crystal\n Al 0*2 -0 0\n Al 0.5-1/5 3/10 (1+1)^2/40", 40, 7),
    "positions as formulas with exponents": (_UNIT, "crystal\n Al 0 0 0\n Al 3d-1 6.D-1/2 1-.9", 40, 7),
    "a mark before the first namelist": ("&control", "\ufeff&control", 40, 7),
    "a species that is not counted": ("Al.pz-vbc.UPF\n", "Al.pz-vbc.UPF\n Si 28 Si.UPF\n", 40, 7),
    "species with commas and quotes": (" Al 26.98 Al.pz-vbc.UPF", " Al, 26.98, 'Al.pz-vbc.UPF'", 40, 7),
    "an array": (_CELL, "celldm = 7.5, 0, 1.3", 40, 7),
    "an array without commas": (_CELL, "celldm = 7.5 0 1.3", 40, 7),
    "an array with a null value": (_CELL, "celldm = 7.5,,1.3", 40, 7),
    "an array from an element on": (_CELL, "celldm(1) = 7.5, 0.0, 1.3", 40, 7),
    "a part of an array": (_CELL, "celldm(1:3) = 7.5, 0.0, 1.3", 40, 7),
    "repeated values": (_CELL, "celldm(1) = 7.5, celldm(2) = 2*1.3", 40, 7),
    "a repeated null value": (_CELL, "celldm = 7.5, 1* 1.3", 40, 7),
    "values on the next line": (_CELL, "celldm = 7.5, 0 ! nbnd = 1\n 1.3, ! nat = 3\n", 40, 7),
    "exponents": (_CELL, "celldm(1) = 7.5d0, celldm(3) = 0.13D+1", 40, 7),
    "exponents without a letter": (_CELL, "celldm(1) = 7.5q0, celldm(3) = 0.13+1", 40, 7),
    "semicolons": (_CELL, "celldm(1) = 7.5; celldm(3) = 1.3; nosym = .f.", 40, 7),
    "the last of two": (_CELL, _CELL + ", nbnd = 9, nbnd = 10", 40, 10),
    "an empty value": (_CELL, _CELL + ", nbnd = ,", 40, 7),
    "an end on the line": ("0.02\n/", "0.02 &end", 40, 7),
    **{f"nosym = {word}": (_CELL, f"{_CELL}, nosym = {word}", 24, 7) for word in ("T", "t", ".T.", ".true", "truely")},
    **{f"nosym = {word}": (_CELL, f"{_CELL}, nosym = {word}", 40, 7) for word in ("F", ".f.", ".FALSE.")},
    "a cell without a unit": (_LATTICE, "ibrav = 0", 24, 7, "CELL_PARAMETERS" + _RECTANGLE),
    "a cell with an old option": (_LATTICE, "ibrav = 0", 24, 7, "CELL_PARAMETERS cubic" + _RECTANGLE),
    "a cell of A": (_LATTICE, "ibrav = 0, A = 4", 24, 7, "CELL_PARAMETERS\n 1 0 0\n 0 1 0\n 0 0 1.3\n"),
    "a cell with commas": (_LATTICE, "ibrav = 0", 24, 7, "CELL_PARAMETERS (BOHR)\n 7.5,2*0\n 0,7.5,0\n 0 0 9.75\n"),
    "an electric field": ("&control", "&control\n tefield = .true.", 24, 7),
    "linear response": ("&control", "&control\n lecrpa = .true.", 48, 7),
    "no symmetry of wave functions": (_CELL, _CELL + ", nosym_evc = .true.", 72, 7),
    "no inversion": (_CELL, _CELL + ", noinv = .true.", 78, 7),
    "two spins": (_CELL, _CELL + ", nspin = 2, starting_magnetization = 0.5", 80, 7),
    "noncollinear by nspin": (_CELL, _CELL + ", nspin = 4", 40, 14),
    "noncollinear with zero moments": (_CELL, _CELL + ", noncolin = T, starting_magnetization(1) = 0.0", 40, 14),
    "noncollinear magnetism": (_CELL, _CELL + ", noncolin = T, starting_magnetization = 0.3", 74, 14),
    "noncollinear magnetism by nspin": (_CELL, _CELL + ", nspin = 4, starting_magnetization(1) = 0.3", 74, 14),
}
TETRAHEDRA = ("tetrahedra", "tetrahedra_lin", "tetrahedra-lin", "tetrahedra_opt", "tetrahedra-opt")
INPUTS |= {
    f"occupations = {word}": (INPUTS["fcc metal"][0].replace(_METAL, f"occupations = '{word}'"), INPUTS["fcc metal"][1])
    for word in TETRAHEDRA
} | {
    name: (
        SPELT.replace(_OCC, "'fixed'").replace("&control", f"&control\n {variable} = .true."),
        (48, 3, (18, 18, 24), (18, 18, 24)),
    )
    for name, variable in (("an electric field by Berry phases", "lelfield"), ("orbital magnetisation", "lorbm"))
}


def spelt(name):
    """Return the input of `SPELLINGS`, and what pw.x 6.7 says of it: k-points and bands."""
    old, new, kpoints, bands, *card = SPELLINGS[name]
    assert old in SPELT
    return SPELT.replace(old, new, 1) + "".join(card), (kpoints, bands)
