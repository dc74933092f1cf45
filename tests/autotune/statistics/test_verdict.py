from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.statistics.verdict import Verdict, pairs_needed, precise_enough, precision
from objectives.base import Metric

SECONDS = Metric("wall_s", "s")
RATE = Metric("rate", "1/s", "maximize")
positive = st.floats(0.01, 100)
some = st.lists(st.tuples(positive, positive), min_size=6, max_size=12)


def verdict(*pairs, failures=(), asked=0.05):
    return Verdict(3, (3, 5), 2, 0.95, asked, tuple(pairs), failures)


def faster(*seconds):
    """Return pairs with a baseline of 2 s."""
    return verdict(*((2.0, second) for second in seconds))


CLEAR = faster(1.02, 0.97, 1.01, 0.99, 1.0, 1.0)
NONE = faster(2.02, 1.97, 2.01, 1.99, 2.0, 2.0)


def test_a_clear_gain_is_called_one():
    assert CLEAR.significant(SECONDS)
    assert CLEAR.sentence(SECONDS).startswith("2.000 times as fast as the default")
    assert "95% interval 1.961 to 2.062, 6 interleaved pairs" in CLEAR.sentence(SECONDS)


def test_noise_is_not_called_a_gain():
    assert not NONE.significant(SECONDS)
    assert NONE.sentence(SECONDS).startswith(
        "No significant gain over the default configuration, so keep that: 1.000 times"
    )


def test_a_gain_within_the_noise_is_not_called_one():
    lucky = faster(1.0, 1.1, 1.2, 1.9, 2.1, 2.5)
    assert lucky.interval(SECONDS)[0] > 1.2
    assert not lucky.significant(SECONDS)


def test_a_slower_winner_is_no_gain():
    assert not CLEAR.significant(RATE)
    assert "Slower than the default configuration, so keep that" in CLEAR.sentence(RATE)


def test_pairs_that_are_all_the_same_are_doubted():
    same = faster(*[1.0] * 8)
    assert "AUTOTUNE_SEED" in same.doubts(SECONDS, "sumx")[0]


def test_too_few_pairs_are_no_verdict():
    few = faster(1.0, 1.0, 1.0, 1.0, 1.0)
    assert not few.known
    assert not few.significant(SECONDS)
    assert few.sentence(SECONDS).endswith("could not be compared with the default configuration: too few pairs of runs")
    assert few.doubts(SECONDS, "sumx") == []
    with pytest.raises(ValueError, match="needs 6 pairs, got 5"):
        few.interval(SECONDS)


def test_failures_say_why_there_is_no_verdict():
    found = verdict((2.0, 1.0), failures=("trial 3: out of memory: killed", "default: timed out"))
    assert "trial 3: out of memory: killed; default: timed out" in found.sentence(SECONDS)


@given(some)
def test_for_a_metric_to_be_maximised_the_ratio_is_turned_round(pairs):
    middle, low, high = verdict(*pairs).interval(SECONDS)
    assert verdict(*pairs).interval(RATE) == pytest.approx((1 / middle, 1 / high, 1 / low))


@given(some, st.floats(0.01, 100))
def test_the_unit_does_not_matter(pairs, factor):
    scaled = verdict(*((factor * base, factor * best) for base, best in pairs))
    assert scaled.interval(SECONDS) == pytest.approx(verdict(*pairs).interval(SECONDS))


@given(st.lists(st.tuples(positive, positive), max_size=8), st.lists(st.text(), max_size=2))
def test_what_is_stored_is_what_is_read(pairs, failures):
    stored = verdict(*pairs, failures=tuple(failures))
    assert Verdict.from_dict(stored.to_dict()) == stored


def test_precise_enough_leaves_no_doubt():
    assert CLEAR.doubts(SECONDS, "sumx") == []


