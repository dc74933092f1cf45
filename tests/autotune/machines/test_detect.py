"""Detection on made-up trees of the kernel's files, and on this machine."""

import dataclasses
import json
import platform

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.machines import gpus, software
from autotune.machines.description import Gpu, MachineDescription, MachineError, MeasuredFigures
from autotune.machines.detect import describe, describe_this_machine, figures_of_cores, file_system_of, quick_facts
from autotune.machines.gpus import find_gpus, gfx_name, read_nvidia_smi
from autotune.machines.network import find_network
from autotune.machines.software import find_blas, find_scheduler
from autotune.machines.this_machine import Machine, this_machine
from autotune.machines.user_files import figures_file
from autotune.planning.prepare import prepare
from autotune.studyfile import SpaceSection, StudyFile
from launchers.local import LocalLauncher

SPACE = SpaceSection(parameters={"x": {"type": "integer", "low": 1, "high": 4, "default": 1}})
MACHINE = Machine(
    host="node7",
    cpu_model="Intel(R) Xeon(R) Platinum 8274 CPU @ 3.20GHz",
    microarchitecture="cascadelake",
    cpus=(0, 1, 2, 3),
    sockets=2,
    memory_bytes=8 * 2**30,
    system="Linux-4.18",
)
CPUINFO = """processor : 0
vendor_id : GenuineIntel
cpu MHz   : 3899.9
flags     : fpu sse2 avx avx2 avx512f

processor : 1
vendor_id : GenuineIntel
"""


def tree(root, files):
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def caches(*groups):
    """Return the files of caches: a private second level, and a third level for each group of processors."""
    files = {}
    for group in groups:
        listed = ",".join(map(str, group))
        for cpu in group:
            folder = f"sys/devices/system/cpu/cpu{cpu}/cache"
            files |= {f"{folder}/index2/{name}": text for name, text in (("level", "2"), ("size", "1024K"))}
            files |= {f"{folder}/index3/{name}": text for name, text in (("level", "3\n"), ("size", "36608K\n"))}
            files[f"{folder}/index3/shared_cpu_list"] = listed
    return files


def test_a_node_with_two_sockets(tmp_path):
    root = tree(
        tmp_path,
        {
            "proc/cpuinfo": CPUINFO,
            "sys/devices/system/cpu/cpu0/cpufreq/base_frequency": "3200000\n",
            "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "4000000\n",
            "sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0,48\n",
            "etc/os-release": 'NAME=x\nPRETTY_NAME="Rocky Linux 8.9"\n',
            **caches((0, 1), (2, 3)),
        },
    )
    found = describe(MACHINE, programs=False, root=root)
    assert found.cpu.model_dump() == {
        "vendor": "intel",
        "model": MACHINE.cpu_model,
        "architecture": platform.machine(),
        "microarchitecture": "cascadelake",
        "sockets": 2,
        "cores_per_node": 4,
        "threads_per_core": 2,
        "frequency_hz": 3.2e9,
        "vector_bits": 512,
        "flops": None,
        "cache_bytes": 2 * 36608 * 1024,
    }
    assert found.facts["memory_bytes"] == 8 * 2**30
    assert found.facts["system"] == "Rocky Linux 8.9"
    assert all(found.source(path) for path in found.given if path != "software.system")


def test_a_machine_that_says_nothing_is_no_error(tmp_path):
    found = describe(MACHINE, programs=False, root=tmp_path)
    assert found.facts["cores"] == 4
    assert found.gpu == Gpu()
    assert found.cpu.frequency_hz is None
    assert found.cpu.cache_bytes is None
    assert found.software.system == "Linux-4.18"


def test_garbage_in_the_kernels_files_is_no_error(tmp_path):
    garbage = dict.fromkeys(caches((0,)), "\x00 -1 garbage\n")
    extra = ("proc/cpuinfo", "proc/self/mountinfo", "sys/class/infiniband/mlx5_0/ports/1/rate", "etc/os-release")
    found = describe(MACHINE, programs=False, root=tree(tmp_path, garbage | dict.fromkeys(extra, ":: \n - - \n")))
    assert found.cpu.cache_bytes is None
    assert found.network.name is None


