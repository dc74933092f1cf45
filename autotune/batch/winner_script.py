"""The job script of a study's winner."""

from typing import TYPE_CHECKING

from autotune.batch.job_script import JobScript, job_script
from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.records.study import REPLAY_NOTICE
from autotune.results.summary import Summary, run_to_use
from autotune.storage.readable import ReadableStudy
from launchers.mpi import script_flavour

if TYPE_CHECKING:
    from launchers.site import Site


def script_of(store: ReadableStudy, summary: Summary, form: str, site: "Site | None" = None) -> str:
    """Return the script, in one of the `script_forms`, that runs the configuration to use as it was measured.

    Raises:
        CannotRunHereError: the study is a replay, so nothing ran, or another program makes its runs.
        NothingWorkedError: there is no complete run of the winner.
    """
    if summary.definition.replay:
        msg = (
            f"study {summary.name!r} is a replay: nothing ran, so there is no job to write a script for; "
            f"{REPLAY_NOTICE}"
        )
        raise CannotRunHereError(msg)
    if summary.definition.told:
        msg = f"the runs of study {summary.name!r} are made by another program: there is no job to write a script for"
        raise CannotRunHereError(msg)
    run = run_to_use(store, summary)
    if run is None:
        msg = f"study {summary.name!r} has no complete run of its winner"
        raise NothingWorkedError(msg)
    remarks = [f"autotune study {summary.name}, on {summary.definition.machine['host']}"]
    sentence = summary.verdict_sentence()
    if sentence:
        remarks.append(sentence)
    name, flavour = f"autotune-{summary.name}", script_flavour(dict(run.job))
    return job_script(form, JobScript(name, run.configuration, run.job, run.outcome.usage, flavour, remarks, site))
