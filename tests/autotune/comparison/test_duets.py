"""Duets: both runs of a pair at the same time, on halves that are swapped, and stored together."""

from dataclasses import replace

import pytest

from autotune.comparison.duets import Duets, DuetTable, NoDuetError, shared_s
from autotune.comparison.round_table import Side
from autotune.coordination.disturbances import Disturbances
from autotune.coordination.run_gate import RunGate
from autotune.errors import CannotRunHereError, PausedError
from autotune.execution.core_pool import CorePool
from autotune.execution.halves import Halves
from autotune.execution.signals import Pause
from autotune.records.outcome import DISTURBED
from autotune.records.series import Series, SeriesKind
from autotune.records.study import Run
from autotune.storage.study_store import StudyStore
from launchers import Usage
from objectives.base import FailureKind
from tests.support.contests import rounds_of
from tests.support.fakes import SECONDS, ListDisplay, PaperExecutor, definition, failed, small_space, took
from tests.support.managers import managed

DEFAULT, WINNER = {"np": 8}, {"np": 4}


class Beside(PaperExecutor):
    """Records which runs were in flight together; returns `outcomes` in the order of submission."""

    def __init__(self, outcomes=(), at_most=10**9):
        self._outcomes = iter(outcomes)
        super().__init__(lambda _: next(self._outcomes, took(2.0)), at_most)
        self.together = []
        self._in_flight = []

    def submit(self, task):
        self._in_flight.append((task.job.name, task.job.resources.cpus))
        super().submit(task)

    def wait(self, timeout_s):
        if self._ended:
            self.together.append(sorted(self._in_flight))
            self._in_flight = []
        return super().wait(timeout_s)


def duets_of(folder, executor, store=None, **more):
    store = store or StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", definition(small_space()))
    manager = managed(executor, folder / "runs", pool=CorePool(range(128)), display=ListDisplay(), **more)
    manager.halves = Halves((tuple(range(64)), tuple(range(64, 128))))
    return Duets.of(rounds_of(store, manager), Series.duet(1))


def told(outcome, began_at=0.0, elapsed_s=2.0, taken=None):
    conditions = {"began_at": began_at} | ({} if taken is None else {"taken_share": taken})
    return replace(outcome, usage=Usage(elapsed_s), conditions=conditions)


