"""Objectives that another distribution offers."""

import sys
from pathlib import Path

import pytest

from autotune.machines.this_machine import this_machine
from autotune.planning.check import check
from autotune.studyfile.definition import Definition
from launchers.local import LocalLauncher
from objectives import registry
from objectives.base import PlanError
from tests.support.distributions import forget, installed

GROUP = registry.GROUP
DECLARED = """
from objectives.kind import ObjectiveKind

OBJECTIVE = ObjectiveKind("waves:plan", paths=("input",))
NOTHING = 3


def plan(options, *, machine, run_job, folder):
    from objectives.command import plan as command
    return command({"argv": ["true", options["input"]]}, machine=machine, run_job=run_job, folder=folder)
"""


@pytest.fixture(autouse=True)
def _fresh():
    yield
    forget()


def plan(name):
    return registry.plan(name, {"input": "x"}, machine={}, run_job=lambda job: None, folder=Path("/nowhere"))


def test_it_is_planned_like_one_that_ships(tmp_path, monkeypatch):
    installed(monkeypatch, tmp_path, "wavepack", {"waves": DECLARED}, {GROUP: "waves = waves:OBJECTIVE"})
    assert registry.names()[-1] == "waves"
    assert plan("waves").objective.options.argv[1:] == ["x"]
    assert registry.runs("waves") == "launched"


def test_a_study_file_names_it_and_its_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    installed(monkeypatch, tmp_path / "lib", "wavepack", {"waves": DECLARED}, {GROUP: "waves = waves:OBJECTIVE"})
    file = tmp_path / "mine.toml"
    file.write_text('objective = "waves"\noptions.input = "in.txt"\n')
    found = check(file, (), this_machine(), LocalLauncher())
    assert not found.mistakes
    assert found.plan.objective.options.argv[1:] == [str(tmp_path / "in.txt")]


def test_check_suggests_it(tmp_path, monkeypatch):
    installed(monkeypatch, tmp_path / "lib", "wavepack", {"waves": DECLARED}, {GROUP: "waves = waves:OBJECTIVE"})
    file = tmp_path / "mine.toml"
    file.write_text('objective = "wavs"\n')
    (mistake,) = check(file, (), this_machine(), LocalLauncher()).mistakes
    assert mistake.line == 1
    assert "did you mean 'waves'" in str(mistake)


def test_a_name_that_ships_cannot_be_taken(tmp_path, monkeypatch):
    installed(monkeypatch, tmp_path, "wavepack", {"waves": DECLARED}, {GROUP: "qe = waves:OBJECTIVE"})
    with pytest.raises(PlanError, match=r"'qe' .* of wavepack 1\.0: this name is taken"):
        plan("qe")


def test_two_distributions_cannot_offer_one_name(tmp_path, monkeypatch):
    for name in ("first", "second"):
        installed(monkeypatch, tmp_path / name, name, {"waves": DECLARED}, {GROUP: "waves = waves:OBJECTIVE"})
    with pytest.raises(PlanError, match="has the same name; uninstall one of them"):
        plan("waves")


@pytest.mark.parametrize(
    ("points_to", "said"),
    [
        ("no_such_module:OBJECTIVE", "of wavepack 1.0 cannot be loaded: ModuleNotFoundError"),
        ("waves:NOTHING", "of wavepack 1.0 must be an objectives.kind.ObjectiveKind, got int"),
    ],
)
def test_a_broken_entry_point_is_named_with_its_distribution(tmp_path, monkeypatch, points_to, said):
    installed(monkeypatch, tmp_path, "wavepack", {"waves": DECLARED}, {GROUP: f"waves = {points_to}"})
    with pytest.raises(PlanError, match=said):
        plan("waves")
    assert plan_of_shipped_works()


def plan_of_shipped_works():
    return registry.plan(
        "command", {"argv": [sys.executable]}, machine={}, run_job=lambda job: None, folder=Path("/nowhere")
    )


def test_a_plan_function_that_is_missing_is_named_with_its_distribution(tmp_path, monkeypatch):
    text = DECLARED.replace("waves:plan", "waves:missing")
    installed(monkeypatch, tmp_path, "wavepack", {"waves": text}, {GROUP: "waves = waves:OBJECTIVE"})
    with pytest.raises(PlanError, match=r"of wavepack 1\.0: waves:missing cannot be loaded: AttributeError"):
        plan("waves")


def test_a_stored_study_is_read_when_its_distribution_is_gone():
    definition = Definition("gone", {}, (), {}, {}, {}, {}, {}, "0.1")
    assert not definition.replay
    assert not definition.is_asktell
    assert registry.quantities("gone") is None
