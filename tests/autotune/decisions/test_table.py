import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.comparison.confirm_table import ContextComparison, plan_comparisons
from autotune.comparison.round_table import Side
from autotune.decisions.ranges import ranges, rows_of
from autotune.decisions.table import DecisionTable, FreshPairs, cell_series, decision_table, shares_of
from autotune.records.outcome import Outcome
from autotune.search.decisions.weights import Usage
from autotune.service.routes.app import create_app
from autotune.service.settings import Settings
from autotune.storage.stored_study import open_stored_study
from objectives.base import Metric
from objectives.decision import Decision
from objectives.kind import ObjectiveKind
from objectives.registry import OBJECTIVES
from tests.autotune.service.test_access import START, ask
from tests.support.command_line import invoke
from tests.support.warm import autotune

pytestmark = pytest.mark.slow

STUDY = """
objective = "replay"
[options]
table = "table.csv"
metric = "us"
unit = "us"
parameters = ["op", "bytes", "way"]
default = { op = "sum", bytes = 8, way = "own" }
[decisions]
over = ["op", "bytes"]
[budget]
trials = 20
[verdict]
pairs = 6
max_pairs = 6
"""
SIZES = [2**power for power in range(3, 15, 2)]
COSTS = {"own": (6.0, 0.006), "tree": (2.0, 0.01), "ring": (12.0, 0.002)}


