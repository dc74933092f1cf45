"""`autotune rightsize` as a person types it."""

import json

import pytest

from autotune.errors import CannotRunHereError
from autotune.records.measurement import Measured, Setting
from autotune.storage.measurement_store import MeasurementStore
from objectives.base import Metric
from tests.support.command_line import invoke

STUDY = """
objective = "command"

[options]
argv = ["solve"]
ranks = "np"
metrics = [{ name = "took_s", unit = "s", pattern = '(\\S+)', kind = "time" }]

[space.parameters.np]
type = "integer"
values = [1, 2, 4, 8, 16, 32, 48, 96, 192]
default = 48
"""
FACTS = {"cores": 48, "cores_per_node": 48, "nodes": 1}
TOOK = Metric("took_s", "s", kind="time")


@pytest.fixture
def solver(tmp_path, monkeypatch):
    (tmp_path / "solver.toml").write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked = invoke("predict", "./solver.toml", "--machine", "gadi", "--json")
    workload = json.loads(asked.stdout)["setting"]["workload"]
    places = [Setting("solver", machine, workload, TOOK, FACTS, {}, source="a page") for machine in ("other", "gadi")]
    ranks = (1, 2, 4, 8, 16, 32, 48, 96)
    rows = [Measured(place, {"np": np}, 1000.0 / np + 5.0) for place in places for np in ranks]
    MeasurementStore.create(f"sqlite:///{tmp_path / 'autotune.db'}").add(rows)
    return tmp_path


def rightsize(*words):
    return invoke("rightsize", "./solver.toml", *words)


def test_a_described_machine_is_predicted_without_runs(solver):
    result = rightsize("--machine", "gadi", "--max-nodes", "2", "--deadline", "10m", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["keeps"], found["probes"]) == (0, True, 0)
    assert found["chosen"]["time_s"] < 600.0
    assert found["chosen"]["nodes"] == 1
    # What was measured there corrects what is expected by what was measured elsewhere.
    assert "fitted on 8 measurements of solver on 1 machine," in found["grounds"][-1]
    assert {size["configuration"]["np"] for size in found["front"]} <= {1, 2, 4, 8, 16, 32, 48, 96}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "nodes", "said"),
    [
        ("count = 2", 2, ""),
        ("count = 3074", 4, "at most 64 nodes for a run, ./mars.toml has 3074: --max-nodes N allows more"),
        ("", 1, "at most 1 node for a run, its description does not say how many ./mars.toml has"),
    ],
)
def test_a_run_may_have_all_nodes_of_a_described_machine(solver, count, nodes, said):
    text = f'name = "mars"\ntitle = "Mars"\n[nodes]\n{count}\n[cpu]\ncores_per_node = 48\n'
    (solver / "mars.toml").write_text(text, encoding="utf-8")
    asked = invoke("predict", "./solver.toml", "--machine", "gadi", "--json")
    place = Setting("solver", "mars", json.loads(asked.stdout)["setting"]["workload"], TOOK, FACTS, source="a queue")
    rows = [Measured(place, {"np": np}, 1000.0 / np + 5.0) for np in (1, 2, 4, 8, 16, 32, 48, 96)]
    MeasurementStore.create(f"sqlite:///{solver / 'autotune.db'}").add(rows)
    result = rightsize("--machine", "./mars.toml", "--deadline", "1h", "--json")
    assert max(size["nodes"] for size in json.loads(result.stdout)["front"]) == nodes
    assert said in result.stderr
    assert bool(said) == ("--max-nodes" in result.stderr)


@pytest.mark.slow
def test_what_was_measured_there_is_found_with_its_installation(solver):
    asked = ("predict", "./solver.toml", "--machine", "gadi", "--nodes", "2", "--json")
    here = json.loads(invoke(*asked).stdout)["setting"]
    built = {**FACTS, "nodes": 2, "compiler": "icc"}
    place = Setting("solver", "gadi, icc", here["workload"], TOOK, built, here["workload_facts"], source="a queue")
    rows = [Measured(place, {"np": np}, 500.0 / np + 2.0) for np in (1, 2, 4, 8, 16, 48, 96)]
    MeasurementStore.create(f"sqlite:///{solver / 'autotune.db'}").add(rows)
    words = ("--machine", "gadi", "--max-nodes", "2", "--deadline", "90s", "--json")
    found, other = (json.loads(rightsize(*words, *more).stdout) for more in ((), ("--installation", "compiler=gcc")))
    assert found["grounds"][0].startswith("taken as installed on gadi: compiler icc")
    times = [{size["configuration"]["np"]: size["time_s"] for size in answer["front"]}[96] for answer in (found, other)]
    # Between what icc took and what a build took of which nothing is known; the second alone beside gcc.
    assert times == pytest.approx([11.3, 15.4], rel=0.15)


def test_an_installation_is_stated_of_described_machines_only(solver):
    result = rightsize("--deadline", "10m", "--installation", "compiler=gcc")
    assert result.exit_code == 2
    assert "it is for a described machine" in " ".join(result.stderr.replace("│", " ").split())


def test_an_impossible_deadline_has_an_exit_code_of_its_own_and_says_the_likeliest(solver):
    result = rightsize("--machine", "gadi", "--deadline", "1s", "--script", "slurm")
    assert result.exit_code == 3
    assert "nothing keeps the limits with a chance of 90%; the likeliest" in result.stderr
    assert "#SBATCH" not in result.stdout


def test_a_script_and_a_picture_of_the_chosen_size(solver):
    words = ("--machine", "gadi", "--max-nodes", "2", "--deadline", "10m")
    result = rightsize(*words, "--script", "slurm", "--picture", "front.svg")
    assert result.exit_code == 0
    assert result.stdout.startswith("#!")
    assert "keeps the limits" in result.stdout
    assert "core-hours" in (solver / "front.svg").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "limit what a run may take: --deadline 2h"),
        (("--deadline", "soon"), "Invalid value for --deadline: 'soon' is not a duration"),
        (("--deadline", "1h", "--script", "slurm", "--json"), "--script: prints a job script and --json"),
        (("--deadline", "1h", "-o", "job.sh"), "--output: needs a job script: add --script"),
        (("--max-core-hours", "-1"), "-1 is not a number of core-hours above 0"),
        (("--max-energy", "2 miles"), "'2 miles' is not an energy above 0"),
    ],
)
def test_mistyped_limits_are_said(solver, words, message):
    result = rightsize(*words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("words", [("--max-energy", "2kWh"), ("--deadline", "1h", "--least-energy")])
def test_energy_cannot_be_predicted(solver, words):
    result = rightsize("--machine", "gadi", *words)
    assert isinstance(result.exception, CannotRunHereError)
    assert "only runs show how much energy they draw" in str(result.exception)
