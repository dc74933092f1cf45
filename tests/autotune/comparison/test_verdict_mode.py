"""The mode of a verdict and its reason; `auto` uses duets on a busy machine if their pairs differ less."""

from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.comparison.duets import NoDuetError
from autotune.comparison.watching.watch import Watch
from autotune.coordination.disturbances import Disturbances
from autotune.coordination.quiet_machine import QuietMachine, Use
from autotune.coordination.run_manager import RunManager
from autotune.execution.core_pool import CorePool
from autotune.execution.halves import Halves
from autotune.records.series import RunId, SeriesKind
from autotune.results.summary import summarise
from autotune.statistics.verdict import Verdict
from autotune.studyfile import VerdictSection
from autotune.tuning.goal import goal_of
from objectives.base import FailureKind
from spaces import Integer, Space
from tests.support.fakes import SECONDS, ListDisplay, failed
from tests.support.managers import managed
from tests.support.simulated import SimulatedExecutor, Simulation, objective, study_file

SPACE = Space([Integer.range("a", 1, 2, default=1)])
HALVES = Halves(((0,), (1,)))


class TwoCores(SimulatedExecutor):
    """Every configuration but the default is `gain` times as fast; `slowed` ones take longer in duets.

    Values differ by `noise` in duets, and by `alone` otherwise. `beside` changes the outcome of a run side by side,
    given its round and side.
    """

    def __init__(self, gain=1.2, slowed=None, alone=0.08, noise=0.01, beside=lambda number, side, outcome: outcome):
        def drawn(configuration, rng):
            spread = noise if self.is_duet else alone
            seconds = 10.0 * exp(spread * rng.standard_normal()) / (gain if configuration["a"] > 1 else 1.0)
            return seconds * ((slowed or {}).get(configuration["a"], 1.0) if self.is_duet else 1.0)

        self.is_duet = False
        self.placed = {}
        self.beside = beside
        self._waiting = set()
        super().__init__(drawn, 3)

    def submit(self, task):
        self.placed[task.job.name] = task.job.resources.cpus
        self.is_duet = task.job.name.startswith("duet-")
        self._waiting.add(task.job.name)
        self._side_by_side = self._waiting.copy() if len(self._waiting) > 1 else set()
        super().submit(task)

    def wait(self, timeout_s):
        return [(task, self._changed(task, outcome)) for task, outcome in super().wait(timeout_s)]

    def _changed(self, task, outcome):
        self._waiting.discard(task.job.name)
        run = RunId.parse(task.job.name)
        return self.beside(run.round, run.side, outcome) if task.job.name in self._side_by_side else outcome


def apart(number, side, outcome):
    """Return a run that hardly overlaps with the other run of its duet, except in the first duet."""
    return replace(outcome, conditions={"began_at": 100.0 * number + 50.0 * side * (number > 0)})


def failing(kind):
    """Return a change of outcomes by which the winner fails in all duets after the first four."""

    def beside(number, side, outcome):
        return failed(kind, "no room") if side and number > 3 else outcome

    return beside


@dataclass(frozen=True)
class Study(Simulation):
    halves: Halves = HALVES
    display: ListDisplay = field(default_factory=ListDisplay)

    def _manager(self, folder: str) -> RunManager:
        pool = CorePool(range(2))
        manager = managed(self.executor, Path(folder), objective=objective(), pool=pool, display=self.display)
        manager.halves = self.halves
        return manager

    def asked(self, mode) -> "Study":
        section = self.study.verdict.model_copy(update={"mode": mode})
        return replace(self, study=self.study.model_copy(update={"verdict": section}))


@dataclass(frozen=True)
class Busy(Study):
    """A machine whose cores others use all the time."""

    def _manager(self, folder: str) -> RunManager:
        manager = super()._manager(folder)
        manager.disturbances = Disturbances(SECONDS, "wait")
        manager.disturbances.suspects = True
        manager.quiet = QuietMachine((0, 1), 0.0, lambda _: Use(0.8))
        return manager


def tuned(mode, halves=HALVES, kind=Busy, **more) -> Study:
    section = VerdictSection(mode=mode, candidates=1, precision=0.02)
    study = Study.of(SPACE, TwoCores(**more), study_file(trials=2, verdict=section))
    study.tune()
    return kind(study.executor, study.study, study.asker, halves)


def kinds(study) -> set[SeriesKind]:
    return {run.series.kind for run in study.store.runs() if run.series.is_comparison}


