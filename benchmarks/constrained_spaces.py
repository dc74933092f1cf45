"""Constructing and sampling constrained spaces: this project against the solvers and tuners that others use.

    python -m venv peers && peers/bin/pip install -r benchmarks/constrained_spaces-requirements.txt
    python benchmarks/constrained_spaces.py --peers peers/bin/python

Two tasks on every space, each from nothing:

- `list`: construct the space and list all valid configurations, in the peer's own form. kernel_tuner is its
  `Searchspace` (with python-constraint2 as its solver), constraint is python-constraint2 by itself with the same
  solver, numpy is vectorised brute force over the whole product. `autotune` gives the matrix of value indexes,
  `autotune (dicts)` a list of dictionaries.
- `sample`: construct the space and draw 1,000 distinct valid configurations as dictionaries. ConfigSpace and Optuna
  cannot express arithmetic rules: they draw at random and reject, as their users do (ConfigSpace with its own
  conditions where parameters are conditional).

Times are medians of the repeats, with the spread (fastest to slowest); imports are not counted. All that list must find
the same number.
"""

# ruff: noqa: PLC0415, ANN401  a tool is imported only where it is installed, and few of them have types

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from space_problems import PROBLEMS, Problem, names_in

SAMPLES = 1000
Task = Callable[[Problem], int]


def autotune_space(problem: Problem) -> Any:
    from spaces import Choice, Constraint, Integer, Space

    parameters = [
        (Choice if isinstance(values[0], str) else Integer)(name, tuple(values), when=problem.when.get(name))
        for name, values in problem.parameters.items()
    ]
    return Space(parameters, [Constraint(f"rule {k}", rule) for k, rule in enumerate(problem.rules)])


def autotune_list(problem: Problem) -> int:
    return len(autotune_space(problem).all_indices())


def autotune_dicts(problem: Problem) -> int:
    return len(list(autotune_space(problem).configurations()))


def autotune_sample(problem: Problem) -> int:
    import numpy as np

    return len(autotune_space(problem).sample(np.random.default_rng(0), SAMPLES))


def numpy_list(problem: Problem) -> int:
    import numpy as np

    parameters, rules = problem.unconditional()
    codes = {word: -2 - k for k, word in enumerate({v for vs in parameters.values() for v in vs if isinstance(v, str)})}
    columns = {name: np.array([codes.get(v, v) for v in values]) for name, values in parameters.items()}
    names = sorted(columns, key=lambda name: len(columns[name]))
    inner, size = [], 1
    while names and size * len(columns[names[0]]) <= 2_000_000:
        size *= len(columns[names[0]])
        inner.append(names.pop(0))
    grid = dict(zip(inner, (g.ravel() for g in np.meshgrid(*(columns[n] for n in inner), indexing="ij")), strict=True))
    found = []
    for outer in itertools.product(*(columns[name] for name in names)):
        at = {**grid, **dict(zip(names, outer, strict=True))}
        keep = np.ones(size, dtype=bool)
        for rule in rules:
            keep &= eval(vectorised(rule, codes), {"__builtins__": {}}, at)
        found.append(np.stack([np.broadcast_to(at[name], size)[keep] for name in parameters], axis=1))
    return len(np.concatenate(found))


def vectorised(rule: str, codes: dict[str, int]) -> str:
    """Return the rule with numpy's element-wise operators."""
    import ast

    class Elementwise(ast.NodeTransformer):
        def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
            op = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
            values = [self.visit(value) for value in node.values]
            return __import__("functools").reduce(lambda a, b: ast.BinOp(a, op, b), values)

        def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
            negated = ast.Compare(self.visit(node.operand), [ast.Eq()], [ast.Constant(False)])
            return negated if isinstance(node.op, ast.Not) else node

        def visit_Compare(self, node: ast.Compare) -> ast.expr:
            self.generic_visit(node)
            if isinstance(node.ops[0], ast.In):
                either = [ast.Compare(node.left, [ast.Eq()], [e]) for e in node.comparators[0].elts]
                return self.visit(ast.BoolOp(ast.Or(), either))
            return node

        def visit_Constant(self, node: ast.Constant) -> ast.expr:
            return ast.Constant(codes.get(node.value, node.value))

    return ast.unparse(Elementwise().visit(ast.parse(rule, mode="eval")))


def constraint_solutions(problem: Problem) -> list[tuple[Any, ...]]:
    from constraint import OptimizedBacktrackingSolver
    from constraint import Problem as Solver

    parameters, rules = problem.unconditional()
    solver = Solver(OptimizedBacktrackingSolver(forwardcheck=False))
    for name, values in parameters.items():
        solver.addVariable(name, values)
    for rule in rules:
        solver.addConstraint(rule)
    return solver.getSolutionsAsListDict(order=list(parameters))[0]


def constraint_list(problem: Problem) -> int:
    return len(constraint_solutions(problem))


def constraint_sample(problem: Problem) -> int:
    chosen = random.Random(0).sample(constraint_solutions(problem), SAMPLES)
    return len([dict(zip(problem.parameters, solution, strict=True)) for solution in chosen])


def kernel_tuner_list(problem: Problem) -> int:
    return kernel_tuner_space(problem).size


def kernel_tuner_sample(problem: Problem) -> int:
    chosen = kernel_tuner_space(problem).get_random_sample(SAMPLES)
    return len([dict(zip(problem.parameters, solution, strict=True)) for solution in chosen])


def kernel_tuner_space(problem: Problem) -> Any:
    from kernel_tuner.searchspace import Searchspace

    parameters, rules = problem.unconditional()
    return Searchspace(parameters, rules, 1024, block_size_names=[])


