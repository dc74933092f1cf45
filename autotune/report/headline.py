"""The headline of a report: the verdict as a sentence, or what is known before it."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from autotune.decisions.table import DecisionTable
from autotune.formatting import as_sentence, count_failures, join_words
from autotune.pictures.labels import count_noun
from autotune.records.study import REPLAY_NOTICE, TrialRecord
from autotune.results.noise import drift_span
from autotune.results.pareto import ParetoFront
from autotune.results.summary import Summary

Kind = Literal["gain", "no gain", "not yet", "nothing", "trade-off", "table"]
"""The kind of verdict. `nothing`: no run has worked or ended; `not yet`: not confirmed."""


@dataclass(frozen=True)
class Headline:
    """The sentence at the top of a report, with the remarks that qualify it."""

    kind: Kind
    sentence: str
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self) | {"remarks": list(self.remarks)}


def headline(summary: Summary, table: DecisionTable | None = None) -> Headline:
    """Return the headline of a study; `table` is its decision table, if it looks for one."""
    kind, sentence = _verdict(summary) if table is None else _table(table)
    if summary.definition.replay:
        sentence = f"Replay, nothing ran: {sentence}"
    return Headline(kind, sentence, tuple(_remarks(summary)))


def _table(table: DecisionTable) -> tuple[Kind, str]:
    first, *others = table.sentences()
    return "table", " ".join(map(as_sentence, (f"a decision table: {first}", *others)))


def _verdict(summary: Summary) -> tuple[Kind, str]:
    sentence = summary.verdict_sentence()
    if summary.nearest is not None:
        return "nothing", f"{sentence}."
    if summary.front is not None:
        return _front(summary, summary.front)
    if summary.best is None:
        # Only a study that looks for a decision table has a sentence without a winner.
        return ("nothing", _no_result(summary)) if sentence is None else ("not yet", sentence)
    if sentence is None:
        return "not yet", _text_without_verdict(summary, summary.best)
    verdict, metric = summary.present_verdict, summary.standings.metric
    said = sentence if sentence.endswith(".") else f"{sentence}."
    alone = bool(summary.on_limits.default_breaks) and verdict is not None and not verdict.unreliable
    if verdict is not None and verdict.known and (verdict.significant(metric) or alone):
        return "gain", f"The winner, trial {verdict.winner}, is {said}"
    compared = summary.standings.baseline is not None and summary.tried > 1 and (verdict is None or verdict.known)
    return "no gain" if compared else "not yet", said


def _text_without_verdict(summary: Summary, best: TrialRecord) -> str:
    standings = summary.standings
    speed_up = standings.speed_up(best)
    looks = speed_up.words(standings.metric) if speed_up and not speed_up.confirmed else "is the best so far"
    return (
        f"No verdict yet: trial {best.number} {looks}, but only in the runs of tuning, where the best trial looks "
        "better than it is. The same `autotune study` command continues and compares it in fresh runs."
    )


def _front(summary: Summary, front: ParetoFront) -> tuple[Kind, str]:
    if not front.points:
        return "nothing", _no_result(summary)
    sentence = summary.verdict_sentence()
    preferred = "there is no single winner." if sentence is None else f"weights choose one. {sentence.rstrip('.')}."
    return "trade-off", (
        f"A trade-off between {front.names}: {front.others} is better in {front.of_them} than the "
        f"{count_noun(len(front.points), 'trial')} below, and {preferred}"
    )


def _no_result(summary: Summary) -> str:
    kinds = join_words(count_failures(summary.standings.counts))
    return f"No run gave a valid measurement: {kinds}." if kinds else "No run has ended yet: there is no result."


def _remarks(summary: Summary) -> list[str]:
    standings = summary.standings
    remarks = [f"This is a {REPLAY_NOTICE}."] if summary.definition.replay else []
    remarks += [f"Doubt: {one}." for one in summary.doubts]
    if standings.effects.drifts:
        span = drift_span(standings)
        remarks.append(f"The machine drifted by {span:.0%} during the study; comparisons are within periods of time.")
    running = sum(bool(trial.runs) and not trial.settled for trial in summary.trials)
    if running:
        remarks.append(f"The study is not finished: {count_noun(running, 'trial')} may still be run again.")
    if summary.simplified is not None:
        dropped, subject = join_words(summary.simplified.dropped), summary.simplified.subject
        remarks.append(f"The ablation found {subject} as good without {dropped}: use the simplified configuration.")
    return remarks
