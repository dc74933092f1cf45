"""Measures other load on a machine from counters of the kernel, read before, during and after a run.

Imported by the supervisor of a job, so it uses the standard library only. Figures that a kernel does not show are left
out.
"""

# pathlib takes longer to import than the supervisor to start.
# ruff: noqa: PTH123, PTH208

import os
import resource
from collections.abc import Collection, Iterable

PROC = "/proc"
SYS = "/sys"

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_BLOCK_BYTES = 512  # getrusage(2) counts input in blocks of this size, whatever the disk's block size
_PRESSURES = ("cpu", "memory", "io")
# The share of its core that a hardware thread loses while the other one computes: two do 1.3 times the work of one
# (Marr et al., "Hyper-Threading Technology Architecture and Microarchitecture", Intel Technology Journal 6, 2002).
_LOST_TO_A_SIBLING = 0.35
# Processes that end between two samples are not seen; require that most of the run was seen.
_SEEN_ENOUGH = 0.5
_MOST_OTHERS = 0.99
_THERMAL_SAMPLE = 8
_THROTTLED = {"throttled_usec": 1e6, "throttled_time": 1e9}
_DIGITS = 20  # of 64 bits


def parse_cpu_times(text: str, *, nice: bool = True) -> dict[int, tuple[float, float]]:
    """Parse /proc/stat: for each CPU the seconds that processes used, and those that the hypervisor gave to others.

    Without `nice`, leave out processes that give way to others.
    """
    times = {}
    for line in text.splitlines():
        name, *fields = line.split()[:9] or [""]
        number = name[3:]
        if name[:3] == "cpu" and number.isdecimal() and len(number) < 6 and len(fields) >= 3:
            ticks = _parse_counters(fields)
            if ticks:
                stolen = ticks[7] if len(ticks) > 7 else 0
                times[int(number)] = (
                    (sum(ticks[:3]) - (0 if nice else ticks[1])) / _TICKS_PER_S,
                    stolen / _TICKS_PER_S,
                )
    return times


def parse_schedstat(text: str) -> tuple[float, float] | None:
    """Parse a thread's schedstat: the seconds that it ran, and those that it waited for a core."""
    counters = _parse_counters(text.split()[:2])
    return (counters[0] / 1e9, counters[1] / 1e9) if len(counters) == 2 else None


def parse_pressure(text: str) -> float | None:
    """Parse a pressure file: the seconds in which something stalled for lack of the resource."""
    for line in text.splitlines():
        kind, *fields = line.split()
        for field in fields if kind == "some" else ():
            name, _, value = field.partition("=")
            if name == "total" and (total := _parse_counters([value])):
                return total[0] / 1e6
    return None


def parse_cpu_stat(text: str) -> float | None:
    """Parse a cgroup's cpu.stat, version 2 or 1: the seconds that its quota stopped its threads."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        unit = _THROTTLED.get(name)
        if unit and (total := _parse_counters([value])):
            return total[0] / unit
    return None


def parse_cgroups(text: str) -> dict[str, str]:
    """Parse /proc/PID/cgroup: the path of the process's group by controller; version 2 has the controller ``."""
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon and path.startswith("/") and ".." not in path.split("/") and "\0" not in path:
            paths |= dict.fromkeys(controllers.split(","), path)
    return paths


def group_and_parents(path: str) -> list[str]:
    """Return a control group and its parents up to the root, which is ``; each may have a limit or a counter."""
    paths = [path := path.rstrip("/")]
    while path:
        path = path.rpartition("/")[0]
        paths.append(path)
    return paths


def _parse_counters(fields: Iterable[str]) -> list[int]:
    """Parse counters of the kernel; return nothing if one of the fields is not a counter."""
    fields = [field.strip() for field in fields]
    return (
        [int(field) for field in fields] if all(f.isascii() and f.isdecimal() and len(f) <= 20 for f in fields) else []
    )


