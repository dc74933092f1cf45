"""An input of pw.x is described as a dry run of pw.x describes it, without pw.x."""

import numpy as np
import pytest

from objectives import registry
from objectives.base import PlanError
from objectives.qe import pseudo, symmetry
from objectives.qe.deck import Deck
from objectives.qe.description import describe, valence_electrons
from objectives.qe.input_check import find_problems
from objectives.qe.known_sizes import KnownSizes
from objectives.qe.lattice import UndescribedError
from objectives.qe.plan import plan
from spaces import Space
from tests.objectives.qe.described_inputs import INPUTS, SPELLINGS, SPELT, VALENCE, spelt

MACHINE = {"cores": 48, "nodes": 1, "cores_per_node": 48, "sockets": 2, "described": True, "nothing_runs": True}
CERIA = (
    "&control\n/\n&system\n ibrav = 0, nat = 24, ntyp = 2, ecutwfc = 50, ecutrho = 400, occupations = 'smearing'\n"
    " degauss = 0.01\n/\n&electrons\n/\nATOMIC_SPECIES\nCe 140.116 Ce.UPF\nO 15.9994 O.UPF\nATOMIC_POSITIONS crystal\n"
    + "".join(f"Ce {x} {y} {z}\n" for x in (0, 0.5) for y in (0, 0.5) for z in (0, 0.5))
    + "".join(
        f"O {x} {y} {z}\n"
        for low in (0.375, 0.125)
        for x in (low, low + 0.5)
        for y in (low, low + 0.5)
        for z in (low, low + 0.5)
    )
    + "K_POINTS automatic\n4 4 4 1 0 0\nCELL_PARAMETERS angstrom\n7.7321419716 0 0\n"
    "3.8660705400 6.6962316305 0\n3.8660705400 2.2320770386 6.3132677864\n"
)
SIZES = """
kpoints = 20
bands = 115
electrons = 192
fft_dense_x = 96
fft_dense_y = 96
fft_dense_z = 90
"""


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A folder on a machine without pw.x and pseudopotentials."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ESPRESSO_PSEUDO", raising=False)
    monkeypatch.setattr(pseudo, "SYSTEM_FOLDER", tmp_path / "no-such-folder")
    return tmp_path


def not_run(job):
    raise AssertionError(job)


def planned(folder, machine=MACHINE, **options):
    return plan(options, machine=machine, run_job=not_run, folder=folder / "plan")


@pytest.mark.parametrize("name", INPUTS)
def test_it_says_what_pwx_says(name):
    text, (kpoints, bands, dense, smooth) = INPUTS[name]
    found = describe(Deck(text), VALENCE, KnownSizes())
    assert (found.kpoints, found.bands, found.dense_grid, found.smooth_grid) == (kpoints, bands, dense, smooth)


@pytest.mark.parametrize("name", SPELLINGS)
def test_it_reads_what_pwx_reads(name):
    text, (kpoints, bands) = spelt(name)
    found = describe(Deck(text), VALENCE, KnownSizes())
    assert (found.kpoints, found.bands, found.dense_grid) == (kpoints, bands, (18, 18, 24))
    assert find_problems(Deck(text)) == []


# What pw.x 6.7 says after an scf run with the same cell; the second list has letters for points.
@pytest.mark.parametrize(
    ("calculation", "kpoints", "count"),
    [
        ("bands", "automatic\n 4 4 3 1 1 0", 16),
        ("bands", "tpiba_b\n 3\n 0 0 0 5\n 0.5 0.5 0.5 0\n 1 0 0 1", 7),
        ("bands", "tpiba_b\n 3\n gG 5\n H 4\n P 1", 10),
        ("bands", "crystal_c\n 3\n 0 0 0 5\n 0.5 0 0.5 4\n 0.1 0 0 3", 12),
        ("nscf', lberry = T, gdir = 3, nppstr = 7, title = '", "automatic\n 4 4 7 1 1 1", 42),
        ("nscf', lberry = T, gdir = 1, nppstr = 5, title = '", "automatic\n 4 4 7 1 1 1", 70),
        ("nscf', lberry = T, gdir = 2, nppstr = 5, title = '", "automatic\n 3 4 5 1 0 1", 40),
        ("nscf', lberry = T, gdir = 2, nppstr = 5, title = '", "crystal\n 2\n 0 0 0 1\n 0.1 0.2 0.3 1", 2),
        ("scf', lelfield = T, gdir = 2, nppstr = 2, title = '", "crystal\n 2\n 0.1 0.2 0.3 1\n 0.1 0.2 0.3 1", 2),
    ],
)
def test_k_points_of_band_structures_and_berry_phases(calculation, kpoints, count):
    text = INPUTS["spin"][0].replace("&control\n", f"&control\n calculation = '{calculation}'\n")
    text = text[: text.index("K_POINTS")] + f"K_POINTS {kpoints}\n"
    text = text.replace("nspin = 2, occupations = 'smearing'", "nbnd = 8, occupations = 'fixed'")
    assert describe(Deck(text), VALENCE, KnownSizes()).kpoints == count


