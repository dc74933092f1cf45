import json
import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from autotune import __version__
from autotune.machines import provenance
from autotune.machines.provenance import SessionFacts, host_state, session_facts
from autotune.machines.this_machine import Machine, this_machine
from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI

MACHINE = Machine("node1", "Paper CPU", "zen3", (0, 1), 1, 2**34, "Linux-6.1")
FLAVOUR = MpiFlavour(OPEN_MPI, (4, 1, 4))
MEMINFO = "MemTotal:        8000000 kB\nMemFree:          100000 kB\nMemAvailable:    4000000 kB\n"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Return a function that writes files of an otherwise empty kernel file system."""
    monkeypatch.setattr(provenance, "CPUS", tmp_path / "cpu")
    monkeypatch.setattr(provenance, "_PROC", tmp_path / "proc")

    def write(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def facts(study_file=None, flavour=FLAVOUR) -> SessionFacts:
    return session_facts(MACHINE, flavour, study_file)


def governors(*names):
    return {f"cpu/cpu{number}/cpufreq/scaling_governor": f"{name}\n" for number, name in enumerate(names)}


def test_facts_of_a_session(kernel):
    kernel(governors("performance", "performance") | {"cpu/intel_pstate/no_turbo": "1\n"})
    found = facts(Path("studies/mine.toml"))
    assert (found.host, found.system, found.autotune) == ("node1", "Linux-6.1", __version__)
    assert found.study_file == "studies/mine.toml"
    assert found.identity == {"governor": "performance", "turbo": "off", "mpi": "Open MPI 4.1.4 (mpirun)"}
    assert SessionFacts(**json.loads(json.dumps(found.to_dict()))) == found


def test_who_measured_is_known_by_name_where_there_is_one(monkeypatch):
    assert facts().user == pwd.getpwuid(os.getuid()).pw_name

    def nobody(number):
        raise KeyError(number)

    monkeypatch.setattr(provenance.pwd, "getpwuid", nobody)
    assert facts().user == ""


def test_what_is_not_known_keeps_nothing_apart(kernel):
    found = facts(flavour=None)
    assert (found.governor, found.turbo, found.mpi, found.study_file, found.study_commit) == ("",) * 5
    assert found.identity == {}


@pytest.mark.parametrize(
    ("files", "governor"),
    [
        (governors("powersave", "performance"), "mixed: performance, powersave"),
        (governors("powersave", "powersave", "performance"), "powersave"),
        (governors("schedutil"), "schedutil"),
        (governors("<unknown>", ""), ""),
        ({"cpu/cpu0/cpufreq/scaling_governor": b"\xff\xfe\0"}, ""),
        ({"cpu/cpu0/cpufreq/scaling_governor/is-a-folder": ""}, ""),
    ],
)
def test_governor_of_the_cores_in_use(kernel, files, governor):
    kernel(files)
    assert facts().governor == governor


@pytest.mark.parametrize(
    ("files", "turbo"),
    [
        ({"cpu/intel_pstate/no_turbo": "0\n"}, "on"),
        ({"cpu/cpufreq/boost": "1\n"}, "on"),
        ({"cpu/cpufreq/boost": "0\n"}, "off"),
        ({"cpu/intel_pstate/no_turbo": "maybe", "cpu/cpufreq/boost": "0"}, "off"),
        ({"cpu/cpufreq/boost": b"\xff"}, ""),
    ],
)
def test_turbo(kernel, files, turbo):
    kernel(files)
    assert facts().turbo == turbo


def test_state_at_the_start_of_a_run(kernel):
    kernel(
        {
            "proc/loadavg": "1.88 0.74 0.31 3/94 3848\n",
            "proc/meminfo": MEMINFO,
            "cpu/cpu0/cpufreq/scaling_cur_freq": "2000000\n",
            "cpu/cpu3/cpufreq/scaling_cur_freq": "3000000\n",
        }
    )
    state = host_state((0,))
    assert state == {"load_1m": 1.88, "frequency_mhz": 2000.0, "memory_available_bytes": 4000000 * 1024}
    assert json.loads(json.dumps(state)) == state


def test_frequency_is_a_mean_over_all_of_the_runs_cores(kernel, monkeypatch):
    monkeypatch.setattr(provenance, "_FREQUENCY_PATIENCE_S", 60.0)
    kernel({f"cpu/cpu{cpu}/cpufreq/scaling_cur_freq": f"{khz}\n" for cpu, khz in enumerate((2000000, 3000000, 0))})
    assert host_state((0, 1, 2, 3))["frequency_mhz"] == 2500.0


def test_a_kernel_that_is_slow_to_answer_is_not_asked_for_every_core(kernel, monkeypatch):
    monkeypatch.setattr(provenance, "_FREQUENCY_PATIENCE_S", -1.0)
    kernel({f"cpu/cpu{cpu}/cpufreq/scaling_cur_freq": f"{cpu + 1}000000\n" for cpu in range(4)})
    assert host_state(range(4))["frequency_mhz"] == 1000.0


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/loadavg": "", "proc/meminfo": "", "cpu/cpu0/cpufreq/scaling_cur_freq": ""},
        {"proc/loadavg": "nan 0", "proc/meminfo": "MemAvailable: lots kB\n"},
        {"proc/loadavg": b"\xff", "proc/meminfo": b"\xff", "cpu/cpu0/cpufreq/scaling_cur_freq": b"\xb2"},
        {"cpu/cpu0/cpufreq/scaling_cur_freq": "<unknown>\n"},
        {"proc/loadavg/x": "", "proc/meminfo/x": "", "cpu/cpu0/cpufreq/scaling_cur_freq/x": ""},
    ],
)
def test_what_cannot_be_read_at_the_start_is_left_out(kernel, files):
    kernel(files)
    assert host_state((0, 1)) == {}
    assert host_state(()) == {}


def test_files_that_may_not_be_read(kernel, tmp_path, monkeypatch):
    kernel(governors("performance") | {"proc/loadavg": "1.0 1.0"})

    def refused(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refused)
    assert facts().governor == ""
    assert host_state((0,)) == {}


def test_this_host_says_something():
    assert host_state(this_machine().cpus)["memory_available_bytes"] > 0


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a git repository with a single commit of `mine.toml`."""
    if shutil.which("git") is None:
        pytest.skip("no git here")
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    folder = tmp_path / "it's a repository"
    folder.mkdir()
    (folder / "mine.toml").write_text("objective = 'qe'\n")
    git(folder, "init", "--quiet")
    commit(folder, "mine.toml")
    return folder


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()


