"""The exact commands that start ranks, in three shapes: full, minimal and none, on a whole machine and a part of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from launchers import Job, MpiStart, Resources
from launchers.mpi import (
    CannotStartRanksError,
    MpiFlavour,
    flavour_record,
    intel_mpi,
    mpi_environment,
    mpich,
    notes,
    open_mpi,
    script_flavour,
    srun,
)
from launchers.mpi_command import mpi_argv
from tests.support.hardware_threads import two_cores

OPEN_MPI_4 = MpiFlavour(open_mpi.OPEN_MPI, (4, 1, 4))
OPEN_MPI_5 = MpiFlavour(open_mpi.OPEN_MPI, (5, 0, 11))
MPICH = MpiFlavour(mpich.MPICH, (4, 0, 2), "mpiexec")
INTEL_MPI = MpiFlavour(intel_mpi.INTEL_MPI, (2021, 18, 1))
SRUN = MpiFlavour(srun.SRUN, (22, 5, 8), "srun")
FLAVOURS = [OPEN_MPI_4, OPEN_MPI_5, MPICH, INTEL_MPI, SRUN]

ONLINE = range(8)
PROGRAM = ("pw.x", "-inp", "in put.in")


def job(ranks: int, *, cores: int = 8, cpus: tuple[int, ...] = (), **start: str | tuple[str, ...]) -> Job:
    return Job(PROGRAM, Path("/run"), mpi=MpiStart(ranks, **start), resources=Resources(cores=cores, cpus=cpus))


def command(flavour: MpiFlavour, wanted: Job, online=()) -> str:
    argv = mpi_argv(flavour, wanted, online=online)
    assert tuple(argv[-len(PROGRAM) :]) == PROGRAM
    return " ".join(argv[: -len(PROGRAM)])


SRUN_HEAD = "srun --nodes=1 --ntasks={} --export=ALL --kill-on-bad-exit=1"

# flavour, job, whether the machine's own cores are known, command
GOLDEN = [
    # minimal: no options, as in a job script
    (OPEN_MPI_4, job(8), (), "mpirun -np 8"),
    (OPEN_MPI_5, job(8), (), "mpirun -np 8"),
    (MPICH, job(8), (), "mpiexec -n 8"),
    (INTEL_MPI, job(8), (), "mpirun -n 8"),
    (SRUN, job(8), (), SRUN_HEAD.format(8) + " --cpus-per-task=1"),
    # full
    (
        OPEN_MPI_4,
        job(4, bind_to="core", map_by="socket", options=("--hostfile", "a b")),
        (),
        "mpirun -np 4 --map-by socket --bind-to core --hostfile a b",
    ),
    (OPEN_MPI_5, job(4, bind_to="core", map_by="numa"), (), "mpirun -np 4 --map-by numa --bind-to core"),
    (
        MPICH,
        job(4, bind_to="core", map_by="socket", options=("-launcher", "ssh")),
        (),
        "mpiexec -n 4 -bind-to core -map-by socket -launcher ssh",
    ),
    (
        INTEL_MPI,
        job(4, bind_to="core", map_by="scatter"),
        (),
        "mpirun -n 4 -genv I_MPI_PIN_DOMAIN core -genv I_MPI_PIN_ORDER scatter",
    ),
    (
        SRUN,
        job(4, bind_to="socket", map_by="block:cyclic", options=("--mpi=pmix",)),
        (),
        SRUN_HEAD.format(4) + " --cpus-per-task=2 --distribution=block:cyclic --cpu-bind=sockets --mpi=pmix",
    ),
    # several threads per rank: Open MPI would bind them all to one core
    (OPEN_MPI_4, job(2), (), "mpirun -np 2 --map-by slot:PE=4"),
    (OPEN_MPI_4, job(2, map_by="socket"), (), "mpirun -np 2 --map-by socket:PE=4"),
    (OPEN_MPI_4, job(2, bind_to="none"), (), "mpirun -np 2 --bind-to none"),
    # the whole machine, by its core numbers
    (OPEN_MPI_4, job(8, cpus=tuple(ONLINE)), ONLINE, "mpirun -np 8"),
    (MPICH, job(8, cpus=tuple(ONLINE), bind_to="core"), ONLINE, "mpiexec -n 8 -bind-to core"),
    # any core of a shared machine
    (OPEN_MPI_4, job(2), ONLINE, "mpirun -np 2 --bind-to none"),
    (OPEN_MPI_5, job(2, bind_to="socket"), ONLINE, "mpirun -np 2 --bind-to socket"),
    # a part of the machine
    (OPEN_MPI_4, job(2, cpus=(2, 3)), ONLINE, "mpirun -np 2 --bind-to none"),
    (OPEN_MPI_5, job(2, cpus=(2, 3)), ONLINE, "mpirun -np 2 --bind-to none"),
    (OPEN_MPI_4, job(2, cpus=(3, 2), bind_to="core"), ONLINE, "mpirun -np 2 --cpu-set 2,3 --bind-to core"),
    (
        OPEN_MPI_5,
        job(2, cpus=(2, 3), bind_to="core"),
        ONLINE,
        "mpirun -np 2 --map-by pe-list=2,3:ordered --bind-to core",
    ),
    (OPEN_MPI_4, job(1, cpus=(2, 3)), ONLINE, "mpirun -np 1 --bind-to none"),
    (MPICH, job(2, cpus=(2, 3)), ONLINE, "mpiexec -n 2 -bind-to user:2,3"),
    (MPICH, job(2, cpus=(2, 3, 6, 7)), ONLINE, "mpiexec -n 2 -bind-to user:2+3,6+7"),
    (MPICH, job(2, cpus=(2, 3), bind_to="none"), ONLINE, "mpiexec -n 2 -bind-to none"),
    (INTEL_MPI, job(2, cpus=(2, 3, 6, 7)), ONLINE, "mpirun -n 2 -genv I_MPI_PIN_DOMAIN [0xc,0xc0]"),
    (
        SRUN,
        job(2, cpus=(2, 3)),
        ONLINE,
        # Without --cpus-per-task, which implies --exact and would give the step other cores.
        SRUN_HEAD.format(2) + " --overlap --mem=0 --cpu-bind=mask_cpu:0x4,0x8",
    ),
    (
        SRUN,
        job(2, cpus=(2, 3), bind_to="none"),
        ONLINE,
        SRUN_HEAD.format(2) + " --overlap --mem=0 --cpu-bind=mask_cpu:0xc",
    ),
    (SRUN, job(8, bind_to="none"), (), SRUN_HEAD.format(8) + " --cpus-per-task=1 --cpu-bind=none"),
    # more ranks than cores
    (
        OPEN_MPI_4,
        job(4, cpus=(2, 3), bind_to="core"),
        ONLINE,
        "mpirun -np 4 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1",
    ),
    (
        OPEN_MPI_5,
        job(16),
        (),
        "mpirun -np 16 --map-by :OVERSUBSCRIBE --bind-to none --mca mpi_yield_when_idle 1",
    ),
    (MPICH, job(4, cpus=(2, 3)), ONLINE, "mpiexec -n 4 -bind-to none"),
    (INTEL_MPI, job(4, cpus=(2, 3)), ONLINE, "mpirun -n 4 -genv I_MPI_PIN 0 -genv I_MPI_WAIT_MODE 1"),
    (
        SRUN,
        job(4, cpus=(2, 3)),
        ONLINE,
        SRUN_HEAD.format(4) + " --overlap --mem=0 --overcommit --cpu-bind=mask_cpu:0xc",
    ),
    (SRUN, job(16), (), SRUN_HEAD.format(16) + " --overcommit --cpu-bind=none"),
]


def on_threads(ranks: int, *cpus: int, hosts: tuple[str, ...] = (), **start: str) -> Job:
    resources = Resources(len(cpus), nodes=max(1, len(hosts)), cpus=cpus, hosts=hosts, threads_per_core=2)
    return replace(job(ranks, **start), resources=resources)


# Ranks on the two hardware threads of each of two cores, or of one: flavour, job, command
HARDWARE_THREADS = [
    # the whole machine
    (OPEN_MPI_4, on_threads(4, 0, 1), "mpirun -np 4 --use-hwthread-cpus"),
    (OPEN_MPI_5, on_threads(4, 0, 1), "mpirun -np 4 --map-by :HWTCPUS"),
    (OPEN_MPI_4, on_threads(2, 0, 1), "mpirun -np 2 --use-hwthread-cpus --map-by slot:PE=2"),
    (OPEN_MPI_5, on_threads(2, 0, 1), "mpirun -np 2 --map-by slot:PE=2:HWTCPUS"),
    (
        OPEN_MPI_5,
        on_threads(4, 0, 1, map_by="numa", bind_to="hwthread"),
        "mpirun -np 4 --map-by numa:HWTCPUS --bind-to hwthread",
    ),
    (MPICH, on_threads(4, 0, 1), "mpiexec -n 4"),
    (INTEL_MPI, on_threads(4, 0, 1), "mpirun -n 4"),
    (SRUN, on_threads(2, 0, 1), SRUN_HEAD.format(2) + " --cpus-per-task=2 --threads-per-core=2"),
    # a part of it
    (OPEN_MPI_4, on_threads(2, 1), "mpirun -np 2 --use-hwthread-cpus --bind-to none"),
    (OPEN_MPI_5, on_threads(2, 1), "mpirun -np 2 --map-by :HWTCPUS --bind-to none"),
    (MPICH, on_threads(2, 1), "mpiexec -n 2 -bind-to user:1,3"),
    (MPICH, on_threads(1, 1), "mpiexec -n 1 -bind-to user:1+3"),
    (INTEL_MPI, on_threads(2, 1), "mpirun -n 2 -genv I_MPI_PIN_DOMAIN [0x2,0x8]"),
    (
        SRUN,
        on_threads(2, 1),
        SRUN_HEAD.format(2) + " --overlap --mem=0 --threads-per-core=2 --cpu-bind=mask_cpu:0x2,0x8",
    ),
    # two hosts
    (OPEN_MPI_4, on_threads(8, 0, 1, hosts=("a", "b")), "mpirun -np 8 --host a:4,b:4 --use-hwthread-cpus"),
    # more ranks than hardware threads
    (OPEN_MPI_4, on_threads(3, 1), "mpirun -np 3 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"),
]


@pytest.fixture
def hardware_threads(tmp_path, monkeypatch):
    two_cores(tmp_path, monkeypatch)


@pytest.mark.usefixtures("hardware_threads")
@pytest.mark.parametrize(("flavour", "wanted", "expected"), HARDWARE_THREADS, ids=[row[2] for row in HARDWARE_THREADS])
def test_ranks_on_hardware_threads(flavour, wanted, expected):
    assert command(flavour, wanted, (0, 1)) == expected


# A part or all of one host of several: start commands other than srun are called on that host and use only it.
ON_ONE_HOST = [
    (OPEN_MPI_4, (2, 3), "mpirun -np 2 --bind-to none"),
    (OPEN_MPI_5, tuple(ONLINE), "mpirun -np 2 --map-by slot:PE=4"),
    (MPICH, (2, 3), "mpiexec -n 2 -bind-to user:2,3"),
    (INTEL_MPI, tuple(ONLINE), "mpirun -n 2"),
    (
        SRUN,
        (2, 3),
        SRUN_HEAD.format(2) + " --nodelist=b --ntasks-per-node=2 --overlap --mem=0 --cpu-bind=mask_cpu:0x4,0x8",
    ),
    (
        SRUN,
        tuple(ONLINE),
        SRUN_HEAD.format(2) + " --nodelist=b --ntasks-per-node=2 --overlap --mem=0 --cpus-per-task=4",
    ),
]


@pytest.mark.parametrize(("flavour", "cpus", "expected"), ON_ONE_HOST, ids=[row[2] for row in ON_ONE_HOST])
def test_ranks_on_one_host_of_several(flavour, cpus, expected):
    resources = Resources(len(cpus), cpus=cpus, hosts=("b",))
    assert command(flavour, replace(job(2), resources=resources), ONLINE) == expected


# Two whole hosts of eight cores: flavour, ranks, what else is asked for, command
ON_HOSTS = [
    (OPEN_MPI_4, 16, {}, "mpirun -np 16 --host a:8,b:8"),
    (OPEN_MPI_5, 16, {"bind_to": "core"}, "mpirun -np 16 --host a:8,b:8 --bind-to core"),
    (OPEN_MPI_4, 8, {}, "mpirun -np 8 --host a:4,b:4 --map-by slot:PE=2"),
    (OPEN_MPI_4, 15, {"bind_to": "none"}, "mpirun -np 15 --host a:8,b:8 --bind-to none"),
    (
        OPEN_MPI_4,
        32,
        {},
        "mpirun -np 32 --host a:16,b:16 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1",
    ),
    (MPICH, 16, {"bind_to": "core"}, "mpiexec -n 16 -hosts a,b -ppn 8 -bind-to core"),
    (INTEL_MPI, 16, {}, "mpirun -n 16 -hosts a,b -ppn 8"),
    (
        SRUN,
        8,
        {},
        SRUN_HEAD.replace("nodes=1", "nodes=2").format(8)
        + " --nodelist=a,b --ntasks-per-node=4 --overlap --mem=0 --cpus-per-task=2",
    ),
]


@pytest.mark.parametrize(("flavour", "ranks", "asked", "expected"), ON_HOSTS, ids=[row[3] for row in ON_HOSTS])
def test_ranks_across_hosts(flavour, ranks, asked, expected):
    resources = Resources(cores=ranks, nodes=2, cpus=tuple(ONLINE), hosts=("a", "b"))
    assert command(flavour, replace(job(ranks, **asked), resources=resources), ONLINE) == expected


@pytest.mark.parametrize(("flavour", "wanted", "online", "expected"), GOLDEN, ids=[row[3] for row in GOLDEN])
def test_commands(flavour, wanted, online, expected):
    assert command(flavour, wanted, online) == expected


@pytest.mark.parametrize(
    ("flavour", "wanted", "expected"),
    [
        (OPEN_MPI_4, job(2, cores=4), "mpirun -np 2 --bind-to none"),
        (OPEN_MPI_5, job(2, cores=2, bind_to="core"), "mpirun -np 2 --bind-to core"),
        (MPICH, job(2, cores=2), "mpiexec -n 2"),
        (INTEL_MPI, job(2, cores=2), "mpirun -n 2 -genv I_MPI_PIN 0"),
        (INTEL_MPI, job(2, cores=2, bind_to="core"), "mpirun -n 2 -genv I_MPI_PIN_DOMAIN core"),
    ],
)
def test_ranks_on_shared_nodes_are_not_bound(flavour, wanted, expected):
    argv = mpi_argv(flavour, wanted, shares_nodes=True)
    assert " ".join(argv[: -len(PROGRAM)]) == expected


@pytest.mark.parametrize("flavour", FLAVOURS, ids=str)
def test_program_without_ranks_is_started_as_it_is(flavour):
    assert mpi_argv(flavour, replace(job(1), mpi=None), online=ONLINE) == list(PROGRAM)


@pytest.mark.parametrize("flavour", FLAVOURS, ids=str)
@pytest.mark.parametrize("word", ["a b", "'\"", "new\nline", "ü", "", "*", "$(exit 1)", "--bind-to"])
def test_words_are_passed_unchanged(flavour, word):
    strange = replace(job(8), argv=("/opt/with blank/pw.x", word))
    assert mpi_argv(replace(flavour, path="/opt/an mpi/mpirun"), strange)[-2:] == ["/opt/with blank/pw.x", word]
    assert mpi_argv(replace(flavour, path="/opt/an mpi/mpirun"), strange)[0] == "/opt/an mpi/mpirun"


@pytest.mark.parametrize("flavour", FLAVOURS, ids=str)
@pytest.mark.parametrize("ranks", [0, -1])
def test_job_with_zero_ranks_is_refused(flavour, ranks):
    with pytest.raises(CannotStartRanksError, match="must be 1 or more"):
        mpi_argv(flavour, job(ranks))


@pytest.mark.parametrize("flavour", [OPEN_MPI_4, OPEN_MPI_5], ids=str)
@pytest.mark.parametrize("start", [{"map_by": "socket"}, {}])
def test_binding_beyond_the_jobs_cores_is_refused(flavour, start):
    wanted = job(1, cpus=(2, 3), bind_to="core", **start)
    with pytest.raises(CannotStartRanksError, match=r"to the cores \[2, 3\] of this job; use bind_to = 'none'"):
        mpi_argv(flavour, wanted, online=ONLINE)


@pytest.mark.usefixtures("hardware_threads")
@pytest.mark.parametrize("flavour", [OPEN_MPI_4, OPEN_MPI_5], ids=str)
def test_open_mpi_gets_no_hardware_thread_numbers(flavour):
    with pytest.raises(CannotStartRanksError, match=r"to the cores \[1, 3\] of this job; use bind_to = 'none'"):
        mpi_argv(flavour, on_threads(2, 1, bind_to="hwthread"), online=(0, 1))


def test_open_mpi_allows_root_only_for_root():
    assert mpi_environment(OPEN_MPI_4, user_id=1000) == {}
    assert mpi_environment(MPICH, user_id=0) == {}
    assert mpi_environment(OPEN_MPI_4, user_id=0) == {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    assert mpi_environment(OPEN_MPI_5, user_id=0).keys() >= {"PRTE_ALLOW_RUN_AS_ROOT"}


def test_notes_and_variables_for_containers_without_single_copy():
    in_container = replace(OPEN_MPI_4, single_copy=False)
    assert mpi_environment(in_container, user_id=1) == {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    assert mpi_environment(replace(OPEN_MPI_5, single_copy=False), user_id=1) == {"OMPI_MCA_smsc": "^cma"}
    assert any("container" in note for note in notes(in_container, user_id=1))


def test_notes_mention_root():
    assert notes(OPEN_MPI_4, user_id=0)[0] == "ranks are started with Open MPI 4.1.4 (mpirun)"
    assert any("root" in note for note in notes(OPEN_MPI_4, user_id=0))
    assert not any("root" in note for note in notes(OPEN_MPI_4, user_id=1))


@pytest.mark.parametrize("flavour", FLAVOURS, ids=str)
def test_script_uses_the_flavour_of_the_run_by_its_plain_name(flavour):
    installed = replace(flavour, path=f"/opt/some where/bin/{flavour.path}")
    assert script_flavour({"flavour": flavour_record(installed)}) == flavour


def test_script_without_a_record_uses_open_mpi():
    assert script_flavour({}) == MpiFlavour(open_mpi.OPEN_MPI)
