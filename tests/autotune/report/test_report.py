"""The contents of reports of studies in every state, and their safe formats."""

import json
import re
import shlex
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune import __version__
from autotune.comparison.limit_verdict import LimitVerdict
from autotune.pictures.uncertainty import pairs
from autotune.records.limit import Breach, Limit
from autotune.records.outcome import Outcome
from autotune.records.study import Run
from autotune.report import report_of
from autotune.report.headline import headline
from autotune.report.markdown import _plain, to_markdown
from autotune.report.method import method
from autotune.report.page import to_html
from autotune.report.provenance import provenance
from autotune.report.results import figures, findings
from autotune.report.section import Code, Figures, Picture
from autotune.statistics.verdict import Verdict
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind, Metric
from spaces import Choice, Integer, Space
from tests.autotune.pictures.studies import CONFIRMED, HOSTILE, small_study, summary, trial, varied
from tests.autotune.results.test_summary import JOB
from tests.support.contests import DEFAULT, WINNER, add, new_store
from tests.support.fakes import definition, failed, took
from tests.support.stored import add_trial

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def small():
    return report_of(small_study())


def steadied(text, study):
    """Return a report without the parts that vary: the study's name in memory, dates, the version."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "DATE", text.replace(study, "small"))
    text = text.replace("DATE to DATE UTC (1 min)", "DATE UTC")
    return text.replace(f"autotune {__version__}", "autotune VERSION").strip()


def test_the_report_of_a_small_study_as_json_and_markdown(small):
    stored = small.to_dict() | {"summary": "left out", "autotune": "left out"}
    text = json.dumps(stored, indent=1)
    said = to_markdown(small)
    for found, name in ((text, "small.json"), (said, "small.md")):
        golden = (GOLDEN / name).read_text(encoding="utf-8")
        assert steadied(found, small.studies[0]) == golden.strip(), name


def test_the_report_has_all_its_parts_in_order(small):
    keys = [section.key for section in small.sections]
    assert keys == ["winner", "script", "failures", "pictures", "cost", "method", "provenance"]
    assert [chart.name for chart in small.charts] == [
        "pairs",
        "progress",
        "slices",
        "parallel",
        "noise",
    ]
    assert small.headline.kind == "gain"
    assert dict(small.figures)["speed-up"].startswith("2.")


class _Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.tags, self.texts = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in {"href", "src", "xlink:href", "action", "srcset"}]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        self.texts.append(data)


def parsed(text):
    assert text.startswith("<!DOCTYPE html>")
    ET.fromstring(text.removeprefix("<!DOCTYPE html>"))
    found = _Links()
    found.feed(text)
    return found


def test_the_page_is_one_well_formed_file_that_needs_nothing_from_elsewhere(small):
    text = to_html(small)
    found = parsed(text)
    assert all(link.startswith("#") for link in found.links)
    assert "://" not in text
    assert "script" not in found.tags
    assert {"main", "h1", "h2", "figure", "svg", "table", "caption", "details", "nav"} <= found.tags
    names = re.findall(r'\bid="([^"]*)"', text)
    assert len(names) == len(set(names))
    assert {link[1:] for link in found.links} <= set(names)
    assert text.index(small.headline.sentence[:20]) < text.index("<h2")


def test_every_picture_of_the_page_has_its_words_and_its_figures(small):
    root = ET.fromstring(to_html(small).removeprefix("<!DOCTYPE html>"))
    figures = list(root.iter("figure"))
    assert len(figures) == len(small.charts)
    for figure, chart in zip(figures, small.charts, strict=True):
        (svg,) = figure.iter("svg")
        assert svg.get("role") == "img"
        assert svg.get("aria-label") == chart.description
        assert figure.find("details/div/table") is not None


def hostile_store(folder):
    """Return a study in which every text from outside is hostile."""
    space = Space([Integer.range("np", 1, 4, default=1), Choice("word", ("plain", HOSTILE), default="plain")])
    about = definition(
        space,
        identity={HOSTILE: HOSTILE},
        facts={"fact": HOSTILE},
        machine={"host": HOSTILE, "cores": 2, "cpu_model": HOSTILE},
        study={"description": HOSTILE},
    )
    store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", HOSTILE.replace("\x00", ""), about)
    job = {"argv": ["run", HOSTILE], "environment": {"NAME": HOSTILE}, "prepare": [], "folder": "/runs/1", "files": {}}
    job |= {"setup": [], "copies": []}
    job |= {"resources": {"cores": 1, "nodes": 1, "gpus": 0, "cpus": []}, "mpi": None, "flavour": None}
    rows = [({"np": 1, "word": "plain"}, took(2.0)), ({"np": 2, "word": HOSTILE}, took(1.0))]
    rows += [({"np": 3, "word": HOSTILE}, failed(FailureKind.APPLICATION_ERROR, HOSTILE))]
    for configuration, outcome in rows:
        number = add_trial(store, space, configuration).number
        session = {"host": HOSTILE, "autotune": HOSTILE}
        store.add_runs([Run(configuration, number, outcome=outcome, job=job, session=session, started=HOSTILE)])
        store.settle_all({number: Observation(value=1.0)})
    return store


def test_hostile_words_are_only_words(tmp_path):
    found = report_of(hostile_store(tmp_path))
    text = to_html(found)
    page = parsed(text)
    assert "script" not in page.tags
    assert "alert(" in "".join(page.texts)
    said = to_markdown(found, {chart.name: "pictures/a.png" for chart in found.charts})
    outside = re.sub(r"^(`{3,})\n.*?^\1$", "", said, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"(?<!\\)<(?!pictures/)", outside)
    assert len({line.count("|") - line.count(r"\|") for line in outside.splitlines() if line.startswith("| NAME")}) == 1
    json.loads(json.dumps(found.to_dict()))


@given(st.text(max_size=40))
def test_markdown_shows_any_text_as_it_is(text):
    shown = _plain(text)
    assert "\n" not in shown
    assert not re.match(r"[#+=>-]|\d+[.)](\s|$)", shown)
    assert re.sub(r"\\(.)", r"\1", shown).replace("&amp;", "&") == " ".join(text.split())
    assert not re.search(r"(?<!\\)(?:\\\\)*[<|`*\[]", shown)


def test_the_headline_says_where_there_is_no_verdict_yet():
    assert headline(varied(CONFIRMED)).kind == "gain"
    assert "The winner, trial 12, is 2.0" in headline(varied(CONFIRMED)).sentence
    unconfirmed = headline(varied())
    assert unconfirmed.kind == "not yet"
    assert "No verdict yet: trial 12 looks 1.95 times as fast" in unconfirmed.sentence
    assert "better than it is" in unconfirmed.sentence


@pytest.mark.parametrize(
    ("pairs", "kind", "said"),
    [
        ([(4.0 + 0.3 * (-1) ** k, 4.0) for k in range(8)], "no gain", "No significant gain over the default"),
        ([(4.0, 5.0 + 0.01 * k) for k in range(8)], "no gain", "Slower than the default configuration, so keep that"),
        ([], "not yet", "could not be compared"),
    ],
)
def test_the_headline_is_honest_about_what_is_no_gain(pairs, kind, said):
    found = headline(varied(Verdict(12, (12,), 2, 0.95, 0.05, tuple(pairs))))
    assert found.kind == kind
    assert said in found.sentence


def test_the_headline_of_studies_without_a_winner():
    nothing = headline(summary())
    assert (nothing.kind, nothing.sentence) == ("nothing", "No run has ended yet: there is no result.")
    broken = headline(summary(trial(0, failed(FailureKind.OUT_OF_MEMORY))))
    assert broken.sentence == "No run gave a valid measurement: 1 out of memory."
    begun = headline(summary(trial(0, took(1.0))))
    said = "Only the default configuration has been tried yet."
    assert (begun.kind, begun.sentence) == ("not yet", said)
    default = headline(summary(trial(0, took(1.0)), trial(1, took(2.0))))
    assert (default.kind, default.sentence) == ("no gain", "No configuration was better than the default.")
    lost = headline(summary(trial(0, failed(FailureKind.TIMED_OUT)), trial(1, took(2.0))))
    assert lost.kind == "not yet"
    assert "The default configuration failed" in lost.sentence


SLOWER = Verdict(12, (12,), 2, 0.95, 0.05, tuple((4.0, 5.0 + 0.01 * k) for k in range(8)))
MEMORY = Limit(Metric("memory", "GiB"), high=2.0)
BROKEN = LimitVerdict((MEMORY,), 8, 8, (Breach(MEMORY, 3.0),))


def test_no_part_says_to_keep_a_default_that_breaks_a_limit():
    found = replace(varied(SLOWER), on_limits=BROKEN)
    assert "not comparable" in headline(found).sentence
    assert "not comparable" in pairs(found).description
    assert "keep that" not in headline(found).sentence + pairs(found).description


def test_a_winner_that_fails_is_no_gain_beside_a_default_that_breaks_a_limit_either():
    fails = replace(CONFIRMED, failures=("trial 12: timed out: 60 s",) * 3)
    found = headline(replace(varied(fails), on_limits=BROKEN))
    assert found.kind == "no gain"
    assert (
        "it fails too often to be used: the winner failed in 3 of 11 fresh runs: trial 12: timed out" in found.sentence
    )


@pytest.mark.parametrize(("verdict", "value"), [(CONFIRMED, "2.049 s"), (SLOWER, "2.049 s"), (None, "2.049 s")])
def test_the_figures_at_the_top_are_those_of_the_winner_though_the_default_is_to_be_used(verdict, value):
    rows = dict(figures(varied(verdict), []))
    assert rows["winner, wall_s" if verdict else "best so far, wall_s"].startswith(value)
    assert rows["default, wall_s"].startswith("4 s")


def test_a_replay_is_never_passed_off_as_runs():
    found = varied(CONFIRMED)
    replayed = headline(replace(found, definition=replace(found.definition, objective="replay")))
    assert replayed.sentence.startswith("Replay, nothing ran: ")
    assert "times are simulated" in replayed.remarks[0]


def test_a_report_of_a_study_that_has_not_run_says_so(tmp_path):
    found = report_of(new_store(tmp_path))
    assert found.headline.kind == "nothing"
    assert not any(isinstance(part, Picture) for section in found.sections for part in section.parts)
    parsed(to_html(found))
    assert to_markdown(found)


def test_winner_and_default_lie_side_by_side(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (WINNER, 0.8))
    (section,) = [one for one in report_of(store).sections if one.key == "winner"]
    rows = {row[0]: row[1:] for row in section.parts[0].table.rows}
    assert rows["np"] == ("8", "4", "changed")
    assert rows["bind"] == ("unset", "yes", "changed")
    assert rows["wall_s [s], median"] == ("2", "0.8", "")


def test_the_report_of_a_loss_has_no_word_of_speed():
    loss = Metric("val_loss", "")
    trials = (trial(0, Outcome(metrics={"val_loss": 2.0})), trial(1, Outcome(metrics={"val_loss": 1.0})))
    verdict = Verdict(1, (1,), 1, 0.95, None, ((2.0, 1.0),) * 6)
    said = " ".join(part.text for part in method(summary(*trials, metric=loss, verdict=verdict)).parts)
    assert "The gain is the pseudomedian" in said
    assert "speed" not in said


def test_the_report_does_not_describe_runs_of_other_programs():
    found = varied(CONFIRMED)
    said = " ".join(
        part.text for part in method(replace(found, definition=replace(found.definition, objective="external"))).parts
    )
    assert "Other programs asked for the runs and made them" in said
    assert "cores of their own" not in said


def test_the_top_says_when_it_was_measured_and_how_long_that_took():
    store = StudyStore.in_memory(definition(Space([Integer.range("np", 1, 4, default=1)])))
    for np, started in ((1, "2026-11-22T20:51:07"), (2, "2026-11-22T23:10:02+00:00"), (3, "no date")):
        number = add_trial(store, Space([Integer.range("np", 1, 4, default=1)]), {"np": np}).number
        store.add_runs([Run({"np": np}, number, outcome=took(1.0), started=started)])
    assert dict(report_of(store).figures)["measured"] == "2026-11-22 20:51 to 2026-11-22 23:10 UTC (2 h 19 min)"


def test_the_commands_start_the_ranks_as_measured_and_the_environment_has_no_seed_of_tuning():
    only = trial(0, took(2.0))
    run = replace(only.runs[0], job=JOB | {"environment": {"OMP_NUM_THREADS": "1", "AUTOTUNE_SEED": "7"}})
    parts = provenance(summary(only), [run], run).parts
    commands = [part.text for part in parts if isinstance(part, Code)]
    assert commands == [f"/usr/bin/mpirun -np 4 --bind-to core {shlex.join(JOB['argv'])}"] * 2
    environments = [part.table.rows for part in parts if isinstance(part, Figures) and "Environment" in part.caption]
    assert environments == [(("OMP_NUM_THREADS", "1"),)] * 2


def test_the_winner_has_the_same_value_at_the_top_and_in_the_table():
    about = summary(trial(0, took(4.0)), trial(1, took(1.0), took(2.0)))
    assert dict(figures(about, []))["best so far, wall_s"] == "1.414 s (median of 2 runs)"
    (table,) = (part.table for part in findings(about)[0].parts if isinstance(part, Figures))
    assert ("wall_s [s], median", "4", "1.414", "") in table.rows


def test_the_report_says_by_how_much_the_machine_drifted():
    slow = {0: 1.0, 1: 1.3, 2: 1.0, 3: 1.3}
    trials = [trial(k, *(took((4.0 + k) * slow[block] * (1 + 0.001 * k)) for block in slow)) for k in range(6)]
    blocked = [
        replace(one, runs=tuple(replace(run, block=block) for block, run in zip(slow, one.runs, strict=True)))
        for one in trials
    ]
    assert any("The machine drifted by 30%" in remark for remark in headline(summary(*blocked)).remarks)


def test_memory_is_in_megabytes():
    held = Metric("memory_bytes", "B", "minimize")
    trials = [trial(k, Outcome(metrics={"memory_bytes": 124_700_000.0 - k * 1e6})) for k in range(2)]
    section = findings(summary(*trials, metric=held))[0]
    assert [row[0] for row in section.parts[0].table.rows][-1] == "memory_bytes [MB], median"
    assert section.parts[0].table.rows[-1][1:3] == ("124.7", "123.7")
