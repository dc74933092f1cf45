"""Replays with a limit on a second column, and with two metrics."""

import re
from pathlib import Path

import pytest

from autotune.errors import AutotuneError
from autotune.machines.this_machine import this_machine
from autotune.planning.prepare import prepare
from autotune.results.export import run_rows
from autotune.studyfile import StudyFile
from autotune.tuning.replay import best_recorded, budget_rows, limits_in, table_of
from autotune.tuning.session import run_study
from launchers.local import local_launcher
from tests.autotune.tuning.test_replay import QUICK, settings, stored
from tests.support.fakes import ListDisplay


def with_memory(folder: Path, **sections) -> StudyFile:
    """Return a study of a table in which the best of each metric is the worst of the other."""
    path = folder / "memory.csv"
    rows = (f"{n},{60 / n + repeat / 50},{100 * n + repeat}\n" for n in range(1, 9) for repeat in range(3))
    path.write_text("n,wall_s,memory_mib\n" + "".join(rows))
    options = {"table": str(path), "metric": "wall_s", "parameters": ["n"], "metrics": ["memory_mib"]}
    values = {"name": "again", "objective": "replay", "options": options, "verdict": QUICK}
    return StudyFile.model_validate(values | sections)


def test_a_limit_on_a_second_column_is_kept_by_the_winner(tmp_path):
    limits = {"memory_mib": {"max": "0.5 GiB"}}
    summary = run_study(with_memory(tmp_path, limits=limits), settings(tmp_path), ListDisplay())
    assert summary.best.configuration == {"n": 5}
    assert "the winner kept memory_mib <= 512 MiB in 6 of 6 pairs" in summary.text()
    assert run_rows(stored(tmp_path))[0]["memory_mib"] in {100, 101, 102}


def test_budgets_are_judged_by_what_keeps_the_limits(tmp_path):
    study = with_memory(tmp_path, limits={"memory_mib": {"max": 510}})
    prepared = prepare(study, this_machine(), local_launcher(), tmp_path / "plan")
    assert best_recorded(table_of(prepared), limits_in(study, prepared)) == pytest.approx(12.02)
    (row,) = budget_rows(study, prepared, [8], 2, ListDisplay())
    assert (row.median, row.found) == (pytest.approx(1.0), 2)


def test_a_tradeoff_with_a_second_column_has_a_front_and_no_budget(tmp_path):
    study = with_memory(tmp_path, tradeoff={"metric": "memory_mib"})
    display = ListDisplay()
    summary = run_study(study, settings(tmp_path), display)
    assert not [line for line in display.lines if "best so far" in line or "looks" in line]
    first = next(line for line in display.lines if line.startswith("trial 0:"))
    assert re.match(r"trial 0: \S+ s, memory_mib \S+ MiB ", first)
    grown = [line for line in display.lines if line.startswith("front: ")]
    assert re.match(r"front: trial \d+, \S+ s, \S+ MiB  \S+=", grown[0])
    assert len(summary.front.points) == 8
    assert [point.values[1] for point in summary.front.points][::7] == [801, 101]
    # A replay of the stored study knows both metrics.
    again = StudyFile(name="b", objective="replay", options={"table": f"{tmp_path}/autotune.db", "study": "again"})
    replayed_again = prepare(again, this_machine(), local_launcher(), tmp_path / "plan")
    assert [metric.name for metric in replayed_again.plan.objective.metrics] == ["wall_s", "memory_mib"]
    with pytest.raises(AutotuneError, match=r"a trade-off has none: remove \[tradeoff\]"):
        budget_rows(study, replayed_again, [8], 1, ListDisplay())