def test_points_of_bands_are_taken_as_they_are():
    text, _ = INPUTS["a list that stands for more points"]
    points = int(text.partition("K_POINTS")[2].split("\n")[1])
    bands = text.replace("&control\n", "&control\n  calculation = 'bands'\n")
    found = {
        name: describe(Deck(one), VALENCE, KnownSizes()).kpoints for name, one in (("scf", text), ("bands", bands))
    }
    assert found["scf"] > found["bands"] == points


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("'smearing'", "'Tetrahedra'", "no occupations = 'Tetrahedra'; it has fixed, from_input, smearing, tetra"),
        ("'smearing'", "'from-input'", "no occupations = 'from-input'"),
        ("degauss = 0.02", "", "occupations = 'smearing' needs degauss above 0"),
        ("degauss", "smearing = 'GAUSSIAN', degauss", "no smearing = 'GAUSSIAN'"),
        ("&electrons", "&electrons\n diagonalization = 'Davidson'", "no diagonalization = 'Davidson'"),
        ("degauss", "nspin = 3, degauss", "nspin is 3, and pw.x has 1, 2 and 4"),
        ("degauss", "nspin = 2, noncolin = T, degauss", "exclude each other"),
        ("degauss", "lspinorb = T, degauss", "lspinorb needs noncolin"),
        ("degauss", "nosym = yes, degauss", "nosym = yes is neither"),
        ("degauss", "nbnd = 2x, degauss", "nbnd = 2x is neither a number nor"),
        ("nat = 2", "nat = 2.0", "nat = 2.0 is not a whole number"),
        ("degauss", "tot_charge = 1_0, degauss", "tot_charge = 1_0 is neither a number nor"),
        ("ecutwfc", "ecutrh0 = 48, ecutwfc", "no ecutrh0 in &SYSTEM: did you mean ecutrho"),
        ("&electrons", "&electrons\n nbnd = 9", "no nbnd in &ELECTRONS: it belongs in &SYSTEM"),
        ("&control", "&control\n calculation = scf", "text needs quotes, calculation = '...'"),
        ("&control", "&control\n calculation = 'scf", "text needs quotes, calculation = '...'"),
        ("&control", "&control\n outdir = ./out/", "text needs quotes, outdir = '...'"),
        ("&electrons", "&electrons\n conv_thr = 1e-8Ry", "conv_thr = 1e-8Ry is neither a number nor"),
        ("0.02", "0,02", "degauss = 0,02: it has one value .a decimal point, no comma"),
        ("&electrons", "&electrons\n mixing_mode = 'TF-local'", "no mixing_mode = 'TF-local'"),
        (" Al 0.3", " Al sqrt(3)/6", "coordinate 'sqrt.3./6' .*, which may have numbers"),
        (" Al 0.3", " Al 0.5**2", "coordinate '0.5[*]{2}2' .*, which may have numbers"),
        ("0.02", "0.02 # not nbnd = 9", "begins with '!', not with '#'"),
        ("ntyp = 1", "ntyp = 2", "has 1 of the ntyp = 2 species"),
        ("ibrav = 4", "A = 4, ibrav = 4", "both celldm.1. and A"),
        ("K_POINTS", "CELL_PARAMETERS bohr\n 7 0 0\n 0 7 0\n 0 0 7\nK_POINTS", "both ibrav = 4 and the card"),
        ("ATOMIC_POSITIONS crystal", "ATOMIC_POSITIONS ! fractional", "! fractional: only"),
        ("1 0 1", "1 0 2", "K_POINTS automatic cannot be read"),
        ("&control", "&control\n gate = T", "charged plate"),
        ("&electrons\n/", "&electrons\n/\n&ions\n ion_positions = 'from_file'\n/", "another run saved"),
        ("&control", "&control\n lberry = T, gdir = 3, nppstr = 7", "for insulators"),
        ("automatic\n 4 4 3 1 0 1", "tpiba_b\n 2\n gG 5\n M 1", "tpiba_b with letters"),
    ],
)
def test_what_pwx_does_not_take_is_refused(old, new, words):
    assert old in SPELT
    with pytest.raises(UndescribedError, match=words):
        describe(Deck(SPELT.replace(old, new, 1)), VALENCE, KnownSizes())


