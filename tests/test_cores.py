"""Test files share the cores of the machine."""

import fcntl
import os
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.machines.this_machine import this_machine
from tests.support.cores import Cores, Files, Wanted, wanted

ROOT = Path(__file__).parents[1]
# In two parts, so that this file does not carry the marks itself.
MARK = "pytest.mark." + "cores"
SLOW = "pytest.mark." + "slow"
CONFTEST = """
from pathlib import Path
import pytest
from tests.support.cores import Cores, Files
from tests.conftest import pytest_runtest_protocol, pytest_xdist_make_scheduler
from tests import conftest
conftest._CORES = Cores(Path(__file__).parent)
"""
ONE = f"""
import os, time
from pathlib import Path
import pytest
pytestmark = {MARK}(1)
HERE = Path(__file__)

def test_this_and_its_twin_are_there_at_once_each_on_a_core_of_its_own():
    (core,) = os.sched_getaffinity(0)
    HERE.with_suffix(".new").write_text(str(core))
    HERE.with_suffix(".new").rename(HERE.with_suffix(".here"))
    twin = HERE.with_name("test_a.here" if HERE.stem == "test_b" else "test_b.here")
    while not twin.exists():
        time.sleep(0.01)
    assert twin.read_text() != str(core)
"""


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("", Wanted.NONE),
        (f"pytestmark = {MARK}", Wanted.ALL),
        (f"pytestmark = [{MARK}(1), pytest.mark.slow]", Wanted.ONE),
        (f"@{MARK}(1)\n@{MARK}\n", Wanted.ALL),
    ],
)
def test_a_file_says_what_it_takes(tmp_path, text, takes):
    (tmp_path / "test_x.py").write_text(text)
    assert wanted(tmp_path / "test_x.py") is takes


def locked(folder: Path) -> list[int]:
    """Return the cores that tests have locked."""
    found = []
    for cpu in this_machine().cpus:
        with (folder / f"test{cpu}.lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append(cpu)
    return found


def test_cores_are_taken_from_the_first_test_of_a_file_to_the_first_of_another(tmp_path):
    usable, all_cores = os.sched_getaffinity(0), list(this_machine().cpus)
    one, everything, none = (tmp_path / name for name in ("one.py", "all.py", "none.py"))
    one.write_text(f"{MARK}(1)")
    everything.write_text(MARK)
    none.write_text("")
    cores = Cores(tmp_path)
    try:
        cores.take(one)
        assert list(this_machine().cpus) == locked(tmp_path) == sorted(os.sched_getaffinity(0))
        assert len(locked(tmp_path)) == 1
        cores.take(everything)
        assert os.sched_getaffinity(0) == usable
        assert locked(tmp_path) == all_cores
        cores.take(none)
        assert locked(tmp_path) == []
    finally:
        cores.give_back()


class Worker:
    """A worker that accepts tests and runs none."""

    def send_runtest_some(self, numbers):
        pass


class Scheduled(Files):
    """A scheduler of files that no worker has started."""

    def __init__(self, folder, files):
        self.config, self.assigned_work = SimpleNamespace(rootpath=folder), {}
        self.workqueue = OrderedDict((name, {f"{name}::test": False}) for name in files)
        self.registered_collections = {}

    def next_of(self, worker):
        """Return the file that a worker gets when it has finished all of its own."""
        for tests in self.assigned_work.get(worker, {}).values():
            tests.update(dict.fromkeys(tests, True))
        self.registered_collections[worker] = [test for tests in self.workqueue.values() for test in tests]
        before = set(self.workqueue)
        self._assign_work_unit(worker)
        (given,) = before - set(self.workqueue)
        return given


def test_no_worker_gets_a_file_that_would_wait_for_a_core(tmp_path):
    cores = len(this_machine().cpus)
    texts = {Wanted.ALL.value: "", "none.py": "", "slow.py": SLOW}
    texts |= {f"one{number}.py": f"{MARK}(1)" for number in range(cores + 1)}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    work, (first, *others) = Scheduled(tmp_path, texts), [Worker() for _ in range(cores + 1)]
    assert work.next_of(first) == Wanted.ALL.value
    # All cores are taken.
    assert work.next_of(others[0]) == "slow.py"
    assert [work.next_of(worker)[:3] for worker in (first, *others[1:])] == ["one"] * cores
    # Each core is in use by one file.
    assert work.next_of(others[0]) == "none.py"
    assert work.next_of(first)[:3] == "one"


@pytest.mark.slow
@pytest.mark.skipif(this_machine().cores < 2, reason="two tests at a time need two cores")
def test_files_that_take_one_core_go_on_side_by_side(tmp_path):
    for name, text in {"conftest": CONFTEST, "test_a": ONE, "test_b": ONE}.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = cores\ntimeout = 200\n")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        | {"PYTHONPATH": os.fspath(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 passed" in ended.stdout
