"""The names of accelerators as nvidia-smi, rocm-smi and Kernel Tuner print them."""

import pytest

from autotune.machines.catalogue import find_machine
from autotune.machines.description import MachineError


@pytest.fixture(autouse=True)
def _no_machines_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("NVIDIA A100-PCIE-40GB", "nvidia-a100"),
        ("A100-PCIE-40GB", "nvidia-a100"),
        ("NVIDIA RTX A4000", "nvidia-a4000"),
        ("RTX A6000", "nvidia-a6000"),
        ("Quadro RTX A6000", "nvidia-a6000"),
        ("AMD Instinct MI250X", "amd-mi250x"),
        ("AMD INSTINCT MI250X (MCM) OAM AC MBA", "amd-mi250x"),
        ("AMD Radeon PRO W6600", "amd-w6600"),
        ("Navi 31 [Radeon Pro W7800]", "amd-w7800"),
    ],
)
def test_a_card_is_found_by_the_name_that_programs_print(printed, name):
    assert find_machine(printed).name == name


@pytest.mark.parametrize("printed", ["NVIDIA A100-SXM4-80GB", "A100", "Quadro RTX 6000", "NVIDIA", "Radeon PRO W7900"])
def test_another_card_is_not_taken_for_it(printed):
    with pytest.raises(MachineError, match="no machine is called"):
        find_machine(printed)