def is_confirmed(study, asked):
    """Whether the verdict that is stored is enough for the study file `asked`."""
    return goal_of(asked, SimpleNamespace(verified=())).is_confirmed(study.store, summarise(study.store))


def test_pairs_are_interleaved_on_a_quiet_machine():
    study = tuned("auto", kind=Study)
    verdict = study.confirm()
    assert (verdict.mode, verdict.mode_why, verdict.abreast) == ("interleaved", "", None)
    assert kinds(study) == {SeriesKind.VERDICT}
    assert "8 interleaved pairs of runs)" in verdict.sentence(SECONDS)


def test_a_verdict_by_duets_states_the_overlap():
    study = tuned("duet")
    verdict = study.confirm()
    assert (verdict.mode, verdict.mode_asked) == ("duet", "duet")
    assert kinds(study) == {SeriesKind.DUET}
    # The winner ends before the default does.
    assert verdict.abreast == pytest.approx(1 / 1.2, rel=0.05)
    assert f"8 duets: pairs of runs side by side for {verdict.abreast:.0%} of the longer run)" in verdict.sentence(
        SECONDS
    )
    assert Verdict.from_dict(verdict.to_dict()) == verdict
    assert f"verdict: {verdict.sentence(SECONDS)}" in summarise(study.store).text()


@pytest.mark.parametrize(
    ("slowed", "mode", "why"),
    [
        (None, "duet", "they differ less than pairs in turns ("),
        ({1: 1.3, 2: 1.3}, "interleaved", "side by side the two slow each other: default 1."),
        ({1: 1.3}, "interleaved", "side by side the two slow each other: default "),
        ({2: 1.3}, "interleaved", "side by side the two slow each other: default "),
    ],
)
def test_auto_measures_whether_the_two_slow_each_other(slowed, mode, why):
    study = tuned("auto", slowed=slowed)
    verdict = study.confirm()
    assert verdict.mode == mode
    assert why in verdict.mode_why
    assert (why in verdict.sentence(SECONDS)) is (mode == "duet")
    low, high = verdict.interval(SECONDS)[1:]
    assert low < 1.2 < high
    # The pairs tried in this mode count.
    made = sum(run.series == verdict.series for run in study.store.runs())
    assert made == 2 * len(verdict.pairs)


class Slowed(TwoCores):
    """Others take up to half of the time of each run, as the counters of its kernel show."""

    def wait(self, timeout_s):
        return [(task, self._slow(outcome)) for task, outcome in super().wait(timeout_s)]

    def _slow(self, outcome):
        share = 0.5 * (1000.0 * outcome.metrics[SECONDS.name] % 1.0)
        slow = {SECONDS.name: outcome.metrics[SECONDS.name] / (1.0 - share)}
        return replace(outcome, metrics=slow, conditions={**outcome.conditions, "taken_share": share})


def test_pairs_stay_in_turns_where_what_others_took_explains_how_they_differ():
    section = VerdictSection(candidates=1, precision=0.02)
    study = Busy.of(SPACE, Slowed(alone=0.01), study_file(trials=2, verdict=section))
    study.tune()
    verdict = study.confirm()
    assert (verdict.mode, kinds(study)) == ("interleaved", {SeriesKind.VERDICT})
    low, high = verdict.interval(SECONDS)[1:]
    assert low < 1.2 < high < 1.1 * low


def test_repeating_the_command_makes_no_run():
    study = tuned("auto", slowed={1: 1.3})
    verdict, runs = study.confirm(), study.executor.runs
    assert study.confirm() == verdict
    assert study.executor.runs == runs


@pytest.mark.parametrize("mode", ["duet", "auto"])
def test_runs_that_need_more_than_half_of_the_cores_are_made_in_turns(mode):
    study = tuned(mode, halves=Halves(((), ())))
    verdict = study.confirm()
    assert (verdict.mode, kinds(study)) == ("interleaved", {SeriesKind.VERDICT})
    assert verdict.mode_why == "a run needs 1 core, and half of this machine's are none"
    assert is_confirmed(study, study.study)


def test_auto_leaves_a_run_that_would_be_alone_for_long():
    study = tuned("auto", gain=2.5)
    verdict = study.confirm()
    assert verdict.mode == "interleaved"
    assert "alone for most of its time in a duet" in verdict.mode_why


