from collections import Counter

import numpy as np
import pytest

from autotune.comparison.confirm import candidate_count, confirm
from autotune.comparison.findings import changes
from autotune.comparison.pairs import pairs_wanted
from autotune.comparison.round_table import Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.errors import CannotRunHereError
from autotune.execution.core_pool import CorePool
from autotune.records.series import Series, SeriesKind
from autotune.records.study import Run, TrialRecord
from autotune.results.summary import summarise
from autotune.statistics.standings import Standings
from autotune.storage.leases import MemoryLeaseBook
from autotune.storage.study_store import StudyStore
from autotune.studyfile import VerdictSection
from objectives.base import FailureKind
from tests.support.contests import DEFAULT, SIMPLE, SPACE, STUDY, WINNER, add, manager, new_store, noisy, timed
from tests.support.fakes import SECONDS, ListDisplay, PaperExecutor, definition, failed, took


@pytest.fixture
def store(tmp_path):
    return new_store(tmp_path)


def test_the_simplest_of_equally_good_candidates_wins(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.79), (SIMPLE, 0.81), ({"np": 4, "blas": "fast", "malloc": "huge"}, 0.80))
    display = ListDisplay()
    verdict = confirm(store, manager(tmp_path, PaperExecutor(noisy()), display), STUDY)
    assert verdict.winner == 2
    assert set(verdict.candidates) == {1, 2, 3}
    assert verdict.changes == 2
    assert verdict.significant(SECONDS)
    low, high = verdict.interval(SECONDS)[1:]
    assert low <= timed(DEFAULT) / timed(SIMPLE) <= high
    assert any("do not differ beyond the noise: trial 2 is the simplest" in line for line in display.lines)
    assert summarise(store).best.number == 2


def test_a_simpler_configuration_that_is_slower_does_not_win(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8), ({"np": 4}, 0.81))
    assert confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY).winner == 1


def test_a_lucky_run_is_found_out(store, tmp_path):
    add(store, (DEFAULT, 2.0), ({"np": 7}, 0.5), (SIMPLE, 0.8))
    verdict = confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    assert verdict.winner == 2


@pytest.mark.slow
def test_no_gain_is_reported_as_no_gain(store, tmp_path):
    add(store, (DEFAULT, 2.0), ({"np": 8, "malloc": "keep"}, 1.9))
    verdict = confirm(store, manager(tmp_path, PaperExecutor(noisy(0.03))), STUDY)
    assert not verdict.significant(SECONDS)
    assert "No significant gain" in summarise(store).best_text()


def test_a_noisy_machine_gets_more_pairs_and_a_doubt(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    # Tuning cost less than the least number of pairs.
    verdict = confirm(store, manager(tmp_path, PaperExecutor(noisy(0.5))), STUDY)
    assert len(verdict.pairs) == 6
    assert "doubt: the interval is wide" in summarise(store).best_text()
    costly = STUDY.model_copy(update={"verdict": STUDY.verdict.model_copy(update={"of_tuning": 100.0})})
    verdict = confirm(store, manager(tmp_path, PaperExecutor(noisy(0.5))), costly)
    assert len(verdict.pairs) == 12
    quiet = confirm(store, manager(tmp_path, PaperExecutor(noisy(0.5))), costly)
    assert quiet == verdict


def test_an_interrupted_comparison_resumes_and_a_finished_one_runs_nothing(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8), (SIMPLE, 0.8))
    launched = 0
    for at_most in (2, 5, 7):
        executor = PaperExecutor(noisy(), at_most=at_most)
        with pytest.raises(KeyboardInterrupt):
            confirm(store, manager(tmp_path, executor), STUDY)
        launched += len(executor.launched)
    last = PaperExecutor(noisy())
    verdict = confirm(store, manager(tmp_path, last), STUDY)
    assert launched + len(last.launched) == 2 * 3 + 2 * len(verdict.pairs)
    again = PaperExecutor(noisy())
    assert confirm(store, manager(tmp_path, again), STUDY) == verdict
    assert again.launched == []


def test_runs_on_nodes_of_their_own_are_compared_side_by_side(store, tmp_path):
    class Queue(PaperExecutor):
        most = 0

        def wait(self, timeout_s):
            self.most = max(self.most, len(self._ended))
            return super().wait(timeout_s)[::-1]

    add(store, (DEFAULT, 2.0), (WINNER, 0.8), (SIMPLE, 0.8))
    cluster, executor = manager(tmp_path, Queue(noisy())), Queue(noisy())
    cluster.executor, cluster.pool, cluster.gate.width = executor, CorePool(range(100)), 5
    verdict = confirm(store, cluster, STUDY)
    assert executor.most == 5
    assert verdict.significant(SECONDS)
    assert len(executor.launched) == 2 * 3 + 2 * len(verdict.pairs)


