"""The ablation of a point of a trade-off's front, in every metric of the trade-off."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.batch.winner_script import _figures
from autotune.cli.commands.ablate import conclusion
from autotune.comparison.ablation import Point, ablate
from autotune.comparison.findings import Worth, stored_ablation
from autotune.errors import AutotuneError
from autotune.pictures import charts_of
from autotune.records.outcome import Outcome
from autotune.report.headline import headline
from autotune.report.results import findings
from autotune.results.summary import summarise
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.tuning import session as tuning_session
from launchers import Usage
from objectives.base import Metric
from tests.support.command_line import invoke
from tests.support.contests import DEFAULT, SPACE, manager, timed
from tests.support.fakes import SECONDS, PaperExecutor, definition, study_file
from tests.support.stored import add_trial

MEMORY, MARGIN = Metric("memory", "B"), Metric("margin", "", "maximize")
METRICS = (SECONDS, MEMORY, MARGIN)
CHOSEN = {"np": 4, "blas": "fast", "malloc": "huge", "bind": True}


def study_of(*metrics, **weights):
    sections = {"pairs": 6, "max_pairs": 12, "rounds": 3, "candidates": 3, "precision": 0.03}
    return study_file(verdict=sections, tradeoff={"metric": list(metrics), "weights": weights})


def ran(configuration, noise=(1.0, 1.0)):
    """The fast library needs more memory and saves time, `malloc` saves memory and no time, `bind` saves neither."""
    memory = 100.0 * (1.2 if "blas" in configuration else 1.0) * (0.7 if "malloc" in configuration else 1.0)
    values = {"wall_s": timed(configuration) * noise[0], "memory": memory * noise[1], "margin": -1.0}
    return Outcome(metrics=values, usage=Usage(elapsed_s=1.0))


def machine(folder, seed=1):
    rng = np.random.default_rng(seed)
    return manager(folder, PaperExecutor(lambda one: ran(one, np.exp(rng.normal(0.0, 0.005, 2)))))


def store_of(folder, study, *configurations):
    known = definition(SPACE, metrics=METRICS, study=study.model_dump(mode="json"))
    store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", known)
    for one in configurations:
        add_trial(store, SPACE, one, ran(one), worth=Observation(value=ran(one).metrics["wall_s"]))
    return store


@pytest.fixture
def study():
    return study_of("memory", wall_s=1)


@pytest.fixture
def store(tmp_path, study):
    return store_of(tmp_path, study, DEFAULT, CHOSEN)


@pytest.fixture
def found(store, study, tmp_path):
    return ablate(store, machine(tmp_path), SPACE, study, 8, Point(1, (SECONDS, MEMORY)))


def test_only_options_that_help_in_no_metric_are_dropped(store, found):
    assert found.dropped == ("bind",)
    assert found.is_accepted
    (memory,) = found.further
    worth = {
        name: tuple(next(effect for effect in one.effects if effect.name == name).worth for one in found.by_metric)
        for name in ("blas", "malloc", "bind")
    }
    assert worth["blas"] == (Worth.HELPS, Worth.HARMS)
    assert worth["malloc"] == (Worth.NOTHING, Worth.HELPS)
    assert worth["bind"] == (Worth.NOTHING, Worth.NOTHING)
    assert memory.over_default[0] == pytest.approx(1 / 0.84, rel=0.01)
    assert found.over_default[0] == pytest.approx(2.5, rel=0.02)
    assert stored_ablation(StudyStore.read(store.url, "paper")) == found


def test_the_simplified_point_is_the_configuration_to_use(store, found):
    summary = summarise(store)
    simple = {name: value for name, value in CHOSEN.items() if name != "bind"}
    assert summary.configuration == simple
    text = summary.best_text()
    assert "simplified: np=4 blas=fast malloc=huge" in text
    said = "simplified, measured: trial 1 without bind is not worse in any metric; against the default wall_s 2."
    assert said in text
    assert re.search(r"; memory 1\.1[89]\d times lower \(", text)
    assert any("trial 1 without bind" in line for line in _figures(summary))
    assert any("found trial 1 as good without bind" in remark for remark in headline(summary).remarks)


def test_reports_and_pictures_show_each_metric(store, found):
    summary = summarise(store)
    (section,) = (one for one in findings(summary) if one.key == "ablation")
    captions = [part.caption for part in section.parts if hasattr(part, "caption")]
    assert [caption.split(":")[1].split(",")[0] for caption in captions] == [" in wall_s", " in memory"]
    (chart,) = (one for one in charts_of(summary) if one.name == "ablation")
    assert [panel.x.title for panel in chart.panels] == ["wall_s", "memory"]
    assert "Significantly better alone in memory: malloc" in chart.description
    assert {row[1] for row in chart.table.rows} == {"wall_s [s]", "memory [B]"}
    assert len(chart.table.rows) == 14


def test_an_option_stays_where_one_metric_is_worse_without_it(found):
    kept = replace(found, worse=("memory",))
    assert not kept.is_accepted
    assert "without it trial 1 is worse in memory: it stays" in conclusion(kept)
    assert "dropped: bind (does nothing that could be seen in wall_s, does nothing that could be seen in memory)" in (
        conclusion(found)
    )
    assert ", over the default: wall_s 2." in conclusion(found)
    assert "no option of trial 1 can be left out" in conclusion(replace(found, dropped=()))


def test_a_metric_without_ratios_keeps_the_options_and_says_why(tmp_path):
    study = study_of("margin", wall_s=1)
    store = store_of(tmp_path, study, DEFAULT, CHOSEN)
    found = ablate(store, machine(tmp_path), SPACE, study, 6, Point(1, (SECONDS, MARGIN)))
    assert found.dropped == ()
    assert {effect.worth for effect in found.further[0].effects} == {Worth.UNKNOWN}
    assert "margin is not above 0 in every run" in found.further[0].effects[0].why


def test_the_default_has_no_ablation(store, study, tmp_path):
    assert ablate(store, machine(tmp_path), SPACE, study, 6, Point(0, (SECONDS, MEMORY))) is None


@pytest.mark.slow
def test_the_command_asks_for_weights_and_shows_every_metric(tmp_path, monkeypatch):
    study = study_of("memory")
    store = store_of(tmp_path, study, DEFAULT, CHOSEN)
    refused = invoke("ablate", "paper", "--storage", store.url)
    assert isinstance(refused.exception, AutotuneError)
    assert "--weights say which point of its front is taken apart" in str(refused.exception)

    asked = SimpleNamespace(weights=None)

    def taken_apart(study, settings, display, rounds):
        asked.weights = study.tradeoff.weights
        return ablate(store, machine(tmp_path), SPACE, study, rounds, Point(1, (SECONDS, MEMORY)))

    monkeypatch.setattr(tuning_session, "ablate_study", taken_apart)
    ask = ["ablate", "paper", "--weights", "wall_s=1", "--storage", store.url]
    shown = invoke(*ask, "--picture", str(tmp_path / "a.svg"))
    assert asked.weights == {"wall_s": 1.0, "memory": 0.0}
    assert "trial 1, by wall_s" in shown.stdout
    assert "trial 1, by memory" in shown.stdout
    assert "in the winner" not in shown.stdout
    assert (tmp_path / "a.svg").is_file()
    told = json.loads(invoke(*ask, "--json").stdout)
    assert [one["metric"] for one in (told, *told["further"])] == ["wall_s", "memory"]
    assert {effect["worth"] for effect in told["further"][0]["effects"]} >= {"helps", "does harm"}


def test_a_session_runs_the_ablation_of_the_preferred_point(store, study, tmp_path, monkeypatch):
    prepared = SimpleNamespace(space=SPACE)
    opened = SimpleNamespace(store=store, prepared=prepared)
    monkeypatch.setattr(tuning_session, "open_study", lambda *_: nullcontext(opened))
    monkeypatch.setattr(tuning_session, "open_run_manager", lambda _: nullcontext(machine(tmp_path)))
    found = tuning_session.ablate_study(study, None, None, 6)
    assert (found.winner, [one.metric for one in found.by_metric]) == (1, ["wall_s", "memory"])


@pytest.mark.slow
def test_nothing_runs_if_the_weights_choose_the_default(tmp_path, monkeypatch):
    study, executor = study_of("memory", memory=1), PaperExecutor(ran)
    store = store_of(tmp_path, study, DEFAULT, {"np": 4, "blas": "fast"})
    opened = SimpleNamespace(store=store, prepared=SimpleNamespace(space=SPACE))
    monkeypatch.setattr(tuning_session, "open_study", lambda *_: nullcontext(opened))
    monkeypatch.setattr(tuning_session, "open_run_manager", lambda _: nullcontext(manager(tmp_path, executor)))
    said = invoke("ablate", "paper", "--storage", store.url).stdout
    assert "the default is the point of the front: there is nothing to change" in " ".join(said.split())
    assert executor.launched == []
