"""Compare the default sampler with its peers on measured tables.

    python -m venv peers && peers/bin/pip install torch==2.13.0
    peers/bin/pip install -r benchmarks/search-requirements.txt
    python -m benchmarks.search --data FOLDER --peers-env peers/bin/python --out results

FOLDER has `convolution/*.json.gz` and `gemm/*.json.gz` (Kernel Tuner caches), `syr2k/small.csv.gz`,
`qe/pwx_silicon.csv.gz` and `software/*.csv.gz`, which are not part of this project; its own loop nest is searched, too.
Every method begins with the default configuration, except the exact figures of random search. A configuration's value
is the median of its recorded runs, so no program runs. Results are appended to `results.jsonl` in --out, and each cell
(space, method, version, seed) runs once: stop the command at any time, and repeat it with more seeds, methods or
spaces. Peers that no interpreter has installed are left out. Methods that take up to seconds for a proposal get at most
50 evaluations (--slow: all). The reports `results.md` and `results.csv` (all figures) cover the stored results of the
chosen spaces and methods.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.loop_nest.table import load_loop_nest
from benchmarks.measured_tables import load_gemm, load_software, load_syr2k, load_tables
from benchmarks.search.campaign import Limits, open_tasks, run
from benchmarks.search.cell import CellFile
from benchmarks.search.method import METHODS, Installed, Method, find
from benchmarks.search.problem import Problem
from benchmarks.search.report import report, write_csv
from benchmarks.search.summary import Selection, rows


def main() -> int:
    """Run the missing searches, then report on all stored results."""
    options = _options()
    problems = _problems(options.data, options.spaces)
    if not problems:
        print(f"no measured table in {options.data}: nothing to search; --data names the folder that holds them")
        return 3
    methods = _methods(options.methods, [*options.peers_env, sys.executable])
    options.out.mkdir(parents=True, exist_ok=True)
    cells = CellFile(options.out / "results.jsonl")
    if options.again:
        cells.forget_broken()
    budgets = sorted({int(budget) for budget in options.budget.split(",")})
    allowed = {method: method.budget(budgets[-1], slow=options.slow) for method in methods}
    tasks = list(open_tasks(problems, methods, options.seeds, allowed, cells))
    print(f"{len(tasks)} searches to run, {sum(1 for _ in cells)} stored")
    if not options.report_only:
        done = run(tasks, cells, Limits(options.cell_limit, options.limit))
        if done < len(tasks):
            print(f"time is up: {len(tasks) - done} searches are left; the same command resumes")
    selection = Selection(problems, {m.name: found.version for m, found in methods.items()}, options.seeds, budgets)
    found = rows(cells, selection)
    text = report(found, selection)
    print(text)
    (options.out / "results.md").write_text(text, encoding="utf-8")
    write_csv(found, options.out / "results.csv")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the measured tables")
    parser.add_argument("--peers-env", nargs="*", default=[], metavar="PYTHON", help="interpreters that have peers")
    parser.add_argument(
        "--budget", default="10,20,50,100,200", help="numbers of evaluations to report on; searches run the largest"
    )
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--spaces", nargs="*", metavar="TEXT", help="only spaces whose name contains one of these")
    parser.add_argument("--methods", nargs="*", metavar="TEXT", help="only methods whose name begins with one of these")
    parser.add_argument("--out", type=Path, default=Path("search-results"), help="folder for the results")
    parser.add_argument("--limit", type=float, default=float("inf"), help="start no search after this many seconds")
    parser.add_argument("--cell-limit", type=float, default=600.0, help="seconds after which one search is given up")
    parser.add_argument("--slow", action="store_true", help="give slow methods the largest budget, too")
    parser.add_argument("--again", action="store_true", help="run searches again that ended with an error")
    parser.add_argument("--report-only", action="store_true", help="run no searches")
    return parser.parse_args()


def _problems(folder: Path, chosen: Sequence[str] | None) -> list[Problem]:
    tables = [
        *load_tables(folder),
        *load_syr2k(folder),
        *load_gemm(folder),
        *load_software(folder),
        *load_loop_nest(),
    ]
    return [Problem.of(table) for table in tables if not chosen or any(text in table.name for text in chosen)]


def _methods(chosen: Sequence[str] | None, pythons: Sequence[str]) -> dict[Method, Installed]:
    """Find the methods that can run, and print them with their versions."""
    wanted = [m for m in METHODS.values() if not chosen or any(m.name.startswith(text) for text in chosen)]
    found = {method: find(method, pythons) for method in wanted}
    for method, installed in found.items():
        told = (
            f"left out: no interpreter of --peers-env has {method.package}" if installed is None else installed.version
        )
        print(f"{method.name:26} {method.package or 'this project':14} {told}")
    return {method: installed for method, installed in found.items() if installed is not None}


if __name__ == "__main__":
    sys.exit(main())
