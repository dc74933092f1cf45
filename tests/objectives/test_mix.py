"""Several inputs as one objective, as pure values: metric, failures, answers, parameters, facts."""

import json
from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchers import EndReason, Job, JobState, JobStatus, Resources
from launchers.supervisor import STATUS_FILE
from objectives.base import (
    Answer,
    ApplicationError,
    Context,
    InfrastructureError,
    InvalidResult,
    Measurement,
    Metric,
    Output,
    Plan,
    PlanError,
    TimedOut,
)
from objectives.mix.objective import MixInput, MixObjective, geometric_mean
from objectives.mix.plan import PlannedInput, join_inputs
from spaces import Choice, Constraint, Float, Integer, Space

SECONDS = Metric("took_s", "s", kind="time")
CONTEXT_S = 600.0


class Printed:
    """A program that prints how long it took, and its answer."""

    def __init__(self, cores=1, limit_s=None, unused=(), metric=SECONDS):
        self.metrics = (metric,)
        self._cores, self._limit_s, self._unused = cores, limit_s, unused

    def job(self, configuration, context):
        words = tuple(f"{name}={value}" for name, value in sorted(configuration.items()))
        return Job(("prog", *words), context.folder, resources=Resources(self._cores), time_limit_s=self._limit_s)

    def progress_reader(self):
        raise AssertionError

    def measure(self, output):
        if "error" in output.stdout:
            raise ApplicationError(output.stdout.strip(), code="said")
        took, answer = map(float, output.stdout.split())
        return Measurement(
            {self.metrics[0].name: took}, Answer("energy", answer, 0.1, "Ry"), {"seen": took}, self._unused
        )


def mix(*names, shares=None, **others):
    shares = shares or [1 / len(names)] * len(names)
    return MixObjective(
        tuple(MixInput(name, share, Printed(**others)) for name, share in zip(names, shares, strict=True))
    )


def left(folder, name, printed, reason="exited", code=0):
    """Let an input have run in a folder."""
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "stdout").write_text(printed)
    status = {"state": "ended", "reason": reason, "exit_code": code, "message": ""}
    usage = {"elapsed_s": 1.0, "cpu_s": 1.0, "peak_memory_bytes": 2}
    (place / STATUS_FILE).write_text(json.dumps(status | usage))
    return place


def whole(folder, reason=EndReason.EXITED):
    return Output("", "", JobStatus(JobState.ENDED, reason, 0), folder)


positive = st.floats(1e-3, 1e3)


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=5), st.randoms())
def test_the_order_of_the_inputs_changes_nothing(pairs, random):
    total = sum(weight for _, weight in pairs)
    values = {str(index): value for index, (value, _) in enumerate(pairs)}
    shares = {str(index): weight / total for index, (_, weight) in enumerate(pairs)}
    names = list(shares)
    random.shuffle(names)
    assert geometric_mean(values, {name: shares[name] for name in names}) == geometric_mean(values, shares)


@given(st.lists(st.tuples(positive, positive, positive), min_size=2, max_size=5))
def test_the_ratio_of_two_configurations_is_the_weighted_geometric_mean_of_their_ratios(rows):
    total = sum(weight for _, _, weight in rows)
    shares = {str(index): weight / total for index, (_, _, weight) in enumerate(rows)}
    default, winner = ({str(index): row[side] for index, row in enumerate(rows)} for side in (0, 1))
    speed_up = prod((default[name] / winner[name]) ** share for name, share in shares.items())
    assert geometric_mean(default, shares) / geometric_mean(winner, shares) == pytest.approx(speed_up)


def test_an_input_that_counts_everything_is_the_mix():
    assert geometric_mean({"a": 3.0, "b": 70.0}, {"a": 1.0, "b": 0.0}) == pytest.approx(3.0)


def test_a_run_has_the_mix_and_the_metrics_answers_and_details_of_each_input(tmp_path):
    left(tmp_path, "a", "2 7")
    left(tmp_path, "b", "8 9")
    measured = mix("a", "b").measure(whole(tmp_path))
    assert dict(measured.metrics) == {"mix": pytest.approx(4.0), "took_s[a]": 2.0, "took_s[b]": 8.0}
    assert [(part.name, part.value) for part in measured.answer.parts] == [("energy[a]", 7.0), ("energy[b]", 9.0)]
    assert measured.details["inputs"]["b"] == {"elapsed_s": 1.0, "peak_memory_bytes": 2, "seen": 8.0}
    assert [metric.name for metric in mix("a", "b").metrics] == ["mix", "took_s[a]", "took_s[b]"]