def test_strings_of_k_points_need_a_direction():
    text = INPUTS["an electric field by Berry phases"][0].replace(
        "lelfield = .true.", "lberry = T, gdir = 4, nppstr = 7"
    )
    with pytest.raises(UndescribedError, match="gdir, 1 to 3"):
        describe(Deck(text), VALENCE, KnownSizes())


def test_berry_phases_have_no_pools(nowhere):
    text, _ = INPUTS["an electric field by Berry phases"]
    (nowhere / "berry.in").write_text(text)
    (nowhere / "facts.toml").write_text("electrons = 6\n")
    found = planned(nowhere, input=str(nowhere / "berry.in"), facts=str(nowhere / "facts.toml"))
    assert found.facts["kpoints"] == 48
    assert "npool" not in [parameter.name for parameter in found.parameters]


def test_a_large_input_as_its_published_output_says():
    found = describe(Deck(CERIA), {"Ce.UPF": 12.0, "O.UPF": 6.0}, KnownSizes())
    assert (found.kpoints, found.bands, found.electrons, found.atoms) == (20, 115, 192.0, 24)
    assert (found.dense_grid, found.smooth_grid) == ((96, 96, 96), (72, 72, 72))
    assert (found.cutoff_ry, found.density_cutoff_ry) == (50.0, 400.0)


def test_an_input_is_planned_where_pwx_is_not(nowhere):
    (nowhere / "ceria.in").write_text(CERIA)
    with pytest.raises(PlanError, match=r"ceria.in alone does not .* pseudopotential Ce.UPF was not found") as told:
        planned(nowhere, input=str(nowhere / "ceria.in"))
    assert "electrons = N" in str(told.value)
    assert "--facts FILE" in str(told.value)
    (nowhere / "facts.toml").write_text("electrons = 192\n")
    found = planned(nowhere, input=str(nowhere / "ceria.in"), facts=str(nowhere / "facts.toml"))
    assert (found.facts["kpoints"], found.facts["planes"], found.facts["fft_dense_x"]) == (20, 72, 96)
    assert Space(found.parameters, found.constraints, found.facts).default()["np"] == 48
    assert "input" in found.identity
    with pytest.raises(PlanError, match=r"pw\.x is not installed here"):
        planned(nowhere, MACHINE | {"nothing_runs": False}, input=str(nowhere / "ceria.in"))


def test_a_shipped_input_needs_no_pseudopotentials_that_are_made_for_it(nowhere):
    found = planned(nowhere, input="ceo2")
    assert (found.facts["kpoints"], found.facts["bands"], found.facts["electrons"]) == (8, 16, 24.0)
    assert found.is_described


def test_what_another_run_prepares_is_described_here_too_where_that_run_is_not_made(nowhere):
    here = MACHINE | {"described": False, "nothing_runs": False, "makes_files": False}
    assert planned(nowhere, here, input="ceo2", prepared_by="scf.in").is_described


def test_the_cell_that_a_relaxation_leaves_is_unknown(nowhere):
    (nowhere / "relax.in").write_text("&control\n calculation = 'vc-relax'\n/\n")
    with pytest.raises(PlanError, match="a vc-relax, ends"):
        planned(nowhere, input="ceo2", prepared_by=str(nowhere / "relax.in"))


