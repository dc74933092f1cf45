"""The verdict as a sentence, also before it is known."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from autotune.pictures.labels import counted, listed
from autotune.records.study import REPLAY_NOTICE, TrialRecord
from autotune.results.pareto import second_metric
from autotune.results.summary import Summary

Kind = Literal["gain", "no gain", "not yet", "nothing", "trade-off"]
"""The kind of verdict. `nothing`: no run worked, or none has ended; `not yet`: not confirmed."""


@dataclass(frozen=True)
class Headline:
    """The sentence at the top, with the remarks that qualify it."""

    kind: Kind
    sentence: str
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self) | {"remarks": list(self.remarks)}


def headline(summary: Summary) -> Headline:
    """Say what a study found."""
    kind, sentence = _verdict(summary)
    if summary.definition.replay:
        sentence = f"Replay, nothing ran: {sentence}"
    return Headline(kind, sentence, tuple(_remarks(summary)))


def _verdict(summary: Summary) -> tuple[Kind, str]:
    if summary.front is not None:
        return _front(summary)
    if summary.best is None:
        return "nothing", _nothing(summary)
    sentence = summary.verdict_sentence()
    if sentence is None:
        return "not yet", _unconfirmed(summary, summary.best)
    verdict, metric = summary.present_verdict, summary.standings.metric
    said = sentence if sentence.endswith(".") else f"{sentence}."
    if verdict is not None and verdict.significant(metric):
        return "gain", f"The winner, trial {verdict.winner}, is {said}"
    compared = summary.standings.baseline is not None and (verdict is None or verdict.known)
    return "no gain" if compared else "not yet", said


def _unconfirmed(summary: Summary, best: TrialRecord) -> str:
    standings = summary.standings
    speed_up = standings.speed_up(best)
    looks = speed_up.words(standings.metric) if speed_up and not speed_up.confirmed else "is the best so far"
    return (
        f"No verdict yet: trial {best.number} {looks}, but only by the runs of tuning, of which the best looks better "
        "than it is. The same `autotune study` command goes on, and compares it in fresh runs."
    )


def _front(summary: Summary) -> tuple[Kind, str]:
    first, second = summary.standings.metric, second_metric(summary.definition)
    assert second is not None
    if not summary.front:
        return "nothing", _nothing(summary)
    return "trade-off", (
        f"A trade-off between {first.name} and {second.name}: no other trial is better in both than the "
        f"{counted(len(summary.front), 'trial')} below, and there is no single winner."
    )


def _nothing(summary: Summary) -> str:
    kinds = listed([f"{count} {kind}" for kind, count in summary.standings.counts.items()])
    return f"No run gave a valid measurement: {kinds}." if kinds else "No run has ended yet: there is no result."


def _remarks(summary: Summary) -> list[str]:
    standings = summary.standings
    remarks = [f"This is a {REPLAY_NOTICE}."] if summary.definition.replay else []
    verdict = summary.present_verdict
    doubt = verdict.doubt(standings.metric) if verdict is not None else None
    if doubt:
        remarks.append(f"Doubt: {doubt}.")
    if standings.effects.drifts:
        remarks.append("The machine drifted during the study; comparisons are within blocks of time.")
    running = sum(bool(trial.runs) and not trial.settled for trial in summary.trials)
    if running:
        remarks.append(f"The study is not at its end: {counted(running, 'trial')} may still be run again.")
    if summary.simplified is not None:
        dropped = listed(summary.simplified.dropped)
        remarks.append(f"The ablation found the winner as good without {dropped}: use the simplified configuration.")
    return remarks