def test_the_frequency_of_a_guest(tmp_path):
    found = describe(MACHINE, programs=False, root=tree(tmp_path, {"proc/cpuinfo": CPUINFO}))
    assert found.cpu.frequency_hz == pytest.approx(3.8999e9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Tesla V100-SXM2-32GB, 32768, 7.0\n" * 4,
            {"count": 4, "memory_bytes": 2**35, "architecture": "volta", "shared_memory_bytes": 96 * 1024},
        ),
        ("NVIDIA RTX A4000, 16376, 8.6\n", {"count": 1, "architecture": "ampere", "lanes": 32}),
        ("NVIDIA L40S, 46068, 8.9\n", {"architecture": "ada"}),
        ("NVIDIA GH200 480GB, [N/A], 9.0\n", {"memory_bytes": None, "architecture": "hopper"}),
        ("Tesla P100, 16280\n", {"architecture": None, "memory_bytes": 16280 * 2**20, "registers": None}),
        ("A, 100, 8.0\nB, 100, 8.0\nB, 100, 8.0\n", {"count": 2, "model": "B"}),
    ],
)
def test_what_nvidia_smi_prints(text, expected):
    gpu = read_nvidia_smi(text)
    assert gpu is not None
    assert {name: getattr(gpu, name) for name in expected} == expected


@given(st.text())
def test_whatever_nvidia_smi_prints_is_read(text):
    gpu = read_nvidia_smi(text)
    assert gpu is None or gpu.count >= 1


