"""The allocation of a job, as its environment describes it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.batch.allocation import ask_end, find_end, read
from launchers.batch_systems import pbs, slurm
from launchers.batch_systems.slurm_hosts import expand_counts, expand_hosts
from launchers.batch_systems.system import Allocation

NAME = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
ENDING = st.from_regex(r"(-[a-z]+)?", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gadi-cpu-[0001-0003,0007],x1", ["gadi-cpu-0001", "gadi-cpu-0002", "gadi-cpu-0003", "gadi-cpu-0007", "x1"]),
        ("localhost", ["localhost"]),
        ("r[1-2]n[08-10]-ib", ["r1n08-ib", "r1n09-ib", "r1n10-ib", "r2n08-ib", "r2n09-ib", "r2n10-ib"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("a[1,3],b[2]", ["a1", "a3", "b2"]),
        ("", []),
    ],
)
def test_slurms_host_lists(text, hosts):
    assert expand_hosts(text) == hosts


@pytest.mark.slow
@given(st.lists(st.tuples(NAME, st.sets(st.integers(0, 999), min_size=1), st.integers(1, 5), ENDING), max_size=4))
def test_whatever_is_folded_is_unfolded(groups):
    text, hosts = [], []
    for name, numbers, width, ending in groups:
        padded = [str(number).zfill(width) for number in sorted(numbers)]
        text.append(f"{name}[{','.join(padded)}]{ending}")
        hosts += [f"{name}{number}{ending}" for number in padded]
    assert expand_hosts(",".join(text)) == hosts


@given(NAME, st.integers(0, 5000), st.integers(0, 300), st.integers(1, 6))
def test_a_range_has_all_its_hosts_with_as_many_digits(name, first, more, width):
    low, high = str(first).zfill(width), str(first + more).zfill(width)
    hosts = expand_hosts(f"{name}[{low}-{high}]")
    assert len(hosts) == more + 1
    assert (hosts[0], hosts[-1]) == (name + low, name + str(first + more).zfill(len(low)))


@pytest.mark.parametrize("text", ["a[1-", "a[x-2]", "a]1[", "a[1][2", "a[1-2-3]"])
def test_what_is_no_host_list_is_refused(text):
    with pytest.raises(ValueError, match="is not a"):
        expand_hosts(text)


@pytest.mark.parametrize(
    ("expand", "text"),
    [(expand_hosts, "a[0-999999]"), (expand_hosts, "a[0-999][0-999]"), (expand_counts, "1(x999999)")],
)
def test_a_list_of_more_hosts_than_any_cluster_has_is_refused_before_it_fills_the_memory(expand, text):
    with pytest.raises(ValueError, match="stands for more than"):
        expand(text)


@given(st.lists(st.tuples(st.integers(1, 256), st.integers(1, 50)), max_size=5))
def test_counts(pairs):
    text = ",".join(f"{count}(x{times})" if times > 1 else f"{count}" for count, times in pairs)
    assert expand_counts(text) == [count for count, times in pairs for _ in range(times)]


def test_counts_that_are_none():
    with pytest.raises(ValueError, match=r"48\(x3\),24"):
        expand_counts("48x3")


def test_slurm():
    environment = {
        "SLURM_JOB_ID": "17",
        "SLURM_JOB_NODELIST": "n[01-04]",
        "SLURM_JOB_CPUS_PER_NODE": "48(x3),24",
        "SLURM_JOB_END_TIME": "1795000000",
        "SLURM_GPUS_ON_NODE": "4",
    }
    hosts = ("n01", "n02", "n03", "n04")
    assert read(environment) == Allocation("Slurm", "17", hosts, (48, 48, 48, 24), 4, 1795000000.0)
    assert read({"SLURM_JOB_ID": "17"}) == Allocation("Slurm", "17")


@pytest.mark.parametrize(("hosts", "counts"), [("a[1-", "48"), ("a[x]", "4x"), ("", "48(x")])
def test_a_list_that_cannot_be_read_leaves_the_hosts_unknown(hosts, counts):
    found = read({"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": hosts, "SLURM_JOB_CPUS_PER_NODE": counts})
    assert found is not None
    assert found.hosts == ()


def test_an_end_in_the_past_is_none():
    end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(1795000000))
    stale = read({"SLURM_JOB_ID": "17", "SLURM_JOB_END_TIME": "1700000000"})
    assert find_end(stale, 1790000000.0, lambda _: "N/A") is None
    assert find_end(stale, 1790000000.0, lambda _: end) == 1795000000
    assert find_end(stale, 1799000000.0, lambda _: end) is None
    assert find_end(stale, 1600000000.0, lambda _: pytest.fail("needs not ask")) == 1700000000


def test_pbs():
    environment = {"PBS_JOBID": "9.gadi-pbs", "PBS_NODEFILE": "/nodes", "PBS_NCPUS": "96", "PBS_NGPUS": "8"}
    files = {"/nodes": "gadi-1\ngadi-2\n"}
    assert read(environment, files.__getitem__) == Allocation("PBS", "9.gadi-pbs", ("gadi-1", "gadi-2"), (48, 48), 4)
    # OpenPBS: a line for each MPI process, and NCPUS is that of a host
    plain = {"PBS_JOBID": "9", "PBS_NODEFILE": "/nodes", "NCPUS": "2"}
    files = {"/nodes": "a\na\nb\nb\n"}
    assert read(plain, files.__getitem__) == Allocation("PBS", "9", ("a", "b"), (2, 2))
    assert read({"PBS_JOBID": "9"}) == Allocation("PBS", "9")


def test_lsf_flux_and_none():
    assert read({"LSB_JOBID": "5", "LSB_MCPU_HOSTS": "a 16 b 8 "}) == Allocation("LSF", "5", ("a", "b"), (16, 8))
    assert read({"FLUX_JOB_ID": "f2"}) == Allocation("Flux", "f2")
    assert read({"HOME": "/home/x"}) is None


QSTAT = """Job Id: 9.server
    Job_Name = autotune
    resources_used.walltime = 00:10:00
    job_state = R
    Resource_List.walltime = 02:00:00
{}    Submit_arguments = -l walltime=02:00:00,software=qe,
\tncpus=48 job.sh
"""


def test_when_a_pbs_job_ends():
    started = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(1795000000))
    assert pbs.end_of_job(QSTAT.format(f"    stime = {started}\n"), 0.0) == 1795000000 + 7200
    assert pbs.end_of_job(QSTAT.format(""), 1000.0) == 1000 + 7200 - 600
    assert pbs.end_of_job("qstat: Unknown Job Id 9", 0.0) is None


def test_when_a_slurm_job_ends():
    assert slurm.end_of_job(time.strftime("%Y-%m-%dT%H:%M:%S\n", time.localtime(1795000000)), 0.0) == 1795000000
    assert slurm.end_of_job("N/A\n", 0.0) is None


def test_the_batch_system_is_asked_once_and_may_not_know():
    asked = []

    def refuse(argv):
        asked.append(list(argv))
        raise OSError("Invalid job id specified")

    assert ask_end(Allocation("Slurm", "17"), refuse) is None
    assert ask_end(Allocation("PBS", "9"), refuse) is None
    assert ask_end(Allocation("LSF", "5"), refuse) is None
    assert asked == [["squeue", "-h", "-j", "17", "-o", "%e"], ["qstat", "-f", "9"]]


def test_an_allocation_of_grid_engine():
    environment = {"JOB_ID": "7", "SGE_ROOT": "/opt/sge", "PE_HOSTFILE": "hosts"}
    files = {"hosts": "node1 8 all.q@node1 UNDEFINED\nnode2 4 all.q@node2 UNDEFINED\n"}
    assert read(environment, files.__getitem__) == Allocation("Grid Engine", "7", ("node1", "node2"), (8, 4))
    assert read({"JOB_ID": "7", "SGE_ROOT": "/opt/sge"}) == Allocation("Grid Engine", "7")
    assert read({"JOB_ID": "7"}) is None
