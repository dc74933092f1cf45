"""A program's time that is longer than its run, and a highest load at the end of its range, are doubted."""

from dataclasses import replace

from autotune.report.headline import headline
from autotune.results.summary import Summary
from autotune.statistics.standings import Standings
from launchers import Usage
from objectives.base import AT_END, REMARK
from tests.autotune.results.test_summary import trial
from tests.autotune.tuning.test_loop import session
from tests.support.fakes import SECONDS, ListDisplay, PaperExecutor, definition, small_space, took


def summed(seconds):
    return replace(took(2 * seconds), usage=Usage(elapsed_s=seconds))


def test_the_summary_and_the_report_doubt_a_time_that_is_a_sum():
    trials = [trial(0, took(20.5), np=1), trial(1, summed(8.2), np=2)]
    found = Summary("qe", definition(small_space()), Standings.of(trials, SECONDS))
    doubt = "wall_s cannot be the time of a run: it is 16.4 s in trial 1, whose whole run took 8.2 s"
    assert f"doubt: {doubt}" in found.best_text()
    assert found.to_dict()["time_doubt"].startswith(doubt)
    assert any(doubt in remark for remark in headline(found).remarks)
    true = Summary("qe", definition(small_space()), Standings.of(trials[:1], SECONDS))
    assert true.time_doubt is None
    assert "doubt" not in true.best_text()


def test_a_load_at_the_end_of_its_range_is_only_a_bound():
    at_end = replace(took(8.2), details={REMARK: AT_END})
    trials = [trial(0, took(20.5), np=1), trial(1, at_end, np=2), trial(2, took(30.0), np=3)]
    found = Summary("web", definition(small_space()), Standings.of(trials, SECONDS))
    doubt = "trial 1 came to the end of the search, so its value is only a lower bound: raise `to`"
    assert f"doubt: {doubt}" in found.best_text()


def test_the_log_doubts_it_once(tmp_path):
    display = ListDisplay()
    executor = PaperExecutor(lambda configuration: summed(10.0 / configuration["np"] + 0.1))
    _, _, loop = session(tmp_path, executor, trials=4, display=display)
    loop.tune()
    assert len(executor.launched) == 4
    assert sum(line.startswith("doubt: wall_s cannot be the time of a run") for line in display.lines) == 1
    again = ListDisplay()
    _, _, loop = session(tmp_path, executor, trials=6, display=again)
    loop.tune()
    assert not any(line.startswith("doubt:") for line in again.lines)