@pytest.mark.parametrize(
    ("beside", "why"),
    [
        (apart, "the runs are too short for a duet"),
        (failing(FailureKind.APPLICATION_ERROR), "side by side, trial 1 failed: application error: no room"),
        (failing(FailureKind.TIMED_OUT), "side by side, trial 1 failed: timed out: no room"),
        (failing(FailureKind.INFRASTRUCTURE_ERROR), "a run side by side no room"),
    ],
)
def test_auto_takes_turns_when_duets_turn_out_not_to_work_in_the_middle_of_the_verdict(beside, why):
    study = tuned("auto", beside=beside)
    verdict = study.confirm()
    assert (verdict.mode, verdict.mode_why, verdict.failures) == ("interleaved", why, ())
    assert verdict.significant(SECONDS)
    assert f"pairs are made in turns: {why}" in study.display.lines
    assert study.confirm() == verdict


def test_auto_does_not_continue_stored_duets_that_are_too_short():
    study = tuned("duet", beside=apart)
    with pytest.raises(NoDuetError, match=r"confirming cannot continue: in 5 pairs .* too short for a duet"):
        study.confirm()
    verdict = study.asked("auto").confirm()
    assert (verdict.mode, verdict.mode_why) == ("interleaved", "the runs are too short for a duet")
    assert verdict.significant(SECONDS)


def test_a_verdict_in_another_mode_than_is_asked_for_is_made_anew():
    study = tuned("interleaved")
    study.confirm()
    assert [is_confirmed(study, study.asked(mode).study) for mode in ("interleaved", "duet", "auto")] == [
        True,
        False,
        False,
    ]
    verdict = study.asked("duet").confirm()
    assert (verdict.mode, len(verdict.pairs)) == ("duet", 8)
    assert is_confirmed(study, study.asked("duet").study)


def test_pairs_in_turns_count_when_others_come():
    study = tuned("auto", kind=Study)
    verdict, made = study.confirm(), study.executor.runs
    assert Busy(study.executor, study.study, study.asker).confirm() == verdict
    assert study.executor.runs == made


def test_duets_once_tried_count_when_the_machine_is_quiet_again():
    study = tuned("auto")
    assert study.confirm().mode == "duet"
    quiet = Study(study.executor, study.study, study.asker)
    made = study.executor.runs
    assert quiet.confirm().mode == "duet"
    assert study.executor.runs == made


def test_where_others_use_the_cores_all_the_time_the_winner_can_be_chosen_by_duets_too():
    section = VerdictSection(mode="duet", candidates=2, precision=0.02)
    space = Space([Integer.range("a", 1, 3, default=1)])
    study = Busy.of(space, TwoCores(alone=0.01), study_file(trials=3, verdict=section))
    study.tune()
    verdict = study.confirm()
    assert (verdict.mode, len(verdict.candidates)) == ("duet", 2)
    assert verdict.significant(SECONDS)
    assert kinds(study) == {SeriesKind.SELECT, SeriesKind.DUET}
    placed = [cpus for name, cpus in study.executor.placed.items() if name.startswith("select-")]
    assert placed.count((0,)) == placed.count((1,)) == len(placed) / 2


def test_duets_in_which_the_default_is_slower_than_while_tuning_are_doubted():
    study = tuned("duet", slowed={1: 1.4, 2: 1.4})
    verdict = study.confirm()
    doubt = verdict.doubts(SECONDS, "simulated", summarise(study.store).standings.tuned_default)[0]
    assert "alone, while tuning, the default was 1.4" in doubt
    assert "times faster than in the duets: the two slow each other, or the machine is another one now" in doubt


def test_a_watch_makes_its_pairs_as_the_verdict_did_while_it_can(tmp_path):
    study = tuned("duet")
    study.confirm()
    Watch.of(study.store, "median").check(study.store, study._manager(str(tmp_path)), study.study, 3)
    placed = [study.executor.placed[f"watch-1-1-0{number}-{side}"] for number in range(3) for side in range(2)]
    assert placed == [(0,), (1,), (1,), (0,), (0,), (1,)]
    alone = replace(study, halves=Halves(((), ())))
    Watch.of(study.store, "median").check(study.store, alone._manager(str(tmp_path)), study.study, 3)
    assert study.executor.placed["watch-1-2-00-0"] == study.executor.placed["watch-1-2-00-1"] == (0,)
    assert [len(check.pairs) for check in Watch.of(study.store, "median").checks] == [3, 3]


def test_a_watch_continues_in_turns_when_its_runs_are_too_short_for_a_duet(tmp_path):
    study = tuned("auto")
    assert study.confirm().mode == "duet"
    study.executor.beside = apart
    Watch.of(study.store, "median").check(study.store, study._manager(str(tmp_path)), study.study, 8)
    assert [len(check.pairs) for check in Watch.of(study.store, "median").checks] == [8]
