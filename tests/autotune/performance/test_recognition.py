"""Measurements in the setting of a question are recognised under other names, and count as measured."""

from dataclasses import replace

import numpy as np
import pytest

from autotune.errors import AutotuneError
from autotune.performance import predict as predicting
from autotune.performance.installation import stated_installation
from autotune.performance.measured_here import MeasuredHere
from autotune.performance.predict import Target, predict, question, with_known_installation
from autotune.performance.recognition import is_same_workload, known_installation, unify_names
from autotune.performance.run_times.model import RunTimes
from autotune.records.measurement import Measured, Setting
from autotune.studyfile import StudyFile
from autotune.studyfile.model import SpaceSection
from launchers import Job
from launchers.local import local_launcher
from objectives import registry
from objectives.base import Metric
from spaces import Integer

TOOK = Metric("took_s", "s", kind="time")
SIZES = {"atoms": 24, "bands": 115, "kpoints": 20, "cutoff_ry": 50.0}
BUILD = {"pw_version": "6.1", "openmp": False}
FACTS = {"cores": 16, "nodes": 1, "cores_per_node": 16, "sockets": 2, "cpu_model": "Xeon Platinum 8274"}
STUDY = StudyFile.model_validate(
    {
        "name": "solver",
        "objective": "command",
        "options": {
            "argv": ["echo", "{x}", "{y}", "{z}"],
            "metrics": [{"name": "took_s", "unit": "s", "pattern": r"(\S+)", "kind": "time"}],
        },
        "space": {
            "parameters": {
                "x": {"type": "integer", "low": 1, "high": 16, "default": 16},
                "y": {"type": "integer", "values": [1, 2, 4], "default": 1},
                "z": {"type": "integer", "values": [1, 2, 4], "optional": True},
            },
            "constraints": [{"name": "few", "rule": "x * y <= cores", "reason": "a core each"}],
        },
    }
)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A question about a described machine; the plan has the sizes and the installation that pw.x would report."""
    plan_of = registry.plan

    def planned(*words, **others):
        plan = plan_of(*words, **others)
        return replace(
            plan, facts={**SIZES, "pw_version": "7.2", "openmp": True}, installation=("pw_version", "openmp")
        )

    monkeypatch.setattr(registry, "plan", planned)
    return question(STUDY, Target("mars", FACTS), local_launcher(), tmp_path)


def imported(machine="mars", workload="24 atoms, 50 Ry", build=BUILD, **sizes):
    facts = {**SIZES, **build, **sizes}
    return Setting("solver", machine, workload, TOOK, FACTS, facts, source="old runs")


def law(x, y):
    return 100.0 * (8.0 / x + 0.3 * y)


def runs(setting, tried, scale=1.0):
    return [Measured(setting, {"x": x, "y": y}, scale * law(x, y), runs=10) for x, y in tried]


GRID = [(x, y) for x in (1, 2, 3, 4, 6, 8, 12, 16) for y in (1, 2, 4) if x * y <= 16]


def test_the_default_that_was_measured_there_has_the_measured_value(asked):
    elsewhere = runs(imported("earth", build={"pw_version": "7.2", "openmp": True}), GRID, 7.0)
    known = [*runs(imported(), GRID), *elsewhere]
    prediction = predict(with_known_installation(asked, known), known, 3)
    assert prediction.default_value.value == pytest.approx(law(16, 1))
    assert prediction.default_runs == 10
    assert any("measured here: " in line and "in 10 runs" in line for line in prediction.grounds)
    assert any("pw_version 6.1" in line and "all measurements of this workload" in line for line in prediction.grounds)
    assert [doubt for doubt in prediction.doubts if "pw_version" in doubt or "nothing was measured" in doubt] == []


def test_the_space_is_that_of_the_program_as_it_is_installed_there(asked, tmp_path, monkeypatch):
    jobs = []
    monkeypatch.setattr(predicting, "run_job", lambda job, _: jobs.append(job))

    def planned(_, options, *, machine, run_job, folder):
        run_job(Job(("probe", options["argv"][0]), folder))
        is_new = machine["installation"].get("pw_version") == "6.1"
        default = Integer("x", (1, 16), default=16 if is_new else 1)
        return replace(asked.plan, parameters=(default,), mentions=())

    monkeypatch.setattr(registry, "plan", planned)
    study = STUDY.model_copy(update={"space": SpaceSection()})
    first = question(study, Target("mars", FACTS), local_launcher(), tmp_path)
    there = with_known_installation(first, runs(imported(), GRID))
    assert (first.space.default(), there.space.default()) == ({"x": 1}, {"x": 16})
    assert len(jobs) == 1  # the problem is the same one: it is asked for its size once
    assert with_known_installation(first, runs(imported("earth"), GRID)) is first


def test_the_best_measured_one_comes_first_and_is_said_to_be_measured(asked):
    best = (12, 1)
    known = runs(imported(), [pair for pair in GRID if pair != best])
    known = [*known, Measured(imported(), {"x": 12, "y": 1}, 11.0, runs=3)]
    found = predict(with_known_installation(asked, known), known, 3)
    assert found.proposals[0].configuration == {"x": 12, "y": 1}
    assert (found.proposals[0].value.value, found.proposals[0].measured_runs) == (11.0, 3)
    assert found.proposals[0].speed_up.value == pytest.approx(law(16, 1) / 11.0)


def test_what_failed_there_is_not_proposed_though_its_table_lacks_a_parameter(asked):
    failed = [Measured(replace(imported(), source="queue"), {"x": x}, failure="out of memory") for x in range(10, 16)]
    known = [*runs(imported(), GRID), *failed]
    found = predict(with_known_installation(asked, known), known, 40)
    proposed = [dict(proposal.configuration) for proposal in found.proposals]
    assert not [one for one in proposed if 10 <= one["x"] < 16 and one["y"] == 1 and one["x"] != 12]
    assert any("never proposed: " in line for line in found.grounds)


def test_an_uncertain_extrapolation_does_not_go_before_what_was_measured(asked, monkeypatch):
    known = runs(imported(), [(x, 1) for x in (1, 2, 3, 4, 6, 8)]) + runs(imported("earth"), GRID)

    class Wild:
        """Promises a tenth of the time beyond what was measured, and knows how unsure that is."""

        def __init__(self, times):
            self.times = times

        def __getattr__(self, name):
            return getattr(self.times, name)

        def estimate(self, cases):
            return replace(self.times.estimate(cases), mean=np.where(cases.named["y"] > 2, 0.7, 3.0))

        def ratio(self, cases, reference):
            return replace(self.times.ratio(cases, reference), half=np.where(cases.named["y"] > 2, 5.0, 0.1))

    fitted = RunTimes.fit
    monkeypatch.setattr(RunTimes, "fit", lambda *words: Wild(fitted(*words)))
    found = predict(with_known_installation(asked, known), known, 3)
    assert [proposal.configuration["x"] for proposal in found.proposals] == [8, 6, 4]


def test_unset_is_no_value_that_was_measured():
    sparse = replace(imported("earth"), source="another table")
    known = runs(imported(), GRID) + [Measured(sparse, {"x": x, "y": 1, "z": 1}, law(x, 1)) for x in (1, 2, 4)]
    assert RunTimes.fit(known, (), imported()).varied == {"x", "y"}


def test_names_differ_and_facts_are_equal():
    asked = replace(imported(workload="solver 1a2b3c4d"), workload_facts={**SIZES, "planes": 72})
    assert is_same_workload(imported(), asked)
    assert not is_same_workload(imported(kpoints=10), asked)
    assert not is_same_workload(imported(scf_cycles=5), replace(asked, workload_facts={**SIZES, "scf_cycles": 1}))
    few = replace(imported(), workload_facts={"atoms": 24})
    assert not is_same_workload(few, asked)
    assert not is_same_workload(replace(few, workload_facts={}), replace(asked, workload_facts={}))


def test_a_run_that_stops_early_is_not_the_run_to_convergence():
    whole = imported(workload="24 atoms")
    stopped = imported(workload="24 atoms, 2 iterations", scf_iterations=2)
    assert not is_same_workload(whole, stopped)
    assert is_same_workload(imported(workload="benchmark", scf_iterations=2), stopped)


def test_one_size_does_not_make_one_problem_of_two_studies():
    rows = {"rows": 80_000}
    one = replace(imported(workload="kernel 1a2b"), workload_facts=rows, identity="1a2b")
    assert is_same_workload(one, replace(imported(workload="an import"), workload_facts=rows))
    assert not is_same_workload(one, replace(one, workload="kernel 3c4d", identity="3c4d"))


def test_a_study_calls_its_machine_after_its_processor():
    node = {**FACTS, "cpu_model": "Xeon(R) Platinum 8274 CPU @ 3.20GHz", "pw_version": "6.1"}
    study = replace(
        imported("Xeon(R) Platinum 8274 CPU @ 3.20GHz, 16 cores, 6.1"), machine_facts=node, workload_facts=SIZES
    )
    (row,) = unify_names(runs(study, [(1, 1)]), replace(imported(), machine_facts={**FACTS, **BUILD}))
    assert row.setting.key == imported().key
    part = replace(study, machine_facts={**node, "cores_per_node": 2})
    (row,) = unify_names(runs(part, [(1, 1)]), replace(imported(), machine_facts={**FACTS, **BUILD}))
    assert row.setting.machine == study.machine


def test_another_build_stays_another_build():
    mine = replace(imported(), machine_facts={**FACTS, "pw_version": "7.2"}, workload_facts=SIZES)
    (row,) = unify_names(runs(imported("mars, 6.1"), [(1, 1)]), mine)
    assert row.setting.machine == "mars, 6.1"


def test_the_build_of_most_measurements_is_taken_unless_another_is_stated():
    known = runs(imported(), GRID) + runs(imported(build={"pw_version": "7.2", "scalapack": True}), GRID[:5])
    mine = replace(imported(), workload_facts=SIZES)
    found = known_installation(mine, known)
    assert (found.facts, found.rows, found.total) == (BUILD, len(GRID), len(GRID) + 5)
    stated = replace(mine, machine_facts={**FACTS, "pw_version": "7.2"})
    assert known_installation(stated, known).facts == {"pw_version": "7.2", "scalapack": True}
    built = {"pw_version": "7.2", "scalapack": True}
    other_problem = runs(imported(workload="another", build=built, atoms=2), GRID[:2])
    found = known_installation(stated, runs(imported(), GRID) + other_problem)
    assert (found.facts["scalapack"], found.of_workload) == (True, False)
    assert known_installation(replace(mine, machine="venus", machine_facts={}), known) is None


def test_a_build_that_was_measured_by_another_metric_goes_behind():
    cpu = replace(imported(build={"pw_version": "7.2"}), metric=Metric("cpu_s", "s"))
    found = known_installation(replace(imported(), workload_facts=SIZES), runs(cpu, GRID) + runs(imported(), GRID[:2]))
    assert found.facts == BUILD


def test_an_installation_in_words():
    assert stated_installation(["pw_version=7.2", " openmp = TRUE"]) == {"pw_version": "7.2", "openmp": True}
    with pytest.raises(AutotuneError, match="did you mean 'compiler'"):
        stated_installation(["compilr=gcc"])
    with pytest.raises(AutotuneError, match="NAME=VALUE"):
        stated_installation(["gcc"])


def test_a_value_goes_before_a_bound_and_the_ranks_of_another_node_count_are_elsewhere(asked):
    far = replace(imported(), machine_facts={**FACTS, "nodes": 2})
    bound = Measured(imported(), {"x": 2, "y": 1}, bound=9.0)
    value = Measured(replace(imported(), source="b"), {"x": 2, "y": 1}, 10.0)
    known = unify_names([bound, value, *runs(far, GRID)], replace(imported(), workload_facts=SIZES))
    here = MeasuredHere.of(asked.space, known[0].setting, known)
    assert [row.value for row in here.measured] == [10.0]
    assert here.at(asked.space.indices([{"x": 2, "y": 1}, {"x": 1, "y": 1}]))[1] is None


def test_what_lies_between_measured_values_is_no_extrapolation(asked):
    known = unify_names(runs(imported(), [(2, 1), (8, 1)]), replace(imported(), workload_facts=SIZES))
    here = MeasuredHere.of(asked.space, known[0].setting, known)
    tried = [{"x": 4, "y": 1}, {"x": 9, "y": 1}, {"x": 4, "y": 2}, {"x": 4, "y": 1, "z": 1}]
    assert here.inside(asked.space.indices(tried)).tolist() == [True, False, False, False]


def test_another_version_or_input_teaches_but_is_not_measured_here(asked):
    old, new = (replace(imported(), source=name, identity=name) for name in ("old", "new"))
    known = [Measured(old, {"x": 2, "y": 1}, 1.0, runs=9), Measured(new, {"x": 2, "y": 1}, 10.0)]
    here = MeasuredHere.of(asked.space, replace(new, source=""), known)
    assert [row.value for row in here.measured] == [10.0]
    unknown = MeasuredHere.of(asked.space, imported(), known)
    assert [row.value for row in unknown.measured] == [1.0], "a question that tells no version takes what has most runs"
