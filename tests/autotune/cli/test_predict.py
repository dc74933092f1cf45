"""`autotune predict` and `autotune model` as a person types them."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.cli.commands.model import _points
from autotune.errors import (
    AutotuneError,
    CannotRunHereError,
    DifferentStudyError,
    ExitCode,
    StorageError,
    StudyFileError,
)
from autotune.machines.this_machine import this_machine
from autotune.performance.accuracy import HeldOutSetting, Times
from autotune.performance.measurements.shipped import load_shipped_measurements
from autotune.planning.prepare import prepare
from autotune.records.measurement import Judged, Measured, Setting
from autotune.records.outcome import Outcome
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.studyfile.loading import load
from launchers.local import local_launcher
from objectives.base import Metric
from tests.support.command_line import invoke
from tests.support.fakes import definition, small_space
from tests.support.stored import add_trial

STUDY = """
objective = "command"

[options]
argv = ["echo", "{x}", "{y}"]
metrics = [{ name = "took_s", unit = "s", pattern = '(\\S+)', kind = "time" }]

[space.parameters.x]
type = "integer"
low = 1
high = 48
default = 48

[space.parameters.y]
type = "integer"
values = [1, 2, 4]
default = 1

[[space.constraints]]
name = "few"
rule = "x * y <= cores"
reason = "a core each"
"""
GADI = ("predict", "./solver.toml", "--machine", "gadi")
TOOK = Metric("took_s", "s", kind="time")
FACTS = {"cores": 32, "cores_per_node": 32, "sockets": 2}


def measured(machine, scale):
    place = Setting("solver", machine, "small", TOOK, FACTS, {"n": 100}, source="a page")
    law = {(x, y): scale * (40.0 / x + x / 10.0 + y) for x in range(1, 33, 3) for y in (1, 2, 4) if x * y <= 32}
    return [Measured(place, {"x": x, "y": y}, value) for (x, y), value in law.items()]


def fill(folder: Path, rows: list[Measured]) -> None:
    MeasurementStore.create(f"sqlite:///{folder / 'autotune.db'}").add(rows)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "solver.toml").write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOTUNE_STORAGE", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def known(folder):
    fill(folder, [*measured("earth", 1.0), *measured("moon", 2.0)])
    return folder


def run(*words):
    """Run a command here; an error of the user's ends it, as in a process of its own."""
    found = invoke(*words)
    if isinstance(found.exception, AutotuneError):
        raise found.exception
    assert found.exit_code in {ExitCode.OK, ExitCode.USAGE}, found.output
    return found


def asked(*words):
    return run(*GADI, *words)


def test_a_prediction(known):
    del known
    told = asked("--top", "2")
    assert told.exit_code == 0
    for said in (
        "took_s [s]",
        "speed-up",
        "x=48 y=1",
        "predicted, not measured; ",
        "doubt: nothing was measured on gadi",
    ):
        assert said in told.stdout
    assert "fitted on " in told.stdout


TWO = ("predict", "./solver.toml", "--machine", "gadi", "--machine", "aion")


@pytest.mark.slow
def test_the_name_of_a_stored_study_is_taken_where_its_file_is(known):
    study = load(Path("solver.toml")).model_dump(mode="json")
    StudyStore.create("sqlite:///autotune.db", "solver", definition(small_space(), objective="command", study=study))
    by_file = run(*GADI, "--json").stdout
    with pytest.raises(StudyFileError, match=r"its file continues it: autotune study \./solver\.toml$"):
        run("study", "solver")
    with pytest.raises(StudyFileError, match=r"is called 'solver'; the file here is \./solver\.toml"):
        run("check", "solver")
    Path("solver.toml").rename("moved.toml")
    assert run("predict", "solver", *GADI[2:], "--json").stdout == by_file
    changed = run("predict", "solver", *GADI[2:], "--json", "--set", "space.parameters.x.default=24").stdout
    assert json.loads(changed) != json.loads(by_file)
    sized = ("rightsize", "solver", "--machine", "gadi", "--deadline", "1h", "--json")
    assert json.loads(run(*sized).stdout)
    with pytest.raises(StudyFileError, match=r"autotune study \./solver\.toml, which is not there now"):
        run("study", "solver")
    with pytest.raises(StudyFileError, match="no study is called 'nothing'"):
        run("predict", "nothing")


