"""A study of several inputs: whole, killed in the middle of a run, with a failing input, and what it says."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from math import exp

import pytest

from autotune import studyfile
from autotune.batch.winner_script import command_to_use, script_of
from autotune.comparison.input_verdicts import input_verdicts
from autotune.coordination.lease_record import LeaseRecord
from autotune.coordination.places import Here, SessionResources
from autotune.coordination.session_settings import SessionSettings
from autotune.errors import DifferentStudyError, NothingWorkedError, StudyFileError
from autotune.execution import core_pool
from autotune.execution.batch_executor import BatchExecutor
from autotune.execution.capping import Cap, OptimisticInput, apply_cap
from autotune.execution.core_pool import CorePool
from autotune.execution.executor import Executor
from autotune.execution.task import Task, WatchedRun, describe_job
from autotune.machines.this_machine import this_machine
from autotune.records.series import TUNING
from autotune.records.study import Purpose, State
from autotune.scheduling import mix_cap
from autotune.statistics.verdict import Verdict
from autotune.storage.study_store import StudyStore
from autotune.studyfile.definition import MixedInput
from autotune.tuning.session import run_study
from launchers import Job, MpiStart, Resources
from launchers.batch import BatchLauncher
from launchers.batch_systems.registry import BATCH_SYSTEMS
from launchers.local import LocalLauncher
from launchers.run import run
from launchers.site import Site
from objectives.base import Metric
from tests.launchers.fakes.cluster import FakeCluster
from tests.support.fakes import ListDisplay
from tests.support.processes import left_in
from tests.support.quick_study import quick_sections

# x = 1 is the default; 2 is good for both inputs; 3 is bad for the first, and would take for ever on the second; 4 wins
# on the first and loses on the second, which counts more. The third is as good with 2 as with 1.
TOOK = {"a": {1: 8.0, 2: 4.0, 3: 80.0, 4: 1.0}, "b": {1: 8.0, 2: 2.0, 3: 80.0, 4: 80.0}, "c": {1: 8.0, 2: 16.0}}
PROGRAM = f"""
import random, sys, time
name, x = sys.argv[1], int(sys.argv[2])
with open(sys.argv[3], "a") as log:
    print(name, x, file=log)
if (name, x) == ("b", 3):
    time.sleep(1000)
