"""The exact job scripts: each scheduler in three shapes, and Gadi's own form.

After an intended change, `AUTOTUNE_WRITE_GOLDEN=1 pytest tests/launchers/test_scripts.py` rewrites the golden files.
"""

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchers import Job, MpiStart, Resources
from launchers.batch import BatchLauncher
from launchers.batch_systems.base import make_request, safe_name
from launchers.batch_systems.registry import BATCH_SYSTEMS
from launchers.batch_systems.system import WinnerRequest
from launchers.environment import batch_job_variables
from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.site import Site

GIBIBYTE = 2**30
SCHEDULERS = {name: system.scheduler for name, system in BATCH_SYSTEMS.items()}
PBS = SCHEDULERS["pbs"]
GOLDEN = Path(__file__).parent / "golden"
FOLDER = Path("/scratch/jx00/study/runs/00012-1")

PLAIN = Site("", "plain", cores_per_node=48, nodes=4, python="/opt/python/bin/python3", walltime_s=3600)
BUSY = replace(
    PLAIN,
    account="jx00",
    queue="normal",
    memory_bytes=190 * GIBIBYTE,
    gpus_per_node=4,
    walltime_s=86400,
)
ONE_CORE = (Job(("pw.x",), FOLDER, name="at-1a2b3c4d-00012-1"), PLAIN)
PART_OF_A_NODE = (
    Job(
        ("pw.x", "-npool", "2"),
        FOLDER,
        {"OMP_NUM_THREADS": "3"},
        MpiStart(4),
        Resources(cores=12),
        time_limit_s=601,
        name="at-1a2b3c4d-00012-1",
    ),
    BUSY,
)
SEVERAL_NODES = (
    Job(
        ("python", "train.py"),
        FOLDER,
        mpi=MpiStart(10),
        resources=Resources(cores=160, nodes=4, gpus=16),
        time_limit_s=5400,
        name="at-1a2b3c4d-00013-2",
    ),
    replace(
        BUSY,
        qos="high",
        account_name="grant-7",
        group="climate",
        chunk=("model=sky", "gpu_type=a100"),
        licences=("abaqus=2", "qe"),
        modules=("openmpi/4.1.2", "it's a/module"),
        setup=("ulimit -s unlimited",),
        exclusive=True,
    ),
)
SHAPES = {"one-core": ONE_CORE, "part-of-a-node": PART_OF_A_NODE, "several-nodes": SEVERAL_NODES}
EXTRA = {
    "slurm": ("--constraint=haswell", "--hint=nomultithread"),
    "pbs": ("-m n", "-W umask=022"),
    "grid-engine": ("-pe orte", "-m n"),
    "lsf": ("-app training",),
    "flux": ("--setattr=system.alloc-bypass.R=no",),
}

GADI = Site(
    "pbs",
    "gadi",
    account="jx00",
    queue="normal",
    licences=("qe",),
    directives=("-l wd", "-l storage=scratch/jx00"),
    modules=("openmpi/4.1.2", "qe/7.0"),
    nodes=32,
    cores_per_node=48,
    memory_bytes=760 * GIBIBYTE // 25,
    walltime_s=600,
    python="/scratch/jx00/venv/bin/python",
    by_chunks=False,
)
ON_GADI = Job(
    ("pw.x", "-npool", "1", "-ndiag", "1", "-inp", "CeO2.in"),
    FOLDER,
    {"OMP_NUM_THREADS": "1"},
    MpiStart(1200),
    Resources(cores=1200, nodes=25),
    name="at-1a2b3c4d-00012-1",
)


def script(job: Job, site: Site) -> str:
    text = BatchLauncher(SCHEDULERS[site.scheduler], site).script(job)
    *_, command = text.splitlines()
    node = shlex.split(command)[3]
    assert node.endswith("/launchers/node.py")
    return text.replace(node, "/opt/autotune/launchers/node.py")


@pytest.fixture
def login(monkeypatch):
    """Make scripts export the same variables wherever the tests run."""
    for name in batch_job_variables(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "/opt/it's mine/bin:/usr/bin")
    monkeypatch.setenv("HOME", "/home/me")
    before = os.umask(0o022)
    yield
    os.umask(before)


