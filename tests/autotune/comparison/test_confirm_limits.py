from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.cli.commands.ablate import conclusion
from autotune.cli.session_options import SessionOptions
from autotune.comparison.ablation import ablate
from autotune.comparison.confirm import confirm
from autotune.comparison.findings import stored_ablation
from autotune.errors import ExitCode, NothingFeasibleError
from autotune.pictures.ablation import ablation as ablation_chart
from autotune.records.outcome import Outcome
from autotune.records.study import TrialRecord
from autotune.report.headline import headline
from autotune.results.summary import summarise
from autotune.results.trial_columns import row_of, trial_columns
from autotune.scheduling.repeats import Step
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.studyfile.limits import limits_of
from autotune.tuning import session as tuning_session
from autotune.tuning.goal import goal_of
from autotune.tuning.loop import TuningLoop, limit_job
from autotune.tuning.session import _tune_and_confirm
from launchers import Job, Usage
from objectives.base import FailureKind, Metric
from spaces import Integer, Space
from tests.support import contests
from tests.support.command_line import invoke
from tests.support.contests import manager
from tests.support.fakes import SECONDS, ListDisplay, PaperExecutor, definition, failed, study_file
from tests.support.managers import managed
from tests.support.stored import add_trial

SPACE = Space([Integer.range("np", 1, 8, default=8)], [])
WIDE = Space([Integer.range("np", 1, 200, default=200)], [])
P99 = Metric("p99", "ms")
STUDY = study_file(verdict={"pairs": 6, "max_pairs": 6, "rounds": 3, "candidates": 2}, limits={"p99": {"max": "20 ms"}})
# The p99 of fresh runs by ranks: more ranks are slower and have a better p99.
P99_OF = {8: 10.0, 7: 12.0, 6: 14.0, 5: 17.0, 4: 21.5, 3: 30.0, 2: 40.0, 1: 50.0}


def ran(seconds, p99):
    return Outcome(metrics={"wall_s": seconds, "p99": p99}, usage=Usage(elapsed_s=seconds))


def model(seed=0):
    rng = np.random.default_rng(seed)

    def run(configuration):
        noise = np.exp(rng.normal(0.0, 0.01, 2))
        return ran(float(configuration["np"] * noise[0]), float(P99_OF[configuration["np"]] * noise[1]))

    return run


def store_of(folder, *trials, study=STUDY):
    """Store trials, (ranks, seconds, p99), as if a session had run each once."""
    known = definition(SPACE, metrics=(SECONDS, P99), study=study.model_dump(mode="json"))
    store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", known)
    for ranks, seconds, p99 in trials:
        add_trial(store, SPACE, {"np": ranks}, ran(seconds, p99), worth=Observation(value=seconds))
    return store


THREE = ((8, 8.0, 10.0), (4, 4.0, 19.5), (6, 5.0, 14.0), (5, 5.1, 17.0))
"""The default, and candidates (np, seconds, p99) that look best in another order than in fresh runs."""


def test_candidates_that_lost_to_one_that_breaks_a_limit_compete_again(tmp_path):
    verdict = {"pairs": 6, "max_pairs": 6, "rounds": 4, "candidates": 3}
    study = study_file(verdict=verdict, limits={"p99": {"max": "20 ms"}})
    store = store_of(tmp_path, *THREE, study=study)
    winner = confirm(store, manager(tmp_path, PaperExecutor(model())), study).winner
    assert store.trials()[winner].configuration == {"np": 5}


def test_candidates_that_lost_to_one_that_fails_compete_again(tmp_path):
    study = study_file(verdict={"pairs": 6, "max_pairs": 6, "rounds": 4, "candidates": 3})
    store, usual, seen = store_of(tmp_path, *THREE, study=study), model(), []

    def run(configuration):
        seen.append(configuration["np"])
        fails = configuration["np"] == 4 and seen.count(4) > 1
        return failed(FailureKind.APPLICATION_ERROR) if fails else usual(configuration)

    verdict = confirm(store, manager(tmp_path, PaperExecutor(run)), study)
    assert not verdict.given_up
    assert store.trials()[verdict.winner].configuration == {"np": 5}