class NoiseMeter:
    """Measures other load than that of one tree of processes, from `begin` on."""

    def __init__(self, proc: str = PROC, sys: str = SYS) -> None:
        """Read below `proc` and `sys`."""
        self._proc, self._sys = proc, sys
        self._cpus: Collection[int] = ()
        self._siblings: Collection[int] = ()
        self._before: dict[str, float] = {}
        self._times: dict[int, tuple[float, float]] = {}
        # The seconds that living threads ran and waited, by process and thread; and the sums of ended threads.
        self._threads: dict[tuple[int, str], tuple[float, float]] = {}
        self._gone = (0.0, 0.0)
        self._itself_s = 0.0

    def begin(self, cpus: Collection[int], siblings: Collection[int] = ()) -> None:
        """Read the counters before a tree of processes starts that may use these CPUs.

        `siblings` are the other hardware threads of their cores.
        """
        self._cpus, self._siblings = cpus, siblings
        self._times = parse_cpu_times(self._read("stat"))
        self._before = self._machine_counters()
        self._itself_s = _own_cpu_s()

    def sample(self, pids: Iterable[int]) -> None:
        """Read the processes of the tree."""
        seen: dict[tuple[int, str], tuple[float, float]] = {}
        for pid in pids:
            try:
                threads = os.listdir(f"{self._proc}/{pid}/task")
            except OSError:
                continue
            for thread in threads:
                figures = parse_schedstat(self._read(f"{pid}/task/{thread}/schedstat"))
                if figures is not None:
                    seen[pid, thread] = figures
        self._add_finished(key for key in self._threads if key not in seen)
        self._threads |= seen

    def read_ended(self, pid: int) -> None:
        """Read a process that has ended, before the kernel forgets it."""
        figures = parse_schedstat(self._read(f"{pid}/schedstat"))
        if figures is not None:
            self._threads[pid, str(pid)] = figures
        self._add_finished(key for key in self._threads if key[0] == pid)

    def figures(self, elapsed_s: float, tree: resource.struct_rusage) -> dict[str, float]:
        """Return the known fields of `launchers.noise.disturbance.Disturbance`.

        Args:
            elapsed_s: The elapsed time of the run in seconds.
            tree: The resources that the tree used.
        """
        elapsed_s = max(elapsed_s, 1e-6)
        cpu_s = tree.ru_utime + tree.ru_stime
        shares = self._cpu_shares(elapsed_s, cpu_s + _own_cpu_s() - self._itself_s)
        now = self._machine_counters()
        passed = {name: max(now[name] - before, 0.0) for name, before in self._before.items() if name in now}
        throttled, thermal = passed.pop("throttled", None), passed.pop("thermal", None)
        waited_s = self._wait_s(cpu_s)
        if waited_s is not None:
            shares["waited_share"] = _share(waited_s, cpu_s)
        if throttled is not None:
            shares["throttled_share"] = _share(throttled, cpu_s)
        pressures = {f"{name}_pressure": min(stalled / elapsed_s, 1.0) for name, stalled in passed.items()}
        width_s = elapsed_s * len(self._cpus)
        others = min(shares.get("others_share", 0.0), _MOST_OTHERS)
        if waited_s is None and "cpu_pressure" in pressures:
            # Most of its processes ended unseen. They shared the cores with others as equals, and waited no longer than
            # anything waited.
            waited_s = min(cpu_s * others / (1.0 - others), pressures["cpu_pressure"] * width_s)
        if waited_s is not None and "others_share" in shares:
            # Waiting for each other is the program's own affair, so count at most what others used.
            taken_s = min(waited_s, shares["others_share"] * width_s)
            taken_s += shares.get("stolen_share", 0.0) * width_s + (throttled or 0.0)
            slowed_s = _LOST_TO_A_SIBLING * shares.get("sibling_share", 0.0) * cpu_s
            # A sleeping thread loses nothing.
            active = min((taken_s + cpu_s) / elapsed_s, 1.0)
            shares["taken_share"] = _share(taken_s + slowed_s, cpu_s - slowed_s) * active
        counts = {
            "involuntary_switches": tree.ru_nivcsw,
            "major_faults": tree.ru_majflt,
            "read_bytes": tree.ru_inblock * _BLOCK_BYTES,
        }
        if thermal is not None:
            counts["thermal_throttles"] = int(thermal)
        return {name: round(value, 4) for name, value in {**shares, **pressures, **counts}.items()}

    def _cpu_shares(self, elapsed_s: float, own_s: float) -> dict[str, float]:
        """Return the shares that others used of the run's CPUs, apart from `own_s`, and of all other CPUs."""
        now = parse_cpu_times(self._read("stat"))
        passed = {
            cpu: (now[cpu][0] - used, now[cpu][1] - stolen) for cpu, (used, stolen) in self._times.items() if cpu in now
        }
        ours = [passed[cpu] for cpu in self._cpus if cpu in passed]
        others = [times for cpu, times in passed.items() if cpu not in self._cpus]
        shares = {}
        if ours and len(ours) == len(self._cpus):
            width_s = elapsed_s * len(ours)
            shares["others_share"] = _clamp((sum(used for used, _ in ours) - own_s) / width_s)
            shares["stolen_share"] = _clamp(sum(stolen for _, stolen in ours) / width_s)
        siblings = [passed[cpu][0] for cpu in self._siblings if cpu in passed]
        if siblings:
            shares["sibling_share"] = _clamp(sum(siblings) / (elapsed_s * len(siblings)))
        if others:
            shares["beside_share"] = _clamp(sum(used for used, _ in others) / (elapsed_s * len(others)))
        return shares

    def _wait_s(self, cpu_s: float) -> float | None:
        """Return how long threads of the tree waited for a core, extrapolated from the threads that were seen."""
        ran_s = self._gone[0] + sum(ran for ran, _ in self._threads.values())
        waited_s = self._gone[1] + sum(waited for _, waited in self._threads.values())
        if ran_s <= 0.0 or ran_s < _SEEN_ENOUGH * cpu_s:
            return None
        return waited_s * max(cpu_s / ran_s, 1.0)

    def _add_finished(self, keys: Iterable[tuple[int, str]]) -> None:
        for ran_s, waited_s in [self._threads.pop(key) for key in list(keys)]:
            self._gone = (self._gone[0] + ran_s, self._gone[1] + waited_s)

    def _machine_counters(self) -> dict[str, float]:
        """Return counters in seconds by resource, and the count of thermal throttling."""
        groups = parse_cgroups(self._read("self/cgroup"))
        own = groups.get("", "/").rstrip("/")
        found: dict[str, float] = {}
        for name in _PRESSURES:
            total = parse_pressure(_text(f"{self._sys}/fs/cgroup{own}/{name}.pressure"))
            total = parse_pressure(self._read(f"pressure/{name}")) if total is None else total
            if total is not None:
                found[name] = total
        # Any parent group may have a quota, and each counts its own stops. In a container the groups may lie at the
        # root.
        levels = [f"{self._sys}/fs/cgroup{path}" for path in group_and_parents(own)]
        levels += [f"{self._sys}/fs/cgroup/cpu{path}" for path in group_and_parents(groups.get("cpu", ""))]
        throttled = [total for level in levels if (total := parse_cpu_stat(_text(f"{level}/cpu.stat"))) is not None]
        if throttled:
            found["throttled"] = sum(throttled)
        sample = sorted(self._cpus)[:: max(1, len(self._cpus) // _THERMAL_SAMPLE)]
        files = (f"{self._sys}/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count" for cpu in sample)
        counts = [count for file in files for count in _parse_counters([_text(file) or "none"])]
        if counts:
            found["thermal"] = sum(counts)
        return found

    def _read(self, name: str) -> str:
        return _text(f"{self._proc}/{name}")


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _clamp(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _share(lost_s: float, cpu_s: float) -> float:
    """Return the lost share of the time in which something could run."""
    return _clamp(lost_s / (lost_s + cpu_s)) if lost_s > 0.0 else 0.0
