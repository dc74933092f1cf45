"""`autotune suite`: several studies, one after another, with one figure; here of recorded runs, which take no core."""

import json
import os
from pathlib import Path

import pytest

from autotune.cli.commands import suite as suites
from autotune.errors import BusyError, ExitCode, NoTimeError, StudyFileError, UnfinishedError
from autotune.storage.names import stored_names
from autotune.storage.stored_study import stored_study
from autotune.tuning import continuing
from tests.support.command_line import invoke

STUDY = """
objective = "replay"
[options]
table = "{name}.csv"
metric = "wall_s"
parameters = ["x"]
default = {{ x = 1 }}
[budget]
trials = 4
[verdict]
confidence = 0.75
pairs = 3
max_pairs = 3
rounds = 2
"""
URL = "sqlite:///autotune.db"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def recorded(name, *seconds, more=""):
    """Write a study of recorded runs: x = 1, which is the default, took the first of the `seconds`, and so on."""
    rows = [f"{x},{second * factor}" for x, second in enumerate(seconds, 1) for factor in (0.99, 1.0, 1.01)]
    Path(f"{name}.csv").write_text("\n".join(["x,wall_s", *rows, ""]), encoding="utf-8")
    Path(f"{name}.toml").write_text(STUDY.format(name=name) + more, encoding="utf-8")


def all_of(*members):
    listed = ", ".join(member if member.startswith("{") else f'"{member}"' for member in members)
    Path("all.toml").write_text(f"[suite]\nmembers = [{listed}]\n", encoding="utf-8")


def ran(*options, expected=0):
    ended = invoke("suite", "./all.toml", *options)
    assert ended.exit_code == expected, ended.output
    return ended


def told(*options, expected=0):
    return json.loads(ran("--json", *options, expected=expected).stdout)


def runs(name):
    return len(stored_study(URL, name).runs())


def test_each_study_is_tuned_and_one_figure_is_told():
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of("./two.toml", "./eight.toml")
    found = told()
    ratios = [member["speed_up"]["ratio"] for member in found["members"]]
    assert ratios == pytest.approx([2.0, 8.0], rel=0.05)
    assert found["speed_up"]["ratio"] == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    assert found["speed_up"]["low"] <= found["speed_up"]["ratio"] <= found["speed_up"]["high"]
    best = json.loads(invoke("best", "two", "--json").stdout)
    assert best["speed_up"]["ratio"] == ratios[0]


def test_the_same_command_again_runs_nothing_and_says_the_same():
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of("./two.toml", "./eight.toml")
    first, before = told(), (runs("two"), runs("eight"))
    assert told() == first
    assert (runs("two"), runs("eight")) == before
    text = ran().stdout
    assert f"all: {first['sentence']}" in text
    assert "two and eight: replay of recorded measurements" in text


def test_weights_and_references_of_the_file_count():
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of('{ study = "./two.toml", weight = 3, reference = 4.0 }', "./eight.toml")
    found = told()
    assert found["speed_up"]["ratio"] == pytest.approx(2.0**0.75 * 8.0**0.25, rel=0.05)
    assert found["score"]["ratio"] == pytest.approx(4.0, rel=0.05)
    assert "score" in ran().stdout


def test_trials_and_changes_are_those_of_every_study():
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of("./two.toml", "./eight.toml")
    found = told("--trials", "2", "--set", "sampler.name=random")
    assert [member["trials"] for member in found["members"]] == [2, 2]
    assert stored_study(URL, "eight").definition.study["sampler"]["name"] == "random"


def test_a_default_that_nothing_beats_is_in_the_mean():
    recorded("kept", 1.0, 2.0, 3.0)
    recorded("four", 4.0, 1.0, 9.0)
    all_of("./kept.toml", "./four.toml")
    found = told()
    assert found["members"][0]["speed_up"] == {"ratio": 1.0, "low": 1.0, "high": 1.0}
    assert found["speed_up"]["ratio"] == pytest.approx(2.0, rel=0.05)


def test_a_study_that_cannot_run_here_does_not_stop_the_others_and_ends_the_command():
    study = 'objective = "command"\n[options]\nargv = ["no-such-program-here"]\n'
    Path("gone.toml").write_text(study, encoding="utf-8")
    recorded("two", 2.0, 1.0, 3.0)
    all_of("./gone.toml", "./two.toml")
    found = told(expected=ExitCode.CANNOT_RUN_HERE)
    gone, two = found["members"]
    assert "no-such-program-here" in gone["not_in_the_mean"]
    assert two["speed_up"]["ratio"] == pytest.approx(2.0, rel=0.05)
    assert "geometric mean of 1 of 2 studies); gone is not in the mean" in found["sentence"]


def test_a_study_in_which_nothing_keeps_the_limits_has_an_exit_code():
    recorded("strict", 2.0, 1.0, 3.0, more="[limits]\nwall_s = { max = 0.5 }\n")
    recorded("two", 2.0, 1.0, 3.0)
    all_of("./strict.toml", "./two.toml")
    found = told(expected=ExitCode.NOTHING_FEASIBLE)
    assert found["members"][0]["not_in_the_mean"] == "no configuration keeps the limits"
    assert found["speed_up"] == found["members"][1]["speed_up"]


