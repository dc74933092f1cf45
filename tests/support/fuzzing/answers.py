"""Parsers of answers of batch systems, drivers, MPI and UCX, and of files of the kernel."""

# ruff: noqa: PLC0415  imports wait until the fuzzer can instrument them

from collections.abc import Callable
from pathlib import Path

from tests.support.fuzzing.target import Made, Target, of_file, of_text, text_of


def _batch_answer(name: str) -> Callable[[], Made]:
    def make() -> Made:
        from launchers.batch_systems.registry import find_batch_system

        system = find_batch_system(name)
        scheduler = system.scheduler

        def read(text: str) -> object:
            scheduler.job_id(text)
            scheduler.states(text, "", 0)
            scheduler.states(text[: len(text) // 2], text[len(text) // 2 :], 1)
            scheduler.can_wait(text)
            scheduler.refusal(text)
            scheduler.fallback(text)
            if scheduler.reasons is not None:
                scheduler.reasons.read(text)
            if system.end is not None:
                system.end.read(text, 1.7e9)
            for question in system.limits:
                question.read(text)
            return None

        return of_text(read)

    return make


_IN_A_JOB = dict.fromkeys(("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "SGE_ROOT"), "1")


def _allocation(name: str, *variables: str) -> Callable[[], Made]:
    """Take each line as the value of a variable of the job, and the whole text as its file of nodes."""

    def make() -> Made:
        from launchers.batch_systems.registry import find_batch_system

        system = find_batch_system(name)

        def read(text: str) -> object:
            values = dict(zip(variables, text.split("\n"), strict=False))
            return system.allocation(_IN_A_JOB | values, lambda _path: text)

        return of_text(read)

    return make


def _host_list() -> Made:
    from launchers.batch_systems.slurm_hosts import expand_counts, expand_hosts

    def read(text: str) -> object:
        for expand in (expand_hosts, expand_counts):
            try:
                expand(text)
            except ValueError:
                continue
        return None

    return of_text(read)


def _cpu_list() -> Made:
    from launchers.cpus import parse_cpu_list

    return of_text(parse_cpu_list, ValueError)


def _kernel_counters() -> Made:
    from launchers.noise import meter

    def read(text: str) -> object:
        return [
            meter.parse_cpu_times(text),
            meter.parse_schedstat(text),
            meter.parse_pressure(text),
            meter.parse_cpu_stat(text),
            meter.parse_cgroups(text),
        ]

    return of_text(read)


def _mpi_version() -> Made:
    from launchers.detect import parse_flavour

    return of_text(parse_flavour)


def _modules() -> Made:
    from launchers.software.modules import parse_statements
    from launchers.software.spack import parse_exports

    return of_text(lambda text: (parse_statements(text), parse_exports(text)))


def _nvidia_smi() -> Made:
    from autotune.machines.cards import find_cards
    from autotune.machines.gpus import read_nvidia_smi

    def read(text: str) -> object:
        find_cards(lambda command: text if "-L" in command else "")
        find_cards(lambda command: text if command[0] == "nvidia-smi" else "")
        return read_nvidia_smi(text)

    return of_text(read)


def _rocm_smi() -> Made:
    from autotune.machines.cards import find_cards

    return of_text(lambda text: find_cards(lambda command: text if command[0] == "rocm-smi" else ""))


def _mounts() -> Made:
    from autotune.machines.detect import file_system_of
    from autotune.storage.sqlite.journal import shared_file_system

    def read(path: Path) -> object:
        return shared_file_system(Path("/a/b"), path), file_system_of(Path("/a/b"), text_of(path.read_bytes()))

    return of_file(read, "mountinfo")


def _ucx() -> Made:
    from objectives.ucx.protocols import choices
    from spaces.ucx import config, transports, values
    from studies.programs.ucx import pair

    def read(text: str) -> object:
        for variable in config.parse(text):
            values.values_of(variable, (0.5, 2.0))
            values.size_bytes(variable.default)
        config.lanes(text)
        transports.network_devices(text)
        choices(text, ((1, 1024),))
        return pair.parse(text)

    return of_text(read, pair.PairError)


_SLURM = ("SLURM_JOB_NODELIST", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_END_TIME", "SLURM_GPUS_ON_NODE")


_SQUEUE = ("123|RUNNING|None\n124|PENDING|Priority\n", "Submitted batch job 123", "JobId=1 EndTime=2026-01-02T03:04:05")


_QSTAT = (
    "Job Id: 12.pbs\n    job_state = R\n    Resource_List.walltime = 01:00:00\n    stime = Mon Jan  5 10:00:00 2026\n",
    "12.pbs",
)


_QSTAT_GE = (
    "job-ID  prior   name\n-----\n   12 0.5 job u r 01/02/2026 03:04:05\n",
    'Your job 12 ("job") has been submitted',
)


_BJOBS = ("Job <12> is submitted to queue <normal>.", "12|RUN|-|-|-\n13|EXIT|1|TERM_RUNLIMIT|-\n")


_FLUX = ("f2Abc3", '{"id": "f2A", "state": "INACTIVE", "result": "COMPLETED"}', "f2Abc RUN  0 \n")


TARGETS = (
    Target("sbatch, squeue, scontrol", _batch_answer("slurm"), words=_SQUEUE),
    Target("qsub, qstat of PBS", _batch_answer("pbs"), words=_QSTAT),
    Target("qsub, qstat of Grid Engine", _batch_answer("grid-engine"), words=_QSTAT_GE),
    Target("bsub, bjobs", _batch_answer("lsf"), words=_BJOBS),
    Target("flux jobs", _batch_answer("flux"), words=_FLUX),
    Target("allocation of Slurm", _allocation("slurm", *_SLURM), words=("a[1-3],b\n4(x3),2\n1700000000\n2\n",)),
    Target("allocation of PBS", _allocation("pbs", "PBS_NODEFILE", "PBS_NCPUS", "PBS_NGPUS"), words=("a\n8\n2\n",)),
    Target(
        "allocation of Grid Engine", _allocation("grid-engine", "PE_HOSTFILE", "NSLOTS"), words=("a 8 q@a 0,1\n8\n",)
    ),
    Target("allocation of LSF", _allocation("lsf", "LSB_MCPU_HOSTS", "LSB_DJOB_NUMPROC"), words=("a 8 b 8\n16\n",)),
    Target("Slurm host list", _host_list, words=("gadi-cpu-[0001-0003,0007],x1", "48(x3),24"), most_bytes=400),
    Target("CPU list", _cpu_list, words=("0-3,8",), most_bytes=400),
    Target(
        "counters of the kernel",
        _kernel_counters,
        words=("cpu0 1 2 3 4 5 6 7 8\n", "12 34 5\n", "some avg10=0.00 total=9\n", "throttled_usec 5\n", "0::/a/b\n"),
    ),
    Target(
        "mpirun --version",
        _mpi_version,
        words=("mpirun (Open MPI) 4.1.4\n", "HYDRA build details:\n    Version: 4.0.2\n", "slurm 23.11.1\n"),
    ),
    Target(
        "module, spack",
        _modules,
        words=("import os\nos.environ['A'] = 'b'\ndel os.environ['C']\n", "export PATH=/a:/b;\nunset X;\n"),
    ),
    Target(
        "nvidia-smi",
        _nvidia_smi,
        words=(
            "NVIDIA A100, 40960, 8.0\n",
            "GPU 0: NVIDIA A100 (UUID: GPU-1a)\n  MIG 1g.5gb Device 0: (UUID: MIG-2b)\nGPU-1a, 00000000:07:00.0\n",
        ),
    ),
    Target("rocm-smi", _rocm_smi, words=('{"card0": {"Unique ID": "0x1a", "PCI Bus": "0000:07:00.0"}}',)),
    Target("mounts", _mounts, words=("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:5 / /a rw - nfs4 s:/x rw\n",)),
    Target(
        "ucx_info, ucx_perftest",
        _ucx,
        words=(
            '#\n# Size of it.\n#\n# syntax: memory units: <number>[b|kb|mb|gb], "inf", or "auto"\n#\nUCX_A=8K\n',
            "#  Transport: tcp\n#     Device: eth0\n#      Type: network\n",
            "iterations,a,b\n1,2.0,3.0\n",
        ),
    ),
)
