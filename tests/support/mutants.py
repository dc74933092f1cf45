"""Measure what the tests notice: change the program at random places, and count the changes that some test catches.

    python -m tests.support.mutants sample --out DIR            choose mutants; write DIR/mutants.json and DIR/probed
    (cd DIR/probed && ./run test --all --durations=0 ...)       records in DIR/hits which tests reach which mutant
    python -m tests.support.mutants judge --out DIR --junit F   run those tests against each mutant, the quickest first

A mutant is one changed expression inside a function of the main path: a comparison or an arithmetic operator
replaced, a number one larger, a condition negated, a result or a call dropped. Only tests that reach the expression can
notice it, so only they are run; each mutant has a budget of test time. `judge` prints the share that is killed.
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

# Each process writes a pair of mutant and test once. The probe is in each module: the supervisor imports none of ours.
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
    """One changed expression: characters `begin` to `end` of a file become `text`."""

    number: int
    room: str
    file: str
    line: int
    begin: int
    end: int
    original: str
    text: str


def changes(source: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield each expression of a module's functions that can be changed, with its new text."""
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                for node in _own_nodes(statement):
                    yield from _changed(node)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    # f-strings have no usable places in Python 3.11; annotations do nothing; an inner function is met by itself.
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
    """Choose as many mutants in each room of the main path, every expression equally likely."""
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
            mutants.append(Mutant(len(mutants), room, name, node.lineno, begin, end, original, text))
    return mutants


def probe(root: Path, mutants: Sequence[Mutant], hits: Path) -> None:
    """Change a checkout so that each place of a mutant notes, in the file `hits`, the test that reaches it."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    for name, of_file in by_file.items():
        path = root / name
        source = path.read_text(encoding="utf-8")
        inserts = [(mutant.begin, 1, f"(_mutant_reached({mutant.number}), (") for mutant in of_file]
        inserts += [(mutant.end, 0, "))[1]") for mutant in of_file]
        # Inner expressions close before outer ones, and open after them.
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
    """What the tests said of a mutant; `by` is the first test that failed, or empty."""

    number: int
    killed: bool
    by: str
    tests: int
    seconds: float
    cut: int


def judge(checkout: Path, mutant: Mutant, tests: Sequence[tuple[float, str]], budget_s: float) -> Judgement:
    """Run tests, the quickest first, until one fails or the budget is spent."""
    path = checkout / mutant.file
    source = path.read_text(encoding="utf-8")
    assert source[mutant.begin : mutant.end] == mutant.original
    path.write_text(f"{source[: mutant.begin]}({mutant.text}){source[mutant.end :]}", encoding="utf-8")
    chosen: list[tuple[float, str]] = []
    for seconds, test in sorted(tests):
        if sum(spent for spent, _ in chosen) + seconds <= budget_s:
            chosen.append((seconds, test))
    by = ""
    try:
        spent = sum(seconds for seconds, _ in chosen)
        if chosen:
            by = _first_failure(checkout, [test for _, test in chosen], 60 + 4 * spent)
    finally:
        path.write_text(source, encoding="utf-8")
    return Judgement(mutant.number, bool(by), by, len(chosen), spent, len(tests) - len(chosen))


def _first_failure(checkout: Path, tests: Sequence[str], limit_s: float) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(tests) + "\n")
        listed.flush()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-x",
            "-q",
            "--tb=no",
            "-rfE",
            f"@{listed.name}",
        ]
        with subprocess.Popen(
            command, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
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


def main() -> None:
    """Sample, or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["sample", "judge"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--per-room", type=int, default=20)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--junit", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--budget-s", type=float, default=120)
    parser.add_argument("--name", default="judged")
    options = parser.parse_args()
    root = Path(__file__).parents[2]
    if options.action == "sample":
        mutants = sample(root, options.per_room, options.seed)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "mutants.json").write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1))
        subprocess.run(["git", "clone", "-q", root, options.out / "probed"], check=True)
        probe(options.out / "probed", mutants, (options.out / "hits").resolve())
        return
    mutants = [Mutant(**mutant) for mutant in json.loads((options.out / "mutants.json").read_text())]
    hits, durations = read_hits(options.out / "hits"), read_durations(options.junit)
    free: SimpleQueue[Path] = SimpleQueue()
    for number in range(options.processes):
        checkout = options.out / f"checkout{number}"
        shutil.rmtree(checkout, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", root, checkout], check=True)
        free.put(checkout.resolve())

    def judged(mutant: Mutant) -> Judgement:
        checkout = free.get()
        try:
            tests = [(durations[test], test) for test in hits.get(mutant.number, ()) if test in durations]
            return judge(checkout, mutant, tests, options.budget_s)
        finally:
            free.put(checkout)

    killed: dict[str, list[bool]] = defaultdict(list)
    with ThreadPoolExecutor(options.processes) as pool, (options.out / f"{options.name}.jsonl").open("w") as file:
        for mutant, result in zip(mutants, pool.map(judged, mutants), strict=True):
            file.write(json.dumps({**asdict(mutant), **asdict(result)}) + "\n")
            file.flush()
            killed[mutant.room].append(result.killed)
            print(
                mutant.number,
                mutant.file,
                mutant.line,
                "killed by " + result.by if result.killed else "SURVIVED",
                flush=True,
            )
    for room, results in killed.items():
        print(f"{room:12} {sum(results)} of {len(results)}")
    everything = [result for results in killed.values() for result in results]
    print(f"{'all':12} {sum(everything)} of {len(everything)} ({100 * sum(everything) / len(everything):.1f} %)")


if __name__ == "__main__":
    main()
