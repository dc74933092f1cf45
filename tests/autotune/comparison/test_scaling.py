from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from autotune.cli.commands.compare import _scaling_table
from autotune.comparison.scaling import scale, variants
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.formatting import shown
from autotune.results.summary import summarise
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.studyfile import ScalingSection
from objectives.base import REMARK, Metric
from spaces import Constraint, Integer, Space
from tests.support.contests import manager
from tests.support.fakes import SECONDS, PaperExecutor, definition, study_file, took
from tests.support.stored import add_trial

SPACE = Space(
    [Integer("np", (1, 2, 3, 4), default=2), Integer("work", (12, 24, 48), default=24)],
    [Constraint("shares", "work % np == 0", "equal shares")],
)
SECTION = ScalingSection(processes="np", work="work")


def amdahl(configuration):
    """Return the time of a program of which a tenth is serial."""
    return took(configuration["work"] / 12 * (0.1 + 0.9 / configuration["np"]))


@pytest.fixture
def store(tmp_path):
    return StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", definition(SPACE))


def measured(store):
    add_trial(store, SPACE, SPACE.default(), amdahl(SPACE.default()), worth=Observation(value=1.0))


def scaled(store, folder, executor, study, rounds):
    base = summarise(store).configuration
    return scale(store, manager(folder, executor), SPACE, study, base=base, rounds=rounds)


def study(**sections):
    return study_file(**sections)


def test_strong_and_weak_scaling_are_against_the_fewest_processes(store, tmp_path):
    measured(store)
    executor = PaperExecutor(amdahl)
    found = scaled(store, tmp_path, executor, study(scaling=SECTION.model_dump()), 3)
    strong = {point.processes: point for point in found if point.kind == "strong"}
    assert set(strong) == {1, 2, 3, 4}
    assert strong[1].speed_up == strong[1].efficiency == 1.0
    assert strong[4].speed_up == pytest.approx(1 / (0.1 + 0.9 / 4))
    assert strong[4].efficiency == pytest.approx(strong[4].speed_up / 4)
    weak = {point.processes: point for point in found if point.kind == "weak"}
    # Three processes would need 36 of work, which is not among the values.
    assert {count: point.configuration["work"] for count, point in weak.items()} == {1: 12, 2: 24, 4: 48}
    assert weak[2].speed_up == pytest.approx(1.0 / (2 * 0.55) * 2)
    assert {point.runs for point in found} == {3}
    again = PaperExecutor(amdahl)
    assert scaled(store, tmp_path, again, study(scaling=SECTION.model_dump()), 3) == found
    assert again.launched == []


def test_runs_of_scaling_are_no_runs_of_the_study(store, tmp_path):
    measured(store)
    before = store.trials()
    scaled(store, tmp_path, PaperExecutor(amdahl), study(scaling=SECTION.model_dump()), 1)
    assert store.trials() == before


def test_what_cannot_be_scaled_is_said(store, tmp_path):
    with pytest.raises(StudyFileError, match="which parameter counts processes"):
        scaled(store, tmp_path, PaperExecutor(amdahl), study(), 1)
    with pytest.raises(CannotRunHereError, match="nothing to scale"):
        scaled(store, tmp_path, PaperExecutor(amdahl), study(scaling=SECTION.model_dump()), 1)
    with pytest.raises(StudyFileError, match="'ranks'"):
        variants({"np": 1}, SPACE, ScalingSection(processes="ranks"))


def test_the_numbers_are_medians(store, tmp_path):
    measured(store)
    rng = np.random.default_rng(0)

    def noisy(configuration):
        return took(amdahl(configuration).metrics["wall_s"] * float(rng.lognormal(0.0, 0.05)))

    found = scaled(store, tmp_path, PaperExecutor(noisy), study(scaling={"processes": "np"}), 5)
    assert {point.kind for point in found} == {"strong"}
    runs = [
        run.outcome.metrics[SECONDS.name]
        for run in store.runs()
        if run.series.is_comparison and run.configuration["np"] == 1
    ]
    assert found[0].value == float(np.median(runs))


def test_what_some_runs_did_not_tell_is_said_and_the_others_stand_in_the_tables(tmp_path):
    balance = Metric("load_balance", "", "maximize")
    made = StudyStore.create(f"sqlite:///{tmp_path / 'b.db'}", "paper", definition(SPACE, metrics=(SECONDS, balance)))
    measured(made)

    def told(configuration):
        ended = amdahl(configuration)
        if configuration["np"] == 1:
            return replace(ended, details={REMARK: "no efficiencies: no rank wrote"})
        return replace(ended, metrics={**ended.metrics, balance.name: 0.5})

    working = manager(tmp_path, PaperExecutor(told))
    base = summarise(made).configuration
    found = scale(made, working, SPACE, study(scaling={"processes": "np"}), base=base, rounds=2)
    assert [dict(point.others) for point in found] == [{}, *[{"load_balance": 0.5}] * 3]
    said = [line for line in working.display.lines if "no efficiencies" in line]
    assert said == [f"{shown({**base, 'np': 1})}: no efficiencies: no rank wrote"]
    table = Console(width=200, file=StringIO())
    table.print(_scaling_table(found, "strong scaling"))
    assert "load balance" in table.file.getvalue()