def test_two_machines_are_a_row_each_and_a_ratio(known):
    del known
    told = run(*TWO, "--top", "2")
    rows = [line for line in told.stdout.splitlines() if line.startswith("│")]
    assert [re.split(r"\s*│\s*", row)[1] for row in rows] == ["gadi", "aion"]
    assert "gadi: doubt: nothing was measured on gadi" in told.stdout
    assert re.search(
        r"^(gadi is \S+ times as fast as aion \(|how gadi compares with aion is)", told.stdout, re.MULTILINE
    )


@pytest.mark.slow
def test_two_machines_as_json_are_what_each_alone_is(known):
    del known
    found = json.loads(run(*TWO, "--json", "--top", "2").stdout)
    assert found["machines"]["gadi"] == json.loads(asked("--json", "--top", "2").stdout)
    assert list(found["machines"]) == ["gadi", "aion"]
    (ratio,) = found["ratios"]
    assert (ratio["machines"], ratio["metric"]) == (["gadi", "aion"], "took_s")
    assert (ratio["ratio"] is None) is bool(ratio["why"])


def test_notes_say_which_machine_they_are_about(known):
    del known
    told = run(*TWO, "--where", "x <= 24").stderr
    assert "gadi: the default configuration, x=48 y=1, breaks --where" in told
    assert "aion: the default configuration, " in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--script", "sh"), "a job script is for one machine"),
        (("--machine", "gadi"), "a machine is named twice"),
    ],
)
def test_what_needs_one_machine_refuses_two(known, words, message):
    del known
    told = run(*TWO, *words)
    assert told.exit_code == ExitCode.USAGE
    assert message in " ".join(told.stderr.replace("│", " ").split())


@pytest.fixture
def known_there(folder):
    """The study's own problem was measured on the machine."""
    fill(folder, measured("gadi", 1.0))
    here = json.loads(asked("--json").stdout)["setting"]
    rows = [
        replace(row, setting=replace(row.setting, workload=here["workload"], workload_facts=here["workload_facts"]))
        for row in measured("gadi", 1.0)
    ]
    fill(folder, rows)
    return {(row.configuration["x"], row.configuration["y"]): row for row in rows}


@pytest.mark.slow
def test_what_no_verdict_says_only_looks_faster(folder, known_there):
    rules = ("--where", "x in (19, 25)", "--where", "y == 1")
    found = json.loads(asked("--json", *rules).stdout)
    assert (found["proposals"][0]["configuration"], found["promising"]) == ({"x": 19, "y": 1}, False)
    assert "looks 1.019" in asked(*rules).stdout
    script = asked("--script", "sh", *rules).stdout
    assert "measured on gadi: looks 1.02 times as fast as the default configuration; no verdict confirms it" in script
    winner = known_there[19, 1]
    said = Judged(winner.configuration, known_there[25, 1].configuration, False, 0.95, (1.01, 0.98, 1.04))
    fill(folder, [replace(winner, judged=said)])
    assert "1.01 (0.98 to 1.04, 95%), by a verdict" in asked(*rules).stdout
    script = asked("--script", "sh", *rules).stdout
    assert "measured on gadi: the default configuration; no other is sure to beat it" in script


@pytest.mark.slow
@pytest.mark.usefixtures("known_there")
def test_the_size_of_the_space_is_not_taken_for_what_was_measured():
    said = " ".join(asked("--top", "2", "--where", "x == 1 or x == 4").stdout.split())
    assert "each of these proposals was measured there; 6 valid configurations on gadi" in said


def test_a_prediction_as_json(known):
    del known
    found = json.loads(asked("--json", "--top", "3", "--where", "x <= 24").stdout)
    assert len(found["proposals"]) == 3
    assert all(one["configuration"]["x"] <= 24 for one in found["proposals"])
    assert found["default"]["configuration"] == {"x": 24, "y": 1}
    assert found["setting"]["machine"] == "gadi"


def test_a_default_that_breaks_where_is_told(known):
    del known
    assert "x=48 y=1, breaks --where" in asked("--where", "x <= 24").stderr
    assert asked("--where", "x >= 2").stderr == ""


def test_the_job_script_is_valid_and_says_that_it_is_predicted(known):
    assert asked("--script", "sh", "--output", "job.sh").stdout == ""
    texts = [
        (known / "job.sh").read_text(encoding="utf-8"),
        *(asked("--script", form).stdout for form in ("slurm", "pbs")),
    ]
    first = json.loads(asked("--top", "1", "--json").stdout)["proposals"][0]["configuration"]
    for text in texts:
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        assert "predicted for gadi, not measured" in text
        assert re.search(r'^run="\S+"/autotune-solver-\w+$', text, re.MULTILINE)
        assert f"echo {first['x']} {first['y']}" in text


