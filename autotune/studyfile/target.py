"""The target of a study, and the metrics of the whole job that it uses beside those of its program."""

from collections.abc import Iterable
from dataclasses import replace

from autotune.records.limit import OF_EVERY_RUN
from autotune.studyfile.model import StudyFile
from objectives.base import Metric, Plan
from objectives.job_metrics import METERED, JobMetrics
from objectives.mentions.words import as_text
from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import Problem


def with_target(study: StudyFile, plan: Plan) -> tuple[Plan, list[Problem]]:
    """Return the plan with the metrics that a study mentions, its target first, and the errors in these.

    A metric of the whole job is added if the study file mentions it and the program has none of that name. Runs that
    lack a metered value that the study mentions are invalid.
    """
    own, of_job = plan.objective.metrics, of_every_run(plan)
    known = {metric.name: metric for metric in (*of_job, *own)}
    first = known.get(study.target or own[0].name)
    if first is None:
        near = did_you_mean(study.target or "", known)
        msg = f"no metric is called {study.target!r}{near}; the metrics are {', '.join(known)}"
        return plan, [Problem(msg, "target")]
    if first != own[0] and study.stopping is not None:
        msg = f"[stopping] compares trainings by {own[0].name}, so it excludes another target: remove one of them"
        return plan, [Problem(msg, "target")]
    traded = () if study.tradeoff is None else study.tradeoff.metric
    others = _distinct([first, *own, *(known[name] for name in traded if name in known)])
    named = {first.name, *traded, *study.limits}
    metered = tuple(metric.name for metric in METERED if metric in of_job and metric.name in named)
    meter = () if study.meter is None or plan.runs != "launched" else tuple(study.meter.command)
    if others == own and not metered and not meter:
        return plan, []
    added = [metric.name for metric in others if metric not in own]
    ready = replace(
        plan,
        objective=JobMetrics(plan.objective, others, metered, meter),
        identity={
            **plan.identity,
            **({"target": first.name} if first != own[0] else {}),
            **({"meter": as_text(meter)} if meter else {}),
        },
        reading={**plan.reading, **({"of the job": ", ".join(added)} if added else {})},
        shape=plan.shape if first == own[0] else None,
        metered=metered,
    )
    return ready, []


def of_every_run(plan: Plan) -> tuple[Metric, ...]:
    """Return the metrics of whole jobs that a plan's runs have beside its objective's own."""
    own = {metric.name for metric in plan.objective.metrics}
    return tuple(metric for metric in OF_EVERY_RUN if plan.runs == "launched" and metric.name not in own)


def _distinct(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    return tuple(dict.fromkeys(metrics))
