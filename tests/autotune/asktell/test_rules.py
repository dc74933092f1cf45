"""The rules of leases under whatever clients do: nothing is lost, nothing is doubled."""

import itertools
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from autotune.asktell import AskTell, FinishedError, LeaseConflictError, LeaseGoneError, RunReport
from autotune.asktell.lease import LeaseClock
from autotune.asktell.work_queue import MOST_LAPSED
from autotune.storage.study_store import StudyStore
from tests.support.asking import external, seconds

pytestmark = pytest.mark.slow

LEASE_S = 10.0
STUDY = external(budget={"trials": 6}, sampler={"name": "random"})


class Leases(RuleBasedStateMachine):
    """Clients of one study that forget to tell, tell twice, come late; and a study that is closed and opened again."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name) / 'autotune.db'}"
        self.now = 1000.0
        self.finished = False
        self.values = itertools.count(1)
        # By lease: the runs in flight, their ends, the reported values, and the leases that passed to another client.
        self.out, self.until, self.told, self.gone = {}, {}, {}, {}
        self.lapses = {}
        self.configurations = {}
        self.open()

    def open(self):
        self.study = AskTell.open(STUDY, self.url, clock=LeaseClock("", 0.0, lambda: self.now))

    def teardown(self):
        self.study.close()
        self.folder.cleanup()

    @rule(seconds=st.floats(0.5, 25.0))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def ask(self):
        late = {place(asked): lease for lease, asked in self.out.items() if self.until[lease] <= self.now}
        try:
            asked = self.study.ask(LEASE_S)
        except FinishedError:
            self.finished = True
            return
        for where, lease in late.items():
            if self.lapses.get(where, 0) + 1 >= MOST_LAPSED and (asked is None or place(asked) != where):
                # It was given up: its run is stored as a failure without a report.
                self.gone[lease] = self.out.pop(lease)
        if asked is None:
            assert self.out, "somebody else must have what there is to do"
            return
        where = place(asked)
        if where in late:
            self.gone[late[where]] = self.out.pop(late[where])
            self.lapses[where] = self.lapses.get(where, 0) + 1
        assert where not in {place(one) for one in self.out.values()}, "two have the same run"
        assert asked.lease not in {*self.told, *self.gone}
        assert asked.configuration["x"] % asked.configuration["y"] == 0
        if not asked.series:
            known = self.configurations.setdefault(asked.trial, asked.configuration)
            assert known == asked.configuration
            others = [one for number, one in self.configurations.items() if number != asked.trial]
            assert asked.configuration not in others
        self.out[asked.lease], self.until[asked.lease] = asked, self.now + LEASE_S

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def tell(self, data):
        lease = data.draw(st.sampled_from(sorted(self.out)))
        asked = self.out.pop(lease)
        value = seconds(asked.configuration) + next(self.values) / 1000
        assert self.study.tell(lease, RunReport(value=value)).trial == asked.trial
        self.told[lease] = value

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def tell_again(self, data):
        lease = data.draw(st.sampled_from(sorted(self.told)))
        self.study.tell(lease, RunReport(value=self.told[lease]))
        with suppress(LeaseConflictError):
            self.study.tell(lease, RunReport(value=self.told[lease] + 1.0))
            raise AssertionError(lease)

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def tell_too_late(self, data):
        lease = data.draw(st.sampled_from(sorted(self.gone)))
        with suppress(LeaseGoneError):
            self.study.tell(lease, RunReport(value=1.0))
            raise AssertionError(lease)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def renew(self, data):
        lease = data.draw(st.sampled_from(sorted(self.out)))
        self.until[lease] = self.study.renew(lease, LEASE_S)
        assert self.until[lease] == self.now + LEASE_S

    @rule()
    def open_again(self):
        self.study.close()
        self.open()

    @invariant()
    def what_was_told_is_stored_once(self):
        if not self.told:
            return
        runs = StudyStore.read(self.url, "mine").runs()
        stored = {run.outcome.details["lease"]: run.outcome.metrics["time_s"] for run in runs if run.outcome.complete}
        assert stored == self.told
        assert len(runs) == len(self.told) + sum(run.outcome.code == "lapsed" for run in runs)


def place(asked):
    return asked.trial, asked.run, asked.series


TestLeases = Leases.TestCase
TestLeases.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)
