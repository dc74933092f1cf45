"""AMD's cards, from a tree of files as the kernel's driver shows it."""

import pytest

from launchers.meters.amd import amd_readers
from launchers.meters.cards import Reading
from tests.launchers.meters.kernel import Kernel


@pytest.fixture
def kernel(tmp_path):
    found = Kernel(tmp_path)
    found.card(0, "0x102b")  # the server's own graphics
    found.card(
        1,
        unique_id="4f0c1a2b3c4d5e6f",
        gpu_busy_percent=73,
        mem_info_vram_used=2**31,
        power1_average=215_000_000,
        energy1_input=3_000_000,
    )
    found.card(2, gpu_busy_percent=0, power1_input=90_000_000)
    found.writes("class/drm/card1-DP-1/status", "disconnected")
    return found


def test_card_reports_only_what_its_driver_shows(kernel):
    first, second = amd_readers(None, 2, kernel.sys)
    assert first() == Reading(0.73, 2**31, 215.0, 3.0)
    assert second() == Reading(0.0, None, 90.0, None)


@pytest.mark.parametrize(("visible", "power_w"), [("0", 215.0), ("1", 90.0), ("GPU-4f0c1a2b3c4d5e6f", 215.0)])
def test_cards_of_a_job_are_those_that_its_variable_names(kernel, visible, power_w):
    (look,) = amd_readers(visible, 1, kernel.sys)
    assert look().power_w == power_w


@pytest.mark.parametrize(
    ("visible", "why"), [(None, "the job sees 2 cards, 1 are wanted"), ("7", "no card '7'"), ("", "shows none")]
)
def test_no_meter_if_the_jobs_cards_are_unknown(kernel, visible, why):
    with pytest.raises(OSError, match=why):
        amd_readers(visible, 1, kernel.sys)
