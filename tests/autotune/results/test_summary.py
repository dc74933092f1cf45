import subprocess
from dataclasses import replace

import pytest

from autotune.batch.job_script import JobScript, job_script
from autotune.cli.commands.storage import _list_row
from autotune.comparison.limit_verdict import LimitVerdict
from autotune.records.limit import Breach, Limit
from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.results.summary import Summary
from autotune.results.trial_columns import row_of, trial_columns
from autotune.service.summaries import brief_of
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from launchers import Usage
from launchers.mpi import script_flavour
from objectives.base import FailureKind, Metric
from tests.support.fakes import SECONDS, capped, definition, failed, small_space, took

FOLDER = "/scratch/autotune-runs/qe/00003"
JOB = {
    "argv": ["pw.x", "-nk", "2", "-inp", "it's.in"],
    "prepare": [],
    "setup": [],
    "copies": [],
    "environment": {"OMP_NUM_THREADS": "1", "ESPRESSO_TMPDIR": f"{FOLDER}/out"},
    "mpi": {"ranks": 4, "bind_to": "core", "map_by": None, "options": []},
    "resources": {"cores": 4, "nodes": 1, "gpus": 0, "cpus": [0, 1, 2, 3]},
    "flavour": {"kind": "Open MPI", "version": [4, 1, 4], "path": "/usr/bin/mpirun"},
    "folder": FOLDER,
    "files": {"it's.in": f"outdir = '{FOLDER}/out'\nEND_OF_INPUT\n$HOME `date`\n"},
}


def trial(number, *outcomes, **configuration):
    runs = tuple(Run(configuration, number, outcome=outcome, job=JOB) for outcome in outcomes)
    return TrialRecord(number, configuration, runs, settled=bool(runs))


def summary(*trials, verdict=None):
    return Summary("qe", definition(small_space()), Standings.of(trials, SECONDS, verdict=verdict))


def verdict_on(winner, *pairs, candidates=None):
    return Verdict(winner, candidates or (winner,), 1, 0.95, 0.05, pairs)


def test_a_confirmed_winner_is_reported():
    verdict = verdict_on(1, *[(2.0, 1.0)] * 6)
    text = summary(trial(0, took(2.0), np=8), trial(1, took(1.0), took(1.2), np=4), verdict=verdict).best_text()
    assert "wall_s: 1.095 s (median of 2 runs), trial 1" in text
    assert "changed: np" in text
    assert "verdict: 2.000 times as fast" in text


def test_values_are_shown_as_they_were_measured():
    found = summary(trial(0, took(16.7), took(16.3), took(16.0), np=8))
    assert found.to_dict()["best"]["value"] == 16.3
    assert brief_of(found)["best"] == 16.3


def test_a_study_without_facts_and_failures_does_not_mention_them():
    text = replace(summary(trial(0, took(2.0), np=8)), definition=definition(small_space(), facts={})).text()
    assert text.startswith("study qe: 1 trial\n")
    assert "workload" not in text


def test_the_winner_of_the_verdict_is_the_winner_though_another_looked_better():
    found = summary(
        trial(0, took(2.0), np=8), trial(1, took(1.0)), trial(2, took(0.99)), verdict=verdict_on(1, candidates=(2, 1))
    )
    assert found.best.number == 1


def test_the_verdict_on_an_earlier_winner_is_not_that_on_the_present_one():
    verdict = verdict_on(1, *[(2.0, 1.0)] * 6)
    found = summary(trial(0, took(2.0)), trial(1, took(1.0)), trial(2, took(0.5)), verdict=verdict)
    assert found.verdict_sentence() is None
    assert "not confirmed yet" in found.best_text()
    assert found.to_dict()["verdict"] is None


def test_an_unbeaten_default_is_reported_as_best():
    assert "No configuration was better" in summary(trial(0, took(1.0)), trial(1, took(2.0))).best_text()


def test_a_default_without_competitors_is_not_called_best():
    said = "Only the default configuration has been tried yet."
    assert summary(trial(0, took(1.0))).verdict_sentence() == said
    assert summary(trial(0, took(1.0)), trial(1)).verdict_sentence() == said


def test_that_others_took_time_is_a_doubt_beside_those_of_the_verdict():
    found = summary(trial(0, took(2.0)), trial(1, took(1.0)), verdict=verdict_on(1, *[(2.0, 1.0), (2.0, 1.9)] * 6))
    doubted = replace(found, taken_doubt="others took 12% of these runs' time")
    assert len(doubted.doubts) == 1 + len(found.doubts) > 1
    assert doubted.doubts[-1] == "others took 12% of these runs' time"


UNSURE = [(2.0 + 0.3 * (-1) ** k, 2.0) for k in range(8)]


@pytest.mark.parametrize(
    ("pairs", "used"), [(UNSURE, 0), ([(2.0, 2.6)] * 8, 0), ([(2.0, 1.0)] * 8, 1), ([], 1)], ids=str
)
def test_the_default_is_used_if_the_verdict_says_to_keep_it(pairs, used):
    trials = (trial(0, took(2.0), np=8), trial(1, took(1.9), np=4))
    found = summary(*trials, verdict=verdict_on(1, *pairs))
    assert found.to_use is found.trials[used]
    assert found.configuration == trials[used].configuration


