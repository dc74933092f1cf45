import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from autotune.batch.winner_script import run_to_use
from autotune.cli.commands.ablate import conclusion, table_of
from autotune.comparison.ablation import ablate, smallest_group
from autotune.comparison.confirm import confirm
from autotune.comparison.findings import Ablation, OptionEffect, Worth, alongside
from autotune.pictures.ablation import WIDTH, bars, lines
from autotune.results.summary import summarise
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from objectives.base import Metric
from spaces import Constraint, Flag, Integer, Space
from tests.support.contests import DEFAULT, SIMPLE, SPACE, STUDY, WINNER, add, manager, new_store, noisy
from tests.support.fakes import SECONDS, PaperExecutor, definition, took
from tests.support.stored import add_trial

# All three are set, which needs np=4, or all are unset, with any np.
WHOLE = "(is_set(a) and is_set(b) and is_set(c) and np == 4) or not (is_set(a) or is_set(b) or is_set(c))"
RATE = Metric("rate", "B/s", "maximize", "rate")


@pytest.fixture
def store(tmp_path):
    return new_store(tmp_path)


def test_ablation_names_what_matters_and_drops_what_does_nothing(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8))
    confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    found = ablate(store, manager(tmp_path, PaperExecutor(noisy(seed=2))), SPACE, STUDY, rounds=8)
    effects = {effect.name: effect for effect in found.effects}
    assert [name for name, effect in effects.items() if effect.worth is Worth.NOTHING] == ["malloc", "bind"]
    assert effects["np"].worth is Worth.HELPS
    low, high = effects["np"].alone[1:]
    assert low <= 2.0 <= high
    # The constraint keeps `bind` from being tried alone on the default; np cannot be taken back without it either.
    assert (effects["bind"].alone_with, effects["bind"].within_with) == (("np",), ())
    assert (effects["np"].alone_with, effects["np"].within_with) == ((), ("bind",))
    assert None not in {effect.alone for effect in found.effects} | {effect.within for effect in found.effects}
    assert set(found.dropped) == {"malloc", "bind"}
    assert found.simplified == SIMPLE
    assert found.is_accepted
    low, high = found.over_default[1:]
    assert low <= 2.5 <= high
    summary = summarise(store)
    assert summary.configuration == SIMPLE
    assert dict(run_to_use(store, summary).configuration) == SIMPLE
    assert "trial 1 without bind, malloc is 2." in summary.best_text()


def test_too_few_runs_do_not_replace_a_proven_winner_by_the_default(store, tmp_path):
    # A gain of 4 %, which eight rounds do not see.
    def nearly(configuration):
        rng.random()
        return took((2.0 if dict(configuration) == DEFAULT else 1.93) * math.exp(0.05 * rng.normal()))

    rng = np.random.default_rng(0)
    add(store, (DEFAULT, 2.0), (WINNER, 1.93))
    confirm(store, manager(tmp_path, PaperExecutor(nearly)), STUDY)
    found = ablate(store, manager(tmp_path, PaperExecutor(nearly)), SPACE, STUDY, rounds=8)
    assert found.simplified != DEFAULT
    assert set(found.dropped) != {effect.name for effect in found.effects}


def test_a_simplified_winner_must_also_be_better_than_the_default():
    simple = Ablation(
        1, 0.95, 8, (), combined=(1.1, 1.02, 1.2), over_default=(1.05, 0.99, 1.1), over_winner=(0.97, 0.9, 1.02)
    )
    assert not simple.is_accepted
    assert replace(simple, over_default=(1.08, 1.01, 1.1)).is_accepted
    # The condition does not apply to a winner without a gain in these runs.
    assert replace(simple, combined=(1.01, 0.97, 1.05)).is_accepted


def test_options_that_the_rules_tie_together_are_moved_together(tmp_path):
    sides = [Integer.range(name, 1, 4, optional=True) for name in ("px", "py", "pz")]
    rule = "(is_set(px) and is_set(py) and is_set(pz)) or not (is_set(px) or is_set(py) or is_set(pz))"
    space = Space([Integer.range("np", 1, 8, default=8), *sides], [Constraint("all_or_none", rule, "three sides")])
    grid = {"np": 4, "px": 1, "py": 1, "pz": 1}
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", definition(space))
    for configuration, seconds in (({"np": 8}, 2.0), (grid, 1.0)):
        add_trial(store, space, configuration, took(seconds), worth=Observation(value=seconds))
    found = ablate(store, manager(tmp_path, PaperExecutor(noisy())), space, STUDY, rounds=6)
    assert [effect.parameters for effect in found.effects] == [("np",), ("px", "py", "pz")]
    assert found.effects[1].worth is Worth.NOTHING
    assert found.simplified == {"np": 4}
    assert "dropped: px, py, pz (does nothing that could be seen)" in conclusion(found)


