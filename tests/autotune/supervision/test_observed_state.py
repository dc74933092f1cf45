"""The observed state of a study does not depend on the wall clock, which may be set meanwhile."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autotune.display.status_file import ENDED, StatusDisplay
from autotune.machines.boot import Moment
from autotune.supervision import DesiredState, Order, shim
from autotune.supervision.observed_state import STOP_TIMEOUT_S, SupervisorMemory, observe
from autotune.supervision.reconcile import Action
from autotune.supervision.study_folder import STATUS, StudyFolder
from tests.support.fakes import ListDisplay

HOUR = timedelta(hours=1)


@pytest.fixture
def folder(tmp_path):
    """Provide the folder of a study, which this process plays, under itself."""
    return StudyFolder(tmp_path / "mine")


def ordered(folder, wish, since):
    """Store an order, with the time that the wall clock showed at the wish."""
    order = Order(study="mine", file=Path("/mine.toml"), name="mine", wish=wish, since=since)
    folder.write_order(order)
    return order


def started(folder, when):
    """Note a start, with the time that the wall clock showed."""
    this = shim.identity(os.getpid())
    start = {"token": "t", "serial": 1, "deaths": 4, "warden": this, "child": this, "when": when.isoformat()}
    shim.write_private(str(folder.path / shim.PROCESS), start)


def seen(folder):
    return observe(folder, SupervisorMemory(), 0.0, 1.0)


@pytest.mark.parametrize("since", [datetime.now(UTC) - HOUR, datetime.now(UTC) + HOUR])
def test_a_study_has_its_time_to_stop_whatever_the_wall_clock_does(folder, since):
    order = ordered(folder, DesiredState.STOP, since)
    started(folder, datetime.now(UTC))
    assert seen(folder).decision.action is Action.STOP
    long_ago = replace(order.wished, since_boot_s=order.wished.since_boot_s - STOP_TIMEOUT_S - 1.0)
    folder.write_order(order.model_copy(update={"wished": long_ago}))
    assert seen(folder).decision.action is Action.KILL
    # Before this boot, by whatever clock.
    folder.write_order(order.model_copy(update={"wished": Moment("another boot", 0.0)}))
    assert seen(folder).decision.action is Action.STOP


def test_a_status_is_that_of_its_process_though_the_wall_clock_was_put_back_meanwhile(folder):
    ordered(folder, DesiredState.RUN, datetime.now(UTC))
    started(folder, datetime.now(UTC) + HOUR)
    display = StatusDisplay(ListDisplay(), folder.path / STATUS)
    display.waits("core 0 is in use")
    assert seen(folder).reality.waiting
    display.close()
    assert folder.status()["phase"] == ENDED
