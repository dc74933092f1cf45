"""The space against the real pw.x: every kind of value starts, converges, and gives the same energy."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from launchers import STDERR, STDOUT
from launchers.local import local_launcher
from launchers.run import run
from objectives import registry
from objectives.base import Context, Output, PlanError
from objectives.qe.options import shipped_input
from spaces import Space

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("pw.x") and shutil.which("mpirun")), reason="no pw.x and mpirun here"),
]
MACHINE = {"cores": 2, "nodes": 1, "cores_per_node": 2, "sockets": 1, "memory_bytes": 2**33}
RUNS = 9  # a second or two each


def run_job(job):
    status = run(local_launcher(), job)
    text = [(job.folder / name).read_text(errors="replace") for name in (STDOUT, STDERR)]
    return Output(text[0], text[1], status, job.folder)


def plan_of(options, folder):
    return registry.plan("qe", options, machine=MACHINE, run_job=run_job, folder=folder)


def plan_or_skip(options, folder):
    try:
        return plan_of(options, folder)
    except PlanError as error:
        pytest.skip(f"the input cannot be run here: {error}")


@pytest.fixture(scope="module")
def tio2(tmp_path_factory):
    return plan_or_skip({}, tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The default input with fewer plane waves but the same bands, which takes less time."""
    folder = tmp_path_factory.mktemp("small")
    text = shipped_input("tio2").decode()
    fewer = (("ecutwfc = 25", "ecutwfc = 12"), ("ecutrho = 200", "ecutrho = 60"), ("3 3 4 0 0 0", "2 2 2 0 0 0"))
    for whole, less in fewer:
        assert whole in text
        text = text.replace(whole, less)
    (folder / "small.in").write_text(text)
    return plan_or_skip({"input": str(folder / "small.in")}, folder / "plan")


def covering_sample(space: Space, count: int) -> list[dict[str, object]]:
    """Return the default and `count - 1` more configurations, each with as many untried values as possible."""
    candidates = [dict(configuration) for configuration in space.sample(np.random.default_rng(0), 300)]
    chosen = [dict(space.default())]
    while len(chosen) < count:
        tried = {item for configuration in chosen for item in configuration.items()}
        chosen.append(max(candidates, key=lambda configuration: len(configuration.items() - tried)))
    return chosen


@pytest.mark.full
def test_every_kind_of_value_starts_and_agrees_on_the_energy(small, tmp_path):
    space = Space(small.parameters, small.constraints, small.facts)
    chosen = covering_sample(space, RUNS)
    tried = {item for configuration in chosen for item in configuration.items()}
    assert tried >= {(p.name, value) for p in small.parameters for value in p.values}
    energies = []
    for number, configuration in enumerate(chosen):
        folder = tmp_path / f"trial {number}"
        folder.mkdir()
        output = run_job(small.objective.job(configuration, Context(folder, (0, 1), 120.0)))
        measurement = small.objective.measure(output)
        energies.append(measurement.answer.value)
        layout = measurement.details["layout"]
        assert layout["ranks"] == configuration["np"]
        assert layout["pools"] == configuration["npool"]
        assert layout["band_groups"] == configuration["nbgrp"]
        assert layout["task_groups"] == configuration["ntg"]
        assert 0 < measurement.metrics["wall_s"] <= measurement.metrics["elapsed_s"] + 0.1
    assert np.ptp(energies) <= small.objective.tolerance_ry


def test_the_dry_run_is_short_and_tells_the_size(tio2):
    assert tio2.facts["kpoints"] == 9
    assert tio2.facts["bands"] == 24
    assert tio2.facts["planes"] == 18


def test_an_input_that_pw_refuses_is_refused_in_its_words(tmp_path):
    path = tmp_path / "typo.in"
    text = shipped_input("tio2").decode()
    path.write_text(text.replace("mixing_beta", "mixxing_beta"))
    with pytest.raises(PlanError, match="bad line in namelist &electrons"):
        plan_of({"input": str(path)}, tmp_path / "plan")
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "plan"] == ["typo.in"]


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("ld1.x"), reason="no ld1.x here")
def test_ceria_runs_with_pseudopotentials_made_here(tmp_path):
    found = plan_of({"input": "ceo2", "pseudo_cache": str(tmp_path / "cache")}, tmp_path / "plan")
    made = sorted((tmp_path / "cache").glob("*.UPF"))
    assert len(made) == 2
    assert all(max(map(len, path.read_text().splitlines())) < 1024 for path in made)
    folder = tmp_path / "trial"
    folder.mkdir()
    configuration = Space(found.parameters, found.constraints, found.facts).default()
    measurement = found.objective.measure(run_job(found.objective.job(configuration, Context(folder, (0, 1), 120.0))))
    assert measurement.answer.value == pytest.approx(-205.4487, abs=1e-3)
    assert not Path("out").exists()


SILICON = """&CONTROL
 calculation = '{}'
/
&SYSTEM
 ibrav = 2, celldm(1) = 10.2, nat = 2, ntyp = 1, ecutwfc = 12
/
&ELECTRONS
/
ATOMIC_SPECIES
Si 28.08 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
Si 0 0 0
Si 0.25 0.25 0.25
K_POINTS automatic
{} 1 1 1
"""


def test_a_band_structure_continues_from_the_scf_run_that_was_made_before(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, grid in (("scf", "2 2 2"), ("nscf", "3 3 3")):
        (tmp_path / f"{name}.in").write_text(SILICON.format(name, grid))
    try:
        found = plan_of(
            {"input": str(tmp_path / "nscf.in"), "prepared_by": str(tmp_path / "scf.in")}, tmp_path / "plan"
        )
    except PlanError as error:
        pytest.skip(f"the input cannot be run here: {error}")
    answers = []
    for pools in (1, 2):
        folder = tmp_path / str(pools)
        folder.mkdir()
        job = found.objective.job({"np": 2, "npool": pools}, Context(folder, (0, 1), 60.0))
        answers.append(found.objective.measure(run_job(job)).answer)
    assert answers[0].unit == "eV"
    assert answers[0].disagreement(answers[1].value) is None


def test_runs_that_their_input_stops_after_two_iterations_agree(tmp_path):
    text = SILICON.format("scf", "2 2 2").replace("&ELECTRONS", "&ELECTRONS\n electron_maxstep = 2")
    answers = []
    for name, words in (("stops", text), ("goes on", text.replace("= 2\n", "= 2, scf_must_converge = .false.\n"))):
        (tmp_path / f"{name}.in").write_text(words)
        found = plan_or_skip({"input": str(tmp_path / f"{name}.in")}, tmp_path / name)
        for ranks in (1, 2):
            folder = tmp_path / f"{name} {ranks}"
            folder.mkdir()
            output = run_job(found.objective.job({"np": ranks, "npool": 1}, Context(folder, (0, 1), 60.0)))
            answers.append(found.objective.measure(output).answer)
    assert {answer.parts[0].value for answer in answers} == {2.0}
    assert all(answers[0].disagreement(answer.value) is None for answer in answers)
    assert 0 < answers[0].tolerance < 0.1
