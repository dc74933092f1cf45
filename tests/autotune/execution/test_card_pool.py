"""No two trials ever share a card, within a study or between studies."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.card_pool import CardPool, MachinePool
from autotune.execution.core_pool import CorePool
from launchers import Resources
from launchers.card import Card

EIGHT = tuple(Card(f"GPU-{number}", "nvidia", tuple(range(4 * number, 4 * number + 4))) for number in range(8))


@pytest.fixture
def pool(tmp_path):
    cards = CardPool("tests", lambda: EIGHT, tmp_path)
    yield MachinePool(CorePool(range(32)), cards)
    cards.close()


def test_eight_trials_have_all_eight_cards_and_cores_near_them(pool):
    taken = [pool.take(Resources(cores=4, gpus=1)) for _ in range(8)]
    assert {one.cards for one in taken} == {(card,) for card in EIGHT}
    assert all(one.cpus == one.cards[0].cpus for one in taken)
    assert pool.take(Resources(cores=0, gpus=1)) is None
    pool.give_back(taken[3])
    assert pool.take(Resources(cores=4, gpus=1)).cards == (EIGHT[3],)


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9)), max_size=40))
def test_never_two_trials_on_one_card(tmp_path_factory, steps):
    cards = CardPool("tests", lambda: EIGHT, tmp_path_factory.mktemp("locks"))
    pool, running = MachinePool(CorePool(range(32)), cards), []
    try:
        for cores, gpus in steps:
            taken = pool.take(Resources(cores=cores, gpus=gpus))
            if taken is None:
                pool.give_back(running.pop(0))
                continue
            assert len(taken.cards) == min(gpus, len(EIGHT))
            running.append(taken)
            held = [card for one in running for card in one.cards]
            assert len(held) == len(set(held))
    finally:
        cards.close()


def test_studies_share_the_cards_out_and_do_not_meet(tmp_path):
    first = CardPool("study 'a'", lambda: EIGHT[:2], tmp_path)
    second = CardPool("study 'b'", lambda: EIGHT[:5], tmp_path)
    assert first.take(1) == (EIGHT[0],)
    assert second.take(3) == EIGHT[2:5]
    third = CardPool("study 'c'", lambda: EIGHT[:5], tmp_path)
    with pytest.raises(BusyError, match=r"study 'a'.*CUDA_VISIBLE_DEVICES"):
        third.take(1)
    first.close()
    assert third.take(2) == EIGHT[:2]
    for pool in (second, third):
        pool.close()


def test_a_trial_never_has_fewer_cards_than_it_wants_because_others_have_some(tmp_path):
    first = CardPool("study 'a'", lambda: EIGHT[:2], tmp_path)
    assert first.take(1) == (EIGHT[0],)
    second = CardPool("study 'b'", lambda: EIGHT[:4], tmp_path)
    with pytest.raises(BusyError, match=r"a run needs 4 GPUs, 2 are free; others are in use by .*study 'a'"):
        second.take(4)
    # It holds none that it cannot use.
    third = CardPool("study 'c'", lambda: EIGHT[2:4], tmp_path)
    assert third.take(2) == EIGHT[2:4]
    third.close()
    # Of a machine with too few it has all, and later trials have to wait for its own.
    small = second.take(2)
    first.close()
    assert second.take(4) is None
    second.give_back(small)
    assert second.take(9) == EIGHT[:4]
    second.close()


def test_cards_that_others_have_are_waited_for_where_a_session_waits(tmp_path):
    first = CardPool("study 'a'", lambda: EIGHT[:2], tmp_path)
    first.take(2)
    said, waits, asked = [], [], []

    def wait_by(text):
        said.append(text)
        first.close()

    def find():
        asked.append("nvidia-smi")
        return EIGHT[:2]

    @contextmanager
    def waiting():
        waits.append("begins")
        yield
        waits.append("ends")

    second = CardPool("study 'b'", find, tmp_path, wait_by, waiting)
    assert second.take(2) == EIGHT[:2]
    assert said[0].startswith("waiting (Ctrl-C leaves): the GPUs of this machine are in use by ")
    assert "study 'a'" in said[0]
    assert waits == ["begins", "ends"]
    # The vendor's tool would disturb the runs that are waited for, again and again.
    assert len(asked) == 1
    second.close()


def test_a_study_that_was_killed_leaves_its_cards_to_others(tmp_path):
    claim = (
        "import sys; from pathlib import Path; from autotune.execution.card_pool import CardPool; "
        "from launchers.card import Card; "
        "CardPool('killed', lambda: [Card('GPU-0', 'nvidia')], Path(sys.argv[1])).take(1); "
        "print('has it', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", claim, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as study:
        assert study.stdout.readline() == "has it\n"
        mine = CardPool("tests", lambda: EIGHT[:1], tmp_path)
        with pytest.raises(BusyError, match="killed"):
            mine.take(1)
        study.kill()
        study.wait()
        assert mine.take(1) == EIGHT[:1]
        mine.close()


def test_a_card_that_cannot_be_locked_is_said(tmp_path):
    (tmp_path / "card-nvidia-GPU-0.lock").symlink_to(tmp_path / "thesis")
    with pytest.raises(CannotRunHereError, match="cannot lock a GPU"):
        CardPool("tests", lambda: EIGHT, tmp_path).take(1)


def test_where_nothing_lists_the_cards_trials_on_them_run_one_at_a_time(tmp_path):
    cards = CardPool("tests", tuple, tmp_path)
    pool = MachinePool(CorePool(range(8)), cards)
    first = pool.take(Resources(cores=1, gpus=4))
    assert pool.take(Resources(cores=1, gpus=1)) is None
    assert pool.take(Resources(cores=1)) is not None
    pool.give_back(first)
    assert pool.take(Resources(cores=1, gpus=1)) is not None
    cards.close()


def test_a_trial_without_cards_claims_none(tmp_path):
    def find():
        raise AssertionError

    assert MachinePool(CorePool(range(2)), CardPool("tests", find, tmp_path)).take(Resources(cores=2)) is not None