def program(folder, name, text):
    (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_an_old_nvidia_smi_is_asked_for_less(tmp_path, monkeypatch):
    refuse = 'case "$1" in *compute_cap*) echo "Field \\"compute_cap\\" is not valid"; exit 2;; esac'
    program(tmp_path, "nvidia-smi", f"{refuse}\necho 'Tesla K80, 11441'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    gpu, source = find_gpus(programs=True, root=tmp_path)
    assert (gpu.model, gpu.memory_bytes, source) == ("Tesla K80", 11441 * 2**20, "nvidia-smi")
    assert find_gpus(programs=False, root=tmp_path) == (Gpu(), "")


def test_an_nvidia_smi_that_hangs_or_fails_is_left(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(gpus, "_PATIENCE_S", 0.2)
    for text in ("exec sleep 60", "echo 'NVIDIA-SMI has failed'; exit 9"):
        program(tmp_path, "nvidia-smi", text)
        assert find_gpus(programs=True, root=tmp_path) == (Gpu(), "")


def test_gpus_by_their_drivers(tmp_path):
    nvidia = {f"proc/driver/nvidia/gpus/0000:0{n}/information": "Model: \t NVIDIA H100\nIRQ: 3\n" for n in (1, 2)}
    gpu, source = find_gpus(programs=False, root=tree(tmp_path / "nvidia", nvidia))
    assert (gpu.count, gpu.model, source) == (2, "NVIDIA H100", "/proc/driver/nvidia")
    die = "simd_count 440\nsimd_per_cu 4\nwave_front_size 64\nlds_size_in_kb 64\ngfx_target_version 90010\n"
    nodes = "sys/class/kfd/kfd/topology/nodes"
    amd = {f"{nodes}/0/properties": "cpu_cores_count 64\nsimd_count 0\n"}
    for node in (1, 2):
        amd[f"{nodes}/{node}/properties"] = die
        amd[f"{nodes}/{node}/mem_banks/0/properties"] = f"heap_type 1\nsize_in_bytes {2**36}\n"
    gpu, source = find_gpus(programs=False, root=tree(tmp_path / "amd", amd))
    assert source == "/sys/class/kfd"
    assert gpu == Gpu(
        count=2,
        vendor="amd",
        architecture="gfx90a",
        memory_bytes=2**36,
        compute_units=110,
        lanes=64,
        shared_memory_bytes=65536,
    )


@pytest.mark.parametrize(("number", "name"), [(90010, "gfx90a"), (100302, "gfx1032"), (110000, "gfx1100"), (0, "")])
def test_amds_names_of_architectures(number, name):
    assert gfx_name(number) == name


def port(adapter, rate, layer="InfiniBand", state="4: ACTIVE"):
    folder = f"sys/class/infiniband/{adapter}/ports/1"
    return {f"{folder}/rate": rate, f"{folder}/state": state, f"{folder}/link_layer": layer}


def test_two_rails_count_together_and_what_is_down_does_not(tmp_path):
    files = {
        **port("mlx5_0", "100 Gb/sec (4X EDR)\n"),
        **port("mlx5_1", "100 Gb/sec (4X EDR)\n"),
        **port("mlx5_2", "200 Gb/sec (4X HDR)\n", state="1: DOWN"),
        **port("mlx5_3", "25 Gb/sec (1X EDR)\n", layer="Ethernet"),
    }
    network, source = find_network(tree(tmp_path, files))
    assert (network.name, network.bandwidth_bytes_per_s) == ("InfiniBand EDR", 25e9)
    assert source == "/sys/class/infiniband"


def test_omni_path_and_ethernet(tmp_path):
    omni = tree(tmp_path / "omni", port("hfi1_0", "100 Gb/sec (4X EDR)"))
    assert find_network(omni)[0].name == "Omni-Path EDR"
    card = "sys/class/net/eth0"
    files = {f"{card}/device/x": "", f"{card}/operstate": "up\n", f"{card}/speed": "10000\n"}
    files |= {"sys/class/net/lo/operstate": "up", "sys/class/net/lo/speed": "99999"}
    network, _ = find_network(tree(tmp_path / "ethernet", files))
    assert (network.name, network.bandwidth_bytes_per_s) == ("Ethernet", 1.25e9)
    tree(tmp_path / "ethernet", {f"{card}/speed": "-1\n"})
    assert find_network(tmp_path / "ethernet")[0].bandwidth_bytes_per_s is None


def test_an_allocation_tells_more_than_commands(tmp_path):
    program(tmp_path, "sinfo", "")
    path = {"PATH": str(tmp_path)}
    assert find_scheduler({"PATH": ""}) is None
    assert find_scheduler(path) == "slurm"
    assert find_scheduler({**path, "PBS_JOBID": "7.pbs"}) == "pbs"


def test_grid_engine_is_not_taken_for_pbs_whose_commands_have_the_same_names(tmp_path):
    for name in ("qsub", "qstat", "qconf"):
        program(tmp_path, name, "")
    assert find_scheduler({"PATH": str(tmp_path)}) == "grid-engine"


def test_the_blas_library_that_a_program_would_load(tmp_path):
    folder = tmp_path / "openblas-pthread"
    folder.mkdir()
    (folder / "libblas.so.3").touch()
    found = find_blas({"LD_LIBRARY_PATH": f":/nowhere:{folder}"})
    assert found == folder / "libblas.so.3"
    assert software.blas_name(found) == "openblas-pthread"
    (tmp_path / "libopenblasp-r0.3.26.so").touch()
    (tmp_path / "libopenblas.so.0").symlink_to("libopenblasp-r0.3.26.so")
    assert software.blas_name(tmp_path / "libopenblas.so.0") == "libopenblasp-r0.3.26.so"


MOUNTS = r"""22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
31 22 0:41 / /my\040disk rw - xfs /dev/sdb rw
32 22 0:42 / /scratch rw shared:1 - autofs x rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"), [("/home/me", "ext4"), ("/scratch/me", "autofs"), ("/my disk/x", "xfs"), ("/scratchy", "ext4")]
)
def test_the_file_system_of_a_folder(tmp_path, folder, kind):
    assert file_system_of(type(tmp_path)(folder), MOUNTS) == kind


def test_this_machine_is_described_with_its_figures(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    machine = describe_this_machine(programs=False)
    assert "measured_blas_flops" not in quick_facts(this_machine())
    file = figures_file(machine.given)
    figures = MeasuredFigures(blas_flops=5e9, memory_bandwidth_by_cores={"1": 1e10, "2": 2e10})
    file.parent.mkdir(parents=True)
    file.write_text(machine.model_copy(update={"measured": figures}).to_toml(), encoding="utf-8")
    assert quick_facts(this_machine())["measured_blas_flops"] == 5e9
    assert describe_this_machine(programs=False).source("measured.blas_flops") == "autotune machine --measure"
    part = dataclasses.replace(this_machine(), cpus=this_machine().cpus[:1])
    if this_machine().cores > 1:
        assert quick_facts(part)["measured_memory_bandwidth_bytes_per_s"] == 1e10
        assert quick_facts(part)["cores"] == 1
    file.write_text("cores = 1\n", encoding="utf-8")
    assert quick_facts(this_machine())["cores"] == this_machine().cores
    with pytest.raises(MachineError, match="unknown key"):
        describe_this_machine()


def test_nodes_of_other_types_have_other_figures():
    given = {"cpu.model": "AMD EPYC 7H12 64-Core", "cpu.cores_per_node": 128, "memory.bytes": 256 * 2**30}
    home = {"HOME": "/home/me"}
    file = figures_file(given, home)
    assert str(file).startswith("/home/me/.config/autotune/measured/amd-epyc-7h12-64-core-128-cores-")
    assert figures_file({**given, "disk.name": "nfs"}, home) == file
    assert figures_file({**given, "memory.bytes": 256 * 2**30 + 4096}, home) == file
    others = [
        figures_file({**given, "cpu.cores_per_node": 64}, home),
        figures_file({**given, "memory.bytes": 512 * 2**30}, home),
        figures_file({**given, "software.blas": "openblas-pthread"}, home),
        figures_file(given, {**home, "OPENBLAS_CORETYPE": "Haswell"}),
    ]
    assert len({file, *others}) == 5
    assert figures_file(given, {**home, "XDG_CONFIG_HOME": "/c"}).is_relative_to("/c/autotune")
    assert figures_file(given, {**home, "XDG_CONFIG_HOME": "relative"}) == file


def test_figures_of_a_part_of_the_cores():
    figures = MeasuredFigures(
        memory_bandwidth_bytes_per_s=40.0,
        memory_bandwidth_by_cores={"1": 10.0, "4": 28.0, "8": 40.0},
        blas_flops=9.0,
        mpi_latency_s=1e-6,
    )
    assert figures_of_cores(figures, 8).memory_bandwidth_bytes_per_s == 40.0
    assert figures_of_cores(figures, 2).memory_bandwidth_bytes_per_s == pytest.approx(16.0)
    assert figures_of_cores(figures, 2).blas_flops is None
    assert figures_of_cores(figures, 2).mpi_latency_s == 1e-6
    assert figures_of_cores(figures, 1).mpi_latency_s is None
    assert figures_of_cores(figures, 16).memory_bandwidth_bytes_per_s is None
    assert (
        MachineDescription(name="x", measured=figures_of_cores(figures, 1)).facts[
            "measured_memory_bandwidth_bytes_per_s"
        ]
        == 10
    )


def test_a_study_stores_the_facts_but_does_not_depend_on_them(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def started(*words, **options):
        pytest.fail(f"a study must not wait for {words}")

    study = StudyFile(name="any", objective="command", options={"argv": ["true", "{x}"]}, space=SPACE)
    machine = dataclasses.replace(this_machine(), cpus=this_machine().cpus[:1])
    monkeypatch.setattr(software, "ask", started)
    definition = prepare(study, machine, LocalLauncher(), tmp_path / "plan").definition
    assert definition.machine["facts"]["cores"] == 1
    assert definition.machine["facts"]["cpu_architecture"] == platform.machine()
    assert definition.machine_identity == machine.identity
    assert json.loads(json.dumps(definition.machine)) == definition.machine
