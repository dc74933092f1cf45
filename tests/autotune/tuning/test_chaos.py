import random

import pytest

from tests.support.chaos import TARGETS, ChaosStudy, kill_once, nothing_left

pytestmark = [pytest.mark.full, pytest.mark.cores(1)]

INSTANTS = 2


@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", TARGETS)
def test_killed_at_random_instants_nothing_is_lost_doubled_or_left(tmp_path, target):
    study = ChaosStudy(tmp_path)
    study.write(mpi=target == "start command")
    rng = random.Random(target)
    for _ in range(INSTANTS):
        before, runs_before = study.finished(), study.stored_runs()
        kill_once(study, target, rng)
        assert nothing_left(study) == []
        after = study.finished()
        assert {number: after.get(number) for number in before} == before
        assert study.stored_runs()[: len(runs_before)] == runs_before
    session = study.start()
    assert session.wait(240) == 0, (tmp_path / "session.log").read_text()
    assert nothing_left(study) == []
    finished = study.finished()
    assert len(finished) == study.trials
    configurations = [configuration for configuration, _ in finished.values()]
    assert len(set(configurations)) == len(configurations)
    assert set(map(str, configurations)) <= set(study.ended_runs())
    runs = study.stored_runs()
    assert len(set(runs)) == len(runs) <= len(study.ended_runs())
