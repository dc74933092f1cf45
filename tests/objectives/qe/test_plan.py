import hashlib
from pathlib import Path

import pytest

from launchers import EndReason, JobState, JobStatus, LaunchError, Resources
from objectives.base import Context, Output, PlanError
from objectives.qe import plan as qe_plan
from objectives.qe import pseudo
from objectives.qe.deck import Deck
from objectives.qe.output import parse
from objectives.qe.plan import plan
from spaces import Space
from tests.support.descriptors import none_left

MACHINE = {"cores": 2, "nodes": 1, "cores_per_node": 2, "sockets": 1, "memory_bytes": 2**34}
OUTPUTS = Path(__file__).parents[1] / "outputs"
RUNS = {
    "np2": {"np": 2, "npool": 1},
    "npool2": {"np": 2, "npool": 2},
    "np4-nbgrp2-ntg2": {"np": 4, "npool": 1, "nbgrp": 2},
}
DRY_RUN = (Path(__file__).parents[1] / "outputs" / "dry-run.stdout").read_text()
INPUT = """&CONTROL
  pseudo_dir = './pp'
/
&SYSTEM
/
&ELECTRONS
  conv_thr = 1d-8
/
ATOMIC_SPECIES
 Ti 47.867 Ti.UPF
K_POINTS gamma
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A machine with a `pw.x`, and a user's folder with an input and its pseudopotential."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "pw.x").write_text("#!/bin/sh\n")
    (tools / "pw.x").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(qe_plan, "detect", lambda: None)
    monkeypatch.setattr(pseudo, "SYSTEM_FOLDER", tmp_path / "no-such-folder")
    for name in ("ESPRESSO_PSEUDO", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    user = tmp_path / "it's the user"
    (user / "pp").mkdir(parents=True)
    (user / "pp" / "Ti.UPF").write_text("a pseudopotential")
    (user / "my.in").write_text(INPUT)
    return tmp_path


@pytest.fixture
def jobs():
    return []


@pytest.fixture
def run_job(jobs):
    def run(job):
        jobs.append(job)
        status = JobStatus(JobState.ENDED, EndReason.EXITED, 255)
        return Output(DRY_RUN, "STOP 255", status, job.folder)

    return run


def planned(here, run_job, **options):
    options = {"input": str(here / "it's the user" / "my.in"), **options}
    return plan(options, machine=MACHINE, run_job=run_job, folder=here / "plan")


def test_the_limits_of_the_input_are_said_and_are_facts(here, run_job):
    path = here / "it's the user" / "my.in"
    path.write_text(
        INPUT.replace("conv_thr", "electron_maxstep = 2, conv_thr").replace("&CONTROL", "&CONTROL\n max_seconds = 60")
    )
    found = planned(here, run_job)
    assert found.facts["scf_iterations"] == 2
    assert any("after 2 iterations (electron_maxstep)" in note for note in found.notes)
    assert any("60 s" in note and "max_seconds" in note for note in found.notes)
    assert found.stops_after_s == 60.0
    path.write_text(INPUT.replace("conv_thr", "electron_maxstep = 60, conv_thr"))
    usual = planned(here, run_job)
    assert "scf_iterations" not in usual.facts
    assert not any("electron_maxstep" in note for note in usual.notes)


def test_plans_the_users_input(here, run_job, jobs):
    found = planned(here, run_job)
    assert found.facts["kpoints"] == 9
    assert found.facts["bands"] == 24
    assert found.facts["pw_version"] == "6.7MaX"
    assert found.identity["input"] == hashlib.sha256(INPUT.encode()).hexdigest()
    assert found.objective.tolerance_ry == 2e-8
    space = Space(found.parameters, found.constraints, found.facts)
    assert space.default()["np"] == 2
    assert len(jobs) == 1


def test_where_even_the_default_lacks_memory_by_pw_x_s_estimate_it_says_so_and_refuses_nothing(here, run_job):
    options = {"input": str(here / "it's the user" / "my.in")}
    machine = MACHINE | {"memory_bytes": 2**20}
    found = plan(options, machine=machine, run_job=run_job, folder=here / "plan")
    assert "more memory than there is" in found.warnings[0]
    assert found.memory is None
    assert Space(found.parameters, found.constraints, found.facts).default()["np"] == 2


def test_how_much_pools_share_is_learnt_where_memory_may_lack(here):
    """pw.x's own estimates, of real runs of one input."""
    ran = []

    def run(job):
        ran.append(job.argv[3:])
        text = (OUTPUTS / f"converged-{'npool2' if '-npool' in job.argv else 'np1'}.stdout").read_text()
        return Output(text, "", JobStatus(JobState.ENDED, EndReason.EXITED, 0), job.folder)

    said = {name: parse((OUTPUTS / f"converged-{name}.stdout").read_text()).workload.memory_bytes for name in RUNS}
    options = {"input": str(here / "it's the user" / "my.in")}
    machine = MACHINE | {"cores": 4, "cores_per_node": 4, "memory_bytes": said["np2"] * 3 // 2}
    found = plan(options, machine=machine, run_job=run, folder=here / "plan")
    assert ran == [(), ("-npool", "2")]
    assert "memory" in {constraint.name for constraint in found.constraints}
    for name, configuration in RUNS.items():
        assert 0.6 * said[name] < found.memory.bytes_of(configuration) < 1.02 * said[name]
    planned(here, run)
    assert len(ran) == 3


@pytest.mark.parametrize(("there", "pools"), [({}, 1), ({"pw_version": "7.2"}, None), ({"pw_version": "7.0"}, 1)])
def test_the_version_of_another_machine_says_what_is_the_default_there(here, run_job, there, pools):
    machine = MACHINE | {"described": True, "nothing_runs": True, "installation": there}
    options = {"input": str(here / "it's the user" / "my.in")}
    found = plan(options, machine=machine, run_job=run_job, folder=here / "plan")
    assert Space(found.parameters, found.constraints, found.facts).default().get("npool") == pools


def test_the_dry_run_writes_only_into_its_folder_and_is_told_to_stop(here, run_job, jobs):
    before = {path: path.read_bytes() for path in (here / "it's the user").rglob("*") if path.is_file()}
    planned(here, run_job)
    (job,) = jobs
    assert job.folder.is_relative_to(here / "plan")
    assert job.time_limit_s
    deck = Deck.read(job.folder / job.argv[-1])
    assert deck.get("prefix") == "dry"
    assert (job.folder / deck.get("outdir") / "dry.EXIT").exists()
    after = {path: path.read_bytes() for path in (here / "it's the user").rglob("*") if path.is_file()}
    assert after == before


def test_trials_find_the_pseudopotentials_from_any_folder(here, run_job, tmp_path):
    found = planned(here, run_job)
    trial = tmp_path / "trial"
    trial.mkdir()
    found.objective.job({"np": 1}, Context(trial))
    folder = Path(Deck.read(trial / "pw.in").get("pseudo_dir"))
    assert folder.is_absolute()
    assert (folder / "Ti.UPF").read_text() == "a pseudopotential"


def test_without_a_start_alone_the_start_command_is_tried(here, run_job, jobs):
    def only_mpi(job):
        if job.mpi is None:
            raise LaunchError("not without mpirun")
        return run_job(job)

    planned(here, only_mpi)
    assert [job.mpi.ranks for job in jobs] == [1]


def test_a_dry_run_that_fails_says_so_in_the_programs_words(here, run_job):
    def fails(job):
        text = " %%%%%%%%%%%%\n     Error in routine readpp (1):\n     file ./Ti.UPF not readable\n %%%%%%%%%%%%\n"
        return Output(text, "", JobStatus(JobState.ENDED, EndReason.EXITED, 1), job.folder)

    with pytest.raises(PlanError, match=r"Error in routine readpp \(1\): file ./Ti.UPF not readable"):
        planned(here, fails)


def test_a_program_that_cannot_be_started(here, run_job):
    def cannot(job):
        raise LaunchError("no")

    with pytest.raises(PlanError, match="could not be started; run it yourself to see why"):
        planned(here, cannot)


def test_everything_that_is_wrong_at_once(here, run_job):
    path = here / "it's the user" / "bad.in"
    path.write_text(INPUT.replace("pseudo_dir = './pp'", "calculation = 'bands'").replace("&SYSTEM\n/\n", ""))
    with pytest.raises(PlanError) as caught:
        planned(here, run_job, input=str(path), program="pwx.x")
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert "pwx.x is not installed here: `module load` Quantum ESPRESSO" in lines[0]
    assert "namelist &SYSTEM is missing" in lines[1]
    assert "continues from another run" in lines[2]
    assert f"Ti.UPF was not found; looked in {here / 'home' / 'espresso' / 'pseudo'}" in lines[3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"inptu": "x"}, "pw.x has no option 'inptu': did you mean 'input'?"),
        ({"change_path": "yes"}, "got 'yes' @ options.change_path"),
        ({"max_ranks": 0}, "got 0 @ options.max_ranks"),
        ({"input": "tio3"}, "there is no input 'tio3' (did you mean 'tio2'?)"),
        ({"input": "/"}, "is a directory"),
    ],
)
def test_options_that_are_wrong(here, run_job, options, words):
    with pytest.raises(PlanError) as caught:
        planned(here, run_job, **options)
    assert words.lower() in str(caught.value).lower()


