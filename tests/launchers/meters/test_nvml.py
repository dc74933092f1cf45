"""NVIDIA's cards in the process that reads the meters of a run, with a library that answers as NVML does."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState, Resources
from launchers.card import Card
from launchers.local import LocalLauncher
from launchers.meters.available import find_meters
from launchers.meters.cards import Reading
from launchers.meters.nvml import Nvml, nvidia_readers
from launchers.meters.run_meters import card_readers
from launchers.processes import JOB_VARIABLE, find_marked
from launchers.run import run
from tests.launchers.jobs import kill, python, supervisor_of, wait_for, wait_for_end, wait_for_output
from tests.support.processes import left_in

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

GIB = 2**30


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("nvml.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", str(made), str(source)], check=True)
    return made


@pytest.fixture
def driver(library, monkeypatch):
    """Make new processes load the fake library."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))


def metered(folder, *, gpus=1, cards=(), seconds=0.05, nodes=1, launcher=None):
    code = f"import time; time.sleep({seconds})"
    folder.mkdir(exist_ok=True)
    resources = Resources(gpus=gpus, cards=cards, nodes=nodes, hosts=("here",) * nodes)
    status = run(launcher or LocalLauncher(), Job(python(code), folder, resources=resources))
    assert status.reason is EndReason.EXITED
    assert status.exit_code == 0
    return status


def test_run_measures_its_own_card(driver, tmp_path):
    status = metered(tmp_path, cards=(Card("GPU-11111111-2222", "nvidia"),))
    assert (
        status.metered.items()
        >= {
            "gpu_busy_share": pytest.approx(0.4),
            "gpu_peak_memory_bytes": 3.0 * GIB,
            "gpu_peak_power_w": 250.0,
            "gpu_energy_j": 12.5,
        }.items()
    )
    # Its energy comes from its counter, whatever the power at the samples.
    assert status.metered["gpu_mean_power_w"] < 12.5 / 0.05
    assert left_in(tmp_path) == []


def test_two_cards_are_counted_together(driver, tmp_path):
    found = metered(tmp_path, gpus=2).metered
    assert found["gpu_busy_share"] == pytest.approx(0.7)
    assert found["gpu_peak_power_w"] == 500.0
    # The second has no counter, so its power is integrated over the run.
    assert found["gpu_energy_j"] > 12.5


def test_run_without_gpus_and_one_on_several_nodes_do_not_load_the_library(driver, tmp_path):
    assert not any(name.startswith("gpu_") for name in metered(tmp_path / "none", gpus=0).metered)
    assert metered(tmp_path / "several", gpus=2, nodes=2).metered == {}


def test_no_figures_if_the_runs_card_is_unknown(driver, tmp_path, monkeypatch):
    assert "gpu_energy_j" not in metered(tmp_path / "unknown", gpus=1).metered
    # As a batch system sets it.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert metered(tmp_path / "known", gpus=1).metered["gpu_energy_j"] == 12.5


@pytest.mark.full
@pytest.mark.parametrize("fault", [pytest.param("hangs", marks=pytest.mark.slow), "crashes", "no driver"])
def test_failing_driver_does_not_affect_the_run(driver, tmp_path, monkeypatch, fault):
    monkeypatch.setenv("UCX_FAKE_NVML", fault)
    status = metered(tmp_path, cards=(Card("GPU-11111111-2222", "nvidia"),))
    assert not any(name.startswith("gpu_") for name in status.metered)
    wait_for(lambda: not find_marked(JOB_VARIABLE, lambda mark: str(tmp_path) in mark))


def test_killed_supervisor_leaves_no_process_that_reads_meters(driver, tmp_path):
    launcher = LocalLauncher()
    resources = Resources(gpus=1, cards=(Card("GPU-11111111-2222", "nvidia"),))
    job = Job(python("import time; print('ready', flush=True); time.sleep(1000)"), tmp_path, resources=resources)
    job_id = launcher.submit(job)
    wait_for_output(job)
    kill(supervisor_of(job_id))
    wait_for(lambda: not find_marked(JOB_VARIABLE, lambda mark: str(tmp_path) in mark))
    assert wait_for_end(launcher, job_id).state is JobState.LOST


def test_machine_without_the_library_has_no_figures_of_cards(tmp_path):
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has it")
    assert not any(name.startswith("gpu_") for name in metered(tmp_path).metered)


def test_cards_and_instances_are_found_by_number_or_uuid(library):
    for visible, memory_gib in (("0", 3), ("1", 4), ("GPU-2111", 4), ("MIG-7", 4), ("1, 0", 4)):
        look, *_ = nvidia_readers(visible, 1 + visible.count(","), str(library))
        assert look().memory_bytes == memory_gib * GIB
    with pytest.raises(OSError, match="no card 'GPU-3'"):
        nvidia_readers("GPU-3", 1, str(library))


def test_cards_of_a_whole_node_are_ambiguous(library):
    with pytest.raises(OSError, match="the job sees 2 cards, 1 are wanted"):
        nvidia_readers("0,1", 1, str(library))


def test_existing_vendor_wins_if_both_variables_are_set(library, tmp_path):
    both = {"CUDA_VISIBLE_DEVICES": "0", "ROCR_VISIBLE_DEVICES": "0"}
    (look,) = card_readers(both, 1, str(tmp_path), str(library))
    assert look().memory_bytes == 3 * GIB
    with pytest.raises(OSError, match="0 vendors"):
        card_readers(both, 1, str(tmp_path), "no-nvml.so")


def test_unsupported_values_are_absent(library):
    (_, second) = Nvml(str(library)).cards()
    assert second[0] == "GPU-21111111-2222"
    assert second[1]() == Reading(1.0, 4 * GIB, 250.0, None)


def test_finding_says_which_cards_have_a_counter(library, tmp_path):
    said = [str(meter) for meter in find_meters(str(tmp_path), str(library))]
    assert said[-1].endswith("NVIDIA with a counter of energy, NVIDIA without a counter of energy")
    assert "shows none" in said[0]


def test_library_without_a_driver_is_not_a_meter(library):
    found = subprocess.run(
        [sys.executable, "-c", "from launchers.meters.nvml import Nvml\nNvml(__import__('sys').argv[1])", str(library)],
        env={"UCX_FAKE_NVML": "no driver", "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "nvmlInit_v2 returned 9" in found.stderr