def cost(size, way):
    start, each = COSTS[way]
    return start + each * size


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a study whose table is confirmed."""
    path, rng = tmp_path_factory.mktemp("decisions"), np.random.default_rng(0)
    with (path / "table.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["op", "bytes", "way", "us"])
        for op in ("sum", "copy"):
            for size in SIZES:
                for way in COSTS:
                    noise = np.exp(0.02 * rng.standard_normal(6))
                    writer.writerows([op, size, way, cost(size, way) * one] for one in noise)
    (path / "t.toml").write_text(STUDY)
    ended = autotune(path, "study", "./t.toml")
    assert ended.returncode == 0, ended.stderr
    assert "decision table" in ended.stdout + ended.stderr
    assert "best so far" not in ended.stdout + ended.stderr
    return path


def test_every_cell_has_a_decision_confirmed_by_fresh_pairs(folder):
    told = json.loads(autotune(folder, "best", "t", "--json").stdout)["decisions"]
    assert len(told["cells"]) == 2 * len(SIZES)
    for cell in told["cells"]:
        size, way = cell["contexts"]["bytes"], cell["chosen"]["way"]
        assert cost(size, way) <= cost(size, "own")
        assert cell["is_default"] == (way == "own")
        assert cell["is_default"] or (cell["low"] > 1.0 and cell["pairs"] == 6)
    ways = {cell["contexts"]["bytes"]: cell["chosen"]["way"] for cell in told["cells"]}
    assert (ways[SIZES[0]], ways[SIZES[-1]]) == ("tree", "ring")
    assert 1.0 < told["overall"]["low"] < told["overall"]["ratio"]


def test_a_study_with_too_few_runs_for_a_table_says_so(folder):
    ended = autotune(folder, "study", "./t.toml", "--name", "few", "--trials", "1")
    assert "Traceback" not in ended.stderr
    asked = autotune(folder, "best", "few")
    assert asked.returncode != 0
    assert "too few measurements for a table yet" in asked.stderr


def test_equal_neighbours_are_one_line(folder):
    printed = autotune(folder, "best", "t").stdout
    assert "default" in printed
    assert len([line for line in printed.splitlines() if "tree" in line]) <= 3
    assert "to 8 KiB" in printed


def test_the_table_is_in_the_report_and_is_a_picture(folder):
    report = json.loads(autotune(folder, "report", "t", "--format", "json").stdout)
    assert report["verdict"]["kind"] == "table"
    assert "A decision table: " in report["verdict"]["sentence"]
    section = report["sections"][0]
    assert section["title"] == "The decision table"
    assert "tree" in json.dumps(section)
    ended = autotune(folder, "picture", "t", "-o", "table.png")
    assert ended.returncode == 0, ended.stderr
    assert (folder / "table.png").stat().st_size > 0
    assert autotune(folder, "picture", "t", "--of", "us").returncode == 2


def test_the_service_shows_the_table_as_the_command_line_prints_it(folder):
    settings = Settings(f"sqlite:///{folder / 'autotune.db'}", folder / "service", read_only=True, start_token=START)
    answer = ask(create_app(settings), path="/studies/t/decisions")
    found, printed = answer.json(), autotune(folder, "best", "t").stdout
    assert found["columns"] == ["op", "bytes", "use", "over the default", "95% interval", "pairs"]
    for row in found["rows"]:
        assert all(cell in printed for cell in row)
    assert found["sentences"][0].removesuffix(".") in printed
    assert ask(create_app(settings), path="/studies/t").json()["pictures"][0] == "decisions"


def test_the_same_command_again_makes_no_run(folder):
    before = autotune(folder, "trials", "t", "--runs", "--json").stdout
    assert autotune(folder, "confirm", "t").returncode == 0
    assert autotune(folder, "trials", "t", "--runs", "--json").stdout == before


def test_what_needs_one_winner_is_refused_in_words(folder):
    ended = autotune(folder, "ablate", "t")
    assert ended.returncode == 2
    assert "decision table" in ended.stderr
    assert autotune(folder, "best", "t", "--script", "sh").returncode == 2
    assert "has no rule files" in autotune(folder, "best", "t", "--rules", "rules").stderr


def test_an_objective_writes_the_table_for_its_program(folder, monkeypatch):
    monkeypatch.setitem(
        OBJECTIVES, "replay", ObjectiveKind("objectives.replay.plan:plan", runs="recorded", rules=f"{__name__}:written")
    )
    monkeypatch.chdir(folder)
    assert invoke("best", "t", "--rules", "rules.conf").exit_code == 0
    assert (folder / "rules.conf").read_text().splitlines()[0] == "sum 8 tree"
    assert invoke("best", "t", "--rules", ".").exit_code == 0
    assert (folder / "all.conf").read_text() == (folder / "rules.conf").read_text()


def written(decisions, facts):
    del facts
    lines = (f"{one.contexts['op']} {one.contexts['bytes']} {one.chosen['way']}\n" for one in decisions)
    return {"all.conf": "".join(lines)}


def test_the_table_is_a_function_of_the_stored_runs(folder):
    store = open_stored_study(f"sqlite:///{folder / 'autotune.db'}", "t")
    section = store.definition.study_file.decisions
    assert decision_table(store, section) == decision_table(store, section)


def test_an_unsure_or_refuted_prediction_becomes_the_default():
    own, tree = {"way": "own"}, {"way": "tree"}
    guesses = tuple(Decision({"op": op}, None, tree, own, 1.1, 0.9, 1.4) for op in ("sum", "copy", "send"))
    sure = tuple(Decision(one.contexts, None, own, own) for one in guesses)

    def ran(op, way, number, value):
        outcome = Outcome({"us": value})
        configuration = {"op": op, "way": way}
        return SimpleNamespace(
            outcome=outcome, series=cell_series({"op": op}), round=number, configuration=configuration
        )

    runs = [ran(op, "own", number, 10.0 + number % 2) for op in ("sum", "copy") for number in range(8)]
    runs += [ran("sum", "tree", number, 7.0 + number % 3) for number in range(8)]
    runs += [ran("copy", "tree", number, 10.0 + (number + 1) % 2) for number in range(8)]
    found = FreshPairs(guesses, sure, runs, Metric("us", "us")).decide(0.95)
    assert [(one.is_default, one.pairs) for one in found] == [(False, 8), (True, 8), (True, 0)]
    assert found[1].low < 1.0 < found[1].high
    by_model = Decision({"op": "sum"}, None, tree, own, 1.1, 1.01, 1.4)
    table = DecisionTable(Metric("us", "us"), ("op",), None, 0.95, (found[0], by_model))
    assert [one.is_default for one in table.proven] == [False, True]


def test_fresh_pairs_are_compared_without_what_others_took():
    own, tree = {"way": "own"}, {"way": "tree"}
    guess = Decision({"op": "sum"}, None, tree, own, 1.1, 0.9, 1.4)

    def ran(way, number, value, share):
        outcome = Outcome({"us": value / (1.0 - share)}, conditions={"taken_share": share})
        configuration = {"op": "sum", "way": way}
        return SimpleNamespace(
            outcome=outcome, series=cell_series({"op": "sum"}), round=number, configuration=configuration
        )

    busy = [
        ran(way, number, value + 0.1 * (number % 2), (0.7 * number + turn) % 1 / 2)
        for number in range(8)
        for turn, way, value in ((0.0, "own", 10.0), (0.4, "tree", 8.0))
    ]
    (found,) = FreshPairs((guess,), (guess,), busy, Metric("us", "us", kind="time")).decide(0.95)
    assert 1.2 < found.low < 1.25 < found.high < 1.3


def test_by_weights_the_gain_is_that_of_the_programs_time_and_unused_contexts_are_not_compared():
    own, tree = {"way": "own"}, {"way": "tree"}
    cells = tuple(Decision({"op": op}, None, tree, own, 2.0, 1.5, 2.5) for op in ("sum", "copy", "send"))
    usage = Usage(({"op": "sum", "count": 3}, {"op": "copy", "count": 1}, {"op": "scan", "count": 1}))
    shares = shares_of(usage, cells, (10.0, 10.0, 10.0), Metric("us", "us"))
    assert (shares.by_cell, shares.outside) == ((0.75, 0.25, 0.0), 0.2)
    assert shares_of(Usage(()), cells, (10.0, 10.0, 10.0), Metric("us", "us")) is None

    def ran(op, way, number, value):
        outcome = Outcome({"us": value})
        series = cell_series({"op": op})
        return SimpleNamespace(outcome=outcome, series=series, round=number, configuration={"op": op, "way": way})

    times = {("sum", "own"): 10.0, ("sum", "tree"): 5.0, ("copy", "own"): 10.0, ("copy", "tree"): 10.0}
    runs = [ran(op, way, number, value) for (op, way), value in times.items() for number in range(8)]
    fresh = FreshPairs(cells, cells, runs, Metric("us", "us"))
    assert fresh.overall(0.95, shares)[0] == pytest.approx(1.0 / (0.75 / 2.0 + 0.25))
    table = DecisionTable(
        Metric("us", "us"), ("op",), None, 0.95, fresh.decide(0.95), cells, defaults=(10.0,) * 3, shares=shares
    )
    assert [one.about for one in plan_comparisons(table, 8, 1000)] == ["op=sum", "op=copy"]
    assert "these cells take 75.0% of the program's time in all cells; 20.0% of its uses are in no cell" in " ".join(
        table.sentences()
    )
    assert rows_of(table)[0][:2] == ["sum", "75.0%"]
    assert table.to_dict()["cells"][0]["share"] == 0.75


def test_a_later_prediction_is_compared_with_a_default_of_the_same_rounds():
    sides = tuple(Side(way, {"op": "sum", "way": way}) for way in ("own", "tree", "ring"))
    before, now = (ContextComparison(cell_series({"op": "sum"}), "op=sum", some) for some in (sides[:2], sides))

    def ran(way, number, value):
        outcome = Outcome({"us": value})
        return SimpleNamespace(
            outcome=outcome, series=before.series, round=number, configuration={"op": "sum", "way": way}
        )

    assert before.first_round([]) == 0
    runs = [ran(way, number, value) for number in range(8) for way, value in (("own", 10.0), ("tree", 9.0))]
    assert before.first_round(runs) == 0
    assert now.first_round(runs) == 8
    # Resumed after a round, on a machine that is ten times slower now, it continues with later rounds.
    later = [ran(way, 8, 100.0) for way in ("own", "tree", "ring")]
    assert now.first_round([*runs, *later]) == 8
    later += [ran(way, number, 100.0) for number in range(9, 16) for way in ("own", "tree", "ring")]
    guess = Decision({"op": "sum"}, None, {"way": "ring"}, {"way": "own"}, 1.1, 0.9, 1.4)
    other = replace(guess, contexts={"op": "copy"}, chosen={"way": "tree"})
    elsewhere = [
        SimpleNamespace(
            outcome=one.outcome,
            series=cell_series({"op": "copy"}),
            round=one.round,
            configuration={"op": "copy", "way": one.configuration["way"]},
        )
        for one in runs
    ]
    fresh = FreshPairs((guess, other), (guess, other), [*runs, *later, *elsewhere], Metric("us", "us"))
    found = fresh.decide(0.95)
    assert (found[0].ratio, found[0].pairs) == (pytest.approx(1.0), 8)
    # Contexts have a figure together, even if their rounds were at different times.
    assert fresh.overall(0.95)[0] == pytest.approx((10.0 / 9.0) ** 0.5)


def test_ranges_run_over_points_and_end_where_the_decision_changes():
    def decided(point, way):
        return Decision({"op": "sum"}, point, {"way": way}, {"way": "own"}, 2.0, 1.5, 2.5, 8)

    cells = (decided(8.0, "tree"), decided(64.0, "own"), decided(16.0, "tree"))
    table = DecisionTable(Metric("us", "us"), ("op",), "bytes", 0.95, cells)
    found = [(one.axis, one.ends, one.chosen["way"]) for one in ranges(table)]
    assert found == [("bytes", (8.0, 16.0), "tree"), ("bytes", (64.0, 64.0), "own")]


def test_sizes_are_read_as_bytes_and_other_points_as_whole_numbers():
    def between(name, *points):
        cells = tuple(Decision({"op": "sum"}, point, {}, {}) for point in points)
        return [one.where for one in ranges(DecisionTable(Metric("us", "us"), ("op",), name, 0.95, cells))]

    assert between("bytes", 8.0, 1048576.0) == ["8 to 1 MiB"]
    assert between("bytes", 1000000.0, 1536.0) == ["1536 to 1000000"]
    assert between("rows", 1048576.0) == ["1048576"]