def test_a_failure_says_which_input_failed(tmp_path):
    left(tmp_path, "a", "2 7")
    left(tmp_path, "b", "error 5", code=1)
    with pytest.raises(ApplicationError, match="input b: error 5") as caught:
        mix("a", "b", "c").measure(whole(tmp_path))
    assert caught.value.code == "said"


def test_an_input_that_left_nothing_is_nobodys_fault_and_a_value_of_nothing_is_invalid(tmp_path):
    left(tmp_path, "a", "0 7")
    with pytest.raises(InvalidResult, match="input a: took_s is 0 s: what is optimised is compared by ratio"):
        mix("a", "b").measure(whole(tmp_path))
    left(tmp_path, "a", "1 7")
    with pytest.raises(InfrastructureError, match="input b: did not record"):
        mix("a", "b").measure(whole(tmp_path))


def test_a_time_limit_is_that_of_the_run_and_the_input_that_ran_is_named(tmp_path):
    left(tmp_path, "a", "1 7")
    left(tmp_path, "b", "", reason="cancelled")
    with pytest.raises(TimedOut, match="input b: was stopped at its time limit"):
        mix("a", "b").measure(whole(tmp_path, EndReason.TIMED_OUT))


def test_a_job_has_a_part_in_a_folder_for_each_input_and_the_most_cores_that_one_has(tmp_path):
    inputs = (
        MixInput("a", 0.5, Printed(cores=1)),
        MixInput("b", 0.5, Printed(cores=4, limit_s=9.0), frozenset({"only"})),
    )
    job = MixObjective(inputs).job({"x": 1, "only": 2}, Context(tmp_path, time_limit_s=CONTEXT_S))
    assert [(part.name, part.folder, part.argv[1:]) for part in job.parts] == [
        ("a", tmp_path / "a", ("only=2", "x=1")),
        ("b", tmp_path / "b", ("x=1",)),
    ]
    assert (job.resources.cores, job.time_limit_s) == (4, CONTEXT_S)
    assert [part.time_limit_s for part in job.parts] == [None, 9.0]
    placed = replace(job, resources=Resources(4, cpus=(8, 9, 10, 11))).placed_parts
    assert [part.resources.cpus for part in placed] == [(8,), (8, 9, 10, 11)]


def test_progress_tells_which_inputs_have_ended_and_their_values(tmp_path):
    place = left(tmp_path, "b", "8 9")
    read = mix("a", "b").progress_reader()
    told = read(json.dumps({"name": "b", "folder": str(place), "number": 1, "of": 2}))
    assert (told.step, dict(told.metrics)) == (1, {"took_s[b]": 8.0})
    assert read("b has ended") is None
    assert read("[1]") is None
    assert read(json.dumps({"name": "b", "folder": str(tmp_path), "number": 2})).metrics == {}


def planned(name, *parameters, weight=1.0, constraints=(), metric=SECONDS, **facts):
    plan = Plan(Printed(metric=metric), parameters, constraints, facts, {"input": name, "program": "p"})
    return PlannedInput(name, weight, plan)


def test_parameters_have_the_values_that_all_inputs_have():
    plan = join_inputs(
        [planned("a", Integer("npool", (1, 2, 4), default=1)), planned("b", Integer("npool", (1, 2), default=1))]
    )
    (npool,) = plan.parameters
    assert npool.values == (1, 2)
    assert plan.notes == ()


def test_a_parameter_of_one_input_is_set_for_that_one_only():
    plan = join_inputs([planned("a", Integer("npool", (1, 2), default=1)), planned("b")])
    assert [one.not_its_own for one in plan.objective.inputs] == [frozenset(), frozenset({"npool"})]