def test_a_better_trial_gets_a_new_comparison(store, tmp_path):
    add(store, (DEFAULT, 2.0), ({"np": 5}, 1.25))
    confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    add(store, (SIMPLE, 0.8))
    assert summarise(store).verdict_sentence() is None
    assert confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY).winner == 2


def test_a_winner_that_wins_again_is_confirmed_by_the_pairs_it_has(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    first = confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    add(store, ({"np": 7}, 0.5))
    executor = PaperExecutor(noisy())
    again = confirm(store, manager(tmp_path, executor), STUDY)
    assert (again.winner, again.pairs) == (first.winner, first.pairs)
    assert len(executor.launched) == 2 * 2, "only the candidates had to run, and one lost by far"
    assert summarise(store).present_verdict == again


@pytest.mark.parametrize(("seconds", "runs"), [(1.6, 2), (0.8, 3)])
def test_a_candidate_that_has_clearly_lost_does_not_run_again(store, tmp_path, seconds, runs):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8), ({"np": 4, "malloc": "keep"}, seconds))
    executor = PaperExecutor(lambda configuration: took(0.8 if "blas" in configuration else seconds))
    winner = confirm(store, manager(tmp_path, executor), STUDY).winner
    made = Counter(run.trial for run in store.runs() if run.series.kind is SeriesKind.SELECT)
    assert made == {1: runs, 2: runs}
    assert winner == 1


