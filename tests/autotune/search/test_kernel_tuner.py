"""Our sampler as a strategy of Kernel Tuner: with a fake of its interface, and with the real one if it is installed."""

import itertools
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from autotune.search.kernel_tuner import AutotuneStrategy, KernelSpace
from spaces.parameters.listed import Listed

pytestmark = pytest.mark.full

PARAMETERS = {"block": [8, 16, 32, 64], "tile": [1, 2, 4, 8], "method": ["a", "b"], "N": [256]}
RULES = ["block * tile <= 64", "tile > 1 or method == 'a'"]
ROOT = Path(__file__).parents[3]


class StopCriterionReached(Exception):  # noqa: N818  as it is called there
    pass


class Searchspace:
    def __init__(self, allowed=lambda block, tile, method, n: block * tile <= 64 and (tile > 1 or method == "a")):
        self.tune_params = PARAMETERS
        self.list = [one for one in itertools.product(*PARAMETERS.values()) if allowed(*one)]


class Cost:
    """Kernel Tuner's cost function: it counts calls, and raises when the budget is spent."""

    def __init__(self, budget, *, maximized=False, begin=None, restrictions=tuple(RULES), failing=()):
        self.asked, self.budget, self.failing = [], budget, failing
        self.sign = -1.0 if maximized else 1.0
        self.tuning_options = {
            "objective": ["GFLOP/s" if maximized else "time"],
            "objective_higher_is_better": [maximized],
            "restrictions_unmodified": list(restrictions),
            "strategy_options": {} if begin is None else {"x0": begin},
        }

    def __call__(self, element):
        if len(self.asked) == self.budget:
            raise StopCriterionReached
        self.asked.append(element)
        block, tile, method, _ = element
        if element in self.failing:
            return sys.float_info.max
        time = 1.0 + abs(block - 32) / 8 + abs(tile - 2) + (method == "b")
        return time if self.sign > 0 else -1.0 / time


def test_it_asks_for_allowed_configurations_only_each_once_and_finds_the_best_of_them():
    space, cost = Searchspace(), Cost(budget=100)
    best, value = AutotuneStrategy(seed=1)(cost, space)
    assert sorted(cost.asked) == sorted(space.list)
    assert (best, value) == ((32, 2, "a", 256), 1.0)


def test_it_ends_when_the_budget_does_and_has_learned_by_then():
    found = []
    for seed in range(3):
        cost = Cost(budget=14, maximized=seed == 2)
        with pytest.raises(StopCriterionReached):
            AutotuneStrategy(seed)(cost, Searchspace())
        found.append((32, 2, "a", 256) in cost.asked)
    assert all(found)


def test_it_begins_where_it_is_told_and_goes_on_after_failures():
    begin = (64, 1, "a", 256)
    cost = Cost(budget=100, begin=begin, failing=[begin, (32, 2, "a", 256)])
    best, value = AutotuneStrategy()(cost, Searchspace())
    assert cost.asked[0] == begin
    assert best != begin
    assert value < sys.float_info.max


def test_restrictions_become_rules_of_which_the_sampler_learns():
    space = KernelSpace.of(Searchspace(), RULES).space
    assert [constraint.rule for constraint in space.constraints] == RULES


@pytest.mark.parametrize("texts", [[], RULES[:1], ["block % tile ** 2 is None", "nothing_known < 3", "tile == 1"]])
def test_what_restrictions_do_not_say_is_said_by_a_list(texts):
    allowed = Searchspace()
    kernel = KernelSpace.of(allowed, texts)
    assert any(isinstance(constraint, Listed) for constraint in kernel.space.constraints)
    assert kernel.space.size.value == len(allowed.list)
    assert kernel.element(kernel.space.default()) in allowed.list


def test_several_objectives_and_values_that_are_no_ratio_are_refused():
    cost = Cost(budget=9)
    cost.tuning_options["objective_higher_is_better"] = [False, True]
    with pytest.raises(ValueError, match="one objective"):
        AutotuneStrategy()(cost, Searchspace())
    with pytest.raises(ValueError, match="must be positive"):
        AutotuneStrategy()(lambda_cost(-1.0), Searchspace())


def lambda_cost(value):
    class Constant(Cost):
        def __call__(self, element):
            return value

    return Constant(9)


REAL = """
import json, sys
from kernel_tuner import tune_kernel
from autotune.search.kernel_tuner import AutotuneStrategy
cache = json.load(open(sys.argv[1]))
parameters = cache["tune_params"]
found, env = tune_kernel(
    cache["kernel_name"], "__kernel void k() {}", 1, [], parameters, lang="CUDA", cache=sys.argv[1],
    restrictions=sys.argv[2:], simulation_mode=True, quiet=True,
    strategy=AutotuneStrategy(1), strategy_options={"max_fevals": 12},
)
print(json.dumps([len(found), env["best_config"]["time"]]))
"""


@pytest.mark.skipif(find_spec("kernel_tuner") is None, reason="no Kernel Tuner: see docs/how-to/kernel-tuner.md")
def test_kernel_tuner_itself_takes_it(tmp_path):
    keys = list(PARAMETERS)
    cost = Cost(budget=100)
    timings = {"compile_time": 0, "verification_time": 0, "benchmark_time": 1}
    entries = {
        ",".join(map(str, one)): dict(zip(keys, one, strict=True)) | timings | {"time": cost(one)}
        for one in Searchspace().list
    }
    names = {"device_name": "x", "kernel_name": "k", "objective": ["time"]}
    cache = names | {"tune_params_keys": keys, "tune_params": PARAMETERS, "cache": entries}
    (tmp_path / "cache.json").write_text(json.dumps(cache))
    command = [sys.executable, "-c", REAL, tmp_path / "cache.json", *RULES]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout.splitlines()[-1]) == [12, 1.0]
