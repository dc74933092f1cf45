"""The energy of ended jobs in Slurm's accounting."""

import json

import pytest

from launchers import EndReason, Job, JobState
from launchers.batch import BatchLauncher
from launchers.batch.commands import Answer
from launchers.batch_systems.slurm import SLURM
from launchers.batch_systems.slurm_accounting import command, joules
from launchers.site import Site
from launchers.supervisor import STATUS_FILE
from tests.launchers.answers import PATIENCE_S, POLL_S, end

# A job of two nodes whose ranks srun started; one of one node; one of two nodes whose ranks mpirun started, without a
# step on all nodes; and two that have not fully ended.
COUNTED = """\
71|4650|2|COMPLETED
71.batch|900|1|COMPLETED
71.extern|1900|2|COMPLETED
71.0|1850|2|COMPLETED
72|640|1|FAILED
72.batch|640|1|FAILED
73|1850|2|COMPLETED
73.batch|900|1|COMPLETED
73.0|950|1|COMPLETED
74|1850|2|RUNNING
74.batch|900|1|COMPLETED
74.0|1950|2|COMPLETED
74.extern||2|RUNNING
75||1|COMPLETED
75.0|12|1|COMPLETED
"""


def test_energy_is_that_of_the_largest_step_on_all_nodes():
    assert joules(COUNTED) == {"71": 1900.0, "72": 640.0}


@pytest.mark.parametrize("says", ["0", "", "18446744073709551614", "1.9K"])
def test_uncounted_energy_is_absent(says):
    rows = "".join(f"71{step}|{says}|1|COMPLETED\n" for step in ("", ".batch", ".0"))
    assert joules(rows) == {}


def test_slurm_without_accounting_has_no_energy():
    assert joules("Slurm accounting storage is disabled\n") == {}
    assert command(["71", "72"])[-1] == "--jobs=71,72"


@pytest.fixture
def accounting(queue, monkeypatch):
    """The output and exit code of the fake sacct."""
    printed = {"code": 0, "stdout": ""}
    answers = type(queue).__call__

    def answer(self, argv, *others, **more):
        if argv[0] != "sacct":
            return answers(self, argv, *others, **more)
        self.asked.append(list(argv))
        return Answer(printed["code"], printed["stdout"])

    monkeypatch.setattr(type(queue), "__call__", answer)
    return printed


@pytest.fixture
def make(queue, clock):
    site = Site("slurm", cores_per_node=4, poll_s=POLL_S, energy=True)
    return lambda: BatchLauncher(SLURM.scheduler, site, queue, clock, PATIENCE_S)


def test_job_ends_when_the_accounting_has_its_energy(queue, accounting, submit, look):
    job_id, folder = submit()
    end(folder)
    accounting["stdout"] = "1|0|1|COMPLETED\n1.batch|0|1|COMPLETED\n"
    status = look(job_id)
    assert (status.state, status.is_accounted) == (JobState.RUNNING, False)
    accounting["stdout"] = "1|42|1|COMPLETED\n1.batch|42|1|COMPLETED\n"
    status = look(job_id)
    assert (status.state, status.reason, status.metered["energy_j"]) == (JobState.ENDED, EndReason.EXITED, 42.0)
    asked = len(queue.commands("sacct"))
    assert look(job_id) == status
    assert len(queue.commands("sacct")) == asked


def ends_with_a_figure_of_its_supervisors(folder):
    end(folder)
    told = json.loads((folder / STATUS_FILE).read_text())
    (folder / STATUS_FILE).write_text(json.dumps(told | {"metered": {"energy_j": 30.0, "cpu_energy_j": 30.0}}))


def test_job_without_accounted_energy_gets_no_energy_from_other_meters(queue, accounting, clock, submit, look):
    job_id, folder = submit()
    ends_with_a_figure_of_its_supervisors(folder)
    assert look(job_id).state is JobState.RUNNING
    clock.move(60.0)
    status = look(job_id)
    assert (status.state, status.metered) == (JobState.ENDED, {"cpu_energy_j": 30.0})


def test_later_jobs_do_not_wait_if_the_accounting_never_has_energy(queue, accounting, clock, submit, look):
    for number in range(3):
        job_id, folder = submit(f"{number}")
        end(folder)
        assert look(job_id).state is JobState.RUNNING
        clock.move(60.0)
        assert look(job_id).state is JobState.ENDED
    job_id, folder = submit("last")
    end(folder)
    clock.move(10.0)
    assert look(job_id).state is JobState.ENDED


@pytest.fixture
def three_end(accounting, submit, launcher, clock):
    def three_end(*codes: int) -> None:
        """End three jobs at once whose energy is not recorded when it is queried, with these exit codes."""
        started = [submit(f"{number} of three") for number in range(3)]
        for _, folder in started:
            end(folder)
        ids = [job_id for job_id, _ in started]
        for code, state in zip(codes, (JobState.RUNNING, JobState.ENDED), strict=True):
            accounting["code"] = code
            clock.move(60.0)
            statuses = launcher.poll(ids).values()
            assert [status.state for status in statuses] == [state] * 3
        assert not any("energy_j" in status.metered for status in statuses)

    return three_end


def test_later_jobs_wait_if_the_accounting_ever_had_energy(accounting, three_end, submit, look):
    job_id, folder = submit("first")
    end(folder)
    accounting["stdout"] = "1|42|1|COMPLETED\n1.batch|42|1|COMPLETED\n"
    assert look(job_id).metered["energy_j"] == 42.0
    three_end(0, 0)
    job_id, folder = submit("last")
    end(folder)
    assert look(job_id).state is JobState.RUNNING
    accounting["stdout"] = "5|43|1|COMPLETED\n5.batch|43|1|COMPLETED\n"
    assert look(job_id).metered["energy_j"] == 43.0


@pytest.mark.parametrize("last", [0, 1])
def test_failed_accounting_query_does_not_count_as_no_energy(accounting, three_end, submit, look, last):
    three_end(1, last)
    job_id, folder = submit("last")
    end(folder)
    accounting["code"] = 0
    assert look(job_id).state is JobState.RUNNING
    accounting["stdout"] = "4|43|1|COMPLETED\n4.batch|43|1|COMPLETED\n"
    assert look(job_id).metered["energy_j"] == 43.0


def test_output_of_a_failed_accounting_query_is_ignored(accounting, submit, look):
    job_id, folder = submit()
    end(folder)
    accounting |= {"code": 124, "stdout": "1|42|1|COMPLETED\n1.batch|42|1|COMPLETED\n"}
    assert look(job_id).state is JobState.RUNNING


def test_energy_of_a_cancelled_job_is_not_queried(queue, accounting, submit, launcher, look):
    job_id, folder = submit()
    launcher.end([job_id])
    end(folder, "cancelled", -15)
    assert look(job_id).reason is EndReason.CANCELLED
    assert queue.commands("sacct") == []


def test_site_without_energy_is_not_queried(queue, clock, tmp_path):
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm", poll_s=POLL_S), queue, clock, PATIENCE_S)
    (tmp_path / "run").mkdir()
    job_id = launcher.submit(Job(("true",), tmp_path / "run"))
    end(tmp_path / "run")
    assert launcher.poll([job_id])[job_id].state is JobState.ENDED
    assert queue.commands("sacct") == []