def test_both_sides_run_at_the_same_time_on_halves_that_are_swapped(tmp_path):
    executor = Beside()
    table = duets_of(tmp_path, executor).run_until(4)
    assert len(table.pairs(0, 1)) == 4
    assert [[name for name, _ in both] for both in executor.together] == [
        [f"duet-1-0{number}-0", f"duet-1-0{number}-1"] for number in range(4)
    ]
    halves = [[cpus[0] // 64 for _, cpus in both] for both in executor.together]
    assert halves == [[0, 1], [1, 0], [0, 1], [1, 0]]


def test_several_sides_are_compared_with_the_first_one_in_turn_each_on_either_half(tmp_path):
    executor = Beside()
    duets = duets_of(tmp_path, executor)
    others = [Side(f"trial {number}", {"np": ranks}, number) for number, ranks in ((1, 4), (2, 2))]
    table = replace(duets, series=Series.select([1, 2]), sides=(duets.sides[0], *others)).run_until(2)
    assert [len(table.pairs(0, other)) for other in (1, 2)] == [2, 2]
    assert [side for side, _, _ in table.side_values()] == [1, 1, 2, 2]
    ran = [{name: cpus[0] // 64 for name, cpus in both} for both in executor.together]
    assert [sorted(both) for both in ran] == [
        [f"select-1-2-0{number}-0", f"select-1-2-0{number}-{1 + number % 2}"] for number in range(4)
    ]
    assert [both[f"select-1-2-0{number}-0"] for number, both in enumerate(ran)] == [0, 0, 1, 1]


def test_disturbances_of_both_runs_of_a_duet_cancel(tmp_path):
    duets = duets_of(tmp_path, Beside())
    sides = (duets.sides[0], Side("trial 1", {"np": 4}, 1), Side("trial 2", {"np": 2}, 2))
    # The machine has another speed in each duet; the second of the other sides is faster.
    rows = [(number, 1 + number % 2, slow) for number, slow in enumerate((1.0, 5.0, 2.0, 0.5))]
    runs = {(number, 0): slow * 2.0 for number, _, slow in rows}
    runs |= {(number, side): slow * (1.5 if side == 1 else 1.0) for number, side, slow in rows}
    kept = {place: Run({}, 0, Series.select([1, 2]), outcome=took(seconds)) for place, seconds in runs.items()}
    measured = DuetTable(sides, kept, SECONDS).side_values()
    usual = 3.0  # the median of the first side
    assert measured == [
        (1, 0, pytest.approx(0.75 * usual)),
        (1, 0, pytest.approx(0.75 * usual)),
        (2, 0, pytest.approx(0.5 * usual)),
        (2, 0, pytest.approx(0.5 * usual)),
    ]


@pytest.mark.slow
def test_a_failing_side_drops_out_and_the_others_continue(tmp_path):
    executor = Beside()
    executor._model = lambda configuration: (
        failed(FailureKind.APPLICATION_ERROR) if configuration == WINNER else took(2.0)
    )
    duets = duets_of(tmp_path, executor)
    others = (Side("trial 1", WINNER, 1), Side("trial 2", {"np": 2}, 2))
    table = replace(duets, series=Series.select([1, 2]), sides=(duets.sides[0], *others)).run_until(5)
    assert (len(table.failures(1)), len(table.pairs(0, 2))) == (3, 5)


def test_runs_that_hardly_overlap_are_not_a_pair(tmp_path):
    apart = [told(took(2.0), began_at=0.0), told(took(2.0), began_at=1.9)]
    table = duets_of(tmp_path, Beside([*apart, *(told(took(3.0)) for _ in range(2))])).run_until(2)
    assert table.side_values() == [(1, 0, 3.0)]


def test_an_interrupted_duet_stores_nothing_and_is_repeated(tmp_path):
    executor = Beside(at_most=5)
    duets = duets_of(tmp_path, executor)
    with pytest.raises(KeyboardInterrupt):
        duets.run_until(4)
    assert len(duets.store.runs()) == 4
    resumed = Beside()
    assert len(duets_of(tmp_path, resumed, duets.store).run_until(4).pairs(0, 1)) == 4
    assert [both[0][0] for both in resumed.together] == ["duet-1-02-0", "duet-1-03-0"]


def test_a_pause_waits_for_both_runs_and_starts_no_further_duet(tmp_path):
    pause = Pause()

    class Pausing(Beside):
        def wait(self, timeout_s):
            pause.ask()
            return super().wait(timeout_s)

    duets = duets_of(tmp_path, Pausing(), gate=RunGate(pause=pause))
    with pytest.raises(PausedError):
        duets.run_until(4)
    assert len(duets.store.runs()) == 2


def test_a_single_stored_run_does_not_become_a_duet(tmp_path):
    duets = duets_of(tmp_path, Beside())
    duets.store.add_runs([Run(DEFAULT, 0, Series.duet(1), 1, outcome=took(2.0))])
    table = duets.run_until(3)
    assert len(table.pairs(0, 1)) == 3
    assert sorted({number for number, side in table.runs if side == 1}) == [0, 2, 3]


def test_a_side_that_fails_ends_its_pair_and_after_three_the_comparison(tmp_path):
    def outcome(configuration):
        return failed(FailureKind.APPLICATION_ERROR) if configuration == WINNER else took(2.0)

    executor = Beside()
    executor._model = outcome
    table = duets_of(tmp_path, executor).run_until(8)
    assert (len(table.failures(1)), table.pairs(0, 1)) == (3, [])
    assert not table.is_reliable(1)
    assert len(executor.together) == 3


def test_both_runs_are_repeated_if_the_machine_failed_one(tmp_path):
    executor = Beside([failed(FailureKind.INFRASTRUCTURE_ERROR), took(1.0)])
    duets = duets_of(tmp_path, executor)
    assert duets.run_until(1).pairs(0, 1) == [(2.0, 2.0)]
    assert len(executor.together) == 2
    assert len(duets.store.runs()) == 2


@pytest.mark.parametrize(
    ("taken", "made"),
    [((0.4, 0.4), 1), ((0.4, 0.0), 2), ((0.0, 0.4), 2), ((None, 0.4), 1)],
)
def test_only_a_disturbance_of_one_run_discards_the_duet(tmp_path, taken, made):
    executor = Beside([told(took(2.0), taken=share) for share in taken])
    duets = duets_of(tmp_path, executor)
    duets.manager.disturbances = Disturbances(SECONDS, "wait")
    assert len(duets.run_until(1).pairs(0, 1)) == 1
    assert len(executor.together) == made
    aside = [run for run in duets.store.runs() if run.series.kind is SeriesKind.ASIDE]
    assert [run.outcome.code for run in aside] == [DISTURBED] * 2 * (made - 1)
    message = "40% of the time of one of two runs side by side and 0% of the other's"
    assert all(message in run.outcome.message for run in aside)


@pytest.mark.parametrize(("mode", "made"), [("accept", 6), ("wait", 9)])
def test_disturbed_pairs_count_after_the_budget_of_repeats_is_spent(tmp_path, mode, made):
    executor, lines = Beside([told(took(2.0), taken=share) for share in (0.5, 0.0) * 40]), []
    duets = duets_of(tmp_path, executor)
    duets.manager.disturbances = Disturbances(SECONDS, mode, line=lines.append)
    assert len(duets.run_until(6).pairs(0, 1)) == 6
    assert len(executor.together) == made
    said = "from now on, disturbed pairs count"
    assert [said in line for line in lines] == ([True] if mode == "wait" else [])


def test_refusing_noise_leaves_no_disturbed_duet(tmp_path):
    duets = duets_of(tmp_path, Beside([told(took(2.0), taken=share) for share in (0.5, 0.0)]))
    duets.manager.disturbances = Disturbances(SECONDS, "refuse")
    with pytest.raises(CannotRunHereError, match="confirming cannot continue: was disturbed"):
        duets.run_until(6)


def test_the_overlap_is_reported_and_separate_runs_are_not_a_pair(tmp_path):
    long, short = told(took(4.0), 0.0, 4.0), told(took(2.0), 0.0, 2.0)
    assert shared_s(long, short) == 2.0
    assert shared_s(long, told(took(2.0), 3.5, 2.0)) == 0.5
    assert shared_s(long, took(2.0)) == took(2.0).usage.elapsed_s
    order = [*[long, short] * 6]
    table = duets_of(tmp_path, Beside(order)).run_until(6)
    assert len(table.pairs(0, 1)) == 6
    assert table.overlap() == 0.5


def test_too_short_runs_end_the_comparison(tmp_path):
    apart = [told(took(0.1), 10.0 * number, 0.1) for number in range(100)]
    duets = duets_of(tmp_path, Beside(apart))
    with pytest.raises(NoDuetError, match="too short for a duet"):
        duets.run_until(8)


def test_a_slow_first_start_does_not_end_the_comparison(tmp_path):
    first = [told(took(0.1), 0.0, 0.1), told(took(0.1), 5.0, 0.1)]
    table = duets_of(tmp_path, Beside(first)).run_until(3)
    assert (len(table.pairs(0, 1)), table.count_unpaired(0, 1)) == (2, 1)
