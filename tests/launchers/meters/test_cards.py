"""Use of a run's cards: readings are integrated over its time, and missing readings give no figures."""

import pytest

from launchers.meters.cards import Cards, Reading

FULL = Reading(busy_share=0.5, memory_bytes=2**30, power_w=100.0, energy_j=1000.0)


def used(*cards):
    """Return the figures of a run of 10 s with the given readings of each card at 0, 2, 9 and 10 s."""
    readings = [iter(card) for card in cards]
    meter = Cards([lambda one=one: next(one) for one in readings])
    meter.begin(0.0)
    meter.sample(2.0)
    meter.sample(9.0)
    return meter.end(10.0)


GROWS = [FULL, FULL, FULL, FULL._replace(energy_j=1400.0)]


def test_shares_are_weighted_by_time_and_peaks_are_of_the_fullest_card():
    # The first card is idle already when the program has ended.
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


def test_energy_without_a_counter_is_integrated_power():
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
def test_value_missing_on_one_card_is_absent(lacks, absent):
    whole = used(GROWS, GROWS)
    assert whole.keys() - used(GROWS, [*GROWS[:2], *(one._replace(**lacks) for one in GROWS[2:])]).keys() == absent


@pytest.mark.parametrize("energy_j", [3.0, 1000.0])
def test_reset_or_constant_counter_gives_no_energy(energy_j):
    assert not used([*GROWS[:3], FULL._replace(energy_j=energy_j)]).keys() & {"gpu_energy_j", "gpu_mean_power_w"}


def test_die_reporting_zero_power_gives_no_power():
    first = Reading(busy_share=0.5, memory_bytes=2**30, power_w=100.0)
    second = first._replace(power_w=0.0)
    assert used([second] * 4).keys() == {"gpu_busy_share", "gpu_peak_memory_bytes"}
    both = used([first] * 4, [second] * 4)
    assert (both["gpu_energy_j"], both["gpu_peak_power_w"], both["gpu_mean_power_w"]) == (1000.0, 100.0, 100.0)


def test_run_without_duration_has_no_share():
    meter = Cards([lambda: FULL])
    meter.begin(1.0)
    assert meter.end(1.0).keys() == {"gpu_peak_memory_bytes", "gpu_peak_power_w"}