def compare(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.sh"
    if os.environ.get("AUTOTUNE_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.usefixtures("login")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_script_matches_its_golden_file(scheduler, shape):
    job, site = SHAPES[shape]
    site = replace(site, scheduler=scheduler)
    if shape == "several-nodes":
        site = replace(site, directives=EXTRA[scheduler])
    if scheduler == "slurm":
        site = replace(site, licences=tuple(licence.replace("=", ":") for licence in site.licences))
    compare(f"{scheduler}-{shape}", script(job, site))


@pytest.mark.usefixtures("login")
@pytest.mark.parametrize("shape", SHAPES)
def test_pbs_script_with_totals_matches_its_golden_file(shape):
    job, site = SHAPES[shape]
    compare(f"pbs-totals-{shape}", script(job, replace(site, scheduler="pbs", by_chunks=False)))


@pytest.mark.usefixtures("login")
def test_script_for_gadi_matches_its_golden_file():
    text = script(ON_GADI, GADI)
    compare("pbs-gadi", text)
    wanted = ("-P jx00", "-l software=qe", "-l ncpus=1200", "-l mem=760GB", "-l wd", "-l walltime=00:10:00")
    assert [line for line in wanted if f"#PBS {line}" not in text.splitlines()] == []


def test_every_golden_script_is_used():
    names = {f"{scheduler}-{shape}" for scheduler in (*SCHEDULERS, "pbs-totals") for shape in SHAPES} | {"pbs-gadi"}
    assert {path.stem for path in GOLDEN.iterdir()} == names


@pytest.mark.parametrize("path", sorted(GOLDEN.iterdir()), ids=lambda path: path.stem)
def test_golden_script_is_valid_shell(path):
    assert subprocess.run(["bash", "-n", path], capture_output=True, check=True).stderr == b""


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(
    "name",
    ["with blanks", "new\nline", 'it\'s "quoted"', "$(touch gone)", "a:b;c", "-n", "ümlaut", "100%j", "back\\slash"],
)
def test_script_works_in_a_folder_with_any_name(scheduler, name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    echo = tmp_path / "echo.sh"
    echo.write_text('#!/bin/sh\nprintf "%s" "$3" > "$0.out"\n')
    echo.chmod(0o755)
    text = BatchLauncher(SCHEDULERS[scheduler], Site(scheduler, python=str(echo))).script(Job(("true",), folder))
    (folder / "script").write_text(text)
    subprocess.run(["bash", folder / "script"], cwd=tmp_path, check=True)
    assert Path(f"{echo}.out").read_text() == str(folder)
    assert not (tmp_path / "gone").exists()
    # The lines for the scheduler do not depend on the folder's name.
    plain = BatchLauncher(SCHEDULERS[scheduler], Site(scheduler, python=str(echo))).script(Job(("true",), tmp_path))
    assert text.partition("\nexec >")[0] == plain.partition("\nexec >")[0]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@given(name=st.text())
def test_jobs_name_cannot_become_a_directive(scheduler, name):
    head = SCHEDULERS[scheduler].head(make_request(Job(("true",), FOLDER, name=name), PLAIN), PLAIN)
    usual = SCHEDULERS[scheduler].head(make_request(Job(("true",), FOLDER), PLAIN), PLAIN)
    assert [line.split()[:2] for line in head[1:]] == [line.split()[:2] for line in usual[1:]]
    assert all(line.isprintable() for line in head)
    assert head[0].endswith(safe_name(name))


@given(st.text())
def test_safe_name_is_one_that_pbs_takes(name):
    safe = safe_name(name)
    assert safe[0].isalpha()
    assert safe.isascii()
    assert len(safe) <= 230
    assert not set(safe) & set(" \t\n[]:/'\"")
    assert safe_name(safe) == safe


def test_ordinary_name_is_unchanged():
    assert safe_name("at-1a2b3c4d-00012-1") == "at-1a2b3c4d-00012-1"


@given(ranks=st.integers(1, 2000), nodes=st.integers(1, 32), gpus=st.integers(0, 64))
def test_chunks_hold_what_was_asked(ranks, nodes, gpus):
    nodes = min(nodes, ranks)
    job = Job(("a",), FOLDER, mpi=MpiStart(ranks), resources=Resources(cores=ranks, nodes=nodes, gpus=gpus))
    site = replace(PLAIN, cores_per_node=2000, mpi=MpiFlavour(OPEN_MPI))
    (select,) = [line for line in PBS.head(make_request(job, site), site) if "select=" in line]
    totals = {"chunks": 0, "ncpus": 0, "mpiprocs": 0, "ngpus": 0}
    for chunk in select.partition("select=")[2].split("+"):
        count, *parts = chunk.split(":")
        totals["chunks"] += int(count)
        for name, value in (part.split("=") for part in parts):
            totals[name] += int(count) * int(value)
    assert totals == {"chunks": nodes, "ncpus": ranks, "mpiprocs": ranks, "ngpus": gpus}


def test_ranks_beyond_the_sites_nodes_share_cores(tmp_path):
    site = Site("slurm", nodes=2, cores_per_node=4)
    job = Job(("solve",), tmp_path, mpi=MpiStart(12), resources=Resources(cores=12))
    shown = BatchLauncher(BATCH_SYSTEMS["slurm"].scheduler, site).preview(job)
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks=8\n" in shown
    assert "--oversubscribe" in shown


@pytest.mark.parametrize(
    ("per_core", "directives", "asked"),
    [
        (1, (), ["--cpus-per-task=1", "--threads-per-core=1"]),
        (2, (), ["--cpus-per-task=2", "--threads-per-core=2"]),
        (1, ("--hint=multithread",), ["--cpus-per-task=1"]),
        (1, ("--mem-bind=local -B 2:*:*",), ["--cpus-per-task=1"]),
        (1, ("--threads-per-core=2",), ["--cpus-per-task=1", "--threads-per-core=2"]),
        (1, ("--constraint=smt",), ["--cpus-per-task=1", "--threads-per-core=1"]),
    ],
)
def test_slurm_requests_cores_unless_the_site_sets_hardware_threads(per_core, directives, asked):
    site = Site("slurm", cores_per_node=48, directives=directives)
    resources = Resources(cores=8, threads_per_core=per_core)
    of_run = SCHEDULERS["slurm"].head(
        make_request(Job(("a",), FOLDER, mpi=MpiStart(8), resources=resources), site), site
    )
    winner = WinnerRequest("best", 1, 8, 8, 0, 1024, 3600, site, threads_per_core=per_core)
    of_winner = BATCH_SYSTEMS["slurm"].winner.head(winner)
    for head in (of_run, of_winner):
        assert "#SBATCH --ntasks=8" in head
        assert [line[8:] for line in head if "-per-task" in line or "threads-per-core" in line] == asked


@pytest.mark.parametrize(
    ("gres", "nodes", "asked"),
    [
        ("", 1, "#SBATCH --gpus=8\n"),
        ("", 2, "#SBATCH --gpus-per-node=4\n"),
        ("gpu", 1, "#SBATCH --gres=gpu:8\n"),
        ("gpu:a100", 2, "#SBATCH --gres=gpu:a100:4\n"),
    ],
)
def test_gpus_are_requested_as_the_site_wants(gres, nodes, asked, tmp_path):
    site = Site("slurm", nodes=2, cores_per_node=48, gres=gres)
    job = Job(("train",), tmp_path, resources=Resources(cores=8, nodes=nodes, gpus=8))
    assert asked in BatchLauncher(BATCH_SYSTEMS["slurm"].scheduler, site).preview(job)


def test_job_has_the_nodes_that_its_gpus_need(tmp_path):
    site = Site("slurm", nodes=4, cores_per_node=48, gpus_per_node=4)
    assert make_request(Job(("train",), tmp_path, resources=Resources(cores=8, gpus=8)), site).nodes == 2


def test_program_that_starts_its_own_ranks_has_a_share_of_each_node(tmp_path):
    job = Job(("train",), tmp_path, resources=Resources(cores=96))
    asked = make_request(job, Site("slurm", nodes=2, cores_per_node=48))
    assert (asked.nodes, asked.tasks, asked.cores_per_task) == (2, 2, 48)


def test_totals_of_several_nodes_request_all_their_cores():
    job = Job(("a",), FOLDER, mpi=MpiStart(100), resources=Resources(cores=100, nodes=3))
    assert "#PBS -l ncpus=144" in PBS.head(make_request(job, GADI), GADI)


def test_wall_time_is_the_runs_limit_plus_a_margin_up_to_the_sites():
    def walltime(limit_s: float | None) -> str:
        return make_request(replace(ON_GADI, time_limit_s=limit_s), replace(GADI, walltime_s=90000)).walltime

    assert [walltime(limit) for limit in (1, 60, 601, 3600, 1e6, None)] == [
        *("00:03:00", "00:03:00", "00:13:00", "01:02:00", "25:00:00", "25:00:00"),
    ]