def test_espresso_pseudo_is_where_pw_would_look(here, run_job, monkeypatch):
    path = here / "plain.in"
    path.write_text(INPUT.replace("pseudo_dir = './pp'", ""))
    monkeypatch.setenv("ESPRESSO_PSEUDO", str(here / "it's the user" / "pp"))
    assert planned(here, run_job, input=str(path)).identity["pseudopotentials"]


def test_identity_follows_what_makes_runs_comparable(here, run_job):
    before = planned(here, run_job)
    (here / "it's the user" / "pp" / "Ti.UPF").write_text("another")
    after = planned(here, run_job, energy_tolerance_ry=1e-3)
    first, second = before.identity, after.identity
    assert {name for name in first if first[name] != second[name]} == {"pseudopotentials"}
    assert before.reading != after.reading


def test_identity_has_the_libraries(here, run_job, monkeypatch):
    files = {name: here / name for name in ("libblas.so.3", "libfftw3.so.3", "libscalapack.so.2", "libmpi.so.40")}
    for path in files.values():
        path.write_text("code")
    monkeypatch.setattr(qe_plan, "find_linked_libraries", lambda *_: {**files, "libz.so.1": None})
    first = planned(here, run_job).identity
    code = hashlib.sha256(b"code").hexdigest()[:16]
    assert first["fft"] == f"libfftw3.so.3 {code}"
    assert first["scalapack"] == f"libscalapack.so.2 {code}"
    assert first["mpi library"] == f"libmpi.so.40 {code}"
    assert first["libc"]
    files["libfftw3.so.3"].write_text("upgraded")
    files["libmpi.so.40"].unlink()
    second = planned(here, run_job).identity
    assert {name for name in first if first[name] != second[name]} == {"fft", "mpi library"}
    assert second["mpi library"] == "libmpi.so.40 unreadable"