def test_a_winner_that_breaks_a_limit_in_fresh_runs_gives_way_to_the_next_best(tmp_path):
    store = store_of(tmp_path, (8, 8.0, 10.0), (4, 4.0, 19.5), (3, 3.0, 30.0), (5, 5.0, 17.0), (6, 6.0, 14.0))
    display = ListDisplay()
    verdict = confirm(store, manager(tmp_path, PaperExecutor(model()), display), STUDY)
    assert verdict.winner == 3
    assert any("trial 1 breaks p99 <= 20 ms: 21" in line and "it cannot win" in line for line in display.lines)
    summary = summarise(store)
    assert summary.best.configuration == {"np": 5}
    assert summary.verdict_sentence().endswith("; the winner kept p99 <= 20 ms in 6 of 6 pairs")
    assert summary.to_dict()["verdict"]["limits"] == {"kept": 6, "pairs": 6, "default_breaks": []}
    again = PaperExecutor(model())
    assert confirm(store, manager(tmp_path, again), STUDY) == verdict
    assert again.launched == []


@pytest.mark.slow
def test_the_nearest_trial_is_named_if_none_keeps_the_limits_in_fresh_runs(tmp_path, monkeypatch):
    store = store_of(tmp_path, (3, 3.0, 30.0), (4, 4.0, 19.0), (2, 2.0, 40.0))
    assert confirm(store, manager(tmp_path, PaperExecutor(model())), STUDY) is None
    summary = summarise(store)
    assert summary.best is None
    assert summary.nearest.configuration == {"np": 4}
    assert summary.verdict_sentence().startswith(
        "No feasible configuration found; the nearest is trial 1, which breaks"
    )
    assert "No feasible configuration" in headline(summary).sentence
    assert summary.to_dict()["nearest"]["breaks"][0].startswith("p99 <= 20 ms: 21")
    monkeypatch.chdir(tmp_path)
    ended = invoke("best", "paper", "--storage", f"sqlite:///{tmp_path / 'autotune.db'}")
    assert isinstance(ended.exception, NothingFeasibleError)
    assert ended.exception.exit_code is ExitCode.NOTHING_FEASIBLE


def test_a_slower_trial_wins_over_a_default_that_breaks_a_limit(tmp_path):
    store = store_of(tmp_path, (2, 2.0, 40.0), (5, 5.0, 17.0))
    verdict = confirm(store, manager(tmp_path, PaperExecutor(model())), STUDY)
    assert verdict.slower(SECONDS)
    summary = summarise(store)
    assert summary.best.configuration == {"np": 5}
    assert summary.verdict_sentence().startswith("0.40")
    assert "the default breaks p99 <= 20 ms: 40.1" in summary.verdict_sentence()
    assert "the two are not comparable" in headline(summary).sentence
    assert "keep that" not in summary.best_text()


def test_a_winner_that_could_not_be_compared_is_no_gain_over_a_default_that_breaks_a_limit(tmp_path):
    store = store_of(tmp_path, (2, 2.0, 40.0), (5, 5.0, 17.0))
    confirm(store, manager(tmp_path, PaperExecutor(lambda _: failed(FailureKind.TIMED_OUT))), STUDY)
    summary = summarise(store)
    assert summary.on_limits.default_breaks
    assert headline(summary).kind == "not yet"
    assert headline(summary).sentence.startswith("The winner could not be compared")


@pytest.mark.parametrize(("most", "best"), [(20, 5), (35, 3)])
def test_other_limits_judge_the_same_runs_again(tmp_path, most, best):
    study = study_file(limits={"p99": {"max": most}})
    summary = summarise(store_of(tmp_path, (8, 8.0, 10.0), (3, 3.0, 30.0), (5, 5.0, 17.0), study=study))
    assert summary.best.configuration == {"np": best}
    assert row_of(summary.trials[1], trial_columns(summary.standings, summary.definition))["breaks"] == (
        "p99 <= 20 ms: 30 ms" if most == 20 else ""
    )