def test_rules_are_those_of_all_inputs_with_the_facts_of_each():
    rule = Constraint("pools have k-points", "npool <= kpoints", "a pool without one has nothing to do")
    npool = Integer("npool", (1, 2, 4), default=1)
    plan = join_inputs(
        [
            planned("one.k", npool, constraints=[rule], kpoints=2, cores=8),
            planned("b", npool, constraints=[rule], kpoints=4, cores=8),
        ]
    )
    assert plan.facts == {"cores": 8, "kpoints_one_k": 2, "kpoints_b": 4}
    space = Space(plan.parameters, plan.constraints, plan.facts)
    assert [configuration["npool"] for configuration in space.configurations()] == [1, 2]
    (broken,) = space.violations({"npool": 4})
    assert "input one.k: a pool without one has nothing to do" in broken


def test_a_rule_of_all_inputs_stands_once():
    rule = Constraint("even", "npool % 2 == 0", "so it is")
    npool = Integer("npool", (2, 4), default=2)
    plan = join_inputs([planned(name, npool, constraints=[rule], cores=8) for name in ("a", "b")])
    assert plan.constraints == (rule,)


def test_a_default_that_not_all_inputs_have_is_one_that_is_valid_for_all_and_said():
    limit = Constraint("limit", "np <= 2 * planes", "no more planes")
    plan = join_inputs(
        [
            planned("a", Integer("np", (1, 2, 4, 8), default=8), constraints=[limit], planes=1),
            planned("b", Integer("np", (1, 2, 4, 8), default=4), constraints=[limit], planes=4),
        ]
    )
    assert Space(plan.parameters, plan.constraints, plan.facts).default() == {"np": 2}
    assert plan.notes == ("default of np: 2, as the rules of all want it (input a: 8, b: 4)",)


def test_a_rule_over_a_parameter_that_no_input_has_waits_for_the_study_files_own():
    rules = [Constraint("options.nodes fits", "(n) <= 4"), Constraint("limit", "np <= 2")]
    plan = join_inputs([planned(name, Integer("np", (1, 2, 4), default=4), constraints=rules) for name in ("a", "b")])
    assert plan.constraints == tuple(rules)
    space = Space([*plan.parameters, Integer("n", (4, 8), default=4)], plan.constraints, plan.facts)
    assert space.default() == {"np": 2, "n": 4}


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (Integer("x", (1, 2), default=1), Choice("x", ("1", "2"), default="1"), "x: is not of the same kind"),
        (Integer("x", (1, 2), default=1), Integer("x", (4,), default=4), "x: the inputs have no value in common"),
        (Float("x", 0.0, 1.0, default=0.0), Float("x", 0.0, 2.0, default=0.0), "x: the inputs have different grids"),
        (
            Integer("x", (1, 2), when="cores > 1"),
            Integer("x", (1, 2)),
            "x: does not exist under the same condition for all inputs",
        ),
    ],
)
def test_parameters_that_cannot_be_joined_are_said(one, other, words):
    with pytest.raises(PlanError, match=words):
        join_inputs([planned("a", one, cores=2), planned("b", other, cores=2)])


def test_inputs_that_measure_other_things_cannot_be_mixed():
    with pytest.raises(PlanError, match=r"input 'b' measures rate \(1/s, maximize\), input 'a' took_s \(s, minimize\)"):
        join_inputs([planned("a"), planned("b", metric=Metric("rate", "1/s", "maximize"))])


def test_the_identity_is_that_of_all_inputs_and_of_their_shares_in_any_order():
    first, second = planned("a", weight=3.0), planned("b")
    identity = join_inputs([first, second]).identity
    assert identity == {"mix": "a 0.75, b 0.25", "input[a]": "a", "input[b]": "b", "program": "p"}
    assert join_inputs([second, first]).identity == identity


def test_what_has_no_effect_has_none_on_any_input(tmp_path):
    inputs = (
        MixInput("a", 0.5, Printed(unused=("x", "y"))),
        MixInput("b", 0.5, Printed(unused=("x",)), frozenset({"z"})),
        MixInput("c", 0.5, Printed(unused=("x", "z"))),
    )
    for one in inputs:
        left(tmp_path, one.name, "2 7")
    assert MixObjective(inputs).measure(whole(tmp_path)).unused == ("x",)