@pytest.mark.usefixtures("folder")
def test_a_script_that_could_not_run_is_refused():
    told = run(*GADI, "--facts", "size.toml", "--script", "slurm")
    assert told.exit_code == ExitCode.USAGE
    message = "a job needs the input itself, but --facts gives only"
    assert message in " ".join(told.stderr.replace("│", " ").split())


def test_a_proposal_that_is_the_default_is_called_so(known):
    del known
    lines = asked("--where", "x == 48 and y == 1").stdout.splitlines()
    assert "the default" in next(line for line in lines if line.startswith("│ 1"))


def test_a_script_of_nothing_is_refused(folder):
    fill(folder, measured("earth", 1.0)[:3])
    assert "nothing can be proposed" in asked().stdout
    with pytest.raises(CannotRunHereError, match=r"nothing can be proposed, so there is no job script\ntoo little"):
        asked("--script", "sh")


def test_further_storages_are_learnt_from(folder):
    (folder / "other").mkdir()
    fill(folder / "other", [*measured("earth", 1.0), *measured("moon", 2.0)])
    with pytest.raises(CannotRunHereError, match="no measurements of 'solver'"):
        asked()
    assert "earth" in asked("--also", "other/autotune.db").stdout
    assert "earth" in asked("--storage", "other/autotune.db").stdout


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (("predict", "qee"), StudyFileError, "did you mean 'qe'"),
        (("predict", "./solver.toml", "--machine", "gady"), AutotuneError, "did you mean 'gadi'"),
        ((*GADI, "--where", "z < 3"), StudyFileError, "--where: .*unknown name 'z'"),
        ((*GADI, "--where", "x > 99"), StudyFileError, "--where: no configuration is valid"),
        (GADI, CannotRunHereError, "no measurements of 'solver'.*autotune storage import"),
        ((*GADI, "--installation", "blass=mkl"), AutotuneError, "did you mean 'blas'"),
        ((*GADI, "--installation", "blas"), AutotuneError, "takes NAME=VALUE, got 'blas'"),
        (
            (*GADI, "--installation", "blas=a", "--installation", "blas=b"),
            AutotuneError,
            "states blas twice: 'a' and 'b'",
        ),
        ((*GADI, "--installation", "openmp=maybe"), AutotuneError, "openmp=maybe: it is true or false"),
        ((*GADI, "--storage", "none.db"), StorageError, "no storage at none.db"),
        ((*GADI, "--also", "none.db"), StorageError, "no storage at none.db"),
        (("predict", "./none.toml", "--also", "none.db"), StorageError, "no storage at none.db"),  # before the study
        (("model", "--storage", "none.db"), StorageError, "no storage at none.db"),
        (("model", "data-scence"), CannotRunHereError, "did you mean 'data-science'"),
        (("model", "zzzz"), CannotRunHereError, "programs with measurements: data-science, .*ucx"),
    ],
)
def test_mistakes(folder, words, error, said):
    del folder
    with pytest.raises(error, match=f"(?s){said}"):
        run(*words)


def test_a_storage_that_is_not_there_yet_is_none_where_the_shipped_figures_answer(folder):
    (folder / "solver.toml").rename(folder / "data-science.toml")  # the name of a program that was published
    found = run("predict", "./data-science.toml", "--machine", "gadi", "--storage", "new.db")
    assert "no storage at new.db yet" in found.stderr
    assert "default" in found.stdout
    assert not (folder / "new.db").exists()


@pytest.mark.parametrize("command", [GADI, ("best", "solver")])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--script", "slurm", "--json"), "--script: prints a job script and --json a JSON document"),
        (("--output", "job.sh"), "--output: needs a job script: add --script"),
    ],
)
@pytest.mark.usefixtures("known")
def test_options_of_the_output_that_exclude_each_other_are_refused(command, words, message):
    told = run(*command, *words)
    assert told.exit_code == ExitCode.USAGE
    assert message in told.output


def test_each_metric_of_a_setting_has_points_of_its_own_in_the_picture():
    place = measured("earth", 1.0)[0].setting
    settings = (place, replace(place, metric=Metric("cpu_s", "s", kind="time")))
    held = [
        HeldOutSetting(setting, 3, None, None, Times(0.1, 1.0, 1.0, 1.1, ((value, value, value, value),)))
        for value, setting in enumerate(settings, 1)
    ]
    assert list(_points(held).values()) == [((1, 1, 1, 1),), ((2, 2, 2, 2),)]


