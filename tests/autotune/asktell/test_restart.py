"""Ask and tell over the ends of processes, and with many clients."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest

from autotune.asktell import AskTell, FinishedError, LeaseConflictError, LeaseGoneError, RunReport
from autotune.storage.study_store import StudyStore
from tests.support.asking import external, seconds, work

pytestmark = pytest.mark.slow

ASKS = """
import sys, time
from autotune.asktell import AskTell, RunReport
from tests.support.asking import external
study = AskTell.open(external(), sys.argv[1])
first = study.ask()
study.tell(first.lease, RunReport(value=80.0))
asked = [study.ask(lease_s=3600.0) for _ in range(3)]
print(first.lease, *(one.lease for one in asked), flush=True)
time.sleep(600)
"""


def process(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": "."}
    )


def stored(url):
    return StudyStore.read(url, "mine").runs()


def test_what_was_out_when_the_process_was_killed_is_still_out(address):
    killed = process(ASKS, address)
    first, *leases = killed.stdout.readline().split()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    with AskTell.open(external(), address) as study:
        # The results that the dead process stored are known, too.
        assert study.tell(first, RunReport(value=80.0)).trial == 0
        with pytest.raises(LeaseConflictError):
            study.tell(first, RunReport(value=81.0))
        assert {study.tell(lease, RunReport(value=70.0 + place)).trial for place, lease in enumerate(leases)} == {
            1,
            2,
            3,
        }
        work(study)
    runs = stored(address)
    assert Counter(run.outcome.details["lease"] for run in runs).most_common(1)[0][1] == 1
    tuned = [run for run in runs if run.series.is_tuning]
    assert len({tuple(sorted(run.configuration.items())) for run in tuned}) == 8
    assert [run.trial for run in tuned if run.outcome.details["lease"] in leases] == [1, 2, 3]


def test_an_answer_that_was_lost_with_its_session_is_given_again_by_the_next_one(sqlite):
    with AskTell.open(external(), sqlite) as study:
        lost = study.ask(key="a")
    with AskTell.open(external(), sqlite) as study:
        assert study.ask(key="a").lease == lost.lease


def test_what_was_out_is_out_in_the_comparison_at_the_end_as_well(sqlite):
    with AskTell.open(external(), sqlite) as study:
        while not (asked := study.ask(wait_s=5.0)).series:
            study.tell(asked.lease, RunReport(value=seconds(asked.configuration)))
    with AskTell.open(external(), sqlite) as study:
        answer = study.tell(asked.lease, RunReport(value=seconds(asked.configuration)))
        assert (answer.trial, answer.state) == (asked.trial, "complete")
        work(study)
    with AskTell.open(external(), sqlite) as study:
        again = study.tell(asked.lease, RunReport(value=seconds(asked.configuration)))
        assert (again.trial, again.state) == (asked.trial, "complete")
        with pytest.raises(FinishedError):
            study.ask()
        with pytest.raises(LeaseGoneError):
            study.tell("guess", RunReport(value=1.0))
    assert StudyStore.read(sqlite, "mine").attribute("verdict") is not None


def test_a_run_that_had_lost_may_be_told_to_the_next_process(sqlite):
    with AskTell.open(external(), sqlite) as study:
        study.tell(study.ask().lease, RunReport(value=80.0))
        asked = study.ask()
    with AskTell.open(external(), sqlite) as study:
        assert study.tell(asked.lease, RunReport(bound=asked.cap)).state == "capped"


def test_many_clients_lose_nothing_and_double_nothing(address):
    answered, lock = [], threading.Lock()

    def client(study, who):
        for asked in iter(lambda: ask(study, who), None):
            told = study.tell(asked.lease, RunReport(value=seconds(asked.configuration)))
            with lock:
                answered.append((asked, told))

    def ask(study, who):
        while True:
            try:
                asked = study.ask(wait_s=5.0, who=who)
            except FinishedError:
                return None
            if asked is not None:
                return asked

    with AskTell.open(external(budget={"trials": 18}, sampler={"name": "random"}), address) as study:
        clients = [threading.Thread(target=client, args=(study, f"client {number}")) for number in range(12)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
    runs = {run.outcome.details["lease"]: run for run in stored(address)}
    assert len(runs) == len(stored(address)) == len(answered)
    for asked, told in answered:
        run = runs[asked.lease]
        assert (run.trial, run.configuration, told.trial) == (asked.trial, asked.configuration, asked.trial)
        assert run.outcome.metrics["time_s"] == seconds(asked.configuration)
    first = [asked.configuration for asked, _ in answered if not asked.series and asked.run == 0]
    assert len({tuple(sorted(one.items())) for one in first}) == len(first) == 18
