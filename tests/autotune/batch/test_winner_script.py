"""The winner's job script: the figures of its own configuration, and nothing that is valid in this session only."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.batch import winner_script
from autotune.batch.job_script import JobScript, job_script
from autotune.batch.script_forms import SHELL, script_forms
from autotune.batch.site_file import PROJECT, SiteError, find_cluster, with_account
from autotune.comparison.findings import Ablation
from autotune.results.summary import Summary
from autotune.statistics.standings import Standings
from launchers import Usage
from launchers.batch_systems.registry import BATCH_SYSTEMS
from launchers.mpi import MpiFlavour, flavour_record, script_flavour
from launchers.mpi.srun import SRUN
from launchers.server import mark_of
from objectives.efficiency import library
from tests.autotune.results.test_summary import JOB, script, trial, verdict_on
from tests.support.fakes import SECONDS, definition, small_space, study_file, took

TRIALS = (trial(0, took(9.0), np=8), trial(1, took(1.0), np=4, blas="fast"))
VERDICT = verdict_on(1, *[(1.8, 1.0)] * 6)
ABLATION = Ablation(1, 0.95, 8, (), 1.8, (1.8, 1.7, 1.9), ("blas",), {"np": 4}, (1.7, 1.6, 1.8), (0.99, 0.9, 1.1))


class Stored:
    """A storage with the runs of some trials."""

    def __init__(self, *runs):
        self._runs = runs

    def runs(self):
        return list(self._runs)


def summary(verdict=VERDICT, ablation=None):
    standings = Standings.of(TRIALS, SECONDS, verdict=verdict)
    return Summary("qe", definition(small_space()), standings, ablation=ablation)


def written(form="slurm", site=None, **changes):
    winner = TRIALS[1].runs[0]
    runs = (*TRIALS[0].runs, winner, replace(winner, configuration={"np": 4}))
    return winner_script.script_of(Stored(*runs), summary(**changes), form, site)


def test_every_batch_system_has_a_script_of_the_winner():
    assert [*BATCH_SYSTEMS, SHELL] == script_forms()
    assert "#BSUB -n 4\n" in script("lsf")
    assert "#BSUB -W 00:50\n" in script("lsf")
    assert "#flux: --time-limit=3000s\n" in script("flux")


def test_a_simplified_configuration_has_its_own_figure():
    text = written(ablation=ABLATION)
    simplified, winner = (line for line in text.splitlines() if "times as fast" in line)
    assert simplified == (
        "# trial 1 without blas is 1.700 times as fast as the default (1.600 to 1.800), 8 interleaved rounds"
    )
    assert winner.startswith("# the winner itself, with them: 1.800 times as fast as the default configuration")
    assert "# np=4\n" in text


def test_a_command_is_that_of_the_configuration_to_use_if_autotune_has_started_it():
    winner = TRIALS[1].runs[0]
    simplified = replace(winner, configuration={"np": 4}, job=JOB | {"argv": ["pw.x", "-nk", "1"]})
    store = Stored(winner, simplified)
    command = winner_script.command_to_use(store, summary())
    assert command[-5:] == JOB["argv"]
    assert command[:2] == ["env", "OMP_NUM_THREADS=1"]
    assert "ESPRESSO_TMPDIR" not in " ".join(command), "it is a folder of the measured run"
    assert winner_script.command_to_use(store, summary(ablation=ABLATION))[-3:] == ["pw.x", "-nk", "1"]
    told = replace(summary(), definition=replace(definition(small_space()), objective="replay"))
    assert winner_script.command_to_use(store, told) is None


def test_the_command_of_a_server_has_a_port_for_the_user_to_choose():
    server = {"argv": ["serve", "--port", mark_of("port"), "--at=127.0.0.1:" + mark_of("port")], "environment": {}}
    job = JOB | {"server": server | {"files": []}}
    assert winner_script.commands_of(job)[0][-3:] == ["--port", "PORT", "--at=127.0.0.1:PORT"]


def test_a_script_is_without_the_library_that_timed_the_measured_run():
    timed = library.with_library(JOB["environment"], Path("/cache") / library.NAME, Path(JOB["folder"]))
    winner = replace(TRIALS[1].runs[0], job=JOB | {"environment": timed})
    assert "LD_PRELOAD" not in " ".join(winner_script.command_to_use(Stored(winner), summary()))
    text = winner_script.script_of(Stored(winner), summary(), "slurm")
    assert library.PRELOAD not in text
    assert library.FOLDER_VARIABLE not in text


def test_the_command_to_use_comes_after_what_makes_its_own_build_available():
    lines = ["module load qe/own || exit 1", "export PATH=/home/me/qe/bin${PATH:+:$PATH}"]
    build = replace(TRIALS[1].runs[0], job=JOB | {"setup": lines})
    assert winner_script.setup_to_use(Stored(build), summary()) == ["module load qe/own", lines[1]]
    assert winner_script.setup_to_use(Stored(TRIALS[1].runs[0]), summary()) == []


def test_json_has_the_figure_of_the_simplified_configuration_too():
    described = summary(ablation=ABLATION).to_dict()
    assert (described["speed_up"]["ratio"], described["simplified_speed_up"]["ratio"]) == (pytest.approx(1.8), 1.7)
    assert summary().to_dict()["simplified_speed_up"] is None


def test_a_winner_without_a_verdict_is_said_to_be_unconfirmed():
    assert "# not confirmed yet; it looks 9 times as fast as the default;" in written(verdict=None)


def test_the_head_says_where_wall_time_and_memory_come_from():
    assert "# wall time and memory: 3 and 1.5 times those of the measured run (1e+03 s, 3072 MiB)" in script("slurm")
    assert "wall time" not in script("sh")


def test_no_memory_is_asked_for_by_what_ranks_used_that_slurm_itself_started():
    record = flavour_record(MpiFlavour(SRUN, (22, 5, 8), "srun"))
    with_srun = replace(TRIALS[1].runs[0], job=JOB | {"flavour": record})
    text = winner_script.script_of(Stored(with_srun), summary(), "slurm")
    assert "--mem" not in text
    assert "# wall time: 3 times that of the measured run" in text
    assert "the memory of ranks started by Slurm srun was not measured" in text
    # The memory of a program without ranks is measured.
    alone = replace(with_srun, job={**with_srun.job, "mpi": None})
    assert "#SBATCH --mem=1024M\n" in winner_script.script_of(Stored(alone), summary(), "slurm")


def test_the_memory_of_a_run_on_two_nodes_is_that_of_its_first():
    spread = replace(TRIALS[1].runs[0], job={**JOB, "resources": {**JOB["resources"], "nodes": 2}})
    text = winner_script.script_of(Stored(spread), summary(), "pbs")
    assert " MiB on its first node), at least" in text
    assert "#PBS -l select=2:ncpus=2:mpiprocs=2:mem=1GB\n#PBS -l place=scatter\n" in text


@pytest.mark.parametrize("form", ["slurm", "sh"])
def test_what_only_root_needs_is_not_in_a_script(form):
    assert "RUN_AS_ROOT" not in script(form)


def test_folders_of_autotunes_own_installation_are_to_be_filled_in(monkeypatch):
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    path = f"{sys.prefix}/share/autotune/blas/blis-openmp"
    job = JOB | {"environment": {"LD_LIBRARY_PATH": f"{path}:/opt/lib"}}
    run = replace(TRIALS[1].runs[0], job=job)
    text = winner_script.script_of(Stored(run), summary(), "sh")
    assert sys.prefix not in text
    assert 'export LD_LIBRARY_PATH="${MEASURED_LD_LIBRARY_PATH:?the folder of blis-openmp}":/opt/lib' in text


def test_a_site_puts_nobody_elses_project_and_no_other_program_into_a_script():
    text = written("pbs", with_account(find_cluster("gadi", programs=["lmp"]).site))
    assert f"#PBS -P {PROJECT}\n" in text
    assert f"# replace {PROJECT} by the project to charge" in text
    assert "qe" not in text.replace("autotune-qe", "").replace("study qe", "")
    assert "# module load ..." in text
    assert "-P ab12\n" in written("pbs", with_account(find_cluster("gadi").site, "ab12"))


def test_a_word_that_names_the_runs_folder_twice_leads_into_the_new_one_twice():
    folder = JOB["folder"]
    job = {**JOB, "mpi": None, "argv": ["ch-run", "--bind", f"{folder}:{folder}", "--", "solver"]}
    text = job_script(SHELL, JobScript("mine", {}, job, Usage(1.0), script_flavour(JOB)))
    assert folder not in text
    assert text.endswith('ch-run --bind "$run":"$run" -- solver\n')


@pytest.fixture
def own_site(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "autotune" / "site.toml"
    path.parent.mkdir()
    path.write_text('base = "slurm"\naccount = "ab12"\nqueue = "short"\n')
    return path


def test_the_script_of_a_study_made_here_has_the_lines_of_ones_own_site(own_site):
    at = winner_script.site_of(study_file(objective="qe", launcher={"kind": "local"}), "slurm")
    text = written("slurm", at)
    assert "#SBATCH --account=ab12\n" in text
    assert "#SBATCH --partition=short\n" in text
    assert winner_script.site_of(study_file(), "slurm", account="cd34").account == "cd34"


@pytest.mark.parametrize("form", ["pbs", SHELL])
def test_ones_own_site_has_no_say_in_a_script_for_another_batch_system(own_site, form):
    assert winner_script.site_of(study_file(launcher={"kind": "local"}), form) is None


def test_mistakes_of_ones_own_site_file_are_told_with_the_script(own_site):
    own_site.write_text('base = "slurm"\nacount = "ab12"\n')
    with pytest.raises(SiteError, match="acount"):
        winner_script.site_of(study_file(), "slurm")


def test_the_script_doubts_runs_whose_time_others_took():
    noisy = replace(summary(), taken_doubt="others took 78% of these runs' time")
    text = winner_script.script_of(Stored(*TRIALS[1].runs), noisy, "slurm", None)
    assert "doubt: others took 78% of these runs' time" in text
