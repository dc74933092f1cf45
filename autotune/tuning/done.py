"""Whether a study is done: its trials are made, and its winner is compared with the default."""

from autotune.comparison.confirm_table import is_confirmed
from autotune.comparison.pairs import pairs_wanted
from autotune.planning.prepare import Prepared
from autotune.records.study import State
from autotune.results.summary import Summary, summarise
from autotune.scheduling.repeats import RepeatScheduler
from autotune.statistics.verdict import Verdict
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from objectives.base import Metric


def is_done(store: StudyStore, study: StudyFile, prepared: Prepared) -> bool:
    """Whether the same command was carried out before: then nothing is started and nothing is written."""
    summary = summarise(store)
    size = prepared.space.size
    wanted = min(study.budget.most, size.value) if size.exact else study.budget.most
    stopped = summary.outlook is not None and summary.outlook.holds(summary.standings, study)
    if (summary.finished < wanted and not stopped) or summary.finished < len(summary.trials):
        return False
    if study.decisions is not None:
        return is_confirmed(store, study, study.decisions)
    return is_judged(summary, study, prepared)


def is_judged(summary: Summary, study: StudyFile, prepared: Prepared) -> bool:
    """Whether the winner was compared with the default as often as is wanted, also on inputs of weight 0."""
    if summary.tradeoff is not None:
        return summary.tradeoff.is_judged(study.verdict)
    if not _is_confirmed(summary, study):
        return False
    verdict, metric = summary.present_verdict, summary.standings.metric
    if verdict is None or not verdict.significant(metric):
        return True
    compared = {(one.name, one.digest): one for one in summary.verified}
    for wanted in prepared.verified:
        found = compared.get((wanted.name, wanted.digest))
        if found is None or not (found.why or _has_enough(found.verdict, study, metric)):
            return False
    return True


def may_still_win(summary: Summary, study: StudyFile) -> bool:
    """Whether a trial was stopped since it had lost to what turned out to break a limit: it has to run again.

    Limits may be other ones now, or be broken in fresh runs only.
    """
    again = RepeatScheduler(study.repeats).deserving(summary.standings) if study.limits else []
    return study.tradeoff is None and any(trial.state is State.CAPPED for trial in again)


def _is_confirmed(summary: Summary, study: StudyFile) -> bool:
    standings, verdict = summary.standings, summary.present_verdict
    if may_still_win(summary, study):
        return False
    best = standings.ranking[0] if standings.ranking else None
    if standings.baseline is None or best is None or best.number == standings.baseline.number:
        return True
    if verdict is None or study.verdict.mode not in {verdict.mode, verdict.mode_asked}:
        return False
    return _has_enough(verdict, study, standings.metric)


def _has_enough(verdict: Verdict, study: StudyFile, metric: Metric) -> bool:
    if verdict.given_up:
        return True
    return verdict.known and len(verdict.pairs) >= pairs_wanted(verdict.pairs, study.verdict, metric)
