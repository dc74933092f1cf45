import re
from dataclasses import replace

import numpy as np
import pytest

from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.front_race import FrontRace
from autotune.statistics.racing import RaceRules, Standing
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from objectives.base import Metric
from spaces import Integer, Space
from tests.support.fakes import SECONDS, PaperExecutor, definition, study_file
from tests.support.managers import managed

MARGIN = Metric("margin", "", "maximize")
RULES = RaceRules()
# Runs of the default show the noise, about 5 % of the time.
NOISY = ((10.0, -5.0), (10.5, -5.0), (9.5, -5.0))


def race(*trials, keeps=lambda _: True):
    records = {}
    for number, runs in enumerate(trials):
        made = tuple(Run({}, number, outcome=Outcome(metrics={"wall_s": s, "margin": m})) for s, m in runs)
        records[number] = TrialRecord.of(number, {}, made, settled=False)
    front = FrontRace((SECONDS, MARGIN), "median")
    front.follow(records, keeps)
    return front, records


def test_only_a_place_that_is_unsure_is_raced_for():
    front, _ = race(NOISY, [(5.0, -6.0)], [(8.0, -8.0)], [(4.9, -7.0)], [(1.0, -9.0)])
    assert front.front == [4, 3, 1, 0]
    # 2 is surely beaten by 1; whether 3 is as fast as 1, which has the better margin, cannot be told; 4 is far away.
    wanted = {1: Standing.WON, 2: Standing.LOST, 3: Standing.OPEN, 4: Standing.WON}
    assert {number: front.standing(number, RULES) for number in wanted} == wanted
    assert front.rival(3, RULES) == 1


def test_what_breaks_a_limit_or_has_no_value_takes_no_place():
    front, records = race(NOISY, [(5.0, -6.0)], [(4.9, -7.0)], keeps=lambda number: number != 1)
    assert front.standing(2, RULES) is Standing.WON
    records[2] = replace(records[2], runs=(Run({}, 2, outcome=Outcome(metrics={"wall_s": 1.0})),))
    front.follow(records, lambda number: number != 1)
    assert front.standing(2, RULES) is Standing.LOST


def test_a_trial_whose_runs_lack_a_metric_runs_no_more_often_than_others():
    front, records = race(NOISY, [(5.0, -6.0)], [(4.9, -7.0)])
    for made, wanted in ((4, Standing.OPEN), (5, Standing.WON)):
        lacking = tuple(Run({}, 2, outcome=Outcome(metrics={"wall_s": 4.9})) for _ in range(made - 1))
        records[2] = TrialRecord.of(2, {}, (*records[2].runs[:1], *lacking), settled=False)
        front.follow(records, lambda _: True)
        assert front.standing(2, RULES) is wanted


@pytest.mark.parametrize(("spread", "gain", "most"), [(0.0, 0.2, 1), (0.05, 0.02, 4)])
def test_runs_are_repeated_where_noise_could_move_the_front(tmp_path, spread, gain, most):
    space, size = Space([Integer.range("np", 1, 12, default=12)], []), Metric("size", "B")
    study = study_file(
        budget={"trials": 12}, tradeoff={"metric": "size"}, repeats={"max_runs": 4, "warm_up_runs": 0, "caps": True}
    )
    known = definition(space, metrics=(SECONDS, size), study=study.model_dump(mode="json"))
    store, rng = StudyStore.create(f"sqlite:///{tmp_path / 'a.db'}", "paper", known), np.random.default_rng(0)

    def run(configuration):
        # From 6 on more ranks are slower, and need more.
        ranks = configuration["np"]
        seconds = {5: 1.0, 6: 1.0 - gain}.get(ranks, 1.0 + abs(ranks - 6)) * np.exp(rng.normal(0.0, spread))
        return Outcome(metrics={"wall_s": float(seconds), "size": float(ranks)})

    executor = PaperExecutor(run)
    loop = TuningLoop(Asker(store, ValidSetSampler(space, startup=12)), managed(executor, tmp_path / "runs"), study)
    loop.tune()
    subject = loop.status().subject
    assert re.fullmatch(r"front: \d points, wall_s \S+ s to \S+ s, size 1 B to [56] B", subject)
    runs = {trial.configuration["np"]: len(trial.runs) for trial in store.trials()}
    assert max(runs[5], runs[6]) == most
    assert [runs[ranks] for ranks in (8, 9, 10, 11)] == [1, 1, 1, 1]