def test_a_noisy_machine_is_told_with_the_pairs_that_it_needs():
    # Six pairs from 1 to 1.44 times: the ends are 20 % from their middle, 4 times the 5 % asked for; 6 * 4^2 = 96.
    found = verdict(*((one, 1.0) for one in (1.0, 1.1, 1.2, 1.25, 1.3, 1.44)))
    (of_study_file,) = found.doubts(SECONDS, "sumx")
    assert of_study_file == (
        "the interval is wide (1.000 to 1.440): 6 pairs were made, about 96 would narrow it to 5.0% to either side: "
        "autotune confirm sumx --max-pairs 96"
    )
    (of_gain,) = replace(found, asked=0.01, of_gain=0.25).doubts(SECONDS, "sumx")
    assert "would narrow it to what the study asks: autotune confirm sumx" in of_gain


def test_the_precision_is_how_far_the_ends_are_from_their_middle():
    assert precision((1.2, 1.0, 1.44)) == pytest.approx(0.2)


@pytest.mark.parametrize(("reached", "needed"), [(0.02, 8), (0.05, 8), (0.1, 32), (0.06, 12)])
def test_the_first_pairs_tell_how_many_are_needed(reached, needed):
    # Half the width needs four times the pairs.
    half = (1.0 + reached) * (1 - 1e-12)
    assert pairs_needed((1.0, 1.0 / half, half), 8, 0.05) == needed


@given(st.floats(1, 3), st.floats(1, 3), st.integers(6, 30))
def test_no_pair_is_taken_back(low, high, pairs):
    assert pairs_needed((low, low, low * high), pairs, 0.05) >= pairs


def test_a_large_gain_need_not_be_as_precise():
    # A quarter of 1.6 times is 1.6 ** 0.25 to either side.
    assert precise_enough((1.6, 1.5, 1.7), 0.05, 0.25) == pytest.approx(1.6**0.25 - 1.0)
    assert precise_enough((1 / 1.6, 0.6, 0.65), 0.05, 0.25) == pytest.approx(1.6**0.25 - 1.0)
    assert precise_enough((1.1, 1.0, 1.2), 0.05, 0.25) == 0.05
    assert precise_enough((1.6, 1.5, 1.7), 0.05, 0.0) == 0.05


def test_a_large_gain_is_no_doubt_where_its_interval_is_wide():
    pairs = tuple((one, 1.0) for one in (1.9, 2.0, 2.0, 2.1, 2.2, 2.2))
    asked = Verdict(1, (1,), 1, 0.95, 0.05, pairs)
    assert "narrow it to 5.0% to either side" in asked.doubts(SECONDS, "sumx")[0]
    assert replace(asked, of_gain=0.25).doubts(SECONDS, "sumx") == []


def test_a_loss_has_no_speed():
    loss = Metric("val_loss", "")
    assert CLEAR.sentence(loss).startswith("2.000 times lower in val_loss than the default configuration (95% interval")
    worse = Verdict(1, (1,), 1, 0.95, None, ((1.0, 2.0),) * 6)
    assert worse.sentence(loss).startswith(
        "Worse than the default configuration, so keep that: 2.000 times higher in val_loss than it (95% interval 2.000"
    )


def test_a_machine_that_was_another_one_while_tuning_makes_the_ranking_doubtful():
    says = "the machine was {} times {} while tuning, so another trial may be better"
    assert says.format("2.4", "slower") in CLEAR.doubts(SECONDS, "sumx", [4.9, 4.7, 4.8, 4.8])[0]
    assert says.format("2", "faster") in CLEAR.doubts(SECONDS, "sumx", [1.0, 1.02, 0.99])[0]
    assert says.format("2", "slower") in CLEAR.doubts(RATE, "sumx", [1.0, 1.02, 0.99])[0]
    assert CLEAR.doubts(SECONDS, "sumx") == []


@pytest.mark.parametrize("tuned", [[2.0, 2.1, 1.95], [2.1, 2.1, 2.1], [1.0, 4.0, 3.5, 2.5], []])
def test_noise_and_a_little_drift_do_not_make_the_ranking_doubtful(tuned):
    assert CLEAR.doubts(SECONDS, "sumx", tuned) == []


def test_a_quality_does_not_depend_on_how_fast_the_machine_is():
    assert CLEAR.doubts(Metric("loss", "", "minimize"), "sumx", [4.9, 4.7, 4.8]) == []
