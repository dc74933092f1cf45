"""The studies of GROMACS and LAMMPS: their patterns on real outputs, and inputs of the user's."""

import shutil
from pathlib import Path

import pytest

from autotune import studyfile
from autotune.cli.study_request import choose
from autotune.errors import StudyFileError
from autotune.machines.this_machine import this_machine
from autotune.planning.check import check
from autotune.planning.known_programs import known_programs
from autotune.studyfile.space import join_space
from launchers import EndReason, JobState, JobStatus, Usage
from launchers.local import LocalLauncher
from objectives.base import ApplicationError, Context, InvalidResult, Output, Plan
from objectives.command import make_plan
from objectives.command_check import read_command_options
from objectives.mentions.nodes import Nodes
from spaces import Space

OUTPUTS = Path(__file__).parents[2] / "objectives" / "outputs"
FACTS = {"cores": 4, "nodes": 1, "cores_per_node": 4, "sockets": 1, "memory_bytes": 2**33}


def ready(study: studyfile.StudyFile, cores: int = 4) -> tuple[Plan, Space]:
    checked, files, errors = read_command_options(study.options)
    assert errors == []
    return join_space(study, make_plan(checked, files, Nodes()), {**FACTS, "cores": cores, "cores_per_node": cores})


def shipped(name: str) -> studyfile.StudyFile:
    return studyfile.load(studyfile.find(name))


def of_program(command: str) -> studyfile.StudyFile:
    known = next(program for program in known_programs() if command in program.commands)
    keys = ("metrics", "answer", "success", "failure", "outputs", "progress")
    options = {key: value for key, value in known.model_dump(exclude_none=True).items() if key in keys and value}
    return studyfile.parse({"name": "x", "objective": "command", "options": {"argv": ["true"], **options}}, "x")


LESS = ("-3.80054e+03", "-9.97716e+03", "-1.00000e+04")  # potential energies of three steps


def output(folder: Path, stdout: str = "") -> Output:
    return Output(stdout, "", JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(2.5)), folder)


def steps(plan: Plan, text: str) -> list[int]:
    reader = plan.objective.progress_reader()
    return [sign.step for line in text.splitlines() if (sign := reader(line)) is not None]


@pytest.mark.parametrize("study", [shipped("gromacs"), of_program("gmx mdrun"), of_program("gmx_mpi mdrun")])
def test_figures_of_gromacs(tmp_path, study):
    shutil.copy(OUTPUTS / "gromacs-md.log", tmp_path / "md.log")
    plan, _ = ready(study)
    measured = plan.objective.measure(output(tmp_path))
    assert measured.metrics == {"ns_per_day": 15.312}
    assert measured.answer.value == -64195.1
    text = (tmp_path / "md.log").read_text()
    assert steps(plan, text) == [0, 50, 100]
    # In other systems the number is in another column.
    header, values = "   Total Energy  Conserved En.", "   -6.41313e+04   -6.41951e+04"
    shifted = text.replace(header, f"{'Bond':>15}{header}").replace(values, f"{'1.00000e+00':>15}{values}")
    (tmp_path / "md.log").write_text(shifted)
    assert plan.objective.measure(output(tmp_path)).answer.value == -64195.1
    first = text.replace(header, header[15:]).replace(values, values[15:])
    (tmp_path / "md.log").write_text(first)
    assert plan.objective.measure(output(tmp_path)).answer.value == -64195.1
    # Of stochastic dynamics, and without a thermostat, nothing is conserved: the potential energy of the first step.
    table = "   Energies (kJ/mol)\n        LJ (SR)   Coulomb (SR)      Potential    Kinetic En.   Total Energy\n"
    tables = (f"{table}    1.14924e+04   -1.60049e+04   {first}    8.05751e+03    4.25697e+03\n" for first in LESS)
    head, _, tail = text.partition("   Energies (kJ/mol)")
    end = tail[tail.index("               Core t (s)") :]
    (tmp_path / "md.log").write_text(head + "\n".join(tables) + end)
    assert plan.objective.measure(output(tmp_path)).answer.value == -3800.54
    (tmp_path / "md.log").write_text(head + end)
    with pytest.raises(InvalidResult, match=r"no energy in md\.log: .*leave out the option `answer`"):
        plan.objective.measure(output(tmp_path))
    (tmp_path / "md.log").write_text(text.replace("Finished mdrun", "Fatal"))
    with pytest.raises(InvalidResult, match="Finished mdrun"):
        plan.objective.measure(output(tmp_path))


@pytest.mark.parametrize("study", [shipped("lammps"), of_program("lmp")])
def test_figures_of_lammps(tmp_path, study):
    text = (OUTPUTS / "lammps.stdout").read_text()
    plan, _ = ready(study)
    measured = plan.objective.measure(output(tmp_path, text))
    assert measured.metrics["loop_s"] == 5.31422
    assert measured.answer.value == -4.6226272
    if study.name == "lammps":
        assert measured.metrics["steps_per_s"] == 37.635
        assert steps(plan, text) == list(range(0, 201, 20))


