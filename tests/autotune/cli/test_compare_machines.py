"""`autotune compare-machines` as a person types it."""

import json
from dataclasses import replace

import pytest

from autotune.errors import AutotuneError
from autotune.records.measurement import Measured, Setting
from autotune.storage.measurement_store import MeasurementStore
from objectives.base import Metric
from tests.support.command_line import invoke

STUDY = """
objective = "command"

[options]
argv = ["solve", "{n}"]
metrics = [{ name = "took_s", unit = "s", pattern = '(\\\\S+)', kind = "time" }]

[space.parameters.n]
type = "integer"
values = [1, 1000]
default = 1
"""
TOOK = Metric("took_s", "s", kind="time")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "solver.toml").write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    places = {"a CPU, 4 cores": ({"cores": 4}, 1.0, 4.0), "card": ({"cores": 64}, 8.0, 64.0)}
    rows = [
        Measured(Setting("solver", name, "w", TOOK, facts, source="a page"), {"n": n}, start_s + n / speed)
        for name, (facts, start_s, speed) in places.items()
        for n in (1, 1000)
    ]
    MeasurementStore.create(f"sqlite:///{tmp_path / 'autotune.db'}").add(rows)
    return tmp_path


def compare(*words):
    return invoke("compare-machines", "./solver.toml", *words, COLUMNS="100")


def test_from_which_size_on_a_measured_machine_is_faster(folder):
    result = compare("--machines", "a CPU, 4 cores,card", "--over", "n")
    assert result.exit_code == 0, result.output
    assert "card is faster from n=1000 on; a CPU, 4 cores is faster up to n=1" in result.stdout
    assert "left out" not in result.stdout  # all was measured


def test_a_version_is_a_word_where_words_were_measured(folder):
    at = Setting("solver", "", "v", TOOK, {"cores": 4}, {"version": "7.0"}, source="a page")
    rows = [Measured(replace(at, machine=name), {"n": 1}, value) for name, value in (("one", 1.0), ("two", 2.0))]
    MeasurementStore.create(f"sqlite:///{folder / 'versions.db'}").add(rows)
    words = ("--machines", "one,two", "--at", "version=7.0", "--storage", "versions.db", "--json")
    (ratio,) = json.loads(compare(*words).stdout)["ratios"]
    assert (ratio["measured"], ratio["ratio"]["value"]) == (True, pytest.approx(2.0))


def test_builds_of_a_described_machine_are_found_by_its_name_and_told_apart(folder):
    at = Setting("solver", "", "w", TOOK, {"cores": 48, "nodes": 1}, source="a page")
    built = [
        replace(at, machine=f"gadi, {word}", machine_facts={**at.machine_facts, "compiler": word})
        for word in ("icc", "gcc")
    ]
    rows = [Measured(one, {"n": 1}, 3.0) for one in built]
    card = Measured(replace(at, machine="card"), {"n": 1}, 6.0)
    MeasurementStore.create(f"sqlite:///{folder / 'one.db'}").add([rows[0], card])
    (ratio,) = json.loads(compare("--machines", "card,gadi", "--storage", "one.db", "--json").stdout)["ratios"]
    assert (ratio["measured"], ratio["ratio"]["value"]) == (True, pytest.approx(0.5))
    MeasurementStore.create(f"sqlite:///{folder / 'two.db'}").add([*rows, card])
    said = str(compare("--machines", "card,gadi", "--storage", "two.db").exception)
    assert "several builds were measured there, name one of them: gadi, gcc; gadi, icc" in said


def test_a_described_machine_is_not_known_beside_one_other(folder):
    result = compare("--machines", "card,gadi", "--at", "n=1", "--json")
    found = json.loads(result.stdout)
    assert found["machines"] == ["card", "gadi"]
    (ratio,) = found["ratios"]
    assert (ratio["ratio"], ratio["faster"]) == (None, None)
    assert "4 other machines must be known" in ratio["why"] or "nothing in common" in ratio["why"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--machines", "card"], "does not name two machines"),
        (["--machines", "card,card"], "names one machine twice"),
        (["--machines", "card,crad"], "no machine is called 'crad'"),
        (["--machines", "card,gadi", "--at", "n"], "'n' is no NAME=VALUE"),
        (["--machines", "card,gadi", "--over", "size"], "called 'size'; there is: n"),
    ],
)
def test_mistakes_are_said(folder, words, said):
    result = compare(*words)
    if isinstance(result.exception, AutotuneError):  # the program prints it, and ends with its exit code
        assert result.exception.exit_code == 2
        assert said in str(result.exception)
    else:
        assert result.exit_code == 2
        assert said in " ".join(result.output.replace("│", " ").split())
