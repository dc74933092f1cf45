"""The cards of a machine, as nvidia-smi and rocm-smi list them (their manuals, "-L" and "--json")."""

import json

import pytest

from autotune.machines.cards import find_cards
from launchers.card import VISIBLE, Card, visible

WHOLE = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-e0a1b2c3-0000-1111-2222-333344445555)
"""
DIVIDED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 3g.20gb     Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-e0a1b2c3-0000-1111-2222-333344445555)
"""
ROCM = json.dumps({"card1": {"Unique ID": "0xdeadbeefdeadbe01"}, "card0": {"Unique ID": "0xdeadbeefdeadbeef"}})


def tool(**printed):
    """Return a machine that has these tools; what else it is asked for is not there."""

    def ask(command):
        if command[0] not in printed:
            return ""
        if command[1:] in (["-L"], ["--showuniqueid", "--json"]):
            return printed[command[0]]
        assert command == ["nvidia-smi", "--query-gpu=uuid,pci.bus_id", "--format=csv,noheader"]
        return ""

    return ask


def names(ask):
    return [card.name for card in find_cards(ask)]


@pytest.fixture(autouse=True)
def all_visible(monkeypatch):
    for name in VISIBLE.values():
        monkeypatch.delenv(name, raising=False)


def test_cards_have_their_uuids():
    found = names(tool(**{"nvidia-smi": WHOLE}))
    assert found == ["GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77", "GPU-e0a1b2c3-0000-1111-2222-333344445555"]


def test_instances_of_a_divided_card_are_cards_and_it_is_none():
    found = names(tool(**{"nvidia-smi": DIVIDED}))
    assert found == [
        "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f",
        "MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb",
        "GPU-e0a1b2c3-0000-1111-2222-333344445555",
    ]


@pytest.mark.parametrize(
    ("allowed", "count"),
    [("1", 1), ("0", 2), ("GPU-e0a1", 1), ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", 1), ("", 0), ("0,1", 3)],
)
def test_what_an_allocation_does_not_show_is_not_used(monkeypatch, allowed, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert len(names(tool(**{"nvidia-smi": DIVIDED}))) == count


def test_cards_of_amd_have_the_names_that_rocm_takes():
    assert find_cards(tool(**{"rocm-smi": ROCM})) == (
        Card("GPU-deadbeefdeadbeef", "amd"),
        Card("GPU-deadbeefdeadbe01", "amd"),
    )


@pytest.mark.parametrize("text", ["", "No devices were found\n", "{", "[]", '{"card0": 3}', '{"cardx": {}}'])
def test_what_cannot_be_read_is_no_card(text):
    assert find_cards(tool(**{"nvidia-smi": text, "rocm-smi": text})) == ()


def test_a_program_sees_its_own_cards_and_no_others():
    cards = [Card("GPU-1", "nvidia"), Card("GPU-2", "nvidia"), Card("0", "intel"), Card("")]
    assert visible(cards) == {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2", "ZE_AFFINITY_MASK": "0"}
    assert visible([Card("")]) == {}
