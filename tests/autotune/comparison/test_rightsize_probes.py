"""The runs of a right-sizing: few, stored, and resumed."""

import pytest

from autotune.comparison.rightsize_probes import SizingRequest, check_target_is_time
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.performance.measurements.dataset import measurements
from autotune.performance.rightsizing.limits import Limits
from autotune.records.outcome import Outcome
from autotune.storage.study_store import StudyStore
from launchers import Usage
from objectives.base import FailureKind, Metric, Plan
from spaces import Choice, Integer, Space
from tests.support.contests import add, manager
from tests.support.fakes import PaperExecutor, PaperObjective, definition, failed, study_file, took

SPACE = Space([Integer.range("np", 1, 8, default=8), Choice("malloc", ("keep", "huge"), default="keep")], [])
SECONDS = Metric("wall_s", "s", kind="time")
FACTS = {"nodes": 2, "cores": 8, "cores_per_node": 4}


def seconds(configuration):
    return 100.0 / configuration["np"] + 5.0


def timed(configuration):
    return took(seconds(configuration))


@pytest.fixture
def store(tmp_path):
    return StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", definition(SPACE))


def sized(store, folder, executor, limits, runs=6, **request):
    asked = SizingRequest(limits, runs, **request)
    sizing = asked.sizing(store, Plan(PaperObjective(), (), (), {}, {}), SPACE, FACTS, folder / "sizes")
    sizing.probe(manager(folder, executor), study_file(), runs)
    return sizing.right_size()


def test_a_few_runs_are_made_stored_and_not_made_again(store, tmp_path):
    executor = PaperExecutor(timed)
    found = sized(store, tmp_path, executor, Limits(32.0))
    assert (found.keeps, found.chosen.configuration) == (True, {"np": 4, "malloc": "keep"})
    assert found.probes == len(executor.launched) <= 6
    assert found.probe_core_hours == pytest.approx(
        sum(configuration["np"] * seconds(configuration) for _, configuration in executor.launched) / 3600.0
    )
    again = PaperExecutor(timed)
    assert sized(store, tmp_path, again, Limits(32.0)) == found
    assert again.launched == []
    # Another deadline starts from the stored runs.
    assert sized(store, tmp_path, again, Limits(300.0), runs=0).chosen.cores <= 2
    assert store.trials() == []


def test_expectations_are_not_made_of_the_runs_that_correct_them(store, tmp_path):
    add(store, *(({"np": np, "malloc": malloc}, 100.0 / np + 5.0) for np in range(1, 9) for malloc in ("keep", "huge")))
    found = sized(store, tmp_path, PaperExecutor(timed), Limits(32.0), runs=0, urls=(store.url,))
    assert (found.keeps, found.chosen.cores, found.chosen.measured) == (True, 4, True)
    # The program has no other runs, so no model predicts its times.
    assert found.grounds == ()


def test_other_predictions_learn_from_its_runs(store, tmp_path):
    sized(store, tmp_path, PaperExecutor(timed), Limits(32.0))
    known = [row for row in measurements([store.url]) if row.setting.source == "study paper"]
    assert {row.configuration["np"]: row.value for row in known}[4] == pytest.approx(30.0)


@pytest.mark.slow
def test_a_failed_run_makes_the_next_size_the_choice(store, tmp_path):
    def model(configuration):
        return failed(FailureKind.APPLICATION_ERROR) if configuration["np"] == 4 else timed(configuration)

    executor = PaperExecutor(model)
    assert sized(store, tmp_path, executor, Limits(32.0)).chosen.cores == 5
    assert [configuration["np"] for _, configuration in executor.launched].count(4) == 1


@pytest.mark.slow
def test_a_size_that_barely_meets_the_deadline_runs_again_as_a_round_of_its_own(store, tmp_path):
    executor = PaperExecutor(timed)
    found = sized(store, tmp_path, executor, Limits(31.0), runs=8)
    assert [configuration["np"] for _, configuration in executor.launched].count(4) > 1
    assert (found.chosen.cores, found.keeps, found.probes) == (4, True, len(executor.launched))
    rounds = [(run.configuration["np"], run.round) for run in store.runs()]
    assert len(rounds) == len(set(rounds)) == len(executor.launched)


@pytest.mark.slow
def test_fewer_nodes_and_whole_nodes(store, tmp_path):
    found = sized(store, tmp_path, PaperExecutor(timed), Limits(150.0), most_nodes=1, whole_nodes=True)
    assert (found.chosen.nodes, found.chosen.cores, found.chosen.configuration["np"]) == (1, 4, 4)
    assert {size.nodes for size in found.front} == {1}


def test_energy_limits_use_metered_energy(store, tmp_path):
    def metered(configuration):
        time_s = seconds(configuration)
        joules = {"energy_j": 50.0 * time_s * configuration["np"]}
        return Outcome(metrics={"wall_s": time_s}, usage=Usage(elapsed_s=time_s), conditions=joules)

    found = sized(store, tmp_path, PaperExecutor(metered), Limits(energy_j=7.0e3))
    assert found.keeps
    assert found.chosen.joules == pytest.approx(50.0 * found.chosen.cores * found.chosen.time_s, rel=1e-3)
    assert found.chosen.joules <= 7.0e3


@pytest.mark.slow
def test_energy_limits_use_an_energy_metric(store, tmp_path):
    with pytest.raises(CannotRunHereError, match="study 'paper' has no metric with the unit J, kJ"):
        sized(store, tmp_path, PaperExecutor(timed), Limits(energy_j=1e4))

    def drawing(configuration):
        time_s = seconds(configuration)
        metrics = {"wall_s": time_s, "energy": 0.05 * time_s * configuration["np"]}
        return Outcome(metrics=metrics, usage=Usage(elapsed_s=time_s))

    metered = definition(SPACE, metrics=(SECONDS, Metric("energy", "kJ")))
    other = StudyStore.create(f"sqlite:///{tmp_path / 'metered.db'}", "paper", metered)
    # 50 W a core: 7 kJ are 140 core-seconds, which 8 cores take; 7 take 135, and more than once.
    found = sized(other, tmp_path, PaperExecutor(drawing), Limits(energy_j=7.0e3))
    assert found.chosen.cores == 7


def test_without_runs_and_without_a_model_nothing_is_known(store, tmp_path):
    with pytest.raises(CannotRunHereError, match=r"no run times are known here: allow runs \(--probes 6\)"):
        sized(store, tmp_path, PaperExecutor(timed), Limits(32.0), runs=0)


def test_a_deadline_needs_a_time():
    with pytest.raises(StudyFileError, match="the first metric of this study, rate, is not a time"):
        check_target_is_time(Metric("rate", "1/s", "maximize"))
    with pytest.raises(StudyFileError, match="the first metric of this study, took, is in ms, but limits are in sec"):
        check_target_is_time(Metric("took", "ms", kind="time"))


def test_a_time_rounded_to_0_is_not_used(store, tmp_path):
    def rounded(configuration):
        return took(0.0) if configuration["np"] == 8 else timed(configuration)

    found = sized(store, tmp_path, PaperExecutor(rounded), Limits(32.0))
    assert (found.keeps, found.chosen.configuration["np"]) == (True, 4)