def test_the_search_respects_the_limits_of_the_study_file(tmp_path):
    study = study_file(limits={"p99": {"max": "20 ms"}}, budget={"trials": 9})
    store = StudyStore.create(
        f"sqlite:///{tmp_path / 'autotune.db'}",
        "paper",
        definition(WIDE, metrics=(SECONDS, P99), study=study.model_dump(mode="json")),
    )
    executor = PaperExecutor(lambda one: ran(float(one["np"]), 2000.0 / one["np"]))
    TuningLoop(Asker(store, ValidSetSampler(WIDE, startup=3)), managed(executor, tmp_path / "runs"), study).tune()
    proposed = [configuration["np"] for _, configuration in executor.launched]
    # Fewer ranks are faster; from 100 ranks on the limit is kept.
    assert min(ranks for ranks in proposed if ranks >= 100) <= 105


def test_runs_are_stopped_at_the_memory_that_is_limited_and_the_default_never(tmp_path):
    study = study_file(limits={"peak_memory_bytes": {"max": "1 GiB"}}, repeats={"warm_up_runs": 1, "baseline_runs": 1})
    trials = [TrialRecord(0, {"np": 8}), TrialRecord(1, {"np": 4})]
    standings = Standings.of(trials, SECONDS, limits=KeptLimits(limits_of(study.limits, (SECONDS,))))
    job = Job(("paper",), tmp_path)

    def most(trial, *, caps=True):
        return limit_job(job, Step(trial), standings, caps=caps).memory_limit_bytes

    assert (most(trials[0]), most(trials[1]), most(trials[1], caps=False)) == (None, 2**30, None)


def test_a_front_has_only_trials_that_keep_the_limits(tmp_path):
    study = study_file(limits={"p99": {"max": 20}}, tradeoff={"metric": "p99"})
    summary = summarise(store_of(tmp_path, (8, 8.0, 10.0), (3, 3.0, 30.0), (5, 5.0, 17.0), study=study))
    assert [point.trial for point in summary.front.points] == [2, 0]
    assert "no other trial that keeps the limits is better in both" in summary.best_text()
    # Without a winner the study cannot pay off.
    assert (summary.ledger.saved_per_run, summary.ledger.spared_by_racing) == (None, 0.0)
    strict = study_file(limits={"p99": {"max": 9}}, tradeoff={"metric": "p99"}).model_dump(mode="json")
    StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", replace(summary.definition, study=strict))
    summary = summarise(StudyStore.read(f"sqlite:///{tmp_path / 'autotune.db'}", "paper"))
    assert "the nearest is trial 0, which breaks p99 <= 9 ms: 10 ms" in summary.best_text()
    assert "the nearest is trial 0" in headline(summary).sentence


def test_a_verdict_is_dropped_if_the_winner_breaks_a_new_limit(tmp_path):
    store = store_of(tmp_path, (8, 8.0, 10.0), (5, 5.0, 17.0))
    confirm(store, manager(tmp_path, PaperExecutor(model())), STUDY)
    assert summarise(store).present_verdict is not None
    stricter = study_file(limits={"p99": {"max": 15}}).model_dump(mode="json")
    StudyStore.create(store.url, "paper", replace(store.definition, study=stricter))
    summary = summarise(StudyStore.read(store.url, "paper"))
    assert summary.present_verdict is None
    assert summary.best.configuration == {"np": 8}