def test_what_was_measured_without_a_storage(folder):
    found = json.loads(run("model", "--json").stdout)
    assert found.keys() == {one.setting.program for one in load_shipped_measurements()}
    own = [one for one in load_shipped_measurements() if one.setting.program == "data-science"]
    assert found["data-science"]["values"] == sum(one.value is not None for one in own)
    told = run("model").stdout
    assert all(name in told for name in found)
    assert list(folder.iterdir()) == [folder / "solver.toml"]


def test_what_was_measured_in_a_storage(known):
    own = [*measured("earth", 1.0), *measured("moon", 2.0)]
    MeasurementStore.create(f"sqlite:///{known / 'autotune.db'}").add(
        [
            Measured(own[0].setting, {"x": 20, "y": 1}, bound=9.0),
            Measured(own[0].setting, {"x": 23, "y": 1}, failure="it broke"),
        ]
    )
    found = json.loads(run("model", "--json").stdout)["solver"]
    assert found == {"machines": 2, "workloads": 1, "values": len(own), "bounds": 1, "failures": 1}


@pytest.mark.full
def test_how_well_a_program_is_predicted(known):
    told = run("model", "solver", "--picture", "seen.png")
    assert (known / "seen.png").read_bytes().startswith(b"\x89PNG")
    assert "(1) a page" in told.stdout
    for machine in ("earth", "moon"):
        assert f"predicted without its machine: {machine}, small" in told.stderr
        assert f"{machine}: nothing was measured on {machine}; nearest machine: " in told.stdout
    assert "no workload could be left out" in told.stdout


@pytest.mark.slow
def test_how_well_as_json(folder):
    same = [Measured(one.setting, one.configuration, 2.0) for one in measured("moon", 1.0)]
    fill(folder, [*measured("earth", 1.0), *same])

    def none(word):
        raise AssertionError(word)

    found = json.loads(run("model", "solver", "--json").stdout, parse_constant=none)
    assert found.keys() == {"machine", "workload"}
    assert found["workload"] == []
    rows = {one["machine"]: one for one in found["machine"]}
    assert rows.keys() == {"earth", "moon"}
    assert rows["moon"]["times"]["correlation"] is None
    assert rows["earth"]["values"] == len(measured("earth", 1.0))
    assert 0.0 < rows["earth"]["choice"]["first"] <= rows["earth"]["choice"]["best"] <= 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("data-science", "--picture", "seen.txt"), "a picture ends in .png"),
        (("--picture", "seen.png"), "a picture shows one program"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused(folder, words, said):
    told = run("model", *words)
    assert told.exit_code == ExitCode.USAGE
    assert said in told.stderr
    assert not list(folder.glob("seen*"))


@pytest.mark.slow
def test_long_names_are_not_cut_where_there_is_little_room(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    workload = "benchmark=K-Means, input_gb=64"
    rows = [
        Measured(Setting("solver", one.setting.machine, workload, TOOK, FACTS, {"n": 1}), one.configuration, one.value)
        for one in [*measured("earth", 1.0), *measured("the-other-machine", 2.0)]
    ]
    fill(folder, rows)
    assert "…" not in run("model", "solver").stdout


def test_a_measurement_of_another_size_is_not_used_for_this_size(folder):
    study = STUDY.replace("{y}", "{y} {n}").replace(
        "[space.parameters.x]", "[space.derived]\nn = 5\n\n[space.parameters.x]"
    )
    (folder / "solver.toml").write_text(study.replace("48", "1"), encoding="utf-8")

    def prepared(*changes):
        return prepare(load(folder / "solver.toml", changes), this_machine(), local_launcher(), folder / "plan")

    url, found = f"sqlite:///{folder / 'autotune.db'}", prepared()
    outcome = Outcome(metrics={"took_s": 1.0})
    store = StudyStore.create(url, "solver", found.definition)
    add_trial(store, found.space, found.space.default(), outcome, worth=Observation(value=1.0))
    with pytest.raises(DifferentStudyError, match=r"space\.derived\.n: 5 there, 6 here"):
        StudyStore.create(url, "solver", prepared("space.derived.n=6").definition)
    sizes = ((), ("--set", "space.derived.n=6"))
    told = [json.loads(run("predict", "./solver.toml", *words, "--json").stdout) for words in sizes]
    assert [one["default"]["measured_runs"] > 0 for one in told] == [True, False]
