"""What a run used of its cards: readings added up over its time, and nothing where a card does not tell it."""

import pytest

from launchers.meters.cards import Cards, Reading

FULL = Reading(busy_share=0.5, memory_bytes=2**30, power_w=100.0, energy_j=1000.0)


def used(*cards):
    """Return the figures of a run of 10 s, of each of whose cards the readings are given: at 0, 2, 9 and 10 s."""
    readings = [iter(card) for card in cards]
    meter = Cards([lambda one=one: next(one) for one in readings])
    meter.begin(0.0)
    meter.sample(2.0)
    meter.sample(9.0)
    return meter.end(10.0)


GROWS = [FULL, FULL, FULL, FULL._replace(energy_j=1400.0)]


def test_shares_are_of_the_time_that_each_look_stands_for_and_peaks_of_the_fullest_card():
    # When the program has ended the first card rests already.
    first = [
        FULL,
        FULL._replace(busy_share=1.0),
        FULL._replace(busy_share=0.25, power_w=50.0),
        Reading(0.0, 0, 9.0, 1800.0),
    ]
    second = [FULL, FULL._replace(memory_bytes=3 * 2**30), FULL, FULL._replace(energy_j=1400.0)]
    assert used(first, second) == {
        # 2 s of all and 8 s of a quarter; half of the time.
        "gpu_busy_share": pytest.approx((0.4 + 0.5) / 2),
        "gpu_peak_memory_bytes": 3 * 2**30,
        "gpu_peak_power_w": 200.0,
        "gpu_energy_j": 1200.0,
        "gpu_mean_power_w": pytest.approx(120.0),
    }


def test_a_card_without_a_counter_of_energy_has_that_of_the_power_that_was_seen():
    plain = FULL._replace(energy_j=None)
    less = plain._replace(power_w=50.0)
    assert used([plain, plain, less, less])["gpu_energy_j"] == pytest.approx(2 * 100 + 8 * 50)


@pytest.mark.parametrize(
    ("lacks", "absent"),
    [
        ({"busy_share": None}, {"gpu_busy_share"}),
        ({"memory_bytes": None}, {"gpu_peak_memory_bytes"}),
        ({"power_w": None}, {"gpu_peak_power_w"}),
        ({"power_w": None, "energy_j": None}, {"gpu_peak_power_w", "gpu_mean_power_w", "gpu_energy_j"}),
    ],
)
def test_what_one_of_the_cards_does_not_tell_is_absent_and_not_zero(lacks, absent):
    whole = used(GROWS, GROWS)
    assert whole.keys() - used(GROWS, [*GROWS[:2], *(one._replace(**lacks) for one in GROWS[2:])]).keys() == absent


@pytest.mark.parametrize("energy_j", [3.0, 1000.0])
def test_a_counter_that_began_anew_or_has_not_moved_tells_nothing(energy_j):
    assert not used([*GROWS[:3], FULL._replace(energy_j=energy_j)]).keys() & {"gpu_energy_j", "gpu_mean_power_w"}


def test_the_die_that_tells_0_for_the_power_of_both_tells_no_power():
    first = Reading(busy_share=0.5, memory_bytes=2**30, power_w=100.0)
    second = first._replace(power_w=0.0)
    assert used([second] * 4).keys() == {"gpu_busy_share", "gpu_peak_memory_bytes"}
    both = used([first] * 4, [second] * 4)
    assert (both["gpu_energy_j"], both["gpu_peak_power_w"], both["gpu_mean_power_w"]) == (1000.0, 100.0, 100.0)


def test_a_run_of_no_time_has_no_share():
    meter = Cards([lambda: FULL])
    meter.begin(1.0)
    assert meter.end(1.0).keys() == {"gpu_peak_memory_bytes", "gpu_peak_power_w"}