def test_a_few_pairs_of_an_interrupted_comparison_are_no_verdict(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    for at_most in (4, 2):
        with pytest.raises(KeyboardInterrupt):
            confirm(store, manager(tmp_path, PaperExecutor(noisy(), at_most=at_most)), STUDY)
        assert summarise(store).present_verdict is None


def test_a_verdict_has_the_confidence_of_the_newest_session(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    before = confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    study = STUDY.model_copy(update={"verdict": VerdictSection(confidence=0.75, pairs=3, precision=0.2)})
    assert pairs_wanted(before.pairs, study.verdict, SECONDS) == 3
    url = f"sqlite:///{tmp_path / 'autotune.db'}"
    continued = StudyStore.create(url, "paper", definition(SPACE, study=study.model_dump(mode="json")))
    now = summarise(continued).present_verdict
    assert (now.confidence, now.asked, now.pairs) == (0.75, 0.2, before.pairs)
    assert "75% interval" in now.sentence(SECONDS)


def test_there_is_nothing_to_confirm_when_the_default_is_best(store, tmp_path):
    add(store, (DEFAULT, 1.0), (SIMPLE, 1.2))
    executor = PaperExecutor(noisy())
    assert confirm(store, manager(tmp_path, executor), STUDY) is None
    assert executor.launched == []
    assert "No configuration was better" in summarise(store).best_text()


def test_a_machine_that_fails_while_confirming_stops_it_and_stores_nothing(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    before = len(store.runs())
    full = PaperExecutor(lambda _: failed(FailureKind.INFRASTRUCTURE_ERROR, "disk full"))
    with pytest.raises(CannotRunHereError, match="disk full"):
        confirm(store, manager(tmp_path, full), STUDY)
    assert len(store.runs()) == before
    assert confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY).known


def test_a_run_without_tries_left_is_not_adopted_again(store, tmp_path):
    """Otherwise the next session would adopt the run, without tries left, and fail in the same way."""
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    full = manager(tmp_path, PaperExecutor(lambda _: failed(FailureKind.INFRASTRUCTURE_ERROR, "disk full")))
    full.registry.leases = book = MemoryLeaseBook()
    full.registry.scheduler = "slurm"
    with pytest.raises(CannotRunHereError, match="disk full"):
        confirm(store, full, STUDY)
    assert book.all() == []


def test_a_winner_that_cannot_be_repeated_gets_no_verdict(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    broken = PaperExecutor(
        lambda c: took(2.0) if dict(c) == DEFAULT else failed(FailureKind.APPLICATION_ERROR, "not this time")
    )
    verdict = confirm(store, manager(tmp_path, broken), STUDY)
    assert not verdict.known
    assert "not this time" in verdict.sentence(SECONDS)
    assert sum(dict(c) != DEFAULT for _, c in broken.launched) == 3


def test_a_winner_that_often_fails_is_unreliable(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    made = []

    def now_and_then(configuration):
        if dict(configuration) == DEFAULT:
            return took(2.0)
        made.append(1)
        return failed(FailureKind.APPLICATION_ERROR, "not this time") if len(made) in {2, 5, 9} else took(0.8)

    executor = PaperExecutor(now_and_then)
    verdict = confirm(store, manager(tmp_path, executor), replaced_pairs(STUDY, 12))
    assert verdict.known
    assert not verdict.significant(SECONDS)
    text = summarise(store).best_text()
    assert "fails too often" in text
    assert "not this time" in text
    assert dict(summarise(store).best.configuration) == DEFAULT
    # No run of the default is made without a partner.
    defaults = sum(dict(c) == DEFAULT for _, c in executor.launched)
    assert defaults <= len(made) + 1


def test_failures_of_a_mostly_reliable_winner_are_reported(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    made = []

    def once(configuration):
        if dict(configuration) == DEFAULT:
            return took(2.0 + 0.01 * len(made))
        made.append(1)
        return failed(FailureKind.APPLICATION_ERROR, "not this time") if len(made) == 2 else took(0.8)

    verdict = confirm(store, manager(tmp_path, PaperExecutor(once)), STUDY)
    assert verdict.significant(SECONDS)
    assert verdict.doubts(SECONDS, "paper")[0].startswith("the winner failed in 1 of ")


def replaced_pairs(study, pairs):
    return study.model_copy(update={"verdict": study.verdict.model_copy(update={"pairs": pairs, "max_pairs": pairs})})


def test_each_side_is_first_equally_often_and_each_series_has_its_own_orders(store, tmp_path):
    sides = (Side("default", DEFAULT, 0), Side("trial 1", SIMPLE, 1))
    orders = []
    for check in range(1, 9):
        standings = Standings.of(store.trials(), SECONDS)
        executor = manager(tmp_path, PaperExecutor(noisy()))
        blocks = ComparisonRounds(
            store, executor, standings, Series.watch(1, check), sides, 0, "checking", "the winner"
        )
        orders.append([blocks._order(number)[0] for number in range(8)])
    assert all(sum(first) == 4 for first in orders)
    assert len({tuple(first) for first in orders}) > 1


def test_changes_are_counted_from_the_default():
    assert changes(WINNER, DEFAULT) == ["np", "blas", "malloc", "bind"]
    assert changes({}, DEFAULT) == ["np"]
    assert changes(DEFAULT, DEFAULT) == []


def test_the_panel_names_what_is_compared(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    display = ListDisplay()
    confirm(store, manager(tmp_path, PaperExecutor(noisy(0.001)), display), STUDY)
    assert display.status.subject == "trial 1 against the default"
    (row,) = display.status.compared
    assert (row.configuration, row.state) == (SIMPLE, "trial 1")
    assert row.value.startswith("looks 2.5x by ")


def test_the_panel_shows_the_values_of_candidates_that_compete_without_the_default(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8), (WINNER, 0.8))
    with pytest.raises(KeyboardInterrupt):
        confirm(store, manager(tmp_path, PaperExecutor(noisy(0.001), at_most=4), display := ListDisplay()), STUDY)
    assert [row.value.partition(" in ")[2] for row in display.status.compared] == ["2 rounds", "1 round"]


def test_the_number_of_rounds_does_not_grow_while_candidates_compete(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8), (WINNER, 0.8))
    budgets = set()

    class Budgets(ListDisplay):
        def update(self, status):
            budgets.add((status.budget, status.open_ended))

    with pytest.raises(KeyboardInterrupt):
        confirm(store, manager(tmp_path, PaperExecutor(noisy(0.001), at_most=5), Budgets()), STUDY)
    assert budgets == {(STUDY.verdict.rounds, True)}


@pytest.mark.parametrize(("step", "count"), [(0.0, 3), (0.1, 6)])
def test_drift_while_tuning_doubles_the_candidates(step, count):
    rng = np.random.default_rng(0)

    def run(number, block):
        outcome = took(float(np.exp(step * (block % 2) + rng.normal(0.0, 0.005))))
        return Run({"np": number + 1}, number, block=block, outcome=outcome)

    trials = [TrialRecord(n, {"np": n + 1}, tuple(run(n, block) for block in range(6)), settled=True) for n in range(4)]
    assert candidate_count(Standings.of(trials, SECONDS), VerdictSection()) == count
