"""A study that asks for duets is refused before it begins, with the reason, if the runs cannot be made side by side."""

import json
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from autotune.machines.this_machine import this_machine
from autotune.planning.duets import duet_obstacle, duet_refusal, halves_of
from autotune.studyfile import VerdictSection
from launchers import Resources
from launchers.local import local_launcher
from tests.support.command_line import run_main
from tests.support.fakes import study_file

LOCAL = local_launcher()
STUDY = """
objective = "command"
[options]
argv = ["true", "{x}"]
[space.parameters.x]
type = "integer"
values = [3, 4]
default = 4
[verdict]
mode = "duet"
"""
QUEUE = SimpleNamespace(queue=object())


@pytest.mark.parametrize(
    ("runs", "launcher", "place", "why"),
    [
        ("recorded", LOCAL, "here", "recorded runs have no cores"),
        ("told", LOCAL, "here", "another program makes the runs"),
        ("launched", QUEUE, "here", "each run is a job that a batch system places by itself"),
        ("launched", LOCAL, "ray", "runs are spread over the nodes of a Ray cluster"),
        ("launched", LOCAL, "here", ""),
    ],
)
def test_only_where_this_machine_makes_the_runs_there_are_halves(runs, launcher, place, why):
    assert halves_of(SimpleNamespace(runs=runs, metered=()), this_machine(), launcher, place).why == why


def test_a_meter_of_the_whole_node_cannot_tell_two_runs_apart():
    plan = SimpleNamespace(runs="launched", metered=("wall_s", "energy_j"))
    assert "energy_j counts all processors" in halves_of(plan, this_machine(), LOCAL).why


def test_a_study_hears_of_it_if_it_asks_for_duets():
    halves = halves_of(SimpleNamespace(runs="recorded"), this_machine(), LOCAL)
    said = {
        mode: duet_obstacle(study_file(verdict={"mode": mode}), halves, Resources)
        for mode in ("interleaved", "duet", "auto")
    }
    assert said == {"interleaved": "", "duet": halves.why, "auto": ""}
    assert duet_refusal(said["duet"]).startswith("verdict.mode is 'duet', but recorded runs have no cores: ")


def test_a_study_without_a_single_winner_has_no_duets():
    study = study_file(verdict={"mode": "duet"}, tradeoff={"metric": "memory_bytes"})
    halves = halves_of(SimpleNamespace(runs="launched", metered=()), this_machine(), LOCAL)
    assert "without a single winner" in duet_obstacle(study, halves, Resources)


def test_a_verdict_over_several_nodes_is_not_made_by_duets():
    with pytest.raises(ValidationError, match="a duet is on one node, nodes is 3"):
        VerdictSection(mode="duet", nodes=3)
    assert VerdictSection(mode="auto", nodes=3).nodes == 3


def test_runs_that_need_more_than_half_of_the_cores_are_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "naps.toml").write_text(STUDY)
    whole = ("--set", f"options.threads={len(this_machine().cpus)}")
    ended = run_main("study", "naps.toml", *whole)
    assert ended.returncode == 3
    assert "verdict.mode is 'duet', but a run needs " in ended.stderr
    assert "use 'interleaved' or 'auto'" in " ".join(ended.stderr.split())
    assert not (tmp_path / "autotune.db").exists()
    checked = json.loads(run_main("check", "naps.toml", "--json", *whole).stdout)
    assert [problem["path"] for problem in checked["missing"]] == ["verdict.mode"]
    automatic = json.loads(run_main("check", "naps.toml", "--json", *whole, "--set", "verdict.mode=auto").stdout)
    assert automatic["missing"] == []