def rejected(problem: Problem, draw: Callable[[], dict[str, Any]]) -> int:
    """Draw until there are enough distinct valid configurations."""
    rules = [(compile(rule, "rule", "eval"), names_in(rule) & problem.when.keys()) for rule in problem.rules]
    found = set()
    while len(found) < SAMPLES:
        configuration = draw()
        if all(not needs <= configuration.keys() or eval(rule, {}, configuration) for rule, needs in rules):
            found.add(tuple(configuration.items()))
    return len(found)


def configspace_sample(problem: Problem) -> int:
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, InCondition

    space = ConfigurationSpace(seed=0)
    made = {name: Categorical(name, values, ordered=True) for name, values in problem.parameters.items()}
    space.add(list(made.values()))
    for name, when in problem.when.items():
        parent, _, _rest = when.partition(" ")
        allowed = [v for v in problem.parameters[parent] if eval(when, {}, {parent: v})]
        kind = EqualsCondition if len(allowed) == 1 else InCondition
        space.add(kind(made[name], made[parent], allowed[0] if len(allowed) == 1 else allowed))
    pending: list[Any] = []

    def draw() -> dict[str, Any]:
        if not pending:
            pending.extend(space.sample_configuration(SAMPLES))
        return dict(pending.pop())

    return rejected(problem, draw)


def optuna_sample(problem: Problem) -> int:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def draw() -> dict[str, Any]:
        trial = study.ask()
        configuration: dict[str, Any] = {}
        for name, values in problem.parameters.items():
            when = problem.when.get(name)
            if when is None or (names_in(when) & configuration.keys() and eval(when, {}, configuration)):
                configuration[name] = trial.suggest_categorical(name, values)
        return configuration

    return rejected(problem, draw)


TASKS: dict[str, dict[str, Task]] = {
    "list": {
        "autotune": autotune_list,
        "autotune (dicts)": autotune_dicts,
        "numpy": numpy_list,
        "constraint": constraint_list,
        "kernel_tuner": kernel_tuner_list,
    },
    "sample": {
        "autotune": autotune_sample,
        "constraint": constraint_sample,
        "kernel_tuner": kernel_tuner_sample,
        "ConfigSpace": configspace_sample,
        "Optuna": optuna_sample,
    },
}


def work(task: str, tool: str, name: str, repeats: int, budget_s: float) -> None:
    """Time one tool in this process; print the times and the count."""
    run, times, count = TASKS[task][tool], [], 0
    begun = time.perf_counter()
    run(Problem({"a": list(range(1, 1101))}, ["a >= 1"]))  # imports, and whatever else is done once a process
    while len(times) < repeats and (not times or time.perf_counter() - begun < budget_s):
        start = time.perf_counter()
        count = run(PROBLEMS[name])
        times.append(time.perf_counter() - start)
    print(json.dumps({"times_s": times, "count": count}))


def measure(python: str, what: tuple[str, str, str], repeats: int, limit_s: float) -> dict[str, Any]:
    argv = [python, __file__, "--work", *what, "--repeats", str(repeats), "--limit", str(limit_s)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s + 10, check=False)
    except subprocess.TimeoutExpired:
        return {"over_s": limit_s}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    result = json.loads(done.stdout.strip().splitlines()[-1])
    return {"over_s": limit_s} if result["times_s"][0] > limit_s else result


def shown(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def cell(result: dict[str, Any]) -> str:
    if "times_s" not in result:
        return f"> {result['over_s']:g} s" if "over_s" in result else result["error"][:40]
    times = result["times_s"]
    return f"{shown(statistics.median(times))} ({shown(min(times))} to {shown(max(times))})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default=sys.executable, help="python of the environment that holds the peers")
    parser.add_argument("--spaces", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a tool is given up")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work, options.repeats, options.limit)
        return
    names = ["python-constraint2", "kernel_tuner", "ConfigSpace", "optuna", "numpy"]
    listing = f"import importlib.metadata as m; print({{n: m.version(n) for n in {names}}})"
    found = subprocess.run([options.peers, "-c", listing], capture_output=True, text=True, check=True)
    print(f"peers: {found.stdout.strip()}")
    results: list[dict[str, Any]] = []
    for task, tools in TASKS.items():
        ratios = []
        for name in options.spaces:
            rows = {}
            for tool in tools:
                python = sys.executable if tool.startswith(("autotune", "numpy")) else options.peers
                rows[tool] = measure(python, (task, tool, name), options.repeats, options.limit)
                results.append({"task": task, "space": name, "tool": tool, **rows[tool]})
            ratios.append(report(task, name, rows))
        known = [ratio for ratio in ratios if ratio is not None]
        print(f"{task}: fastest peer / autotune, median over spaces: {statistics.median(known):.3g}\n")
    if options.json:
        options.json.write_text(json.dumps({"peers": found.stdout.strip(), "results": results}, indent=1))


def report(task: str, name: str, rows: dict[str, dict[str, Any]]) -> float | None:
    """Print the rows of one space; return how many times as long the fastest peer took."""
    counts = {row["count"] for row in rows.values() if "count" in row}
    agreed = "all agree" if len(counts) == 1 else f"COUNTS DIFFER: {counts}"
    print(f"{task} {name}: {PROBLEMS[name].raw:,} raw, {max(counts):,} found ({agreed})")
    own = statistics.median(rows["autotune"]["times_s"])
    ratios = {}
    for tool, row in rows.items():
        least = statistics.median(row["times_s"]) if "times_s" in row else row.get("over_s")
        if least is not None and not tool.startswith("autotune"):
            ratios[tool] = least / own
        relative = "" if least is None else f"{'> ' * ('over_s' in row)}{least / own:.3g} x"
        print(f"    {tool:17} {cell(row):40} {relative}")
    return min(ratios.values(), default=None)


if __name__ == "__main__":
    main()
