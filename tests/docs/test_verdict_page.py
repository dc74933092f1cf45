"""The pages on the verdict and the report explain every sentence that a verdict, or a mean of them, can be made of."""

import ast
import inspect
import re
import textwrap

import pytest

from autotune.comparison.findings import InputComparison, Worth
from autotune.comparison.limit_verdict import LimitVerdict
from autotune.comparison.point_verdict import MetricPairs, PointVerdict
from autotune.comparison.verdict_mode import choose_mode, why_not_duets
from autotune.performance.warm_start import WarmStart
from autotune.records.limit import Breach, breaks
from autotune.results.disturbed_runs import taken_doubt
from autotune.results.growth import FrontGrowth
from autotune.results.ledger import Ledger
from autotune.results.noise import noise_sentence
from autotune.results.pareto import ParetoFront
from autotune.results.preference import Preference
from autotune.results.several_studies import SeveralStudies, StudyResult
from autotune.results.summary import FrontSummary, Summary, trained_text
from autotune.scheduling.stopping import StoppingForecast
from autotune.statistics.node_spread import NodeSpread
from autotune.statistics.ratio_words import change_text, times
from autotune.statistics.verdict import Verdict
from launchers.mpi import spinning_ranks
from tests.docs.page import Page

SPEAKERS = (
    Verdict.sentence,
    Verdict.comparison,
    Verdict.pairs_text,
    why_not_duets,
    choose_mode,
    LimitVerdict.sentence,
    LimitVerdict.limits_text,
    Breach.__str__,
    breaks,
    Verdict.doubts,
    Verdict.failure_text,
    Verdict._speed_change_text,
    Verdict._imprecise,
    Verdict._on_few_nodes,
    NodeSpread.words,
    times,
    change_text,
    Summary.verdict_sentence,
    Summary._verdict_sentence,
    Summary._nothing_better,
    Summary.best_text,
    Summary._best_lines,
    Summary.text_without_verdict,
    Summary.limits_text,
    Summary.simplified_sentence,
    ParetoFront.text,
    ParetoFront.others.fget,
    FrontGrowth.sentence,
    Preference.text,
    Preference.sentence,
    noise_sentence,
    taken_doubt,
    spinning_ranks,
    PointVerdict.sentence,
    PointVerdict._judgement,
    MetricPairs.words,
    FrontSummary._verdict_sentence,
    FrontSummary._point_lines,
    FrontSummary._further_lines,
    Summary.value_text,
    trained_text,
    Summary.text,
    StoppingForecast.sentence,
    InputComparison.sentence,
    Ledger.text,
    WarmStart.sentence,
    SeveralStudies.sentence,
    SeveralStudies.score_sentence,
    StudyResult.obstacle.fget,
)
TOLD = " ".join(word for name in ("how-to/verdict", "report") for word in Page.read(f"docs/{name}.md").text.split())


def said(function) -> set[str]:
    """Return the words of two or more that a function may print, as they stand in its code."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    (body,) = tree.body
    assert isinstance(body, ast.FunctionDef)
    documentation = body.body[0].value if ast.get_docstring(body) else None
    texts = [
        str(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node is not documentation
    ]
    return {text for one in texts if len(re.findall(r"[A-Za-z_]{2,}", text := " ".join(one.split()))) > 1}


@pytest.mark.parametrize("function", SPEAKERS, ids=lambda function: function.__qualname__)
def test_every_sentence_is_explained(function):
    sentences = said(function)
    missing = sorted(text for text in sentences if text.strip(" .,;:()") not in TOLD)
    assert not missing, (
        f"docs/how-to/verdict.md and docs/report.md do not explain that {function.__qualname__} may print: {missing}"
    )


@pytest.mark.parametrize("worth", Worth)
def test_the_effect_of_an_option_is_explained(worth):
    assert f"`{worth.value}`" in TOLD


def test_there_are_sentences_to_look_for():
    assert "the default configuration, so keep that:" in said(Verdict.sentence)
    assert "No configuration was better than the default." in said(Summary._nothing_better)
    assert sum(len(said(function)) for function in SPEAKERS) > 40
