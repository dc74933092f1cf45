import numpy as np
import pytest

from autotune.ablation import ablate
from autotune.bench import Bench
from autotune.confirm import changes, confirm
from autotune.cores import CorePool
from autotune.errors import CannotRunHereError
from autotune.records import Run
from autotune.search.observation import Observation
from autotune.search.sampler import ValidSetSampler
from autotune.search.store import StudyStore
from autotune.summary import run_to_use, summarise
from objectives.base import FailureKind
from spaces import Choice, Constraint, Flag, Integer, Space
from tests.autotune.fakes import (
    SECONDS,
    ListDisplay,
    PaperExecutor,
    PaperObjective,
    definition,
    failed,
    study_file,
    took,
)

SPACE = Space(
    [
        Integer.range("np", 1, 8, default=8),
        Choice("blas", ("slow", "fast"), optional=True),
        Choice("malloc", ("keep", "huge"), optional=True),
        Flag("bind", optional=True),
    ],
    [Constraint("bind", "not is_set(bind) or np <= 4", "the cores of one socket")],
)
DEFAULT = {"np": 8}
STUDY = study_file(verdict={"pairs": 6, "max_pairs": 12, "rounds": 3, "candidates": 3, "precision": 0.03})


def timed(configuration):
    """Return a time: np=4 and the fast library matter, malloc and bind do nothing."""
    return (1.0 + 0.25 * abs(configuration["np"] - 4)) * (0.8 if configuration.get("blas") == "fast" else 1.0)


def noisy(spread=0.01, seed=0):
    rng = np.random.default_rng(seed)
    return lambda configuration: took(timed(configuration) * float(np.exp(rng.normal(0.0, spread))))


@pytest.fixture
def store(tmp_path):
    found = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", definition(SPACE))
    found.use(ValidSetSampler(SPACE))
    return found


def bench(folder, executor, display=None):
    return Bench(PaperObjective(), executor, CorePool(range(8)), folder / "runs", display or ListDisplay())


def add(store, *trials):
    """Store trials, (configuration, seconds), as if a session had run each once; the sampler is not asked."""
    for configuration, seconds in trials:
        store._sampler.sample_relative = lambda *_, proposed=configuration: dict(proposed)
        trial = store.ask(SPACE)
        store.add_run(Run(configuration, trial.number, outcome=took(seconds)))
        store.settle(trial.number, Observation(value=seconds))


WINNER = {"np": 4, "blas": "fast", "malloc": "keep", "bind": True}
SIMPLE = {"np": 4, "blas": "fast"}


def test_of_those_that_cannot_be_told_apart_the_simplest_wins(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.79), (SIMPLE, 0.81), ({"np": 4, "blas": "fast", "malloc": "huge"}, 0.80))
    display = ListDisplay()
    verdict = confirm(store, bench(tmp_path, PaperExecutor(noisy()), display), STUDY)
    assert verdict.winner == 2
    assert set(verdict.candidates) == {1, 2, 3}
    assert verdict.changes == 2
    assert verdict.significant(SECONDS)
    low, high = verdict.interval(SECONDS)[1:]
    assert low <= timed(DEFAULT) / timed(SIMPLE) <= high
    assert any("cannot be told apart: trial 2 is the simplest" in line for line in display.lines)
    assert summarise(store).best.number == 2


def test_a_simpler_configuration_that_is_slower_does_not_win(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8), ({"np": 4}, 0.81))
    assert confirm(store, bench(tmp_path, PaperExecutor(noisy())), STUDY).winner == 1


def test_a_lucky_run_is_found_out(store, tmp_path):
    add(store, (DEFAULT, 2.0), ({"np": 7}, 0.5), (SIMPLE, 0.8))
    verdict = confirm(store, bench(tmp_path, PaperExecutor(noisy())), STUDY)
    assert verdict.winner == 2


def test_no_gain_is_said_to_be_none(store, tmp_path):
    add(store, (DEFAULT, 2.0), ({"np": 8, "malloc": "keep"}, 1.9))
    verdict = confirm(store, bench(tmp_path, PaperExecutor(noisy(0.03))), STUDY)
    assert not verdict.significant(SECONDS)
    assert "No significant gain" in summarise(store).best_text()


def test_a_noisy_machine_gets_more_pairs_and_a_doubt(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    verdict = confirm(store, bench(tmp_path, PaperExecutor(noisy(0.2))), STUDY)
    assert len(verdict.pairs) == 12
    assert "too noisy" in summarise(store).best_text()
    quiet = confirm(store, bench(tmp_path, PaperExecutor(noisy(0.2))), STUDY)
    assert quiet == verdict


def test_an_interrupted_comparison_goes_on_and_a_finished_one_runs_nothing(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8), (SIMPLE, 0.8))
    launched = 0
    for at_most in (2, 5, 7):
        executor = PaperExecutor(noisy(), at_most=at_most)
        with pytest.raises(KeyboardInterrupt):
            confirm(store, bench(tmp_path, executor), STUDY)
        launched += len(executor.launched)
    last = PaperExecutor(noisy())
    verdict = confirm(store, bench(tmp_path, last), STUDY)
    assert launched + len(last.launched) == 3 * 3 + 2 * len(verdict.pairs)
    again = PaperExecutor(noisy())
    assert confirm(store, bench(tmp_path, again), STUDY) == verdict
    assert again.launched == []