LAMMPS_TABLES = {
    "a barostat": (
        (
            "   Step          Temp          E_pair         E_mol          TotEng         Press          Volume    \n"
            "         0   1.44          -6.7733681      0             -4.6134356     -5.0197073      4738.2137    \n"
            "       100   0.76020549    -5.8820168      0             -4.7430283      0.13014895     1008.5088    \n"
        ),
        -4.7430283,
    ),
    "warnings behind the table": (
        (
            "Step Temp E_pair E_mol TotEng Press \n  0 1.4 -6.7 0 -4.6 -5\n 100 1.5 -5.7 0 -4.625 0.1\n"
            "WARNING: Too many warnings: 101 vs 100. All future warnings will be suppressed (src/thermo.cpp:423)\n"
            "WARNING: 3 atoms lost\n"
        ),
        -4.625,
    ),
    "a style of one's own": (
        (
            "Step Time Temp Press PotEng KinEng TotEng Volume Density \n 0 0 1.4 -5 -6.7 2.1 -4.6 1023.4 0.84\n"
            " 100 0.5 0.76318114 0.12087674 -5.7685069 1.1434467 -4.6250602 1023.4542 0.8442\n"
        ),
        -4.6250602,
    ),
    "no total energy": ("Step Temp PotEng Press \n 0 1.4 -6.7 -5\n 100 0.76 -5.8820168 0.13\n", -5.8820168),
    "the style multi": (
        "".join(
            f"---------------- Step {step:8d} ----- CPU =      0.0846 (sec) ----------------\n"
            f"TotEng   =        {energy} KinEng   =         1.1434 Temp     =         0.7632 \n"
            "PotEng   =        -5.7685 E_bond   =         0.0000 E_angle  =         0.0000 \n"
            for step, energy in ((0, -4.6159), (100, -4.6251))
        ),
        -4.6251,
    ),
    "a second run": (
        (
            "Step Temp E_pair E_mol TotEng Press \n 0 1.4 -6.7 0 -4.6 -5\n 9 1.5 -5.7 0 -4.7 0.1\n"
            "Loop time of 0.1 on 1 procs for 9 steps with 864 atoms\n"
            "Step Temp E_pair E_mol TotEng Press \n 9 1.4 -6.7 0 -4.7 -5\n 18 1.5 -5.7 0 -4.8 0.1\n"
        ),
        -4.8,
    ),
}


@pytest.mark.parametrize("study", [shipped("lammps"), of_program("lmp")])
@pytest.mark.parametrize("table", LAMMPS_TABLES)
def test_tables_of_lammps(tmp_path, study, table):
    rows, energy = LAMMPS_TABLES[table]
    plan, _ = ready(study)
    text = f"LAMMPS\n{rows}Loop time of 0.5 on 1 procs for 100 steps with 864 atoms\n"
    text += "\nPerformance: 16258.277 tau/day, 37.635 timesteps/s\nTotal wall time: 0:00:00\n"
    assert plan.objective.measure(output(tmp_path, text)).answer.value == energy


@pytest.mark.parametrize(
    ("study", "line"),
    [
        ("cp2k", "     7 OT DIIS     0.15E+00    0.3     0.01234567       -17.1234567890 -1.23E-04"),
        ("cp2k", "     7 P_Mix/Diag. 0.40E+00    0.3     0.01234567       -17.1234567890 -1.23E-04"),
        ("cp2k", "     7 Broy./Diag. 0.40E+00    0.3     0.01234567       -17.1234567890 -1.23E-04"),
        ("nwchem", "     7     -379.7768795479  2.8D+00  1.0D+00      1.0"),
        ("nwchem", " d= 0,ls=0.0,diis     7    -76.3790943639 -8.55D+01  3.04D-02  3.62D-01     0.4"),
    ],
)
def test_iterations_of_electrons(study, line):
    plan, _ = ready(shipped(study))
    assert steps(plan, line) == [7]


PASSED = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0051 ...... PASSED\n"
CP_ROWS = (
    "  nfi    ekinc  temph  tempp        etot      enthal       econs       econt    vnhh   xnhh0    vnhp   xnhp0\n"
    "   49  0.00240    0.0    0.0  -139.81012  -139.81012  -139.81012  -139.80772  0.0000  0.0000  0.0000  0.0000\n"
    "   50  0.00223    0.0    0.0  -139.81838  -139.81838  -139.81838  -139.81615  0.0000  0.0000  0.0000  0.0000\n"
    "   total energy  :     -139.51838    -139.51838 (AU)\n     1   0.00E+00     0.0000E+00\n"
)
CP_PRINTED = (
    "                total energy =      -24.70829950525 Hartree a.u.\n   total energy  :   -16.80294  -16.80294 (AU)\n"
)
CP2K = (
    " *** WARNING in qs_scf.F:601 :: SCF run NOT converged ***\n"
    " ENERGY| Total FORCE_EVAL ( QS ) energy {}:             -207.978491066152230\n"
    " CP2K                                 1  1.0    0.081    0.081    2.338    2.338\n"
    "  **** **** ******  **  PROGRAM ENDED AT                 2024-03-04 10:11:12.123\n"
)