def commit(folder, name):
    git(folder, "add", "--", name)
    git(folder, "-c", "user.name=me", "-c", "user.email=me@here", "commit", "--quiet", "-m", name)


def test_commit_of_the_study_file(repository):
    assert facts(repository / "mine.toml").study_commit == git(repository, "rev-parse", "HEAD")


def test_a_study_file_that_was_changed_or_staged_is_dirty(repository):
    head = git(repository, "rev-parse", "HEAD")
    (repository / "mine.toml").write_text("objective = 'command'\n")
    assert facts(repository / "mine.toml").study_commit == f"{head}-dirty"
    git(repository, "add", "mine.toml")
    assert facts(repository / "mine.toml").study_commit == f"{head}-dirty"


def test_other_files_make_it_neither_dirty_nor_known(repository):
    (repository / "other.toml").write_text("")
    assert facts(repository / "other.toml").study_commit == ""
    assert facts(repository / "mine.toml").study_commit == git(repository, "rev-parse", "HEAD")


@pytest.mark.parametrize("name", ["-n.toml", "a:b *.toml", "ü.toml"])
def test_names_that_git_could_take_for_something_else(repository, name):
    (repository / "sub").mkdir()
    (repository / "sub" / name).write_text("")
    commit(repository, f"sub/{name}")
    assert facts(repository / "sub" / name).study_commit == git(repository, "rev-parse", "HEAD")


def test_relative_paths_and_links_lead_to_the_file(repository, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("link.toml").symlink_to(repository / "mine.toml")
    found = facts(Path("link.toml"))
    assert (found.study_file, found.study_commit) == ("link.toml", git(repository, "rev-parse", "HEAD"))
    monkeypatch.chdir(repository)
    assert facts(Path("mine.toml")).study_commit == found.study_commit


def test_asked_from_a_git_hook_of_another_repository(repository, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    found = facts(repository / "mine.toml").study_commit
    monkeypatch.delenv("GIT_DIR")
    assert found == git(repository, "rev-parse", "HEAD")


def test_asking_writes_nothing_into_the_repository(repository):
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    facts(repository / "mine.toml")
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before


def test_a_repository_without_a_commit_has_none(repository, tmp_path):
    shutil.rmtree(repository / ".git")
    git(repository, "init", "--quiet")
    assert facts(repository / "mine.toml").study_commit == ""


def test_not_in_a_repository(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    shutil.rmtree(repository / ".git")
    assert facts(repository / "mine.toml").study_commit == ""
    assert facts(repository / "no folder" / "mine.toml").study_commit == ""


def test_a_link_to_itself(repository):
    (repository / "loop.toml").symlink_to("loop.toml")
    assert facts(repository / "loop.toml").study_commit == ""


def test_without_git(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert facts(repository / "mine.toml").study_commit == ""


def test_git_that_does_not_answer_is_not_waited_for(repository, monkeypatch, tmp_path):
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(provenance, "_GIT_PATIENCE_S", 0.05)
    assert facts(repository / "mine.toml").study_commit == ""
