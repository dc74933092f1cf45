import csv
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune.coordination import places
from autotune.coordination.session_settings import SessionSettings
from autotune.display.console import Display
from autotune.errors import CannotRunHereError, DifferentStudyError, StorageError
from autotune.execution.capping import Cap
from autotune.execution.simulated_executor import SimulatedExecutor, simulate_run
from autotune.execution.task import Task
from autotune.machines.this_machine import this_machine
from autotune.planning.prepare import prepare
from autotune.records.series import WARM_UP, Series
from autotune.records.study import REPLAY_NOTICE, Run, State
from autotune.results.export import as_csv, resolve_replay, run_rows
from autotune.search.asker import Asker
from autotune.search.registry import sampler_of
from autotune.statistics.pace import Pace
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from autotune.tuning import session
from autotune.tuning.replay import budget_rows, runs_within_budget, table_of
from autotune.tuning.session import run_study
from autotune.tuning.simulated_runs import simulated_runs
from launchers import Job
from launchers.local import local_launcher
from objectives.base import FailureKind, RecordedRun
from tests.support.command_line import run_main
from tests.support.fakes import SECONDS, ListDisplay, capped, definition, failed, small_space, took
from tests.support.simulated import objective, told
from tests.support.warm import autotune

QUICK = {"pairs": 6, "max_pairs": 6, "rounds": 2}


def table(folder: Path) -> Path:
    """Write 64 configurations, each with three repeats, the fastest at a = b = 3."""
    path = folder / "table.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "wall_s"])
        for a in range(4):
            for b in range(4):
                for c in "wxyz":
                    quiet_s = 20.0 + 5 * abs(a - 3) + 5 * abs(b - 3)
                    writer.writerows([a, b, c, quiet_s * np.exp(0.02 * rng.standard_normal())] for _ in range(3))
    return path


def study_file(folder: Path, **sections) -> StudyFile:
    options = {"table": str(table(folder)), "metric": "wall_s", "parameters": ["a", "b", "c"]}
    values = {"name": "again", "objective": "replay", "options": options, "budget": {"trials": 12}, "verdict": QUICK}
    return StudyFile.model_validate(values | sections)


def settings(folder: Path, name="again") -> SessionSettings:
    return SessionSettings(f"sqlite:///{folder}/autotune.db", name, folder / "runs", this_machine(), local_launcher())


def replayed(folder: Path, display: Display | None = None, **sections):
    return run_study(study_file(folder, **sections), settings(folder), display or ListDisplay())


def stored(folder: Path, name="again") -> StudyStore:
    return StudyStore.read(f"sqlite:///{folder}/autotune.db", name)


def told_runs(store: StudyStore):
    return [(dict(run.configuration), run.series.kind, run.outcome) for run in store.runs()]


def task(key=0, name="00000", cap=None, time_limit_s=None, x=1):
    job = Job(("replay", json.dumps({"x": x})), Path("nowhere"), time_limit_s=time_limit_s, name=name)
    return Task(key, job, objective(), cap=cap)


def test_a_replay_is_a_whole_study_and_says_what_it_is(tmp_path):
    display = ListDisplay()
    summary = replayed(tmp_path, display)
    assert display.lines[0] == REPLAY_NOTICE
    assert summary.finished == 12
    assert summary.present_verdict is not None
    assert summary.best_text().startswith(REPLAY_NOTICE)
    assert summary.text().count(REPLAY_NOTICE) == 1
    assert summary.to_dict()["replay"] is True
    # Its runs leave nothing behind but what the plan wrote.
    assert not list((tmp_path / "runs").glob("0*"))


def test_a_replay_starts_neither_ray_nor_a_claim_on_cores(tmp_path, monkeypatch):
    claimed = []
    monkeypatch.setattr(places.CoreClaim, "claim", classmethod(lambda cls, cpus, **_: claimed.extend(cpus) or cls([])))
    monkeypatch.setitem(sys.modules, "autotune.execution.ray_executor", None)
    assert replayed(tmp_path).finished == 12
    assert claimed == []


@pytest.mark.slow
def test_the_same_seed_is_the_same_study_and_another_is_another(tmp_path):
    folders = [tmp_path / name for name in "abc"]
    for folder, seed in zip(folders, (1, 1, 2), strict=True):
        folder.mkdir()
        replayed(folder, sampler={"seed": seed})
    first, same, other = [told_runs(stored(folder)) for folder in folders]
    assert first == same
    assert first != other