# As the programs print it: the names of figures are those that the study or the table of programs declares.
@pytest.mark.parametrize(
    ("command", "printed", "figures"),
    [
        ("xhpl", f"WR11C2R4 29184 192 2 2   345.12   4.8017e+01\n{PASSED}", [48.017]),
        ("xhpl", f"WC11C2R4 29184 192 2 2   345.12   4.8017e+01\n{PASSED}", [48.017]),
        ("xhpl", f"WC0 92160 1024 1 1   31.41  1.661e+04 (   1.661e+04)\n{PASSED}", [16610.0]),
        ("xhpl", f"W11R2C4         1000    80     2     2       0.45             1.489e+00\n{PASSED}", [1.489]),
        (
            "pgbench",
            (
                "latency average = 3.2 ms\ntps = 1234.5 (including connections establishing)\n"
                "tps = 1240.1 (excluding connections establishing)\n"
            ),
            [1240.1],
        ),
        ("pgbench", "number of failed transactions: 0 (0.000%)\ntps = 9.5 (without initial connection time)\n", [9.5]),
        ("cp.x", f"{CP_ROWS}   JOB DONE.\n", [2.5, -139.81838]),
        ("cp.x", f"{CP_PRINTED}   JOB DONE.\n", [2.5, -24.70829950525]),
        ("ph.x", "     freq (    1) =       3.5 [THz] =  1.1 [cm-1]\n   JOB DONE.\n", [2.5, 3.5]),
        ("ph.x", "     omega( 1) =       3.5 [THz] =  1.1 [cm-1]\n   JOB DONE.\n", [2.5, 3.5]),
        *(("cp2k", CP2K.format(unit), [2.338, -207.97849106615223]) for unit in ("(a.u.)", "[a.u.]", "[hartree]")),
        (
            "nwchem",
            ("         Total DFT energy =      -76.419737\n\n Total times  cpu:       10.2s     wall:       10.5s\n"),
            [10.5, -76.419737],
        ),
    ],
)
def test_what_versions_of_programs_print(tmp_path, command, printed, figures):
    name = command.removesuffix(".x")
    studies = [of_program(command), *([shipped(name)] if name in {"cp", "ph", "cp2k"} else [])]
    for study in studies:
        measured = ready(study)[0].objective.measure(output(tmp_path, printed))
        answer = [measured.answer.value] if measured.answer else []
        assert [*list(measured.metrics.values())[:1], *answer] == figures


def test_hpl_with_a_wrong_residual_is_wrong(tmp_path):
    failed = PASSED.replace("PASSED", "FAILED")
    with pytest.raises(ApplicationError):
        ready(of_program("xhpl"))[0].objective.measure(output(tmp_path, failed))


@pytest.mark.parametrize(
    ("failed", "is_right"),
    [
        ("", True),
        ("number of failed transactions: 0 (0.000%)\n", True),
        ("number of failed transactions: 3 (0.1%)\n", False),
    ],
)
def test_pgbench_says_from_version_15_on_how_many_transactions_failed(tmp_path, failed, is_right):
    plan, _ = ready(shipped("pgbench"))
    text = f"{failed}latency average = 1.5 ms\ntps = 2600.5 (without initial connection time)\nconsistent\n"
    if is_right:
        assert plan.objective.measure(output(tmp_path, text)).metrics == {"tps": 2600.5, "latency_ms": 1.5}
        return
    with pytest.raises(ApplicationError, match="number of failed transactions: 3"):
        plan.objective.measure(output(tmp_path, text))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a user's folder with a gmx that only writes its output file, and an lmp that only lists packages."""
    programs = {"gmx": '[ "$1" = grompp ] && echo made > topol.tpr; exit 0', "lmp": "echo MOLECULE OPENMP OPT PERI"}
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def job(study: studyfile.StudyFile, folder: Path, configuration: dict | None = None, cores: int = 4):
    plan, space = ready(study, cores)
    chosen = {**space.default(), **(configuration or {})}
    assert list(space.violations(chosen)) == []
    folder.mkdir()
    return plan.objective.job(chosen, Context(folder))


