"""Job limits: what a run of tuning may use that is not the study's to say for all runs."""

from dataclasses import replace

from autotune.records.series import WARM_UP
from autotune.scheduling.repeats import WARM_UP_LIMIT_S, Step
from autotune.statistics.standings import Standings
from launchers import Job


def limited_job(job: Job, step: Step, standings: Standings, *, caps: bool) -> Job:
    """Return the job of a step within the time of a warm-up, and with `caps` within the memory that is limited.

    A run that goes beyond that memory has lost. The default is measured to its end, whatever it breaks.
    """
    if step.series == WARM_UP:
        return replace(job, time_limit_s=min(WARM_UP_LIMIT_S, job.time_limit_s or WARM_UP_LIMIT_S))
    if not caps or step.trial is standings.default:
        return job
    return replace(job, memory_limit_bytes=standings.limits.memory_bytes)