def mistakes(*options):
    ended = invoke("suite", "./all.toml", *options)
    assert isinstance(ended.exception, StudyFileError), ended.output
    assert not os.path.lexists("autotune.db")
    return str(ended.exception)


def test_every_mistake_in_a_name_is_said_before_anything_runs():
    recorded("two", 2.0, 1.0, 3.0)
    all_of("./two.toml", "streem", "./nothing.toml")
    said = mistakes()
    assert "2 errors" in said
    assert "(did you mean 'stream'?)" in said
    assert "@ suite.members.1.study" in said
    assert "nothing.toml @ suite.members.2.study" in said


def test_the_mistakes_of_a_study_file_are_said_too():
    recorded("two", 2.0, 1.0, 3.0, more="[budgte]\n")
    recorded("more", 2.0, 1.0, 3.0, more="[repeats]\nmax_run = 2\n")
    all_of("./two.toml", "./more.toml")
    said = mistakes()
    assert "budgte" in said
    assert "repeats.max_run" in said
    assert "suite.members.1.study" in said


def test_a_study_counts_once():
    recorded("two", 2.0, 1.0, 3.0)
    all_of("./two.toml", "two.toml")
    assert "'two' is in the suite already: to count it more, give it a weight @ suite.members.1.study" in mistakes()


def test_what_has_no_single_winner_has_no_place():
    recorded("two", 2.0, 1.0, 3.0)
    all_of("./two.toml", "collectives")
    assert "'collectives' looks for a decision table" in mistakes()


def test_what_is_stored_as_something_else_is_said_before_anything_runs():
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of("./two.toml")
    told()
    # Another table is another study, and so is another program.
    recorded("two", 2.0, 1.0, 4.0)
    all_of("./eight.toml", "./two.toml")
    with pytest.raises(StudyFileError, match=r"'two' is stored as something else .* @ suite.members.1.study"):
        invoke("suite", "./all.toml", catch_exceptions=False)
    Path("two.toml").write_text('objective = "command"\n[options]\nargv = ["no-such-program"]\n', encoding="utf-8")
    with pytest.raises(StudyFileError, match=r"\(objective: replay there, command here\)"):
        invoke("suite", "./all.toml", catch_exceptions=False)
    assert stored_names(URL) == ["two"]


def test_what_turns_out_to_be_stored_as_something_else_does_not_stop_the_others(monkeypatch):
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of("./two.toml")
    told()
    recorded("two", 2.0, 1.0, 4.0)
    all_of("./two.toml", "./eight.toml")
    # As if a dry run told what the study is about.
    monkeypatch.setattr(continuing, "_without_a_run", lambda *_: None)
    two, eight = told(expected=ExitCode.STORAGE)["members"]
    assert two["not_in_the_mean"].startswith("stored as something else (table: ")
    assert two["trials"] == 0
    assert eight["speed_up"]["ratio"] == pytest.approx(8.0, rel=0.05)


class Interrupted:
    """Lets the studies of a suite be tuned, until the one with this number gets an error."""

    def __init__(self, number, error):
        self.left, self.error, self.tuned = number, error, suites.tuned

    def __call__(self, *words):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return self.tuned(*words)


@pytest.mark.slow
def test_ctrl_c_ends_the_suite_and_the_same_command_goes_on(monkeypatch):
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of("./two.toml", "./eight.toml")
    with monkeypatch.context() as patched:
        patched.setattr(suites, "tuned", Interrupted(1, KeyboardInterrupt()))
        ended = ran(expected=ExitCode.INTERRUPTED)
    assert "stopped: every finished run is stored" in ended.stderr
    assert stored_names(URL) == ["two"]
    before = runs("two")
    assert told()["speed_up"]["ratio"] == pytest.approx(4.0, rel=0.05)
    assert runs("two") == before


def test_what_concerns_all_studies_ends_the_suite(monkeypatch):
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of("./two.toml", "./eight.toml")
    monkeypatch.setattr(suites, "tuned", Interrupted(0, BusyError("somebody else holds the cores")))
    ended = invoke("suite", "./all.toml")
    assert isinstance(ended.exception, BusyError)
    assert ended.stdout == ""


def test_the_end_of_the_time_ends_the_suite_and_is_no_fault_of_the_study_that_has_none_left(monkeypatch):
    recorded("two", 2.0, 1.0, 3.0)
    recorded("eight", 8.0, 1.0, 9.0)
    all_of("./two.toml", "./eight.toml")
    over = NoTimeError("the time of the allocation is over\nno run has ended")
    with monkeypatch.context() as patched:
        patched.setattr(suites, "tuned", Interrupted(1, over))
        ended = invoke("suite", "./all.toml")
    assert isinstance(ended.exception, UnfinishedError)
    # Where no study ran, as much time would not do another time either.
    monkeypatch.setattr(suites, "tuned", Interrupted(1, over))
    ended = invoke("suite", "./all.toml")
    assert ended.exit_code == ExitCode.CANNOT_RUN_HERE