@pytest.mark.parametrize("spares", ["malloc", "bind or malloc"])
def test_an_option_that_is_needed_for_a_limit_stays(tmp_path, spares):
    def served(configuration):
        kept = [name for name in spares.split(" or ") if name in configuration]
        return ran(timed(configuration), 10.0 if kept else 30.0)

    def timed(configuration):
        return float(contests.timed(configuration) * np.exp(rng.normal(0.0, 0.01)))

    rng = np.random.default_rng(0)
    known = definition(contests.SPACE, metrics=(SECONDS, P99), study=STUDY.model_dump(mode="json"))
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", known)
    for configuration in (contests.DEFAULT, contests.WINNER):
        outcome = served(configuration)
        worth = Observation(value=outcome.metrics["wall_s"])
        add_trial(store, contests.SPACE, configuration, outcome, worth=worth)
    confirm(store, manager(tmp_path, PaperExecutor(served)), STUDY)
    found = ablate(store, manager(tmp_path, PaperExecutor(served)), contests.SPACE, STUDY, rounds=8)
    summary = summarise(store)
    if spares == "malloc":
        assert found.dropped == ("bind",)
        assert summary.configuration == {"np": 4, "blas": "fast", "malloc": "keep"}
        assert any("without it the winner breaks p99 <= 20 ms: 30 ms" in effect.why for effect in found.effects)
    else:
        assert not found.is_accepted
        assert "without malloc, bind the winner breaks p99 <= 20 ms: 30 ms: they stay" in conclusion(found)
        assert summary.configuration == contests.WINNER
        assert "can be left out" not in ablation_chart(found, SECONDS).description
    looser = study_file(limits={"p99": {"max": 40}}).model_dump(mode="json")
    StudyStore.create(store.url, "paper", replace(store.definition, study=looser))
    assert stored_ablation(StudyStore.read(store.url, "paper")).is_accepted


@pytest.mark.parametrize(("most", "done"), [(35, True), (20, False)])
def test_runs_capped_by_a_trial_that_breaks_a_limit_are_completed_first(tmp_path, most, done):
    study = study_file(limits={"p99": {"max": most}}, repeats={"baseline_runs": 1, "max_runs": 2})
    store = store_of(tmp_path, (3, 3.0, 30.0), study=study)
    capped = Outcome(bound=3.5, usage=Usage(elapsed_s=3.5))
    add_trial(store, SPACE, {"np": 5}, capped, worth=Observation(bound=3.5))
    assert goal_of(study, SimpleNamespace(verified=())).is_confirmed(store, summarise(store)) is done


def test_capped_runs_are_completed_before_nothing_is_called_feasible(tmp_path):
    repeats = {"max_runs": 2, "baseline_runs": 1, "warm_up_runs": 0}
    verdict = {"pairs": 6, "max_pairs": 6, "rounds": 3, "candidates": 1}
    study = study_file(limits={"p99": {"max": 20}}, budget={"trials": 3}, repeats=repeats, verdict=verdict)
    store = store_of(tmp_path, (3, 3.0, 30.0), (4, 4.0, 19.5), study=study)
    # It lost to trial 1, which seemed to keep the limit.
    stopped = Outcome(bound=4.2, usage=Usage(elapsed_s=4.2))
    add_trial(store, SPACE, {"np": 5}, stopped, worth=Observation(bound=4.2))
    asker = Asker(store, ValidSetSampler(SPACE, startup=3))
    session = manager(tmp_path, PaperExecutor(model()))
    _tune_and_confirm(asker, session, study, SimpleNamespace(verified=()))
    summary = summarise(store)
    assert summary.best.configuration == {"np": 5}
    assert goal_of(study, SimpleNamespace(verified=())).is_confirmed(store, summary)


def test_an_ablation_of_an_infeasible_winner_says_so(tmp_path, monkeypatch):
    store = store_of(tmp_path, (3, 3.0, 30.0))
    monkeypatch.setattr(tuning_session, "ablate_study", lambda *_: None)
    settings = SimpleNamespace(url=store.url, name="paper", queue=None)
    monkeypatch.setattr(SessionOptions, "load_stored", lambda *_: (STUDY, settings))
    monkeypatch.setattr(SessionOptions, "open_display", lambda *_: nullcontext((settings, None)))
    ended = invoke("ablate", "paper")
    assert ended.exit_code == ExitCode.NOTHING_FEASIBLE
    words = " ".join(ended.stdout.split())
    assert words.startswith("No feasible configuration found; the nearest is trial 0, which breaks p99 <= 20 ms: 30 ms")
    assert words.endswith("there is no winner to ablate")
