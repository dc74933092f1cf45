"""Measure this machine with tiny sizes: figures, missing figures and their reasons, and cleanup."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.machines import disk, worker
from autotune.machines.benchmark import FigureBenchmark, Sizes, core_counts, measure
from autotune.machines.description import Cpu, MachineDescription
from autotune.machines.disk import DiskError, disk_rates
from autotune.machines.figure import best_figure, median_figure
from autotune.machines.pingpong import PingPongError, message_figures, read_output
from autotune.machines.software import find_blas
from autotune.machines.this_machine import this_machine
from autotune.machines.workers import WorkerError, Workers
from launchers.detect import detect
from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.mpi.srun import SRUN
from tests.support.processes import living
from tests.support.waiting import wait_for

TINY = Sizes(array_bytes=2**16, order=8, duration_s=0.001, repeats=2, file_bytes=2**16)
MACHINE = MachineDescription(name="this", cpu=Cpu(cache_bytes=2**20))
CORES = this_machine().cpus
NO_BLAS = ("libno-such-blas.so.1",)


def bench(folder, **changes):
    return FigureBenchmark(**{"cpus": CORES, "folder": folder, "flavour": None, **changes})


BEFORE: set[int] = set()


@pytest.fixture(autouse=True)
def _others():
    BEFORE.clear()
    BEFORE.update(child.pid for child in psutil.Process().children(recursive=True))


def children():
    """Return the processes that the test has started, without servers of other tests and their children."""
    own = [child for child in psutil.Process().children() if child.pid not in BEFORE]
    return [process for child in own for process in (child, *child.children(recursive=True))]


def test_a_figure_and_how_far_its_repeats_are_apart():
    assert best_figure([8.0, 10.0, 9.0]).value == 10.0
    assert median_figure([8.0, 10.0, 9.0]).value == 9.0
    assert best_figure([8.0, 10.0, 9.0]).spread == pytest.approx(2 / 9)
    assert median_figure([5.0]).spread == 0.0
    for wrong in ([], [0.0, 1.0]):
        with pytest.raises(ValueError, match="positive repeats"):
            best_figure(wrong)


@given(st.integers(1, 5000))
def test_cores_are_doubled_until_it_is_all_of_them(cores):
    counts = core_counts(cores)
    assert counts[-1] == cores
    assert all(2 * low == high for low, high in pairwise(counts[:-1]))
    assert len(counts) == 1 or counts[0] == 1
    assert len(counts) == 1 or counts[-2] < cores <= 2 * counts[-2]


def test_everything_that_can_be_measured_here(tmp_path):
    said = []
    before = set(tmp_path.iterdir())
    found = measure(MACHINE, bench(tmp_path), said.append, TINY)
    assert found.memory_bandwidth_by_cores.keys() == {str(cores) for cores in core_counts(len(CORES))}
    assert found.memory_bandwidth_bytes_per_s == found.memory_bandwidth_by_cores[str(len(CORES))]
    assert found.memory_bandwidth_core_bytes_per_s == found.memory_bandwidth_by_cores["1"]
    assert found.blas_flops_by_cores.keys() == {"1", str(len(CORES))}
    assert found.blas
    assert found.disk_read_bytes_per_s > 0
    assert set(found.spread) == {
        name for name, value in found.model_dump(exclude_none=True).items() if isinstance(value, float)
    } - {"load_1m"}
    assert found.at.endswith("+00:00")
    assert any("messages between ranks: " in note for note in found.notes), "there was nothing to start ranks with"
    assert any("1 core" in line for line in said)
    assert set(tmp_path.iterdir()) == before
    assert not children()


def test_one_core_has_one_figure_for_one_and_for_all(tmp_path):
    one = bench(tmp_path, cpus=CORES[:1], flavour=MpiFlavour(OPEN_MPI))
    found = measure(MACHINE, one, lambda _: None, TINY)
    assert found.blas_flops == found.blas_flops_core
    assert found.memory_bandwidth_bytes_per_s == found.memory_bandwidth_core_bytes_per_s
    assert "no figures of messages between ranks: there is one core only" in found.notes


def test_without_a_library_of_the_system_it_is_numpys_and_said(tmp_path):
    found = measure(MACHINE, bench(tmp_path, libraries=NO_BLAS), lambda _: None, TINY)
    assert found.blas == "numpy's own"
    assert any("numpy's own" in note for note in found.notes)


@pytest.mark.parametrize(("load", "noted"), [(0.29, False), (0.31, True)])
def test_a_busy_machine_is_noted(tmp_path, monkeypatch, load, noted):
    monkeypatch.setattr(os, "getloadavg", lambda: (load * len(CORES), 9.0, 9.0))
    found = measure(MACHINE, bench(tmp_path), lambda _: None, TINY)
    assert found.load_1m == round(load * len(CORES), 2)
    assert any("the machine was busy" in note for note in found.notes) is noted


def test_with_little_memory_arrays_are_smaller_and_that_is_noted(tmp_path, monkeypatch):
    free = namedtuple("free", "available")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free(40 * 2**20))
    sizes = Sizes(order=8, duration_s=0.001, repeats=1, file_bytes=2**16)
    found = measure(MACHINE, bench(tmp_path), lambda _: None, sizes)
    assert found.memory_bandwidth_bytes_per_s
    assert any("less than 4 times the caches" in note for note in found.notes)


def test_without_memory_a_figure_is_left_out(tmp_path):
    sizes = Sizes(array_bytes=2**60, order=8, duration_s=0.001, repeats=1, file_bytes=2**16)
    found = measure(MACHINE, bench(tmp_path), lambda _: None, sizes)
    assert found.memory_bandwidth_bytes_per_s is None
    assert "no memory bandwidth: there is not enough memory" in found.notes
    assert found.blas_flops


def test_what_takes_too_long_is_ended(tmp_path):
    sizes = Sizes(array_bytes=2**16, order=8, duration_s=120.0, patience_s=0.2, file_bytes=2**16)
    found = measure(MACHINE, bench(tmp_path), lambda _: None, sizes)
    assert found.blas_flops is None
    assert any("took too long" in note for note in found.notes)
    assert not children()


def test_an_interrupted_measurement_leaves_nothing(tmp_path):
    def stop(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(MACHINE, bench(tmp_path), stop, TINY)
    assert not children()
    assert list(tmp_path.iterdir()) == []


def test_workers_are_gone_when_their_parent_is(tmp_path):
    script = (
        "import time\nfrom autotune.machines.workers import Workers\n"
        f"w = Workers({list(CORES[:1])}, patience_s=60)\nprint(w._processes[0].pid, flush=True)\ntime.sleep(1000)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_for(lambda: not living(lambda process: process.pid == pid), "the worker to end")


def test_processes_that_cannot_be_started_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    found = measure(MACHINE, bench(tmp_path), lambda _: None, TINY)
    assert "no memory bandwidth: no more processes can be started: No such file or directory" in found.notes
    assert found.disk_write_bytes_per_s


def test_each_worker_keeps_to_its_core_and_to_one_thread():
    with Workers(CORES, patience_s=60, environment={**os.environ, "OMP_NUM_THREADS": "7"}) as group:
        group.prepare(len(CORES), {"prepare": "copy", "bytes": 64})
        processes = [psutil.Process(process.pid) for process in group._processes]
        assert [process.cpu_affinity() for process in processes] == [[cpu] for cpu in CORES]
        assert {process.environ()["OMP_NUM_THREADS"] for process in processes} == {"1"}


def test_a_worker_that_was_killed_is_said():
    with Workers(CORES[:1], patience_s=60) as group:
        group.prepare(1, {"prepare": "copy", "bytes": 64})
        group._processes[0].kill()
        group._processes[0].wait()
        with pytest.raises(WorkerError, match="a measuring process"):
            group.rate(1, 0.001)


def test_the_rate_is_work_over_time(monkeypatch):
    clock = iter([10.0, 10.25, 10.5])
    monkeypatch.setattr(worker.time, "perf_counter", lambda: next(clock))
    calls = []
    assert worker.rate((lambda: calls.append(1), 3.0), 0.4) == 2 * 3.0 / 0.5
    assert len(calls) == 2


def test_what_a_copy_and_a_product_count():
    step, moved = worker.copy_work(2**12)
    step()
    assert moved == 2 * 2**12
    (step, operations), library = worker.multiply_work(10, NO_BLAS)
    step()
    assert (operations, library) == (2000.0, "numpy's own")


def test_the_systems_library_multiplies_right():
    path = find_blas()
    if path is None:
        pytest.skip("there is no BLAS library here")
    (step, operations), library = worker.multiply_work(4, ["libno-such-blas.so.1", str(path)])
    step()
    assert operations == 128.0
    assert library != "numpy's own"
    # Both factors are all ones, so each element of the product is the order.
    arrays = [cell.cell_contents for cell in step.__closure__ if hasattr(cell.cell_contents, "_length_")]
    assert sorted(sum(array) for array in arrays if len(array) == 16) == [16.0, 16.0, 64.0]


def test_what_the_two_ranks_print():
    text = "latency 2.0e-06\nbandwidth 1.0e+09\nlatency 4.0e-06\nnoise\nbandwidth 3.0e+09\nlatency 3.0e-06\n"
    found = read_output(text)
    assert found["mpi_latency_s"].value == 3e-6
    assert found["mpi_bandwidth_bytes_per_s"].value == 3e9
    with pytest.raises(PingPongError, match="printed no times"):
        read_output("mpirun: hello\n")


def test_ranks_that_cannot_start_are_said(tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    two = (CORES * 2)[:2]
    with pytest.raises(PingPongError, match="no MPI start command"):
        message_figures(None, two)
    with pytest.raises(PingPongError, match="srun starts ranks in an allocation only"):
        message_figures(MpiFlavour(SRUN, path=str(tmp_path / "srun")), two)
    with pytest.raises(PingPongError):
        message_figures(MpiFlavour(OPEN_MPI, (4,), str(tmp_path / "no-mpirun")), two)


def test_a_machine_without_a_compiler_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(PingPongError, match="no mpicc; load the MPI's module, or install it"):
        message_figures(MpiFlavour(OPEN_MPI, (4,), "/usr/bin/mpirun"), (CORES * 2)[:2])


@pytest.mark.full
def test_messages_between_real_ranks():
    flavour = detect()
    if flavour is None or len(CORES) < 2 or shutil.which("mpicc") is None:
        pytest.skip("two cores, mpirun and mpicc are needed")
    found = message_figures(flavour, CORES)
    assert 0 < found["mpi_latency_s"].value < 1
    assert found["mpi_bandwidth_bytes_per_s"].value > 1e6
    assert not list(Path(tempfile.gettempdir()).glob("autotune-pingpong-*"))


def test_a_full_disk_and_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    with pytest.raises(DiskError, match="No such file"):
        disk_rates(tmp_path / "missing")
    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(DiskError, match="No space left on device"):
        disk_rates(tmp_path, 2**16)
    assert list(tmp_path.iterdir()) == []
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: usage(2**20))
    with pytest.raises(DiskError, match="less than 160 MiB are free"):
        disk_rates(tmp_path)


def refuse(descriptor, data):
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "write", refuse)
    found = measure(MACHINE, bench(tmp_path), lambda _: None, TINY)
    assert found.disk_write_bytes_per_s is None
    assert any("no figures of the disk" in note and "No space left" in note for note in found.notes)
