"""Measure what the tests notice: change the program at random places, and count the changes that a test catches.

    python -m tests.support.mutants sample --out DIR            choose mutants; write DIR/mutants.json and DIR/probed
    (cd DIR/probed && ./run test --all --durations=0 ...)       records in DIR/hits which tests reach which mutant
    python -m tests.support.mutants judge --out DIR --junit F   run those tests against each mutant, the quickest first
                                                                of the default set, then the others

A mutant changes one expression in a function of the main path: it replaces a comparison or an arithmetic operator,
increments a number, negates a condition, or drops a result or a call. Only tests that reach the expression are run,
within a budget of test time for each mutant. `judge` prints the share of killed mutants.
Run it alone: a test that waits too long for a core fails, which counts as a kill.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

ROOMS = {
    "spaces": "spaces",
    "statistics": "autotune/statistics",
    "scheduling": "autotune/scheduling",
    "storage": "autotune/storage",
    "execution": "autotune/execution",
    "launchers": "launchers",
    "qe": "objectives/qe",
    "comparison": "autotune/comparison",
}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
}  # fmt: skip

# Each process writes a pair of mutant and test once. Every module has its own probe: the supervisor imports no other.
_PROBE = """
def _mutant_reached(number, _seen=set()):
    import os
    test = os.environ.get("PYTEST_CURRENT_TEST", "unknown").rsplit(" (", 1)[0]
    if (number, test) not in _seen:
        _seen.add((number, test))
        file = os.open(HITS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.write(file, f"{number}\\t{test}\\n".encode())
        os.close(file)
"""


@dataclass(frozen=True)
class Mutant:
    """A changed expression: `text` replaces the characters `begin` to `end`, in the lines `context` of a file."""

    number: int
    room: str
    file: str
    line: int
    begin: int
    end: int
    original: str
    text: str
    context: str


def changes(source: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield each expression of a module's functions that can be changed, with its new text."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                for node in _own_nodes(statement):
                    yield from _changed(node)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    # f-strings have no usable positions in Python 3.11, annotations do nothing, and `ast.walk` finds inner functions.
    if isinstance(node, ast.JoinedStr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name != "annotation":
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _own_nodes(child)


def _changed(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in _COMPARISONS:
            yield (
                node,
                ast.unparse(ast.Compare(node.left, [_COMPARISONS[type(operator)](), *node.ops[1:]], node.comparators)),
            )
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC and not _is_text(node):
            yield node, ast.unparse(ast.BinOp(node.left, _ARITHMETIC[type(operator)](), node.right))
        case ast.BoolOp(op=operator):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield node, ast.unparse(ast.BoolOp(other, node.values))
        case ast.Constant(value=bool() as value):
            yield node, repr(not value)
        case ast.Constant(value=int() | float() as value):
            yield node, repr(value + 1)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"not ({ast.unparse(test)})"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield value, "None"
        case ast.Expr(value=ast.Call() as call):
            yield call, "None"
        case _:
            pass


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _place(source: str, node: ast.expr) -> tuple[int, int]:
    """Return where an expression begins and ends, in characters."""
    lines = source.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)


def sample(root: Path, per_room: int, seed: int) -> list[Mutant]:
    """Draw `per_room` mutants in each room of the main path; every expression is equally likely."""
    rng = random.Random(seed)
    mutants: list[Mutant] = []
    for room, folder in ROOMS.items():
        candidates = []
        for file in sorted((root / folder).rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            candidates += [(file, source, node, text) for node, text in changes(source)]
        for file, source, node, text in rng.sample(candidates, per_room):
            begin, end = _place(source, node)
            original = source[begin:end]
            assert ast.parse(f"({original})", mode="eval")
            name = str(file.relative_to(root))
            lines = source.splitlines(keepends=True)
            context = "".join(lines[max(0, node.lineno - 2) : (node.end_lineno or node.lineno) + 1])
            mutants.append(Mutant(len(mutants), room, name, node.lineno, begin, end, original, text, context))
    return mutants


def probe(root: Path, mutants: Sequence[Mutant], hits: Path) -> None:
    """Change a checkout so that each place of a mutant records the tests that reach it in the file `hits`."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    for name, of_file in by_file.items():
        path = root / name
        source = path.read_text(encoding="utf-8")
        inserts = [(mutant.begin, 1, f"(_mutant_reached({mutant.number}), (") for mutant in of_file]
        inserts += [(mutant.end, 0, "))[1]") for mutant in of_file]
        # Insert from the end, so that earlier positions stay valid; inner expressions close before outer ones.
        for at, _, text in sorted(inserts, key=lambda insert: (insert[0], insert[1]), reverse=True):
            source = source[:at] + text + source[at:]
        path.write_text(_with_probe(source, hits), encoding="utf-8")


def _with_probe(source: str, hits: Path) -> str:
    body = ast.parse(source).body
    after = 0
    for statement in body:
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        after = statement.end_lineno or 0
    lines = source.splitlines(keepends=True)
    return "".join(lines[:after]) + _PROBE.replace("HITS", repr(str(hits))) + "".join(lines[after:])


def read_hits(hits: Path) -> dict[int, set[str]]:
    """Return the tests that reached each mutant."""
    found: dict[int, set[str]] = defaultdict(set)
    for line in hits.read_text(encoding="utf-8").splitlines():
        number, test = line.split("\t", 1)
        if test != "unknown":
            found[int(number)].add(test)
    return found


def read_durations(junit: Path) -> dict[str, float]:
    """Return the seconds that each test took, by its node id."""
    seconds: dict[str, float] = defaultdict(float)
    for case in ET.parse(junit).iter("testcase"):
        seconds[f"{case.get('file')}::{case.get('name')}"] += float(case.get("time") or 0)
    return seconds


@dataclass(frozen=True)
class Judgement:
    """The verdict on a mutant.

    number: The mutant.
    by: The first test that failed; empty if none did.
    is_default: Whether that test is in the default set.
    tests: How many tests were run.
    left_out: How many tests that reach the mutant exceeded the budget.
    """

    number: int
    by: str
    is_default: bool
    tests: int
    left_out: int


def judge(checkout: Path, mutant: Mutant, sets: Sequence[Sequence[tuple[float, str]]], budget_s: float) -> Judgement:
    """Run the tests of one set after the other, each from the quickest on, until one fails.

    Args:
        sets: The default set, then the others: seconds and node id of each test that reaches the mutant.
        budget_s: The time that the tests of a set may take together, by these seconds.
    """
    path = checkout / mutant.file
    source = path.read_text(encoding="utf-8")
    path.write_text(_mutated(source, mutant), encoding="utf-8")
    run = left_out = 0
    try:
        for number, tests in enumerate(sets):
            chosen = _affordable(tests, budget_s)
            run, left_out = run + len(chosen), left_out + len(tests) - len(chosen)
            limit_s = 120 + 4 * sum(seconds for seconds, _ in chosen)
            if chosen and (by := _first_failure(checkout, [test for _, test in chosen], limit_s)):
                return Judgement(mutant.number, by, number == 0, run, left_out)
    finally:
        path.write_text(source, encoding="utf-8")
    return Judgement(mutant.number, "", False, run, left_out)


def _mutated(source: str, mutant: Mutant) -> str:
    begin = mutant.begin
    if source[begin : mutant.end] != mutant.original:
        # The file has changed since the sample was taken: find the place by the lines around it.
        begin = source.index(mutant.context) + mutant.context.index(mutant.original)
    return f"{source[:begin]}({mutant.text}){source[begin + len(mutant.original) :]}"


def _affordable(tests: Sequence[tuple[float, str]], budget_s: float) -> list[tuple[float, str]]:
    spent, chosen = 0.0, []
    for seconds, test in sorted(tests):
        spent += seconds
        if spent <= budget_s or not chosen:
            chosen.append((seconds, test))
    return chosen


def _first_failure(checkout: Path, tests: Sequence[str], limit_s: float) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(tests) + "\n")
        listed.flush()
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-x", "-q", "--tb=no", "-rfE"]
        with subprocess.Popen(
            [*command, f"@{listed.name}"],
            cwd=checkout,
            # Processes that a test starts must import the mutant, too; unchanged modules keep their compiled files.
            env=os.environ | {"PYTHONPATH": os.fspath(checkout), "PYTHONDONTWRITEBYTECODE": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.communicate()
                return f"no end within {limit_s:.0f} s"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    if failed:
        return failed[1]
    return "" if process.returncode in {0, 5} else f"exit code {process.returncode}: {output[-200:]}"


def collect(checkout: Path) -> dict[str, bool]:
    """Return the tests of a checkout by their node ids, and whether each is in the default set."""
    found = {}
    for expression, is_default in (("", False), ("not full", True)):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", expression]
        listed = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout
        found |= dict.fromkeys((line for line in listed.splitlines() if "::" in line), is_default)
    return found


def _judge_all(options: argparse.Namespace, mutants: Sequence[Mutant]) -> None:
    hits, durations = read_hits(options.out / "hits"), read_durations(options.junit)
    free: SimpleQueue[Path] = SimpleQueue()
    for number in range(options.processes):
        checkout = options.out / f"checkout{number}"
        shutil.rmtree(checkout, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", options.root, checkout], check=True)
        free.put(checkout.resolve())
    is_default = collect(options.root)

    def judged(mutant: Mutant) -> Judgement | None:
        checkout = free.get()
        reaching = [(durations.get(test, 1.0), test) for test in hits.get(mutant.number, ()) if test in is_default]
        sets = [[known for known in reaching if is_default[known[1]] is wanted] for wanted in (True, False)]
        try:
            return judge(checkout, mutant, sets, options.budget_s)
        except (FileNotFoundError, ValueError):
            return None  # its code is gone
        finally:
            free.put(checkout)

    results: dict[str, list[Judgement]] = defaultdict(list)
    with ThreadPoolExecutor(options.processes) as pool, (options.out / "judged.jsonl").open("w") as file:
        for mutant, result in zip(mutants, pool.map(judged, mutants), strict=True):
            if result is not None:
                results[mutant.room].append(result)
                file.write(json.dumps(asdict(mutant) | asdict(result)) + "\n")
                file.flush()
            noticed = "gone" if result is None else f"killed by {result.by}" if result.by else "SURVIVED"
            print(mutant.number, f"{mutant.file}:{mutant.line}", noticed, flush=True)
    results["all"] = [result for of_room in results.values() for result in of_room]
    for room, of_room in results.items():
        by_any = sum(bool(result.by) for result in of_room)
        by_default = sum(bool(result.by) and result.is_default for result in of_room)
        print(f"{room:12} {by_default} of {len(of_room)} by the default set, {by_any} by --all")


def main() -> None:
    """Run `sample` or `judge`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["sample", "judge"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--per-room", type=int, default=20)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--junit", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--budget-s", type=float, default=60)
    options = parser.parse_args()
    if options.action == "judge":
        _judge_all(options, [Mutant(**mutant) for mutant in json.loads((options.out / "mutants.json").read_text())])
        return
    mutants = sample(options.root, options.per_room, options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "mutants.json").write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1))
    subprocess.run(["git", "clone", "-q", options.root, options.out / "probed"], check=True)
    probe(options.out / "probed", mutants, (options.out / "hits").resolve())


if __name__ == "__main__":
    main()
