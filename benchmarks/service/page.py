"""How long the page of a large study keeps a browser: first paint, blocks of its main thread, until it is drawn.

    python -m benchmarks.service.page                          # 2,000 and 20,000 trials, in Chromium
    python -m benchmarks.service.page --trials 2000 --keep studies.db

Studies on paper are stored, a real service serves them, and each view is opened in a tab of its own, twice: `cold` is
the first time that the service is asked. `block` is the longest task of the main thread (PerformanceObserver's
`longtask`, from 50 ms on), `blocks` is all of them together, and `asked` the longest request but for the stream.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from autotune.records.outcome import Outcome
from autotune.records.study import Run
from autotune.search.distributions import distributions_of
from autotune.storage.address import storage_url
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind
from spaces import Choice, Configuration, Flag, Float, Integer, Space
from tests.autotune.service.page.conftest import ARGUMENTS, BROWSERS, DESKTOP
from tests.autotune.service.serving import serving
from tests.support.fakes import capped, definition, failed, took

SPACE = Space(
    [
        Integer.range("ranks", 1, 48, default=48),
        Integer.range("threads", 1, 8, default=1),
        Choice("blas", ("openblas-openmp", "openblas-pthread", "blis-pthread"), optional=True),
        Choice("transport", ("self", "vader", "tcp", "ucx"), optional=True),
        Float("rate", 1e-4, 1e-1, log=True, default=1e-4),
        Flag("bind", default=False),
    ]
)
# A view, and what is there as soon as it can be read.
VIEWS = {
    "list": ("", "table.studies tbody tr"),
    "overview": ("{study}", "figure[aria-busy=false]"),
    "progress": ("{study}/pictures/progress", "figure[aria-busy=false]"),
    "slices": ("{study}/pictures/slices", "figure[aria-busy=false]"),
    "parallel": ("{study}/pictures/parallel", "figure[aria-busy=false]"),
    "trials": ("{study}/trials", "table.trials tbody tr"),
}
OBSERVE = """
globalThis.tasks = [];
new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)))
  .observe({ type: "longtask", buffered: true });
"""
SEEN = """() => ({
  paint_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
  block_ms: Math.max(0, ...tasks),
  blocks_ms: tasks.reduce((sum, one) => sum + one, 0),
  asked_ms: Math.max(0, ...performance.getEntriesByType("resource")
    .filter((one) => !one.name.endsWith("events")).map((one) => one.duration)),
})"""
SETTLES_MS = 700


def outcome(configuration: Configuration, rng: np.random.Generator) -> Outcome:
    """Return how a run ends: some fail, and those that are much worse are capped."""
    if rng.random() < 0.03:
        return failed(FailureKind.APPLICATION_ERROR, "no convergence after 100 iterations")
    slow = 1.0 if configuration.get("blas") == "openblas-pthread" else 1.3
    seconds = slow * (2.0 + 0.05 * abs(configuration["ranks"] - 24) + 0.2 * configuration["threads"])
    seconds *= float(np.exp(0.03 * rng.standard_normal()))
    return capped(5.0) if seconds > 5.0 else took(seconds)


def store(url: str, trials: int, rng: np.random.Generator) -> None:
    """Store a study of so many trials with a run each, named by their number."""
    study = StudyStore.create(url, f"trials-{trials}", definition(SPACE))
    with study.mirrored() as copy:
        for number in range(trials):
            values = {parameter.name: parameter.values for parameter in SPACE.parameters}
            drawn = {name: some[int(rng.integers(len(some)))] for name, some in values.items()}
            configuration = SPACE.default() if number == 0 else {k: v for k, v in drawn.items() if v is not None}
            ended = outcome(configuration, rng)
            trial = copy.add_trial(configuration, distributions_of(SPACE))
            job = {"resources": {"cores": 2}}
            copy.add_runs([Run(configuration, trial, outcome=ended, job=job, started="2026-01-01T00:00:00+00:00")])
            copy.settle_all({trial: Observation(value=ended.metrics.get("wall_s"), bound=ended.bound)})


def looked_at(browser: Browser, address: str, there: str, token: str) -> dict[str, float]:
    """Open a view, and return what it took in milliseconds."""
    context = browser.new_context(viewport=DESKTOP)
    page: Page = context.new_page()
    page.add_init_script(OBSERVE)
    page.add_init_script(f"sessionStorage.setItem('autotune-token', '{token}')")
    begun = time.perf_counter()
    page.goto(address)
    page.locator(there).first.wait_for(timeout=180_000)
    drawn_ms = 1000.0 * (time.perf_counter() - begun)
    page.wait_for_timeout(SETTLES_MS)
    seen = page.evaluate(SEEN) | {"drawn_ms": drawn_ms}
    context.close()
    return {name: round(value, 1) for name, value in seen.items() if value is not None}


def main() -> None:
    """Print the table; the figures are also written as JSON with `--json`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, nargs="+", default=[2000, 20_000])
    parser.add_argument("--keep", type=Path, help="a storage, made where it is not there yet")
    parser.add_argument("--views", nargs="+", choices=VIEWS, default=list(VIEWS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = next(filter(None, map(shutil.which, BROWSERS)))
    figures = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        kept = (options.keep or Path(folder) / "studies.db").resolve()
        if not kept.exists():
            for trials in options.trials:
                store(storage_url(str(kept)), trials, np.random.default_rng(0))
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        for trials in options.trials:
            with serving(Path(folder), storage=os.fspath(kept)) as service:
                for view in options.views:
                    path, there = VIEWS[view]
                    study = f"studies/trials-{trials}"
                    address = f"{service.url}/#/{path.format(study=study)}"
                    token = service.header.rpartition(" ")[2]
                    for turn in ("cold", "warm"):
                        seen = looked_at(browser, address, there, token)
                        figures[f"{trials} {view} {turn}"] = seen
                        if not options.json:
                            words = "  ".join(f"{name} {value:8.1f}" for name, value in seen.items())
                            print(f"{trials:6d}  {view:9s} {turn}  {words}", flush=True)
        browser.close()
    if options.json:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
