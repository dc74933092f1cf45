"""The charts of the costs of a study and of its failed trials."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from autotune.formatting import join_words
from autotune.pictures.chart import Axis, Bars, Chart, Panel, Role, Table
from autotune.pictures.labels import count_noun
from autotune.pictures.scales import short
from autotune.records.study import State, TrialRecord
from objectives.base import FailureKind

if TYPE_CHECKING:
    from autotune.results.ledger import Ledger
    from autotune.results.summary import Summary

_LABEL = 34
_MESSAGE = 200


def ledger(account: "Ledger") -> Chart | None:
    """Return the chart of the core-seconds spent, by purpose, and of those saved; None if nothing ran."""
    if account.spent <= 0.0:
        return None
    spent = account.purposes
    saved = {"by capping": account.saved_by_caps, "by not repeating": account.spared_by_racing}
    what = {Role.SPENT: "spent", Role.SAVED: "not spent"}
    rows = [(Role.SPENT, name, value) for name, value in spent.items() if value > 0.0]
    rows += [(Role.SAVED, f"not spent {name}", value) for name, value in saved.items() if value > 0.0]
    panel = _bars(
        [(role, name, value, f"{value:,.1f} core-s") for role, name, value in rows], Axis("cost", "core-s"), what
    )
    first, most = max(spent.items(), key=lambda purpose: purpose[1])
    text = f"The study cost {account.spent:,.0f} core-seconds, most of it for {first} ({most / account.spent:.0%})."
    if any(saved.values()):
        kept = join_words([f"{value:,.0f} {name}" for name, value in saved.items() if value > 0.0])
        text += f" Not spent: at least {kept}."
    text += "".join(f" {name[:1].upper()}{name[1:]} were {said}." for name, said in account.used)
    if account.pays_after is not None:
        text += (
            f" It is paid for after {count_noun(account.pays_after, 'production run')} like these, each of which saves "
            f"{account.difference} core-seconds."
        )
    elif account.saved_per_run is not None:
        text += f" It is never paid for: {account.no_gain}."
    cells = tuple((what[role], name.removeprefix("not spent "), float(f"{value:.6g}")) for role, name, value in rows)
    return Chart("ledger", "Cost", text, (panel,), Table(("", "for", "core-seconds"), cells))


def failures(summary: "Summary") -> Chart | None:
    """Return the chart of trials without a value, by kind; None if all trials have one."""
    counts = summary.standings.counts
    if not counts:
        return None
    kinds = sorted(counts, key=lambda kind: -counts[kind])
    examples = failure_messages(summary.trials)
    rows = [(_role(kind), kind, float(counts[kind]), _example(kind, counts[kind], examples[kind][0])) for kind in kinds]
    panel = _bars(rows, Axis("trials", whole=True), {})
    text = f"Of {count_noun(len(summary.trials), 'trial')}, {sum(counts.values())} gave no value: "
    text += join_words([f"{counts[kind]} {kind}" for kind in kinds]) + "."
    if State.CAPPED.value in counts:
        text += " Capped trials were stopped because they had lost, which is not a failure."
    frequent = ((kind, *examples[kind][0]) for kind in kinds)
    cells = tuple((kind, counts[kind], text[:_MESSAGE], trial) for kind, text, _, trial in frequent)
    table = Table(("kind", "trials", "most frequent message", "of trial"), cells)
    return Chart("failures", "Trials without a value", text, (panel,), table)


Message = tuple[str, int, int]
"""A message, the number of trials with it, and the first of these trials."""


def failure_messages(trials: Sequence[TrialRecord]) -> dict[str, list[Message]]:
    """Return the messages of each kind of failure, and of capped trials, the most frequent first."""
    messages: dict[str, Counter[str]] = defaultdict(Counter)
    first: dict[tuple[str, str], int] = {}
    for trial in trials:
        failure = trial.failure.failure if trial.failure else None
        kind = failure.value if failure else State.CAPPED.value if trial.state is State.CAPPED else ""
        if kind:
            text = trial.message or "(no message)"
            messages[kind][text] += 1
            first.setdefault((kind, text), trial.number)
    return {
        kind: [(text, many, first[kind, text]) for text, many in count.most_common()]
        for kind, count in messages.items()
    }


def _role(kind: str) -> Role:
    special = {State.CAPPED.value: Role.CAPPED, FailureKind.INVALID_RESULT.value: Role.INVALID}
    return special.get(kind, Role.FAILED)


def _example(kind: str, count: int, example: Message) -> str:
    message, _, trial = example
    return f"{kind}: {count_noun(count, 'trial')}\ntrial {trial}: {message[:_MESSAGE]}"


def _bars(rows: Sequence[tuple[Role, str, float, str]], x: Axis, labels: Mapping[Role, str]) -> Panel:
    """Return a panel with a bar for each row of role, name, value and hover text."""
    roles = dict.fromkeys(role for role, *_ in rows)
    marks = []
    for role in roles:
        mine = [(float(index), value, hover) for index, (of, _, value, hover) in enumerate(rows) if of is role]
        y, values, hover = zip(*mine, strict=True)
        marks.append(Bars(role, labels.get(role, ""), tuple(y), tuple(values), tuple(hover)))
    ticks = tuple((float(index), short(name, _LABEL)) for index, (_, name, *_) in enumerate(rows))
    return Panel(x, Axis(ticks=ticks, reverse=True), tuple(marks))