def test_facts_alone_describe_a_problem(nowhere):
    (nowhere / "facts.toml").write_text(SIZES)
    found = planned(
        nowhere, **registry.with_facts("qe", {"input": "tio2"}, str(nowhere / "facts.toml"), has_input=False)
    )
    assert (found.facts["kpoints"], found.facts["planes"], found.facts["bands"]) == (20, 90, 115)
    assert "atoms" not in found.facts
    (nowhere / "facts.toml").write_text("kpoints = 20\n")
    with pytest.raises(PlanError, match=r"do not say bands, fft_dense_x, .*--input FILE"):
        planned(nowhere, facts=str(nowhere / "facts.toml"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kpoint = 20", r"did you mean 'kpoints'\?.* @ kpoint"),
        ("kpoints = 0", "must be at least 1, got 0 @ kpoints"),
        ("kpoints =", "is not a TOML file"),
        (None, "cannot be read: No such file"),
    ],
)
def test_facts_with_errors(nowhere, text, words):
    if text is not None:
        (nowhere / "facts.toml").write_text(text)
    with pytest.raises(PlanError, match=words):
        planned(nowhere, facts=str(nowhere / "facts.toml"))


def test_facts_are_for_predictions(nowhere):
    with pytest.raises(PlanError, match="leave the facts out"):
        planned(nowhere, MACHINE | {"described": False, "nothing_runs": False}, facts="facts.toml")
    with pytest.raises(PlanError, match="'command' takes no facts from a file; these do: qe"):
        registry.with_facts("command", {}, "facts.toml", has_input=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("ibrav = 0, ", ""), "no ibrav"),
        (("ibrav = 0", "ibrav = 77, celldm(1) = 5"), "no ibrav = 77"),
        (("ibrav = 0", "ibrav = 4, celldm(1) = 5"), "no volume"),
        (("ibrav = 0", "ibrav = 1"), r"celldm\(1\) or A"),
        (("CELL_PARAMETERS angstrom", "CELL_PARAMETERS alat"), "CELL_PARAMETERS alat needs"),
        (("nat = 24", "nat = 25"), "ATOMIC_POSITIONS with a line for each"),
        (("ATOMIC_POSITIONS crystal", "ATOMIC_POSITIONS crystal_sg"), "crystal_sg: only pw.x"),
        (("Ce 0 0 0\n", "Ce 0 0 sqrt(2)\n"), r"'sqrt\(2\)'"),
        (("Ce 0 0 0\n", "La 0 0 0\n"), "atoms of La"),
        (("4 4 4 1 0 0", "4 4 4"), "K_POINTS automatic cannot be read"),
        (("K_POINTS automatic", "K_POINTS tpiba_b"), "K_POINTS tpiba_b cannot be read"),
        (("ecutwfc = 50, ", ""), "no ecutwfc"),
    ],
)
def test_what_the_input_does_not_tell(change, words):
    assert change[0] in CERIA
    with pytest.raises(UndescribedError, match=words):
        describe(Deck(CERIA.replace(*change)), {"Ce.UPF": 12.0, "O.UPF": 6.0}, KnownSizes())


def test_the_symmetry_of_a_thousand_atoms_is_found():
    places = np.random.default_rng(0).random((1500, 3))
    found = symmetry.crystal(np.eye(3), places, np.zeros(1500, dtype=int))
    assert len(found.of_crystal) == 1
    assert len(found.of_lattice) == 48


@pytest.mark.parametrize(
    "header",
    [
        '<UPF version="2.0.1">\n<PP_HEADER\n z_valence="1.200000000E+001"\n/>',
        "<PP_HEADER>\n   12.00000000000      Z valence\n",
    ],
)
def test_the_electrons_of_an_atom_are_in_its_pseudopotential(tmp_path, header):
    (tmp_path / "Ce.UPF").write_text(header)
    assert valence_electrons(tmp_path / "Ce.UPF") == 12.0


def test_another_format_of_pseudopotentials_is_refused(tmp_path):
    (tmp_path / "H_US.van").write_text("   7  3  2    1    3    0    4\n")
    with pytest.raises(UndescribedError, match="not a pseudopotential in UPF"):
        valence_electrons(tmp_path / "H_US.van")