@pytest.mark.parametrize(
    ("pairs", "said"),
    [([(2.0, 1.0)] * 8, "Use it"), ([(2.0, 1.0)] * 3, "Confirm it"), ([(2.0, 2.6)] * 8, "Keep the default")],
)
def test_the_next_step_is_to_use_only_what_enough_pairs_confirmed(pairs, said):
    found = summary(trial(0, took(2.0), np=8), trial(1, took(1.9), np=4), verdict=verdict_on(1, *pairs))
    assert found.next_step("`Confirm now`").startswith(said)
    fresh = brief_of(found)["fresh"]
    assert (fresh.best, fresh.default) == (min(pairs[0]), 2.0), "the best is the default where the winner was slower"


def test_the_next_step_of_a_replay_asks_for_no_runs():
    found = summary(trial(0, took(2.0), np=8), trial(1, took(1.9), np=4))
    replayed = replace(found, definition=replace(found.definition, objective="replay"))
    assert "replay" in replayed.next_step("`Confirm now`")


def test_where_the_default_breaks_a_limit_the_winner_is_to_be_used_however_fast_it_is():
    found = summary(trial(0, took(2.0), np=8), trial(1, took(1.9), np=4), verdict=verdict_on(1, *UNSURE))
    memory = Limit(Metric("memory", "GiB"), high=2.0)
    broken = LimitVerdict((memory,), 8, 8, (Breach(memory, 3.0),))
    assert replace(found, on_limits=broken).to_use.number == 1


def test_failures_are_counted_by_kind_and_bounds_apart():
    found = summary(
        trial(0, took(1.0)),
        trial(1, failed(FailureKind.TIMED_OUT)),
        trial(2, capped(3.0)),
        trial(3),
        trial(4, took(2.0)),
    )
    assert found.to_dict()["failures"] == {"timed out": 1, "capped": 1}
    assert found.finished == 4


def script(form, **resources):
    outcome = Outcome(metrics={"wall_s": 2.0}, usage=Usage(elapsed_s=1000.0, peak_memory_bytes=3 * 2**30))
    run = Run({"np": 4}, 3, outcome=outcome, job={**JOB, "resources": {**JOB["resources"], **resources}})
    flavour = script_flavour(JOB)
    return job_script(
        form, JobScript("autotune-qe", run.configuration, run.job, run.outcome.usage, flavour, ["two\nlines"])
    )


@pytest.mark.parametrize("form", ["pbs", "slurm", "sh"])
def test_a_job_script_is_valid_shell_and_runs_in_a_folder_of_its_own(form, tmp_path):
    text = script(form)
    assert FOLDER not in text
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    for name in ("mpirun", "srun"):
        fake = tmp_path / name
        fake.write_text(
            '#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\necho "$ESPRESSO_TMPDIR"; cat "it\'s.in"\n'
        )
        fake.chmod(0o755)
    ran = subprocess.run(
        ["bash"],
        input=text,
        text=True,
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PWD": str(tmp_path)},
    )
    lines = ran.stdout.splitlines()
    assert "<-nk>\n<2>\n<-inp>\n<it's.in>\n" in ran.stdout
    assert f"{tmp_path}/autotune-qe/out" in lines
    assert "outdir = './out'" in lines
    assert "$HOME `date`" in lines


def test_the_schedulers_settings_leave_room():
    assert "#PBS -l walltime=00:50:00" in script("pbs")
    assert "#PBS -l select=1:ncpus=4:mpiprocs=4:mem=4608MB\n" in script("pbs")
    assert "#SBATCH --ntasks=4" in script("slurm")
    assert "#SBATCH --time=00:50:00" in script("slurm")
    assert "# two\n# lines\n" in script("sh")


def test_the_script_asks_for_the_hardware_threads_that_were_measured():
    shared = script("slurm", cores=2, cpus=[0, 1], threads_per_core=2)
    assert "#SBATCH --ntasks=4\n#SBATCH --cpus-per-task=1\n#SBATCH --threads-per-core=2\n" in shared
    assert "mpirun -np 4 --use-hwthread-cpus --bind-to core" in shared
    assert "#SBATCH --threads-per-core=1\n" in script("slurm")
    assert "use-hwthread-cpus" not in script("slurm")


def test_every_view_shows_the_speed_up_of_the_verdict():
    trials = (trial(0, took(9.0), np=8), trial(1, took(1.0), np=4))
    before = summary(*trials)
    assert before.to_dict()["speed_up"] == {"ratio": pytest.approx(9.0), "low": None, "high": None, "confirmed": False}
    assert "verdict: not confirmed yet; it looks 9 times as fast as the default;" in before.best_text()
    after = summary(*trials, verdict=verdict_on(1, *[(1.8, 1.0)] * 6))
    assert _list_row(after)[3:5] == ["1 s", "1.800x (1.800 to 1.800)"], "value and speed-up are of the same runs"
    assert after.to_dict()["speed_up"]["ratio"] == pytest.approx(1.8)
    row = row_of(after.trials[1], trial_columns(after.standings, after.definition))
    assert (row["speed_up"], row["confirmed"]) == (pytest.approx(1.8), True)
    assert brief_of(after)["speed_up"] == pytest.approx(1.8)
