"""Which metric a study optimises, and which of the whole job it counts."""

import pytest

from autotune.errors import StudyFileError
from autotune.machines.this_machine import this_machine
from autotune.planning.metering import meter_obstacle, shared_meter
from autotune.records.limit import breaches, metrics_of_run
from autotune.records.outcome import Outcome
from autotune.studyfile.limits import limits_of
from autotune.studyfile.model import LimitSection
from autotune.studyfile.space import join_space
from launchers import Usage
from launchers.batch import BatchLauncher
from launchers.batch.commands import run_command
from launchers.batch_systems.slurm import SLURM
from launchers.local import LocalLauncher
from launchers.meters.available import MeterFinding
from launchers.site import Site
from objectives.base import Context, Metric, Plan
from objectives.shapes.shape import Shape, Term
from tests.support.fakes import SECONDS, PaperObjective, small_space, study_file

AUC = Metric("val_auc", "", "maximize")


class Served(PaperObjective):
    metrics = (SECONDS, AUC)


def plan(**changes):
    shape = Shape((Term("1", "1"),))
    return Plan(Served(), tuple(small_space().parameters), (), {}, {"program": "x"}, shape=shape, **changes)


def planned(*, runs="launched", **sections):
    return join_space(study_file(**sections), plan(runs=runs), this_machine().facts)[0]


def names(found):
    return [metric.name for metric in found.objective.metrics]


def test_without_a_word_of_it_a_study_has_the_metrics_of_its_program():
    found = planned()
    assert names(found) == [SECONDS.name, "val_auc"]
    assert found.identity == {"program": "x"}
    assert found.reading == {}
    assert found.metered == ()


def test_a_target_comes_first_and_makes_another_study():
    found = planned(target="energy_j")
    assert names(found) == ["energy_j", SECONDS.name, "val_auc"]
    assert found.identity == {"program": "x", "target": "energy_j"}
    assert found.metered == ("energy_j",)
    # The terms of a run time are not those of an energy.
    assert found.shape is None
    assert names(planned(target="val_auc")) == ["val_auc", SECONDS.name]
    assert planned(target=SECONDS.name).identity == {"program": "x"}


def test_other_metrics_of_a_tradeoff_are_counted_and_read_from_kept_outputs():
    found = planned(tradeoff={"metric": ["energy_j", "peak_memory_bytes"]})
    assert names(found) == [SECONDS.name, "val_auc", "energy_j", "peak_memory_bytes"]
    assert found.reading == {"of the job": "energy_j, peak_memory_bytes"}
    assert found.metered == ("energy_j",)
    assert found.shape is not None


def test_a_limit_on_a_meter_asks_for_it_and_is_judged_by_what_was_stored():
    limits = {"gpu_energy_j": {"max": "2 kJ"}, "gpu_busy_share": {"min": 0.5}}
    found = planned(limits=limits)
    assert names(found) == [SECONDS.name, "val_auc"]
    assert set(found.metered) == {"gpu_energy_j", "gpu_busy_share"}
    outcome = Outcome({SECONDS.name: 3.0}, conditions={"gpu_energy_j": 2100.0, "gpu_busy_share": 0.6}, usage=Usage(3.0))
    broken = breaches(
        limits_of({name: LimitSection(**one) for name, one in limits.items()}, (SECONDS,)), metrics_of_run(outcome)
    )
    assert [str(one) for one in broken] == ["gpu_energy_j <= 2000 J: 2100 J"]


def test_what_a_program_calls_so_itself_is_the_programs():
    class Own(PaperObjective):
        metrics = (SECONDS, Metric("energy_j", "kWh"))

    own = Plan(Own(), tuple(small_space().parameters), (), {}, {})
    found = join_space(study_file(tradeoff={"metric": "energy_j"}), own, this_machine().facts)[0]
    assert found.objective.metrics == (SECONDS, Metric("energy_j", "kWh"))
    assert found.metered == ()


@pytest.mark.parametrize(
    ("sections", "runs", "path", "says"),
    [
        ({"target": "enrgy_j"}, "launched", "target", "did you mean 'energy_j'"),
        ({"target": "energy_j"}, "recorded", "target", f"the metrics are {SECONDS.name}, val_auc"),
        ({"target": "energy_j", "tradeoff": {"metric": "energy_j"}}, "launched", "tradeoff.metric", "got 'energy_j'"),
        ({"tradeoff": {"metric": "energy_j"}}, "recorded", "tradeoff.metric", "the other metrics are val_auc"),
        (
            {"target": "val_auc", "stopping": {"max_steps": 3}},
            "launched",
            "target",
            "excludes another target: remove one of them",
        ),
    ],
)
def test_what_is_wrong_with_a_target_is_said(sections, runs, path, says):
    with pytest.raises(StudyFileError) as caught:
        planned(runs=runs, **sections)
    assert says in {problem.path: problem.message for problem in caught.value.problems}[path]


def test_a_machine_without_the_meter_is_said_before_anything_runs(monkeypatch):
    there = MeterFinding("energy of processors", ("cpu_energy_j",), why="nothing shows it")
    monkeypatch.setattr("autotune.planning.metering.find_meters", lambda **_: (there,))
    why = meter_obstacle(study_file(), planned(target="energy_j"), LocalLauncher(), 0)
    assert "no meter of this machine measures energy_j: energy of processors: none (nothing shows it)" in why
    assert meter_obstacle(study_file(), planned(), LocalLauncher(), 0) == ""
    counters = MeterFinding("energy", ("cpu_energy_j",), found="2 counters")
    cards = MeterFinding("cards", ("gpu_energy_j", "gpu_busy_share"), why="the driver lists none")
    monkeypatch.setattr(
        "autotune.planning.metering.find_meters", lambda **asked: (counters, cards)[: 1 + asked["cards"]]
    )
    assert meter_obstacle(study_file(), planned(target="energy_j"), LocalLauncher(), 0) == ""
    # With cards the whole is that of the cards, too.
    assert "the driver lists none" in meter_obstacle(study_file(), planned(target="energy_j"), LocalLauncher(), 1)
    assert "a run has no GPU" in meter_obstacle(study_file(), planned(target="gpu_energy_j"), LocalLauncher(), 0)


def test_figures_of_the_whole_node_are_not_those_of_one_of_several_runs():
    study, alone = study_file(budget={"workers": 4}), study_file()
    energy, card = planned(target="energy_j"), planned(target="gpu_energy_j")
    assert "workers is 4" in shared_meter(study, energy, LocalLauncher())
    assert shared_meter(alone, energy, LocalLauncher()) == shared_meter(study, card, LocalLauncher()) == ""
    shared, whole = (
        BatchLauncher(SLURM.scheduler, Site("slurm", exclusive=exclusive), run_command) for exclusive in (False, True)
    )
    assert "exclusive = true" in shared_meter(alone, energy, shared)
    assert shared_meter(alone, energy, whole) == ""


def test_a_command_of_the_users_is_a_meter_and_makes_another_study(tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.planning.metering.find_meters", lambda **_: pytest.fail("no other meter is needed"))
    study = study_file(target="energy_j", meter={"command": ["joules", "--rack", "7"]})
    found = join_space(study, plan(runs="launched"), this_machine().facts)[0]
    assert found.identity["meter"] == "joules --rack 7"
    assert found.objective.job({"np": 2}, Context(tmp_path)).meter == ("joules", "--rack", "7")
    assert meter_obstacle(study, found, LocalLauncher(), 0) == ""
