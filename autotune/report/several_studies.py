"""The parts of a report of several studies: the mean of their speed-ups, the score, and a table of all studies."""

from autotune.formatting import join_words
from autotune.pictures.chart import Table
from autotune.records.study import REPLAY_NOTICE
from autotune.report.headline import Headline
from autotune.report.section import Figures, Section
from autotune.results.several_studies import SeveralStudies
from autotune.statistics.ratio_words import Interval


def headline_of_several(several: SeveralStudies) -> Headline:
    """Return the mean of the speed-ups as the headline; a remark names the replays."""
    mean = several.speed_up
    replayed = [one.study for one in several.results if one.summary.definition.replay]
    remarks = (f"{join_words(replayed)}: {REPLAY_NOTICE}.",) if replayed else ()
    if mean is None:
        return Headline("not yet", f"{several.sentence()}.", remarks)
    return Headline("gain" if mean[1] > 1.0 else "no gain", f"{several.sentence()}.", remarks)


def figures_of_several(several: SeveralStudies, about_references: str) -> tuple[tuple[str, str], ...]:
    """Return the figures at the top, as (label, value)."""
    mean, score = several.speed_up, several.score_sentence()
    rows = [("mean speed-up", _interval_text(mean, ".3f"))] if mean is not None else []
    if score is not None:
        rows += [("score", score), ("references", about_references)]
    return (*rows, ("confidence", f"{several.confidence:.0%}"))


def table_of_several(several: SeveralStudies) -> Section:
    """Return the section with a row for each study."""
    confidence, scored = several.confidence, several.score_sentence() is not None
    rows = []
    for one in several.results:
        speed_up = _interval_text(one.speed_up(confidence), ".3f") or "not in the mean"
        against = [one.reference, _interval_text(one.score(confidence), ".4g")] if scored else []
        rows.append((one.study, speed_up, *against, one.sentence))
    columns = ("study", "over the default", *(["reference", "score"] if scored else []), "verdict")
    about = f"The gain of each study, with {confidence:.0%} intervals"
    return Section("studies", "The studies", (Figures(about, Table(columns, tuple(rows))),))


def _interval_text(interval: Interval | None, digits: str) -> str:
    if interval is None:
        return ""
    ratio, low, high = interval
    return f"{ratio:{digits}} ({low:{digits}} to {high:{digits}})"
