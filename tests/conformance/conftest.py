"""The launchers that conformance tests run over, each kind that can be started here, and a folder for their jobs."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from launchers import Launcher
from launchers.batch import BatchLauncher
from launchers.batch_systems.registry import BATCH_SYSTEMS
from launchers.local import LocalLauncher
from launchers.site import Site
from tests.launchers.fakes.cluster import FakeCluster
from tests.launchers.jobs import supervisors_in, wait_for
from tests.support.processes import left_in

MakeLauncher = Callable[[], Launcher]

GRACE_S = 0.2


@dataclass(frozen=True)
class Kind:
    """Properties in which launchers differ by design.

    Local jobs end with the process that launched them and are bound to their cores, and a program that cannot start is
    refused at once. Jobs of a scheduler outlive that process and run on the cores that the scheduler gives them, and a
    program that cannot start fails on the node.
    """

    scheduler: str | None
    is_real: bool = False

    @property
    def is_local(self) -> bool:
        return self.scheduler is None


# Fixtures that start real batch systems, by name.
REAL = {"slurm": "slurm", "grid-engine": "grid_engine"}
KINDS = [
    pytest.param(Kind(None), id="local"),
    *(pytest.param(Kind(name), id=f"fake-{name}", marks=pytest.mark.slow) for name in BATCH_SYSTEMS),
    *(pytest.param(Kind(name, is_real=True), id=f"real-{name}", marks=pytest.mark.full) for name in REAL),
]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def make(kind, request, monkeypatch):
    if kind.is_local:
        yield lambda: LocalLauncher(grace_s=GRACE_S)
        return
    monkeypatch.setattr("launchers.batch.launcher._GRACE_S", GRACE_S)
    with ExitStack() as stack:
        if kind.is_real:
            environment = request.getfixturevalue(REAL[kind.scheduler]).environment
        else:
            environment = {"PATH": stack.enter_context(FakeCluster(kind.scheduler)).path}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        site = Site(kind.scheduler, cores_per_node=2, poll_s=0.05)
        yield lambda: BatchLauncher(BATCH_SYSTEMS[kind.scheduler].scheduler, site, patience_s=0.5)


@pytest.fixture
def launcher(make: MakeLauncher) -> Launcher:
    return make()


@pytest.fixture
def folder(tmp_path: Path):
    yield tmp_path
    assert left_in(tmp_path) == []
    wait_for(lambda: not supervisors_in(tmp_path))