@pytest.mark.parametrize("after", [7, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 16))])
def test_an_interrupted_replay_goes_on_with_the_same_draws(tmp_path, monkeypatch, after):
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    once = {"repeats": {"warm_up_runs": 0, "baseline_runs": 1, "baseline_every": 0, "max_runs": 1, "caps": False}}
    whole = replayed(tmp_path / "whole", **once)
    submit, count = SimulatedExecutor.submit, 0

    def interrupted(self, given):
        nonlocal count
        count += 1
        if count > after:
            raise KeyboardInterrupt
        submit(self, given)

    monkeypatch.setattr(SimulatedExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replayed(tmp_path / "parts", **once)
    monkeypatch.setattr(SimulatedExecutor, "submit", submit)
    parts = replayed(tmp_path / "parts", **once)

    def values(summary):
        found = {}
        for trial in summary.trials:
            found[json.dumps(dict(trial.configuration))] = trial.measured("wall_s")[:1]
        return found

    assert values(parts) == values(whole)
    assert parts.verdict == whole.verdict


def test_a_timeout_is_one_of_simulated_time(tmp_path):
    # Every run takes 20 to 50 simulated seconds.
    summary = replayed(tmp_path, budget={"trials": 60, "timeout_s": 300.0})
    assert 2 <= summary.finished < 20


def test_of_runs_side_by_side_the_first_to_end_is_reported_first():
    executor = SimulatedExecutor(lambda configuration, rng, worker: told(float(configuration["x"])), seed=0)
    for key, x in enumerate((30, 10, 20)):
        executor.submit(task(key, x=x))
    order = []
    while ended := executor.wait(0.25):
        order += [(given.key, executor.clock()) for given, _ in ended]
    assert order == [(1, 10.0), (2, 20.0), (0, 30.0)]
    assert executor.spent_s == 60.0


def test_two_workers_take_half_the_simulated_time(tmp_path):
    spent = {}
    for workers in (1, 2):
        study = study_file(tmp_path, budget={"trials": 40, "workers": workers}, sampler={"name": "random"})
        prepared = prepare(study, this_machine(), local_launcher(), tmp_path / "plan")
        store = StudyStore.in_memory(prepared.definition)
        asker = Asker(store, sampler_of(prepared.space, study.sampler))
        with simulated_runs(prepared.plan, study, ListDisplay()) as manager:
            session.TuningLoop(asker, manager, study).tune()
            spent[workers] = manager.gate.clock() / sum(run.outcome.usage.elapsed_s for run in store.runs())
    assert spent[1] == pytest.approx(1.0)
    assert spent[2] < 0.7


def test_what_a_run_draws_does_not_depend_on_the_number_of_its_trial():
    def drawn(name, seed=0):
        executor = SimulatedExecutor(lambda configuration, rng, worker: told(1.0 + rng.random()), seed)
        executor.submit(task(name=name))
        ((_, outcome),) = executor.wait(0.0)
        return outcome.metrics["wall_s"]

    assert drawn("00003-1") == drawn("00004-1")
    assert drawn("verdict-3-02-1") == drawn("verdict-4-02-1")
    names = ["00003", "00003-1", "00003-2", "warm-up", "verdict-3-02-1", "verdict-3-03-1", "select-3-4-02-1"]
    assert len({drawn(name) for name in names}) == len(names)
    assert drawn("00003", seed=1) != drawn("00003")


def test_what_was_begun_in_an_interrupted_replay_is_ended_in_storage_too(tmp_path, monkeypatch):
    submit = SimulatedExecutor.submit

    def interrupted(self, given):
        if given.job.name == "00003":
            raise KeyboardInterrupt
        submit(self, given)

    monkeypatch.setattr(SimulatedExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replayed(tmp_path)
    monkeypatch.setattr(SimulatedExecutor, "submit", submit)
    assert any(not trial.settled for trial in stored(tmp_path).trials())
    summary = replayed(tmp_path)
    trials = stored(tmp_path).trials()
    assert all(trial.settled for trial in trials)
    assert len(trials) == summary.finished == 12


def test_no_cap_counts_what_a_run_took_to_set_up():
    run = RecordedRun(62.0, ((62.0, json.dumps({"step": 1, "wall_s": 2.0})),), setup_s=60.0)
    assert simulate_run(task(cap=Cap(SECONDS, 3.0, 4.0)), run).complete
    assert simulate_run(task(cap=Cap(SECONDS, 1.0, 1.5)), run).capped
    assert simulate_run(task(cap=Cap(SECONDS, 1.0, 1.5)), run).usage.elapsed_s == 61.5


def test_a_capped_run_costs_less_and_one_that_reports_its_pace_still_less():
    steady = Pace(tuple((step, 1.6 * step) for step in range(1, 11)), 16.0, 16.0)
    by_time, by_pace = Cap(SECONDS, 20.0, 20.0), Cap(SECONDS, 20.0, 20.0, steady)
    capped, paced = simulate_run(task(cap=by_time), told(60.0)), simulate_run(task(cap=by_pace), told(60.0, steps=10))
    assert capped.bound == paced.bound == 20.0
    assert (capped.usage.elapsed_s, paced.usage.elapsed_s) == (20.0, 18.0)
    assert simulate_run(task(cap=by_pace), told(19.0, steps=10)).metrics == {SECONDS.name: 19.0}


def test_a_recorded_bound_stays_a_bound():
    run = RecordedRun(4.0, bound=3.5)
    free = simulate_run(task(), run)
    assert (free.bound, free.usage.elapsed_s, free.code) == (3.5, 4.0, "recorded-cap")
    strict = simulate_run(task(cap=Cap(SECONDS, 2.0, 2.5)), run)
    assert (strict.bound, strict.usage.elapsed_s, strict.code) == (2.0, 2.5, "capped")
    assert simulate_run(task(cap=Cap(SECONDS, 9.0, 9.5)), run).bound == 3.5
    assert simulate_run(task(time_limit_s=1.0), run).failure is FailureKind.TIMED_OUT


def recorded_study(folder: Path, name="paper") -> StudyStore:
    """Return a stored study with runs of every kind."""
    space = small_space()
    store = StudyStore.create(f"sqlite:///{folder}/autotune.db", name, definition(space))
    job = {"resources": {"cores": 4}}
    default, one, two, three = space.default(), {"np": 1}, {"np": 4, "npool": 2, "blas": "fast"}, {"np": 2}
    runs = [
        Run(default, 0, WARM_UP, outcome=took(99.0), job=job),
        Run(default, 0, outcome=took(3.0), job=job),
        Run(default, 0, outcome=took(3.2), job=job),
        Run(one, 1, outcome=failed(FailureKind.OUT_OF_MEMORY, "no\nmemory"), job=job),
        Run(two, 2, outcome=took(1.0), job=job),
        Run(three, 3, outcome=capped(4.0), job=job),
        Run(three, 3, outcome=failed(FailureKind.INFRASTRUCTURE_ERROR, "node died"), job=job),
        Run(two, 2, Series.verdict(2), outcome=took(1.1), job=job),
        Run(two, 2, Series.workload("large", "abc", 2), outcome=took(50.0), job=job),
    ]
    store.add_runs(runs)
    return store


def test_an_export_has_a_row_for_every_run_that_counts(tmp_path):
    rows = run_rows(recorded_study(tmp_path))
    assert [row["series"] for row in rows] == ["tuning"] * 5 + ["verdict"]
    assert len({tuple(row) for row in rows}) == 1
    assert [row["wall_s"] for row in rows] == [3.0, 3.2, None, 1.0, None, 1.1]
    assert rows[2]["failure"] == "out of memory: no memory"
    assert (rows[4]["bound"], rows[4]["job_s"], rows[4]["cores"]) == (4.0, 4.0, 4)
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert read[3] | {"np": "4", "npool": "2", "blas": "fast", "failure": "", "bound": ""} == read[3]


def test_a_stored_study_is_replayed_with_its_own_space(tmp_path):
    recorded_study(tmp_path)
    options = {"table": f"{tmp_path}/autotune.db", "study": "paper"}
    study = StudyFile(name="again", objective="replay", options=options)
    prepared = prepare(study, this_machine(), local_launcher(), tmp_path / "plan")
    assert prepared.space.size.value == 4
    assert prepared.plan.space_size == small_space().size.value
    assert prepared.space.default() == small_space().default()
    table = table_of(prepared)
    assert table.true_metrics({"np": 4, "npool": 2, "blas": "fast"})[table.metric.name] == pytest.approx(1.05)
    assert table.recording({"np": 1}).runs[0].failure is FailureKind.OUT_OF_MEMORY
    assert table.recording({"np": 2}).runs[0].bound == 4.0
    assert prepared.definition.machine_identity == {}
    summary = run_study(study, settings(tmp_path), ListDisplay())
    states = {trial.configuration["np"]: trial.state for trial in summary.trials}
    assert states == {8: State.COMPLETE, 1: State.FAILED, 4: State.COMPLETE, 2: State.CAPPED}
    assert summary.best.configuration["np"] == 4
    # A bound that is all that is known is not asked for again.
    assert [len(trial.runs) for trial in summary.trials if trial.state is State.CAPPED] == [1]
    assert {run.cores for run in stored(tmp_path).runs()} == {4}


def test_what_cannot_be_replayed_says_why(tmp_path):
    store = recorded_study(tmp_path)
    with pytest.raises(StorageError, match="no study 'other'"):
        resolve_replay({"table": f"{tmp_path}/autotune.db", "study": "other"}, tmp_path)
    steps = replace(store.definition, study={"stopping": {"max_steps": 9}})
    StudyStore.create(f"sqlite:///{tmp_path}/autotune.db", "steps", steps).add_runs(
        [Run({"np": 8}, 0, outcome=took(1.0), steps=9, of=9)]
    )
    with pytest.raises(CannotRunHereError, match="works in steps"):
        resolve_replay({"table": f"{tmp_path}/autotune.db", "study": "steps"}, tmp_path)


def test_another_table_does_not_continue_a_study(tmp_path):
    replayed(tmp_path, budget={"trials": 3})
    changed = study_file(tmp_path)
    path = Path(changed.options["table"])
    path.write_text(path.read_text() + "0,0,w,1.0\n")
    with pytest.raises(DifferentStudyError, match="table: sha256"):
        run_study(changed, settings(tmp_path), ListDisplay())


def test_a_budget_is_what_was_known_before_the_next_trial():
    runs = [Run({"x": t}, t, outcome=took(1.0)) for t in (0, 0, 1, 0, 2, 1, 3)]
    assert [run.trial for run in runs_within_budget(runs, 2)] == [0, 0, 1, 0]
    assert runs_within_budget(runs, 9) == runs


@pytest.mark.slow
def test_a_larger_budget_finds_more_and_costs_more(tmp_path):
    study = study_file(tmp_path, sampler={"name": "random"})
    prepared = prepare(study, this_machine(), local_launcher(), tmp_path / "plan")
    display = ListDisplay()
    rows = budget_rows(study, prepared, [64, 4, 100], 6, display)
    assert [row.budget for row in rows] == [4, 64, 100]
    few, all_, more = rows
    assert few.median > all_.median
    assert few.core_h < all_.core_h
    assert (all_.within, all_.trials, more.trials) == (1.0, 64, 64)
    assert all(1.0 <= row.lower <= row.median <= row.upper for row in rows)
    assert len(display.lines) == 6


@pytest.mark.full
def test_the_shipped_replay_as_a_person_types_it(tmp_path):
    ended = autotune(tmp_path, "study", "replay", "--trials", "20")
    assert ended.returncode == 0, ended.stderr
    assert REPLAY_NOTICE in ended.stderr
    assert ended.stdout.startswith(REPLAY_NOTICE)
    assert "job script" not in ended.stdout
    script = autotune(tmp_path, "best", "replay", "--script", "sh")
    assert (script.returncode, script.stdout) == (3, "")
    assert "nothing ran, so there is no job" in script.stderr
    dry = autotune(tmp_path, "study", "replay", "--trials", "2", "--dry-run")
    assert REPLAY_NOTICE in dry.stderr
    assert all(line.startswith("# trial ") for line in dry.stdout.splitlines())
    assert "replay:" in autotune(tmp_path, "storage", "list").stdout
    best = json.loads(autotune(tmp_path, "best", "replay", "--json").stdout)
    assert best["replay"] is True
    # The storage of a replay is one that can be replayed in turn.
    again = autotune(tmp_path, "replay", "replay", "--study", "replay", "--budgets", "5", "--seeds", "2")
    assert again.returncode == 2
    words = ["replay", "autotune.db", "--study", "replay", "--budgets", "3,9", "--seeds", "2", "--json"]
    asked = autotune(tmp_path, *words)
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout)
    assert [row["budget"] for row in found["budgets"]] == [3, 9]
    assert found["recorded"] == 20
    assert any("only 20 of" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.csv"], "there is no file nothing.csv"),
        (["replay", "--budgets", "5,x"], "--budgets '5,x'"),
        (["replay", "--sampler", "guess"], "sampler.name"),
        (["x.db"], "name one of its studies with --study"),
        (["x.csv"], "needs metric"),
    ],
)
def test_a_mistake_of_the_replay_command_ends_with_a_message(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.db").write_bytes(b"")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    ended = run_main("replay", *words)
    assert ended.returncode in {2, 3}
    assert said in ended.stderr
