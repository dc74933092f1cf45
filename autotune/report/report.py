"""The report of one or several studies: results and method, independent of the format that it is written in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune import __version__
from autotune.batch.script_forms import SHELL, script_forms
from autotune.batch.winner_script import run_to_use, script_of
from autotune.decisions.table import table_of
from autotune.errors import AutotuneError
from autotune.formatting import join_words
from autotune.pictures.chart import Chart
from autotune.pictures.charts import charts_of
from autotune.report.headline import Headline, headline
from autotune.report.method import method
from autotune.report.provenance import provenance
from autotune.report.results import cost, figures, findings
from autotune.report.section import Code, Part, Picture, Section, Words
from autotune.report.several_studies import figures_of_several, headline_of_several, table_of_several
from autotune.results.several_studies import SeveralStudies
from autotune.results.summary import Summary, summarise
from autotune.scheduling.successive_halving import stored_brackets
from autotune.storage.readable_study import ReadableStudy
from autotune.storage.study_store import StudyStore
from autotune.studyfile.references import ReferencesFile

_OWN_PLACE = {
    "pairs": "winner",
    "ablation": "ablation",
    "parts": "winner",
    "tradeoff": "tradeoff",
    "decisions": "decisions",
}


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        studies: The names of the studies.
        headline: The sentence at the top.
        figures: The (label, value) pairs at the top.
        sections: The sections.
        summary: The JSON-able form of the results.
        description: The description of the study.
    """

    studies: tuple[str, ...]
    headline: Headline
    figures: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    summary: Mapping[str, Any]
    description: str = ""

    @property
    def title(self) -> str:
        """The title of the document."""
        return f"Study {self.studies[0]}" if len(self.studies) == 1 else f"Studies {join_words(self.studies)}"

    @property
    def file_name(self) -> str:
        """The name of its file, without the suffix."""
        return self.studies[0] if len(self.studies) == 1 else "studies"

    @property
    def charts(self) -> list[Chart]:
        """The charts, in their order."""
        parts = (part for section in self.sections for part in section.parts)
        return [part.chart for part in parts if isinstance(part, Picture)]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        about = {"study": self.studies[0]} if len(self.studies) == 1 else {"studies": list(self.studies)}
        return about | {
            "description": self.description,
            "autotune": __version__,
            "verdict": self.headline.to_dict(),
            "figures": dict(self.figures),
            "sections": [section.to_dict() for section in self.sections],
            "summary": dict(self.summary),
        }


def report_of(store: StudyStore) -> Report:
    """Return the report of a stored study in any state.

    Raises:
        StorageError: The storage cannot be read.
    """
    summary, runs, table = summarise(store), store.runs(), table_of(store)
    charts = {chart.name: chart for chart in charts_of(summary, stored_brackets(store), table)}
    sections = [_add_pictures(section, charts) for section in findings(summary, table)]
    script = _script(store, summary)
    if script is not None:
        sections.insert(1 if sections and sections[0].key == "winner" else 0, script)
    sections.append(_pictures(charts))
    sections += [
        cost(summary),
        method(summary),
        provenance(summary, runs, run_to_use(store, summary)),
    ]
    return Report(
        (summary.name,),
        headline(summary, table),
        figures(summary, runs),
        tuple(section for section in sections if section.parts),
        summary.to_dict(),
        summary.study.description,
    )


def report_of_several(stores: Sequence[ReadableStudy], references: ReferencesFile | None = None) -> Report:
    """Return one report of several studies: their speed-ups, the mean of these, and the score against references.

    Raises:
        StorageError: The storage cannot be read.
        StudyFileError: A reference is not of the metric that the study optimises.
    """
    figures_by_study = {} if references is None else references.references
    several = SeveralStudies.of([summarise(store) for store in stores], figures_by_study)
    return Report(
        tuple(one.study for one in several.results),
        headline_of_several(several),
        figures_of_several(several, "" if references is None else references.description),
        (table_of_several(several),),
        several.to_dict(),
    )


def _add_pictures(section: Section, charts: Mapping[str, Chart]) -> Section:
    """Return a section with its pictures, if any, at the start."""
    mine = [charts[name] for name, key in _OWN_PLACE.items() if key == section.key and name in charts]
    return Section(section.key, section.title, (*map(Picture, mine), *section.parts))


def _pictures(charts: Mapping[str, Chart]) -> Section:
    parts: list[Part] = [Picture(chart) for name, chart in charts.items() if name not in _OWN_PLACE]
    return Section("pictures", "The search in pictures", tuple(parts))


def _script(store: StudyStore, summary: Summary) -> Section | None:
    """Return the section with the winner's job script, for the batch system of the study or else for a shell."""
    used = run_to_use(store, summary)
    if used is None or not used.job:
        return None
    kind = summary.study.launcher.kind
    form = kind if kind in script_forms() else SHELL
    try:
        text = script_of(store, summary, form)
    except AutotuneError:
        # A replay has no job; the top of the report says that it is one.
        return None
    others = [other for other in script_forms() if other != form]
    again = f"autotune best {summary.name} --script {'|'.join(others)}"
    about = f"This script runs the measured configuration. For {' or '.join(others)}: {again}"
    return Section("script", "Job script", (Words(about), Code(text, f"The configuration to use, for {form}")))
