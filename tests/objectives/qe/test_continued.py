"""Inputs of pw.x that continue from another run (nscf, bands, restarts), and those of several cycles (relax)."""

from pathlib import Path

import pytest

from autotune.execution.task import describe_job
from launchers import EndReason, JobState, JobStatus
from objectives.base import CYCLES, PARTS, Context, InvalidResult, Output, PlanError
from objectives.qe import plan as qe_plan
from objectives.qe import pseudo
from objectives.qe.deck import Deck
from objectives.qe.objective import QeObjective
from objectives.qe.plan import plan
from spaces import Space

OUTPUTS = Path(__file__).parents[1] / "outputs"
DRY_RUN, CONVERGED = ((OUTPUTS / f"{name}.stdout").read_text() for name in ("dry-run", "converged-np2"))
MACHINE = {"cores": 2, "nodes": 1, "cores_per_node": 2, "sockets": 1, "memory_bytes": 2**34}
INPUT = """&CONTROL
  calculation = '{}', prefix = 'ti', pseudo_dir = '.'
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
# Lines of a real run of 6.7.
BANDS = """
     End of band structure calculation

          k = 0.0000 0.0000 0.0000 (   169 PWs)   bands (ev):

    -5.6612   6.1890   6.1890   6.1890   8.5000   8.5000   8.5000   9.0000
    10.0000

          k =-0.1667 0.1667 0.1667 (   172 PWs)   bands (ev):

    -5.3349   4.2071   5.4206   5.9702   8.0000   8.0000   8.0000   9.0000
    10.0000

     highest occupied level (ev):     6.1890

     PWSCF        :      0.30s CPU      0.36s WALL
   JOB DONE.
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a `pw.x` and the inputs `scf.in` and `nscf.in`."""
    (tmp_path / "pw.x").write_text("#!/bin/sh\n")
    (tmp_path / "pw.x").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(qe_plan, "detect", lambda: None)
    monkeypatch.setattr(pseudo, "SYSTEM_FOLDER", tmp_path / "no-such-folder")
    (tmp_path / "Ti.UPF").write_text("a pseudopotential")
    for calculation in ("scf", "nscf", "relax"):
        (tmp_path / f"{calculation}.in").write_text(INPUT.format(calculation))
    return tmp_path


@pytest.fixture
def run_job():
    """Run pw.x: an scf run saves what it found; an nscf run does nothing without that."""
    ran = []

    def run(job):
        deck = Deck.read(job.folder / "pw.in")
        ran.append((job.name, deck.calculation))
        saved = job.folder / "out" / f"{deck.prefix}.save"
        if deck.calculation == "nscf" and not (saved / "charge-density.dat").is_file():
            return Output("", "no density", JobStatus(JobState.ENDED, EndReason.EXITED, 1), job.folder, job)
        if job.name != "dry-run":
            save(saved)
            return Output(CONVERGED, "", JobStatus(JobState.ENDED, EndReason.EXITED, 0), job.folder)
        return Output(DRY_RUN, "", JobStatus(JobState.ENDED, EndReason.EXITED, 255), job.folder, job)

    run.ran = ran
    return run


def save(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("data-file-schema.xml", "charge-density.dat", "wfc1.dat"):
        (folder / name).write_text(f"{name} of {folder.name}")
    for name in ("wfc1", "mix1"):
        (folder.parent / f"{folder.stem}.{name}").write_text(name)


def planned(here, run_job, name, **options):
    options = {"input": str(here / f"{name}.in"), **options}
    return plan(options, machine=MACHINE, run_job=run_job, folder=here / "plan")


def test_the_run_before_is_made_once_and_each_trial_gets_its_density(here, run_job):
    options = {"prepared_by": str(here / "scf.in")}
    first = planned(here, run_job, "nscf", **options)
    assert run_job.ran == [("dry-run", "scf"), ("job", "scf"), ("dry-run", "nscf")]
    again = planned(here, run_job, "nscf", **options)
    assert run_job.ran.count(("job", "scf")) == 1
    assert again.identity == first.identity
    folder = here / "trial"
    folder.mkdir()
    job = again.objective.job(Space(again.parameters, again.constraints, again.facts).default(), Context(folder))
    copied = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    assert copied == ["out/ti.save/charge-density.dat", "out/ti.save/data-file-schema.xml", "pw.in"]
    assert sorted(name for name, _ in job.copies) == copied[:2]
    assert all((folder / name).read_bytes() == Path(original).read_bytes() for name, original in job.copies)
    assert list(describe_job(job)["files"]) == ["pw.in"]  # what is copied is no text of a job script, or of storage


def test_the_run_before_is_made_again_where_its_files_are_not_all_there_any_more(here, run_job):
    options = {"prepared_by": str(here / "scf.in")}
    first = planned(here, run_job, "nscf", **options)
    (density,) = (here / "cache").rglob("charge-density.dat")
    density.unlink()
    assert planned(here, run_job, "nscf", **options).identity == first.identity
    assert run_job.ran.count(("job", "scf")) == 2
    assert density.is_file()


def test_what_was_saved_may_be_named_and_tells_studies_apart(here, run_job):
    save(here / "mine" / "ti.save")
    found = [planned(here, run_job, "nscf", saved=str(here / place)) for place in ("mine", "mine/ti.save")]
    assert found[0].identity == found[1].identity
    (here / "mine" / "ti.save" / "charge-density.dat").write_text("another")
    assert planned(here, run_job, "nscf", saved=str(here / "mine")).identity != found[0].identity


def test_a_folder_where_nothing_was_saved_and_another_machine_are_refused(here, run_job):
    with pytest.raises(PlanError, match="prepared_by"):
        planned(here, run_job, "nscf")
    with pytest.raises(PlanError, match=r"ti\.save was not saved by pw.x"):
        planned(here, run_job, "nscf", saved=str(here))
    with pytest.raises(PlanError, match="keep one of them"):
        planned(here, run_job, "nscf", saved=str(here), prepared_by="scf.in")
    machine = MACHINE | {"described": True}
    options = {"input": str(here / "nscf.in"), "prepared_by": str(here / "scf.in")}
    with pytest.raises(PlanError, match="make that run there"):
        plan(options, machine=machine, run_job=run_job, folder=here / "plan")


@pytest.mark.parametrize(
    ("group", "values", "also"),
    [
        ("electrons", {"startingwfc": "file"}, {"ti.save/wfc1.dat"}),
        ("control", {"restart_mode": "restart"}, {"ti.save/wfc1.dat", "ti.wfc1", "ti.mix1"}),
    ],
)
def test_a_trial_gets_as_much_as_its_input_reads(here, run_job, group, values, also):
    save(here / "mine" / "ti.save")
    Deck(INPUT.format("scf")).with_values(group, values).write(here / "more.in")
    found = planned(here, run_job, "more", saved=str(here / "mine"))
    folder = here / "trial"
    folder.mkdir()
    found.objective.job({"np": 1}, Context(folder))
    copied = {file.relative_to(folder / "out").as_posix() for file in (folder / "out").rglob("*") if file.is_file()}
    assert copied == {"ti.save/charge-density.dat", "ti.save/data-file-schema.xml"} | also


def measured(calculation, text):
    objective = QeObjective("pw.x", Deck(INPUT.format(calculation)), 1e-6, 2, 1)
    return objective.measure(Output(text, "", JobStatus(JobState.ENDED, EndReason.EXITED, 0), Path()))


def test_the_answer_of_a_band_structure_is_its_bands():
    found = measured("nscf", BANDS)
    assert (found.answer.name, found.answer.unit, found.metrics["wall_s"]) == ("mean energy of the bands", "eV", 0.36)
    assert found.answer.value == pytest.approx((57.4058 + 53.263) / 18)
    assert "iterations" not in found.metrics


def test_with_many_k_points_the_highest_level_is_the_answer_and_without_any_there_is_none():
    text = BANDS[: BANDS.index("          k =")] + BANDS[BANDS.index("     highest") :]
    assert measured("nscf", text).answer.value == 6.189
    assert measured("nscf", text.replace("highest occupied level (ev):", "the Fermi energy is")).answer.value == 6.189
    with pytest.raises(InvalidResult, match="verbosity = 'high'"):
        measured("bands", text.replace("highest occupied", ""))


def test_where_ions_move_the_time_of_a_step_counts():
    once, thrice = (measured("relax", CONVERGED.replace("   JOB DONE", more + "   JOB DONE")) for more in ("", moved()))
    assert once.metrics["scf_step_s"] == once.metrics["wall_s"] == thrice.metrics["wall_s"]
    assert thrice.metrics["scf_step_s"] == pytest.approx(once.metrics["wall_s"] / 3)
    assert thrice.details[PARTS]["electrons"] == pytest.approx(once.details[PARTS]["electrons"] / 3)
    assert (once.details[CYCLES], thrice.details[CYCLES]) == (1, 3)
    assert QeObjective("pw.x", Deck(INPUT.format("relax")), 1e-6, 2, 1).metrics[0].name == "scf_step_s"


def moved():
    return "!    total energy              =     -15.8 Ry\n" * 2


def test_the_steps_of_a_run_go_on_where_iterations_are_numbered_anew():
    read = QeObjective("pw.x", Deck(INPUT.format("relax")), 1e-6, 2, 1).progress_reader()
    seen = [progress.step for line in (CONVERGED + CONVERGED).splitlines() if (progress := read(line))]
    assert seen == list(range(1, 19))
