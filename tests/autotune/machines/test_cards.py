"""The cards of a machine, as nvidia-smi and rocm-smi list them (their manuals, "-L" and "--json")."""

import json

import pytest

from autotune.errors import CannotRunHereError
from autotune.machines import cards
from autotune.machines.cards import find_cards
from launchers.card import VISIBILITY_VARIABLE, Card, visibility_variables

WHOLE = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-e0a1b2c3-0000-1111-2222-333344445555)
"""
DIVIDED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 3g.20gb     Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-e0a1b2c3-0000-1111-2222-333344445555)
"""
ROCM = json.dumps(
    {
        "card2": {"Unique ID": "0xdeadbeefdeadbe01", "PCI Bus": "0000:C4:00.0"},
        "card1": {"Unique ID": "0xdeadbeefdeadbeef", "PCI Bus": "0000:44:00.0"},
        "system": {"Driver version": "6.7"},
    }
)
# The first entry is a processor with graphics, which reports no ID.
MIXED = json.dumps({"card0": {"Unique ID": "N/A"}, "card1": {"Unique ID": "0xdeadbeefdeadbeef"}, "card2": {}})


def tool(**printed):
    """Return a function that runs these tools; any other command is missing."""

    def ask(command):
        if command[0] not in printed:
            return ""
        if command[1:] in (["-L"], ["--showuniqueid", "--showbus", "--json"]):
            return printed[command[0]]
        assert command == ["nvidia-smi", "--query-gpu=uuid,pci.bus_id", "--format=csv,noheader"]
        return ""

    return ask


def names(ask):
    return [card.name for card in find_cards(ask)]


@pytest.fixture(autouse=True)
def all_visible(monkeypatch):
    for name in (*VISIBILITY_VARIABLE.values(), "HIP_VISIBLE_DEVICES"):
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
    [
        ("1", 1),
        ("0", 2),
        ("GPU-e0a1", 1),
        ("MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", 1),
        ("", 0),
        ("0,1", 3),
        ("-1", 0),
    ],
)
def test_what_an_allocation_does_not_show_is_not_used(monkeypatch, allowed, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert len(names(tool(**{"nvidia-smi": DIVIDED}))) == count


def test_cards_of_amd_have_the_names_that_rocm_takes():
    assert find_cards(tool(**{"rocm-smi": ROCM})) == (
        Card("GPU-deadbeefdeadbeef", "amd"),
        Card("GPU-deadbeefdeadbe01", "amd"),
    )


def test_cards_of_amd_without_an_id_have_the_number_that_rocm_takes():
    assert names(tool(**{"rocm-smi": MIXED})) == ["0", "GPU-deadbeefdeadbeef", "2"]


@pytest.mark.parametrize(("rocr", "hip", "found"), [("1", None, ["deadbe01"]), ("0,1", "1", ["deadbe01"])])
def test_what_rocm_or_hip_does_not_show_is_not_used(monkeypatch, rocr, hip, found):
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", rocr)
    if hip:
        monkeypatch.setenv("HIP_VISIBLE_DEVICES", hip)
    assert [name[-8:] for name in names(tool(**{"rocm-smi": ROCM}))] == found


def test_cards_of_amd_are_used_where_those_of_nvidia_are_hidden(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert len(names(tool(**{"nvidia-smi": WHOLE, "rocm-smi": ROCM}))) == 2


def test_cores_near_a_card_are_those_of_its_place_on_the_bus(tmp_path, monkeypatch):
    for bus, near in {"0000:44:00.0": "0-1", "0000:c4:00.0": "2,3"}.items():
        place = tmp_path / bus / "local_cpulist"
        place.parent.mkdir()
        place.write_text(f"{near}\n")
    monkeypatch.setattr(cards, "_PCI", tmp_path)
    assert [card.cpus for card in find_cards(tool(**{"rocm-smi": ROCM}))] == [(0, 1), (2, 3)]
    buses = (
        "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77, 00000000:44:00.0\nGPU-e0a1b2c3-0000-1111-2222-333344445555, [N/A]"
    )
    ask = {"-L": WHOLE, "--query-gpu=uuid,pci.bus_id": buses}
    assert [card.cpus for card in find_cards(lambda command: ask.get(command[1], ""))] == [(0, 1), ()]


@pytest.mark.parametrize(
    ("variable", "text", "found"),
    [
        ("ZE_AFFINITY_MASK", "0,1", [Card("0", "intel"), Card("1", "intel")]),
        ("ZE_AFFINITY_MASK", "0.0,0.1", [Card("0.0", "intel"), Card("0.1", "intel")]),
        ("CUDA_VISIBLE_DEVICES", "GPU-e0a1, 3", [Card("GPU-e0a1", "nvidia"), Card("3", "nvidia")]),
        ("CUDA_VISIBLE_DEVICES", "NoDevFiles", []),
        ("ZE_AFFINITY_MASK", "", []),
    ],
)
def test_where_nothing_lists_the_cards_they_are_those_that_an_allocation_names(monkeypatch, variable, text, found):
    monkeypatch.setenv(variable, text)
    assert list(find_cards(tool())) == found


@pytest.mark.parametrize("text", ["", "No devices were found\n", "{", "[]", '{"card0": 3}', '{"cardx": {}}'])
def test_what_cannot_be_read_is_no_card(text):
    assert find_cards(tool(**{"nvidia-smi": text, "rocm-smi": text})) == ()


def test_a_tool_that_does_not_answer_is_not_taken_for_a_machine_without_cards(monkeypatch):
    def ask(command, patience_s):
        raise TimeoutError

    monkeypatch.setattr(cards, "ask", ask)
    with pytest.raises(CannotRunHereError, match="nvidia-smi has not answered for 60 s"):
        find_cards()


def test_a_program_sees_its_own_cards_and_no_others():
    several = [Card("GPU-1", "nvidia"), Card("GPU-2", "nvidia"), Card("0", "intel"), Card("")]
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert visibility_variables(several, 4) == {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2", "ZE_AFFINITY_MASK": "0"} | order
    # HIP_VISIBLE_DEVICES of the caller numbers all cards; the program sees only its own.
    amd = {"ROCR_VISIBLE_DEVICES": "GPU-a,3", "HIP_VISIBLE_DEVICES": "0,1"}
    assert visibility_variables([Card("GPU-a", "amd"), Card("3", "amd")], 2) == amd | order
    # Numbers set by a batch system or by Ray follow the order on the bus.
    assert visibility_variables([], 1) == visibility_variables([Card("")], 1) == order
    assert visibility_variables([], 0) == {}
