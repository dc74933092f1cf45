"""The noise meter with a kernel made of files; figures that the kernel does not show are absent, not zero."""

import resource
from types import SimpleNamespace

import pytest

from launchers.noise.disturbance import Disturbance
from launchers.noise.meter import (
    NoiseMeter,
    parse_cgroups,
    parse_cpu_stat,
    parse_cpu_times,
    parse_pressure,
    parse_schedstat,
)

NOTHING = SimpleNamespace(ru_utime=0.0, ru_stime=0.0, ru_nivcsw=0, ru_majflt=0, ru_inblock=0)
STAT = "cpu  0 0 0 0\n" + "".join(f"cpu{number} {{{number}}} 0 0 100 5 1 2 {{s}} 0 0\n" for number in range(2))


def used(seconds, **changes):
    return SimpleNamespace(**{**vars(NOTHING), "ru_utime": seconds, **changes})


class Kernel:
    """Files of a kernel below a folder."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "proc").mkdir()
        (folder / "sys").mkdir()

    def shows(self, **files):
        for name, text in files.items():
            path = self.folder / name.replace("__", "/").replace("_at_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def busy(self, first_s, second_s, stolen_s=0.0):
        self.shows(proc__stat=STAT.format(int(first_s * 100), int(second_s * 100), s=int(stolen_s * 100)))

    def thread(self, ran_s, waited_s, pid=7, thread=7):
        text = f"{int(ran_s * 1e9)} {int(waited_s * 1e9)} 3\n"
        self.shows(**{f"proc__{pid}__task__{thread}__schedstat": text, f"proc__{pid}__schedstat": text})

    def meter(self):
        return NoiseMeter(str(self.folder / "proc"), str(self.folder / "sys"))


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrusage", lambda _: NOTHING)
    return Kernel(tmp_path)


def figures(kernel, *, busy, ran_s, waited_s, elapsed_s=10.0, cpu_s=None, siblings=(), stolen_s=0.0):
    """Return the figures of a run of one thread on CPU 0 of two, which were busy for `busy` seconds each."""
    meter = kernel.meter()
    kernel.busy(5.0, 5.0)
    meter.begin((0,), siblings)
    kernel.busy(5.0 + busy[0], 5.0 + busy[1], stolen_s)
    kernel.thread(ran_s, waited_s)
    meter.sample([7])
    return meter.figures(elapsed_s, used(ran_s if cpu_s is None else cpu_s))


def test_quiet_run_has_zeros_for_readable_figures_only(kernel):
    found = figures(kernel, busy=(10.0, 0.0), ran_s=10.0, waited_s=0.0)
    assert found == {
        **dict.fromkeys(("others_share", "stolen_share", "beside_share", "waited_share", "taken_share"), 0.0),
        **dict.fromkeys(("involuntary_switches", "major_faults", "read_bytes"), 0),
    }
    assert (
        figures(kernel, busy=(10.0, 0.0), ran_s=0.0, waited_s=0.0, cpu_s=9.0)
        .keys()
        .isdisjoint({"waited_share", "taken_share"})
    )


@pytest.mark.parametrize(
    ("cpu_s", "busy_s", "stalled", "taken"),
    [
        # Others had nine tenths of its core.
        (1.0, 10.0, 10.0, 0.9),
        # Others used its core, and nothing waited: they ran while it slept.
        (1.0, 8.0, 0.0, 0.0),
        # It slept most of the time.
        (0.1, 5.1, 5.0, 0.01),
    ],
)
def test_what_others_took_from_processes_that_were_not_seen_is_estimated(kernel, cpu_s, busy_s, stalled, taken):
    kernel.shows(proc__pressure__cpu="some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    meter = kernel.meter()
    kernel.busy(0.0, 0.0)
    meter.begin((0,))
    kernel.busy(busy_s, 0.0)
    kernel.shows(proc__pressure__cpu=f"some avg10=0.00 avg60=0.00 avg300=0.00 total={int(stalled * 1e6)}\n")
    found = meter.figures(10.0, used(cpu_s))
    assert "waited_share" not in found
    assert found["taken_share"] == pytest.approx(taken, abs=0.001)


def test_without_kernel_files_only_rusage_is_known(kernel):
    meter = kernel.meter()
    meter.begin({0})
    meter.sample([7])
    assert set(meter.figures(1.0, used(1.0, ru_majflt=3, ru_inblock=2)).items()) == {
        ("involuntary_switches", 0),
        ("major_faults", 3),
        ("read_bytes", 1024),
    }


@pytest.mark.parametrize(
    ("ran_s", "waited_s", "busy", "taken"),
    [
        # It had half of its core, a neighbour the other half.
        (5.0, 5.0, (10.0, 0.0), 0.5),
        # Its threads waited only for each other.
        (10.0, 10.0, (10.0, 0.0), 0.0),
        # Others ran only while it slept.
        (2.0, 0.0, (10.0, 0.0), 0.0),
        # It slept most of the time, then waited for one second.
        (1.0, 1.0, (10.0, 0.0), 0.1),
        (10.0, 0.0, (10.0, 10.0), 0.0),
    ],
)
def test_taken_share_is_waiting_while_others_ran(kernel, ran_s, waited_s, busy, taken):
    assert figures(kernel, busy=busy, ran_s=ran_s, waited_s=waited_s)["taken_share"] == pytest.approx(taken)


@pytest.mark.parametrize(("ran_s", "busy_s", "taken"), [(10.0, 10.0, 0.35), (10.0, 4.0, 0.14), (2.0, 10.0, 0.07)])
def test_busy_sibling_thread_takes_a_part_of_the_core(kernel, ran_s, busy_s, taken):
    found = figures(kernel, busy=(ran_s, busy_s), ran_s=ran_s, waited_s=0.0, siblings=(1,))
    assert found["sibling_share"] == found["beside_share"] == pytest.approx(busy_s / 10.0)
    assert found["taken_share"] == pytest.approx(taken)


def test_shared_core_with_a_busy_sibling_is_less_than_half_a_core(kernel):
    found = figures(kernel, busy=(10.0, 10.0), ran_s=5.0, waited_s=5.0, siblings=(1,))
    assert found["taken_share"] == pytest.approx(0.5 + 0.5 * 0.35)


def test_stolen_and_throttled_time_count(kernel):
    found = figures(kernel, busy=(8.0, 0.0), ran_s=8.0, waited_s=0.0, stolen_s=2.0)
    assert found["stolen_share"] == found["taken_share"] == pytest.approx(0.2)
    kernel.shows(proc__self__cgroup="0::/job/step\n", sys__fs__cgroup__job__cpu_at_stat="throttled_usec 0\n")
    meter = kernel.meter()
    meter.begin({0})
    kernel.shows(sys__fs__cgroup__job__cpu_at_stat="nr_throttled 9\nthrottled_usec 5000000\n")
    assert meter.figures(10.0, used(5.0))["throttled_share"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("group", "file", "counter"),
    [
        ("0::/\n", "sys__fs__cgroup__cpu_at_stat", "throttled_usec {}000000\n"),
        ("4:cpu,cpuacct:/docker/0123\n", "sys__fs__cgroup__cpu__cpu_at_stat", "throttled_time {}000000000\n"),
    ],
)
def test_in_a_container_the_counters_of_its_group_lie_at_the_root(kernel, group, file, counter):
    kernel.shows(proc__self__cgroup=group, **{file: counter.format(0)})
    meter = kernel.meter()
    meter.begin({0})
    kernel.shows(**{file: counter.format(5)})
    assert meter.figures(10.0, used(5.0))["throttled_share"] == pytest.approx(0.5)


def test_pressure_is_that_of_its_own_group_where_there_is_one(kernel):
    line = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    kernel.shows(proc__self__cgroup="0::/job\n", proc__pressure__io=line.format(0), proc__pressure__cpu=line.format(0))
    kernel.shows(sys__fs__cgroup__job__io_at_pressure=line.format(0))
    meter = kernel.meter()
    meter.begin({0})
    kernel.shows(proc__pressure__io=line.format(9000000), proc__pressure__cpu=line.format(4000000))
    kernel.shows(sys__fs__cgroup__job__io_at_pressure=line.format(1000000))
    found = meter.figures(10.0, used(1.0))
    assert (found["io_pressure"], found["cpu_pressure"]) == (0.1, 0.4)
    assert "memory_pressure" not in found


def test_threads_and_processes_that_have_ended_count_on(kernel):
    meter = kernel.meter()
    kernel.busy(0.0, 0.0)
    meter.begin({0, 1})
    kernel.thread(1.0, 0.5, thread=8)
    kernel.thread(1.0, 0.5)
    meter.sample([7])
    (kernel.folder / "proc/7/task/8/schedstat").unlink()
    kernel.thread(2.0, 1.0)
    meter.read_ended(7)
    kernel.busy(6.0, 6.0)
    assert meter.figures(10.0, used(3.0))["waited_share"] == pytest.approx(1.5 / 4.5, abs=1e-3)


def test_nice_processes_can_be_left_out():
    text = "cpu0 100 300 200 0 0 0 0 50"
    assert parse_cpu_times(text) == {0: (6.0, 0.5)}
    assert parse_cpu_times(text, nice=False) == {0: (3.0, 0.5)}


def test_disturbance_ignores_invalid_figures():
    known = {"taken_share": 0.5, "others_share": "much", "io_pressure": float("nan"), "major_faults": -1, "node": "n1"}
    disturbance = Disturbance.from_figures(known)
    assert disturbance.as_dict() == {"taken_share": 0.5}
    assert disturbance.describe() == "others took 50% of its time"
    assert Disturbance().describe() == ""
    beside = Disturbance(taken_share=0.3, others_share=0.0, sibling_share=0.85)
    assert beside.describe().endswith("30% of its time and used 0% of its cores, 85% of their other hardware threads")


@pytest.mark.parametrize("text", ["", "cpu0", "cpu0 1 2 x", "cpux 1 2 3", "cpu0 " + "9" * 5000 + " 1 1", "some total="])
def test_malformed_kernel_files_give_nothing(text):
    assert parse_cpu_times(text) == {}
    assert parse_schedstat(text) is None
    assert parse_pressure(text) is None
    assert parse_cpu_stat(text) is None
    assert parse_cgroups(text) == {}
    assert parse_cgroups("0::/../../etc") == {}