print("took", {TOOK}[name][x] * random.uniform(1, 1.01))
print("energy", len(name))
"""
STUDY = """
objective = "command"
[options]
argv = ["{python}", "-S", "{folder}/prog.py", "a", "{{x}}", "{folder}/log"]
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\S+)', kind = "time" }}]
answer = {{ name = "energy", pattern = 'energy (\\d+)', tolerance = 0 }}
[[inputs]]
name = "a"
[[inputs]]
name = "b"
weight = 3
options = {{ argv = ["{python}", "-S", "{folder}/prog.py", "b", "{{x}}", "{folder}/log"] }}
[sampler]
name = "exhaustive"
""" + quick_sections(trials=4, high=4)


class HereExecutor(Executor):
    """Makes each run at once, in this process; the `killed` one is left after its first input."""

    def __init__(self, killed=-1):
        self._killed = killed
        self._made = 0
        self._ended = []

    def submit(self, task):
        watched = WatchedRun(task)
        self._made += 1

        def on_lines(lines):
            if self._made == self._killed:
                raise KeyboardInterrupt
            return watched(lines)

        status = run(LocalLauncher(grace_s=0.2), apply_cap(task.job, task.cap), on_lines)
        self._ended.append((task, watched.outcome(status)))

    def wait(self, timeout_s):
        del timeout_s
        ended, self._ended = self._ended, []
        return ended

    def cancel_all(self):
        self._ended = []

    leave = cancel_all


@pytest.fixture
def executors(monkeypatch):
    """Return a list: each session takes the first executor of it, or a new one."""
    waiting = []

    @contextmanager
    def made(*_):
        yield SessionResources(waiting.pop(0) if waiting else HereExecutor(), CorePool(sorted(os.sched_getaffinity(0))))

    monkeypatch.setattr(Here, "resources", made)
    return waiting


@pytest.fixture
def settings(tmp_path, executors, monkeypatch):
    del executors
    monkeypatch.setattr(mix_cap, "ENOUGH", 1)  # four configurations are all there are
    (tmp_path / "prog.py").write_text(PROGRAM)
    (tmp_path / "mine.toml").write_text(STUDY.format(python=sys.executable, folder=tmp_path))
    monkeypatch.setattr(core_pool, "user_folder", lambda: tmp_path)
    # No lock of a core that a real study might want.
    here = replace(this_machine(), cpus=(100_000,))
    return SessionSettings(f"sqlite:///{tmp_path}/autotune.db", "mine", tmp_path / "runs", here, LocalLauncher())


def tuned(settings, tmp_path, *changes):
    study = studyfile.load(tmp_path / "mine.toml", changes)
    return run_study(study, settings, ListDisplay())


def made_by(tmp_path):
    return (tmp_path / "log").read_text().split("\n")[:-1]


@pytest.mark.slow
def test_the_mix_wins_and_the_verdict_is_of_each_input(settings, tmp_path):
    summary = tuned(settings, tmp_path)
    assert summary.best.configuration == {"x": 2}
    # 2 times on a, which counts a quarter, and 4 times on b.
    assert summary.present_verdict.interval(summary.standings.metric)[0] == pytest.approx(2**0.25 * 4**0.75, rel=0.02)
    assert [(one.name, one.share, one.loses) for one in summary.on_inputs] == [("a", 0.25, False), ("b", 0.75, False)]
    assert [one.interval[0] for one in summary.on_inputs] == pytest.approx([2.0, 4.0], rel=0.02)
    assert "on each input: a " in summary.best_text()
    assert summary.to_dict()["inputs"]["b"]["share"] == 0.75
    assert set(summary.best.runs[0].outcome.metrics) == {"mix", "took_s[a]", "took_s[b]"}
    # A loser sees no more than the first input; to win there is no reason to be stopped.
    loser = next(trial for trial in summary.trials if trial.configuration == {"x": 3})
    assert loser.state is State.CAPPED
    assert "after 1 of 2 inputs" in loser.runs[0].outcome.message
    assert {"b 4", "b 2"} <= set(made_by(tmp_path))
    # The winner's script runs all inputs, each in its folder.
    store = StudyStore.read(settings.url, "mine")
    assert {name: words[-4:] for name, words in command_to_use(store, summary).items()} == {
        name: [f"{tmp_path}/prog.py", name, "2", f"{tmp_path}/log"] for name in "ab"
    }
    assert summary.to_dict()["best"]["command"].keys() == {"a", "b"}
    script = script_of(store, summary, "sh")
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    assert made_by(tmp_path)[-2:] == ["a 2", "b 2"]
    assert [path.name for path in sorted((tmp_path / "autotune-mine").iterdir())] == ["a", "b"]
    with pytest.raises(DifferentStudyError, match=r"mix: a 0.25, b 0.75 there, a 0.5, b 0.5 here"):
        tuned(settings, tmp_path, "inputs=" + _inputs(tmp_path, a=1, b=1))


def test_what_others_took_makes_the_intervals_of_the_inputs_wider():
    target = Metric("took_s", "s", kind="time")
    verdict = Verdict(1, (1,), 1, 0.95, 0.05, inputs={"a": ((2.0, 1.0),) * 6})

    def width(of):
        (one,) = input_verdicts(of, [MixedInput("a", 1.0, target)])
        return one.interval[2] / one.interval[1]

    assert width(verdict) == pytest.approx(1.0)
    assert width(replace(verdict, unknown=0.1)) == pytest.approx(exp(2 * 1.96 * 0.1), rel=0.01)


@pytest.mark.full
def test_killed_within_a_run_the_same_command_makes_that_run_again(settings, tmp_path, executors):
    executors.append(HereExecutor(killed=2))
    with pytest.raises(KeyboardInterrupt):
        tuned(settings, tmp_path)
    assert left_in(tmp_path / "runs") == []
    stored = StudyStore.read(settings.url, "mine").runs()
    assert [dict(run.configuration) for run in stored] == [{"x": 1}]
    before = made_by(tmp_path)
    summary = tuned(settings, tmp_path)
    assert summary.finished == 4
    assert made_by(tmp_path)[len(before)].startswith("a ")
    assert [run.outcome.complete for run in summary.best.runs] == [True]


@pytest.mark.full
def test_a_winner_that_loses_on_an_input_is_said_to(settings, tmp_path):
    summary = tuned(settings, tmp_path, "inputs=" + _inputs(tmp_path, a=9, b=1))
    assert summary.best.configuration == {"x": 4}
    assert "warning: the winner loses on b: there the default is better" in summary.best_text()


@pytest.mark.slow
def test_an_input_of_weight_0_has_no_say_and_the_winner_is_compared_on_it(settings, tmp_path):
    summary = tuned(settings, tmp_path, "inputs=" + _inputs(tmp_path, a=2, b=0))
    # There is no mix of one input.
    assert summary.best.configuration == {"x": 4}
    assert set(summary.best.runs[0].outcome.metrics) == {"took_s"}
    assert summary.on_inputs == ()
    assert "on input b, of weight 0: Slower than the default configuration" in summary.best_text()
    found = summary.to_dict()["inputs"]
    assert found.keys() == {"b"}
    assert (found["b"]["share"], found["b"]["loses"]) == (0.0, True)
    assert found["b"]["speed_up"] == pytest.approx(0.1, rel=0.02)
    before = made_by(tmp_path)
    assert {line for line in before if line.startswith("b")} == {"b 1", "b 4"}
    # The same again runs nothing; another input of weight 0 is compared, and what was tuned stays.
    tuned(settings, tmp_path, "inputs=" + _inputs(tmp_path, a=2, b=0))
    assert made_by(tmp_path) == before
    more = dict.fromkeys(("b", "c"), 0)
    tuned(settings, tmp_path, "inputs=" + _inputs(tmp_path, a=2, **more).replace("'c', '{x}'", "'c', '1'"))
    assert {line.split()[0] for line in made_by(tmp_path)[len(before) :]} == {"c"}


@pytest.mark.slow
def test_beside_a_mix_an_input_of_weight_0_is_compared_in_pairs_of_its_own(settings, tmp_path):
    summary = tuned(settings, tmp_path, "inputs=" + _inputs(tmp_path, a=1, b=3, c=0))
    assert summary.best.configuration == {"x": 2}
    assert set(summary.best.runs[0].outcome.metrics) == {"mix", "took_s[a]", "took_s[b]"}
    assert [one.name for one in summary.on_inputs] == ["a", "b"]
    (found,) = summary.verified
    assert (found.name, found.why) == ("c", "")
    assert found.verdict.interval(summary.standings.metric)[0] == pytest.approx(0.5, rel=0.02)
    assert summary.to_dict()["inputs"].keys() == {"a", "b", "c"}


def _inputs(tmp_path, **weights):
    argv = [sys.executable, "-S", f"{tmp_path}/prog.py", "NAME", "{x}", f"{tmp_path}/log"]
    made = []
    for name, weight in weights.items():
        options = f"{{ argv = {[word.replace('NAME', name) for word in argv]} }}"
        made.append(f"{{ name = '{name}', weight = {weight}, options = {options} }}")
    return f"[{', '.join(made)}]"


@pytest.mark.full
def test_a_failure_or_a_wrong_answer_of_an_input_is_the_runs_and_named(settings, tmp_path):
    fails = PROGRAM.replace("len(name))", "ord(name) + (x == 2 and name == 'b'))")
    (tmp_path / "prog.py").write_text(f"{fails}\nsys.exit(7 if (name, x) == ('b', 4) else 0)\n")
    said = {trial.configuration["x"]: trial.failure for trial in tuned(settings, tmp_path).trials}
    assert said[4].message.startswith("input b: ended with exit code 7")
    assert said[2].message.startswith("energy[b] is 99, the reference run's is 98")
    # The kept output of each input is read again if only the way of reading has changed.
    before = {run.started for run in StudyStore.read(settings.url, "mine").runs()}
    mended = tuned(settings, tmp_path, "options.answer.tolerance=5")
    found = next(trial for trial in mended.trials if trial.configuration == {"x": 2})
    assert found.complete
    assert found.runs[0].started in before


def test_a_default_that_fails_shows_the_end_of_the_output_of_the_input_that_failed(settings, tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM + "\nsys.exit('no room for b' if name == 'b' else 0)\n")
    with pytest.raises(NothingWorkedError, match=r"(?s)input b: ended with.*the end of its stderr:\n  no room for b"):
        tuned(settings, tmp_path)


@pytest.mark.full
def test_as_jobs_of_a_batch_system_it_is_the_same(settings, tmp_path, executors, monkeypatch):
    with FakeCluster("slurm") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        site = Site("slurm", cores_per_node=2, poll_s=0.05)
        launcher = BatchLauncher(BATCH_SYSTEMS["slurm"].scheduler, site, patience_s=0.5)
        executors.append(BatchExecutor(launcher, lambda name, job_id: True, print))
        summary = tuned(settings, tmp_path)
    assert summary.best.configuration == {"x": 2}
    assert [one.interval[0] for one in summary.on_inputs] == pytest.approx([2.0, 4.0], rel=0.02)
    loser = next(trial for trial in summary.trials if trial.configuration == {"x": 3})
    assert "after 1 of 2 inputs" in loser.runs[0].outcome.message


def test_a_run_that_outlives_its_tuner_is_found_again_with_its_inputs(tmp_path):
    parts = tuple(Job(("prog", name), tmp_path / name, {"N": name}, MpiStart(2), name=name) for name in "ab")
    job = Job((), tmp_path, resources=Resources(2, cpus=(0, 1)), name="00001-0", parts=parts)
    cap = Cap(
        Metric("mix", "s"), 3.0, inputs=(OptimisticInput("t[a]", 0.5, 1.0, 9.0), OptimisticInput("t[b]", 0.5, 2.0))
    )
    task, purpose = Task(1, job, None, cap=cap), Purpose({"x": 1}, 1, TUNING)
    record = LeaseRecord.of(task, purpose, describe_job(job), "2026-01-01T00:00:00+00:00", "slurm")
    found = LeaseRecord.from_dict(json.loads(json.dumps(record.to_dict()))).task(1, None)
    assert found.job == job
    assert found.cap == cap


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[inputs]]\nname = 'a'\n", "two inputs or more"),
        ("[[inputs]]\nname = 'a.b'\n[[inputs]]\nname = 'a-b'\n", "each input needs a name of its own"),
        ("[[inputs]]\nname = 'a'\nweight = -1\n[[inputs]]\nname = 'b'\n", "inputs.0.weight"),
        ("[[inputs]]\nname = 'a'\nweight = 0\n[[inputs]]\nname = 'b'\nweight = 0\n", "all weights are 0"),
        ("[[inputs]]\nname = 'a'\n[[inputs]]\nname = 'b'\n[stopping]\nmax_steps = 3\n", "cannot go together"),
    ],
)
def test_inputs_that_cannot_be_mixed_are_said(tmp_path, text, words):
    (tmp_path / "wrong.toml").write_text("objective = 'command'\n" + text)
    with pytest.raises(StudyFileError, match=words):
        studyfile.load(tmp_path / "wrong.toml")