def test_a_better_trial_found_since_is_compared_anew(store, tmp_path):
    add(store, (DEFAULT, 2.0), ({"np": 5}, 1.25))
    confirm(store, bench(tmp_path, PaperExecutor(noisy())), STUDY)
    add(store, (SIMPLE, 0.8))
    assert summarise(store).verdict_sentence() is None
    assert confirm(store, bench(tmp_path, PaperExecutor(noisy())), STUDY).winner == 2


def test_there_is_nothing_to_confirm_when_the_default_is_best(store, tmp_path):
    add(store, (DEFAULT, 1.0), (SIMPLE, 1.2))
    executor = PaperExecutor(noisy())
    assert confirm(store, bench(tmp_path, executor), STUDY) is None
    assert executor.launched == []
    assert "No configuration was faster" in summarise(store).best_text()


def test_a_machine_that_fails_while_confirming_stops_it_and_stores_nothing(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    before = len(store.runs())
    full = PaperExecutor(lambda _: failed(FailureKind.INFRASTRUCTURE_ERROR, "disk full"))
    with pytest.raises(CannotRunHereError, match="disk full"):
        confirm(store, bench(tmp_path, full), STUDY)
    assert len(store.runs()) == before
    assert confirm(store, bench(tmp_path, PaperExecutor(noisy())), STUDY).known


def test_a_winner_that_cannot_be_repeated_gets_no_verdict(store, tmp_path):
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    broken = PaperExecutor(
        lambda c: took(2.0) if dict(c) == DEFAULT else failed(FailureKind.APPLICATION_ERROR, "not this time")
    )
    verdict = confirm(store, bench(tmp_path, broken), STUDY)
    assert not verdict.known
    assert "not this time" in verdict.sentence(SECONDS)
    assert sum(dict(c) != DEFAULT for _, c in broken.launched) == 3


def test_changes_are_counted_from_the_default():
    assert changes(WINNER, DEFAULT) == ["np", "blas", "malloc", "bind"]
    assert changes({}, DEFAULT) == ["np"]
    assert changes(DEFAULT, DEFAULT) == []


def test_ablation_names_what_matters_and_drops_what_does_nothing(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8))
    confirm(store, bench(tmp_path, PaperExecutor(noisy())), STUDY)
    found = ablate(store, bench(tmp_path, PaperExecutor(noisy(seed=1))), SPACE, STUDY, rounds=8)
    effects = {effect.parameter: effect for effect in found.effects}
    assert [name for name, effect in effects.items() if effect.does_nothing] == ["malloc", "bind"]
    low, high = effects["np"].alone[1:]
    assert low <= 2.0 <= high
    # The constraint keeps `bind` from being tried alone on the default; taking np back out is not valid either.
    assert effects["bind"].alone is None
    assert effects["np"].within is None
    assert "not valid" in effects["np"].why
    assert set(found.dropped) == {"malloc", "bind"}
    assert found.simplified == SIMPLE
    assert found.accepted
    low, high = found.over_default[1:]
    assert low <= 2.5 <= high
    summary = summarise(store)
    assert summary.configuration == SIMPLE
    assert dict(run_to_use(store, summary).configuration) == SIMPLE
    assert "as good without" in summary.best_text()


def test_options_that_stand_in_for_each_other_are_not_both_dropped(store, tmp_path):
    def either(configuration):
        helped = configuration.get("malloc") == "keep" or configuration.get("blas") == "fast"
        return took((1.0 if helped else 1.5) * rng.lognormal(0.0, 0.01))

    rng = np.random.default_rng(0)
    add(store, (DEFAULT, 1.5), ({"np": 8, "blas": "fast", "malloc": "keep"}, 1.0))
    found = ablate(store, bench(tmp_path, PaperExecutor(either)), SPACE, STUDY, rounds=8)
    assert set(found.dropped) == {"blas", "malloc"}
    assert not found.accepted
    assert summarise(store).simplified is None


def test_an_option_that_the_program_calls_unused_is_dropped(store, tmp_path):
    configuration = {"np": 4, "malloc": "keep"}
    add(store, (DEFAULT, 2.0))
    store._sampler.sample_relative = lambda *_: dict(configuration)
    trial = store.ask(SPACE)
    outcome = took(1.0).__class__(metrics={"wall_s": 1.0}, unused=("malloc",))
    store.add_run(Run(configuration, trial.number, outcome=outcome))
    store.settle(trial.number, Observation(value=1.0))
    found = ablate(store, bench(tmp_path, PaperExecutor(noisy())), SPACE, STUDY, rounds=6)
    assert [effect.parameter for effect in found.effects if effect.unused] == ["malloc"]
    assert found.dropped == ("malloc",)


def test_an_ablation_that_was_interrupted_goes_on(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8))
    first = PaperExecutor(noisy(), at_most=10)
    with pytest.raises(KeyboardInterrupt):
        ablate(store, bench(tmp_path, first), SPACE, STUDY, rounds=6)
    second = PaperExecutor(noisy())
    found = ablate(store, bench(tmp_path, second), SPACE, STUDY, rounds=6)
    third = PaperExecutor(noisy())
    assert ablate(store, bench(tmp_path, third), SPACE, STUDY, rounds=6) == found
    assert third.launched == []
    assert len(store.runs()) == 2 + len(first.launched) + len(second.launched)


def test_a_study_without_a_winner_cannot_be_taken_apart(store, tmp_path):
    add(store, (DEFAULT, 1.0), (SIMPLE, 1.5))
    executor = PaperExecutor(noisy())
    assert ablate(store, bench(tmp_path, executor), SPACE, STUDY, rounds=6) is None
    assert executor.launched == []