def test_the_default_of_gromacs_is_the_bare_command_and_its_cores_are_right(here):
    made = job(shipped("gromacs"), here / "run")
    assert (here / "run" / "topol.tpr").read_text() == "made\n"
    assert list(made.argv)[:10] == ["gmx", "mdrun", "-s", "topol.tpr", "-nsteps", "-2", "-ntmpi", "1", "-ntomp", "4"]
    assert (made.resources.cores, made.environment["OMP_NUM_THREADS"]) == (4, "4")
    assert made.progress_file == "md.log"
    many = job(shipped("gromacs"), here / "many", cores=64)
    assert (many.argv[7], many.argv[9], many.resources.cores) == ("64", "1", 64)
    two = job(shipped("gromacs"), here / "two", {"ntmpi": 2, "ntomp": 1, "npme": 1, "tunepme": "-notunepme"})
    assert (two.resources.cores, two.environment["OMP_NUM_THREADS"]) == (2, "1")
    assert two.argv[-1] == "-notunepme"


def test_what_mdrun_refuses_or_ignores_is_not_tried(here):
    _, space = ready(shipped("gromacs"))
    default = space.default()
    for wrong in ({"ntmpi": 3, "ntomp": 2}, {"npme": 1}, {"npme": 0}, {"dlb": "yes"}, {"tunepme": "-notunepme"}):
        assert space.violations({**default, **wrong}), wrong


def test_an_own_topology_replaces_the_box_of_water(here):
    (here / "mine.tpr").write_bytes(b"\0mine")
    study = choose("gromacs", ["space.derived.steps=5000"], "mine.tpr")
    made = job(study, here / "run")
    assert study.name == "gromacs-mine"
    assert (here / "run" / "topol.tpr").read_bytes() == b"\0mine"
    assert made.argv[5] == "5000"
    assert made.copies == (("topol.tpr", str(here / "mine.tpr")),)
    assert not (here.parent / "cache").exists()


MINE = """units metal
atom_style atomic
read_data data.al
neighbor 2.0 bin
neigh_modify every 5 delay 0 check no
run 100
"""


def test_an_own_input_of_lammps_keeps_what_is_unset_and_gets_what_is_set(here):
    (here / "in.mine").write_text(MINE)
    (here / "data.al").write_text("1 atoms\n")
    study = choose("lammps", None, "in.mine")
    assert study.name == "lammps-mine"
    made = job(study, here / "default")
    assert (here / "default" / "in.lammps").read_text() == MINE
    assert (here / "default" / "data.al").is_file()
    assert (list(made.argv), made.mpi.ranks) == (["lmp", "-in", "in.lammps"], 4)
    knobs = {"px": 2, "py": 2, "pz": 1, "skin": 1.0, "every": 5, "delay": 10, "newton": "off", "suffix": "opt"}
    assert job(study, here / "changed", knobs).argv[-2:] == ("-sf", "opt")
    assert (here / "changed" / "in.lammps").read_text().splitlines() == [
        "suffix opt",
        "units metal",
        "atom_style atomic",
        "newton off",
        "processors 2 2 1",
        "read_data data.al",
        "neighbor 1.0 bin",
        "neigh_modify delay 10 every 5 check yes",
        "run 100",
    ]


def test_variants_of_lammps_are_tried_where_their_packages_are(here):
    plan, space = ready(shipped("lammps"))
    assert plan.facts == {"has_opt": True, "has_openmp": True, "has_intel": False}
    assert "this lmp has no package INTEL" in str(space.violations({"np": 2, "suffix": "intel"}))
    threaded = job(shipped("lammps"), here / "run", {"np": 2, "suffix": "omp", "threads": 2})
    assert (here / "run" / "in.lammps").read_text().startswith("package omp 2\nsuffix omp\n")
    assert (threaded.resources.cores, threaded.environment["OMP_NUM_THREADS"]) == (4, "2")
    assert space.violations({"np": 2, "suffix": "opt", "threads": 2})


def test_an_own_input_is_checked_as_it_is_tuned(here):
    (here / "in.mine").write_text("read_data nowhere\nrun 100\n")
    found = check(studyfile.find("lammps"), (), this_machine(), LocalLauncher(), "in.mine")
    assert found.mistakes == []
    assert found.plan is None or found.plan.identity["files"].startswith("in.lammps sha256:")
    (problem,) = check(studyfile.find("lammps"), (), this_machine(), LocalLauncher(), "nowhere").mistakes
    assert str(problem) == "--input nowhere: there is no such file"
    (problem,) = check(studyfile.find("hpl"), (), this_machine(), LocalLauncher(), "in.mine").mistakes
    assert "no input to replace" in problem.message


def test_a_study_without_an_input_to_replace_says_so(here):
    with pytest.raises(StudyFileError, match=r"--input mine\.tpr: this study has no input to replace"):
        choose("hpl", None, "mine.tpr")