def test_a_group_is_the_smallest_that_is_valid():
    assert smallest_group("a", "abcd", lambda group: {"a", "c"} <= {*group}) == ("a", "c")
    # All options together are the winner against the default, which measures no single option.
    assert smallest_group("a", "abc", lambda group: len(group) == 3) == ()
    assert smallest_group("a", "a", lambda _: True) == ("a",)
    many = [f"option {number}" for number in range(40)]
    assert smallest_group(many[0], many, lambda group: len(group) > 20) == ()


def test_an_option_that_needs_all_others_is_not_measured_alone(tmp_path):
    flags = [Flag(name, optional=True) for name in "abc"]
    space = Space([Integer.range("np", 1, 8, default=8), *flags], [Constraint("whole", WHOLE, "as measured")])
    winner = {"np": 4, "a": True, "b": True, "c": True}
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", definition(space))
    for configuration, seconds in (({"np": 8}, 2.0), (winner, 1.0)):
        add_trial(store, space, configuration, took(seconds), worth=Observation(value=seconds))
    found = ablate(store, manager(tmp_path, PaperExecutor(noisy())), space, STUDY, rounds=6)
    assert [effect.parameters for effect in found.effects] == [("np",), ("a", "b", "c")]
    assert found.effects[0].within is None
    assert "the winner without it: valid with all other options only" in found.effects[0].why
    assert found.effects[0].worth is Worth.HELPS
    assert found.effects[1].alone is None
    assert found.simplified == {"np": 4}


def test_the_conclusion_says_that_all_options_help_only_if_they_do():
    helps = OptionEffect(("np",), {}, {"np": 4}, None, (1.2, 1.1, 1.3))
    unknown = OptionEffect(("a",), {}, {"a": 1}, None, None)
    assert "every option of the winner helps" in conclusion(Ablation(1, 0.95, 6, (helps,)))
    assert "no option of the winner can be left out" in conclusion(Ablation(1, 0.95, 6, (helps, unknown)))


def test_many_options_in_a_row_are_counted():
    names = [f"UCX_OPTION_{number}" for number in range(9)]
    effect = OptionEffect(tuple(names), {}, dict.fromkeys(names, 1), None, None)
    assert effect.values == "UCX_OPTION_0=1 UCX_OPTION_1=1 UCX_OPTION_2=1 and 6 more"
    assert alongside(names) == "with 9 other options"
    assert alongside(names[:2]) == "with UCX_OPTION_0, UCX_OPTION_1"
    assert alongside(()) == ""


@pytest.mark.parametrize(
    ("within", "worth"),
    [
        ((0.913, 0.807, 0.965), Worth.HARMS),
        ((1.01, 0.9, 1.1), Worth.NOTHING),
        ((1.2, 1.1, 1.3), Worth.HELPS),
        (None, Worth.UNKNOWN),
    ],
)
def test_the_interval_says_what_an_option_is_worth(within, worth):
    effect = OptionEffect(("threads",), {"threads": 1}, {"threads": 2}, None, within)
    assert effect.worth is worth
    assert effect.is_dispensable == (worth in {Worth.HARMS, Worth.NOTHING})


def test_the_table_can_be_read_at_80_columns():
    middle = (1.023, 0.912, 1.134)
    effects = (
        OptionEffect(("blas",), {}, {"blas": "openblas-pthread"}, middle, middle),
        OptionEffect(
            ("px", "py", "pz"), {}, {"px": 1, "py": 1, "pz": 1}, middle, (0.9, 0.8, 0.95), within_with=("np",)
        ),
    )
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table_of(Ablation(1, 0.95, 6, effects)))
    text = capture.get()
    assert all(len(line) <= 80 for line in text.splitlines())
    for words in (
        "alone on",
        "blas: unset ->",
        "openblas-pthread",
        "pz: unset -> 1",
        "0.912 to 1.134",
        "with np",
        "does harm",
    ):
        assert words in text


def test_options_that_stand_in_for_each_other_are_not_both_dropped(store, tmp_path):
    def either(configuration):
        helped = configuration.get("malloc") == "keep" or configuration.get("blas") == "fast"
        return took((1.0 if helped else 1.5) * rng.lognormal(0.0, 0.01))

    rng = np.random.default_rng(0)
    add(store, (DEFAULT, 1.5), ({"np": 8, "blas": "fast", "malloc": "keep"}, 1.0))
    found = ablate(store, manager(tmp_path, PaperExecutor(either)), SPACE, STUDY, rounds=8)
    assert len(found.dropped) == 1
    assert found.is_accepted
    assert found.over_default[1] > 1.0
    assert summarise(store).configuration == found.simplified != DEFAULT


def test_an_option_that_the_program_calls_unused_is_dropped(store, tmp_path):
    configuration = {"np": 4, "malloc": "keep"}
    add(store, (DEFAULT, 2.0))
    outcome = took(1.0).__class__(metrics={"wall_s": 1.0}, unused=("malloc",))
    add_trial(store, SPACE, configuration, outcome, worth=Observation(value=1.0))
    found = ablate(store, manager(tmp_path, PaperExecutor(noisy())), SPACE, STUDY, rounds=6)
    assert [effect.name for effect in found.effects if effect.unused] == ["malloc"]
    assert found.dropped == ("malloc",)


