"""Lines for the scheduler that a site may not have."""

import pytest

from autotune.batch.site_file import reserved_reason


@pytest.mark.parametrize(
    "directive",
    [
        *(
            "--wrap=true",
            "--output=x",
            "--outp x",
            "-o x",
            "-ox",
            "-e x",
            "--error x",
            "--chdir=/",
            "-D /",
            "-J a",
            "-a 1",
            "--clusters=a,b",
            "-M all",
        ),
        *(
            "--array=1-4",
            "-t 10",
            "--time=1:00",
            "-p short -t 10",
            "--nodes=2",
            "-N2",
            "-n 4",
            "--job-name=a",
            "--wait",
        ),
    ],
)
def test_slurm_is_not_told_what_the_job_says(directive):
    assert reserved_reason("slurm", directive)


@pytest.mark.parametrize(
    "directive",
    [
        *(
            "--constraint=haswell",
            "-C haswell",
            "--reservation=a",
            "--switches=1@10:00",
            "--gres=gpu:1",
            "--mail-type=END",
            "--time-min=5",
        ),
        *(
            "-p short",
            "--exclusive",
            "--account=a",
            "--mem=0",
            "--ntasks-per-core=1",
            "--comment=-o",
            "--wait-all-nodes=1",
        ),
    ],
)
def test_what_a_site_may_say_to_slurm(directive):
    assert reserved_reason("slurm", directive) is None


@pytest.mark.parametrize(
    "directive",
    ["-o x", "-N x", "-Nx", "-e /x", "-J 1-4", "-l walltime=1:00", "-l wd,ncpus=4", "-lselect=2", "-j n", "-I"],
)
def test_pbs_is_not_told_what_the_job_says(directive):
    assert reserved_reason("pbs", directive)


@pytest.mark.parametrize(
    "directive", ["-l wd", "-l storage=scratch/jx00", "-P jx00", "-W umask=022", "-q normal", "-m e"]
)
def test_what_a_site_may_say_to_pbs(directive):
    assert reserved_reason("pbs", directive) is None


@pytest.mark.parametrize(
    "directive", ["-o x", "-N x", "-t 1-4", "-l h_rt=1:0:0", "-l mem_free=1G,h_rt=60", "-pe smp 4", "-sync y", "-wd /"]
)
def test_grid_engine_is_not_told_what_the_job_says(directive):
    assert reserved_reason("grid-engine", directive)


@pytest.mark.parametrize("directive", ["-pe orte", "-l mem_free=1G", "-P proj", "-m n", "-q all.q"])
def test_what_a_site_may_say_to_grid_engine(directive):
    assert reserved_reason("grid-engine", directive) is None


def test_the_reason_names_the_option():
    reason = "-l walltime: each run sets its wall time; set walltime = ... instead"
    assert reserved_reason("pbs", "-l walltime=1:00") == reason
    assert reserved_reason("lsf", "-o x") is None
