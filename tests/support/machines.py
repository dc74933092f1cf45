"""Simulated machines: a tiled kernel whose best tile depends on the machine's width and vendor."""

import math

from autotune.records.measurement import Measured, Setting
from objectives.base import Metric
from spaces import Choice, Constraint, Integer, Space

TIME = Metric("time_s", "s", kind="time")
SPACE = Space(
    [
        Integer.powers_of_two("x", 1, 256, default=16),
        Integer.powers_of_two("y", 1, 32, default=1),
        Integer("unroll", (1, 2, 4), default=1),
        Choice("layout", ("rows", "columns"), default="rows"),
    ],
    [Constraint("threads", "x * y <= 1024", "a block holds that many")],
)
FACTS = {
    "one": {"gpu_vendor": "a", "gpu_lanes": 32, "gpu_bandwidth_bytes_per_s": 4e11},
    "two": {"gpu_vendor": "a", "gpu_lanes": 32, "gpu_bandwidth_bytes_per_s": 6e11},
    "three": {"gpu_vendor": "a", "gpu_lanes": 32, "gpu_bandwidth_bytes_per_s": 9e11},
    "four": {"gpu_vendor": "b", "gpu_lanes": 64, "gpu_bandwidth_bytes_per_s": 5e11},
    "five": {"gpu_vendor": "b", "gpu_lanes": 64, "gpu_bandwidth_bytes_per_s": 9e11},
}


def time_s(machine, configuration):
    """Return the time of a configuration; None if it fails because of too many threads and too much unrolling."""
    x, y, unroll = (configuration[name] for name in ("x", "y", "unroll"))
    if x * y * unroll > 2048:
        return None
    facts = FACTS[machine]
    width = math.log2(facts["gpu_lanes"])
    wrong = (math.log2(x) - width) ** 2 / 8 + (math.log2(x * y) - 7) ** 2 / 10 + (math.log2(unroll) - 1) ** 2 / 4
    if configuration["layout"] != {"a": "rows", "b": "columns"}[facts["gpu_vendor"]]:
        wrong += 0.4
    return 1e9 / facts["gpu_bandwidth_bytes_per_s"] * math.exp(wrong)


def setting(machine, metric=TIME, program="kernel"):
    return Setting(program, machine, "image", metric, FACTS[machine])


def measured(machine, configurations, metric=TIME, program="kernel"):
    found = []
    for configuration in configurations:
        took = time_s(machine, configuration)
        value = None if took is None else took if metric.direction == "minimize" else 1.0 / took
        place = setting(machine, metric, program)
        found.append(Measured(place, configuration, value, failure="" if value else "too many threads"))
    return found


def efficiency(machine, configuration):
    times = [took for one in SPACE.configurations() if (took := time_s(machine, one)) is not None]
    took = time_s(machine, configuration)
    return 0.0 if took is None else min(times) / took
