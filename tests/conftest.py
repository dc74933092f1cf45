"""Settings and fixtures of all tests: no test depends on the speed of the machine, or on how it was started."""

import atexit
import gc
import itertools
import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Pool, event

from autotune.execution.user_folder import user_folder
from autotune.held_folders import held_folder
from launchers import local
from tests.support import postgres, real_grid_engine, real_slurm
from tests.support.cores import Cores, Files
from tests.support.real_grid_engine import RealGridEngine
from tests.support.real_slurm import RealSlurm

# A script starts background processes with Ctrl-C ignored, which tests would inherit and pass on.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Other work on this machine must not fail a test.
os.environ["AUTOTUNE_NOISE"] = "accept"
# Other tests use the cores, too: ranks that spin while they wait would keep each other from running.
os.environ.update(OMPI_MCA_mpi_yield_when_idle="1")

# `./run test` tries the same examples each time, since it guards changes; `./run test --all` looks for new ones.
settings.register_profile("new-examples", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same-examples", settings.get_profile("new-examples"), derandomize=True)
settings.load_profile("same-examples")

_CORES = Cores(user_folder())
# A study that somebody runs on this machine meanwhile has no cores that the studies of tests need. Workers inherit it.
if "AUTOTUNE_USER_FOLDER" not in os.environ:
    # A short name in /tmp: Ray's sockets are below it.
    _kept = ExitStack()
    os.environ["AUTOTUNE_USER_FOLDER"] = str(_kept.enter_context(held_folder(Path("/tmp"), "at-")))
    atexit.register(_kept.close)


@atexit.register
def _end_guards():
    # They would end with this process anyway, but Python would warn of them first.
    for guard in local._guards:
        with suppress(subprocess.TimeoutExpired):
            guard.communicate(timeout=10.0)


_NUMBERS = itertools.count()
# Storages hold their files until they are collected. Many systems allow a process 1,024 open files, and a collection
# takes up to a second, so one follows when this many more are open than after the last.
_MORE_OPEN = 300
_open_after = [0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Files(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    # Outermost: the wait comes before all fixtures and does not count towards the time limit of the test.
    _CORES.take(item.path)
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            _CORES.give_back()
        if _count_open_files() > _open_after[0] + _MORE_OPEN:
            gc.collect()
            _open_after[0] = _count_open_files()


def _count_open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def connections_closed():
    """Close the connections of all pools at the end, since the driver warns of open ones."""
    opened = []

    def note(connection, record):
        opened.append(connection)

    event.listen(Pool, "connect", note)
    try:
        yield
    finally:
        event.remove(Pool, "connect", note)
        for connection in opened:
            connection.close()


@pytest.fixture(scope="session")
def postgresql_server():
    """Provide a PostgreSQL server for all tests."""
    why = postgres.missing()
    if why is not None:
        pytest.skip(why)
    with postgres.server() as server:
        yield server


@pytest.fixture
def postgresql(postgresql_server):
    """Return the address of a fresh PostgreSQL database."""
    name = f"test{next(_NUMBERS)}"
    postgresql_server.execute(f"CREATE DATABASE {name}")
    with connections_closed():
        yield postgresql_server.url(name)
    postgresql_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite(tmp_path):
    """Return the address of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'autotune.db'}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def address(request):
    """Return the address of a fresh storage; run the test once for each kind."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def session_slurm():
    """Provide a Slurm for all tests."""
    reason = real_slurm.why_not()
    if reason is not None:
        pytest.skip(reason)
    with RealSlurm() as slurm:
        yield slurm


@pytest.fixture
def slurm(session_slurm, monkeypatch):
    """Provide a real Slurm without jobs, which its commands use during this test; the session starts it once."""
    for name, value in session_slurm.environment.items():
        monkeypatch.setenv(name, value)
    yield session_slurm
    session_slurm.clear()


@pytest.fixture(scope="session")
def session_grid_engine():
    """Provide a Grid Engine for all tests."""
    reason = real_grid_engine.why_not()
    if reason is not None:
        pytest.skip(reason)
    with RealGridEngine() as grid_engine:
        yield grid_engine


@pytest.fixture
def grid_engine(session_grid_engine, monkeypatch):
    """Provide a real Grid Engine without jobs, which its commands use during this test; the session starts it once."""
    for name, value in session_grid_engine.environment.items():
        monkeypatch.setenv(name, value)
    yield session_grid_engine
    session_grid_engine.clear()