def test_an_interrupted_ablation_resumes(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8))
    first = PaperExecutor(noisy(), at_most=10)
    with pytest.raises(KeyboardInterrupt):
        ablate(store, manager(tmp_path, first), SPACE, STUDY, rounds=6)
    second = PaperExecutor(noisy())
    found = ablate(store, manager(tmp_path, second), SPACE, STUDY, rounds=6)
    third = PaperExecutor(noisy())
    assert ablate(store, manager(tmp_path, third), SPACE, STUDY, rounds=6) == found
    assert third.launched == []
    assert len(store.runs()) == 2 + len(first.launched) + len(second.launched)


def test_a_study_without_a_winner_has_no_ablation(store, tmp_path):
    add(store, (DEFAULT, 1.0), (SIMPLE, 1.5))
    executor = PaperExecutor(noisy())
    assert ablate(store, manager(tmp_path, executor), SPACE, STUDY, rounds=6) is None
    assert executor.launched == []


def test_variants_that_are_equal_in_effect_are_not_run(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8))
    asked = []

    def alike(one, measured, details):
        asked.append(one)
        return {k: v for k, v in one.items() if k != "malloc"} == {k: v for k, v in measured.items() if k != "malloc"}

    executor = PaperExecutor(noisy())
    runs = manager(tmp_path, executor)
    runs.factory = replace(runs.factory, alike=alike)
    found = ablate(store, runs, SPACE, STUDY, rounds=6)
    malloc = next(effect for effect in found.effects if effect.name == "malloc")
    assert asked
    assert malloc.unused
    assert malloc.alone == malloc.within == (1.0, 1.0, 1.0)
    assert "malloc" in found.dropped
    ran = [configuration for _, configuration in executor.launched]
    assert {**DEFAULT, "malloc": "keep"} not in ran
    assert {name: value for name, value in WINNER.items() if name != "malloc"} not in ran


@pytest.mark.parametrize(
    ("dropped", "words"),
    [
        (("malloc",), "malloc seems to be worth nothing, but without it the winner is worse: it stays"),
        (
            ("malloc", "bind"),
            "each of malloc, bind alone is worth nothing, but without all of them the winner is worse",
        ),
    ],
)
def test_the_conclusion_names_the_options_that_stay(dropped, words):
    found = Ablation(1, 0.95, 6, (), dropped=dropped, simplified={"np": 4}, over_winner=(0.8, 0.7, 0.9))
    assert words in conclusion(found)


def test_many_dropped_options_do_not_make_a_name_too_long(store, tmp_path):
    add(store, (DEFAULT, 2.0), (WINNER, 0.8))
    ablate(store, manager(tmp_path, PaperExecutor(noisy())), SPACE, STUDY, rounds=6)
    series = {str(run.series) for run in store.runs()}
    assert all(len(name) < 60 for name in series)
    assert any(name.startswith("simplify:1:") for name in series)


def taken_apart(store, tmp_path) -> Ablation:
    add(store, (DEFAULT, 2.0), (WINNER, 0.8))
    return ablate(store, manager(tmp_path, PaperExecutor(noisy())), SPACE, STUDY, rounds=6)


def test_bars_are_the_default_each_option_alone_and_all_together(store, tmp_path):
    found = taken_apart(store, tmp_path)
    drawn = bars(found, SECONDS)
    assert [bar.label for bar in drawn] == [
        "default",
        "np=4",
        "blas=fast",
        "malloc=keep",
        "bind=yes with np",
        "all 4: trial 1",
        "without 2 of them",
    ]
    assert drawn[0].value == found.baseline
    assert drawn[1].value == pytest.approx(1.0, rel=0.05)
    assert all(bar.low <= bar.value <= bar.high for bar in drawn)
    assert Ablation.from_dict(found.to_dict()) == found


def test_bars_of_a_rate_grow_with_the_speed_up(store, tmp_path):
    found = replace(taken_apart(store, tmp_path), baseline=100.0, combined=(2.5, 2.0, 3.0))
    whole = next(bar for bar in bars(found, RATE) if bar.label.startswith("all"))
    assert (whole.value, whole.low, whole.high) == (250.0, 200.0, 300.0)


def test_the_longest_bar_fills_the_width_and_the_others_are_in_proportion(store, tmp_path):
    drawn = bars(taken_apart(store, tmp_path), SECONDS)
    text = lines(drawn, SECONDS)
    lengths = [sum(character in "█▉▊▋▌▍▎▏" for character in line) for line in text]
    assert max(lengths) == lengths[0] == WIDTH
    assert lengths[1] == pytest.approx(WIDTH * drawn[1].value / drawn[0].value, abs=1)
    assert lines((), SECONDS) == []