def test_the_switches_add_their_knobs(here, run_job):
    plain = {parameter.name for parameter in planned(here, run_job).parameters}
    path = {parameter.name for parameter in planned(here, run_job, change_path=True).parameters}
    output = {parameter.name for parameter in planned(here, run_job, change_output=True).parameters}
    assert path - plain >= {"diagonalization", "mixing_beta", "mixing_mode", "mixing_ndim", "startingwfc"}
    assert output - plain == {"disk_io"}


def test_more_ranks_than_cores_are_possible_when_asked_for(here, run_job):
    found = planned(here, run_job, oversubscribe=True, max_ranks=4)
    space = Space(found.parameters, found.constraints, found.facts)
    assert space.contains({**space.default(), "np": 4})
    assert space.default()["np"] == 2
    # They share the cores of this machine, and do not ask for a second one.
    job = found.objective.job({**space.default(), "np": 4}, Context(here))
    assert (job.mpi.ranks, job.resources) == (4, Resources(2, nodes=1))


def test_pseudopotentials_of_several_folders_are_gathered(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.UPF").write_text(name)
    files = {"a.UPF": tmp_path / "a" / "a.UPF", "b.UPF": tmp_path / "b" / "b.UPF"}
    for _ in range(2):
        folder = pseudo.gather(files, tmp_path / "all")
    assert sorted(entry.name for entry in folder.iterdir()) == ["a.UPF", "b.UPF"]
    assert pseudo.gather({"a.UPF": files["a.UPF"]}, tmp_path / "all") == tmp_path / "a"


def test_long_lines_are_rewrapped_without_changing_a_number():
    numbers = [f"{value:.8E}" for value in range(1000)]
    text = "<PP_Q>\n" + " ".join(numbers) + '\n</PP_Q>\n<PP_X a="1" ' + 'b="2" ' * 60 + "/>\nshort\n"
    wrapped = pseudo.rewrap(text)
    assert max(map(len, wrapped.splitlines())) < 200
    assert wrapped.split() == text.split()


def test_a_missing_generator_is_named(tmp_path):
    with pytest.raises(PlanError, match=r"nosuch-ld1\.x, which makes Ce\..*, is missing; install quantum-espresso"):
        pseudo.generate(["Ce.pbe-spfn-rrkjus_ld1.UPF"], tmp_path, program="nosuch-ld1.x")


def test_what_has_no_recipe_is_left_to_the_user(tmp_path):
    pseudo.generate(["Fe.UPF"], tmp_path, program="nosuch-ld1.x")


def test_allocators_that_cannot_be_told_for_want_of_descriptors_are_not_fewer(monkeypatch):
    monkeypatch.setattr(qe_plan.platform, "libc_ver", lambda: ("glibc", "2.36"))
    with none_left(), pytest.raises(OSError, match="Too many open files"):
        qe_plan._allocators()
