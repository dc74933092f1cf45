"""From a study file and a machine to proposals, with a quick command and invented measurements."""

import json
from dataclasses import replace

import pytest

from autotune.errors import CannotRunHereError, ExitCode, StudyFileError
from autotune.machines.description import MachineError
from autotune.machines.this_machine import this_machine
from autotune.performance.predict import Target, find_target, for_problem, predict, question, restrict
from autotune.performance.regression.prediction import Interval, Prediction, Proposal, without_vague_values
from autotune.records.measurement import Measured
from autotune.studyfile import StudyFile
from autotune.studyfile.model import LimitSection
from launchers.local import local_launcher
from objectives import registry
from objectives.base import Metric
from objectives.shapes.scaling import strong_scaling
from objectives.shapes.shape import Shape, Term

TOOK = Metric("took_s", "s", kind="time")
STUDY = StudyFile.model_validate(
    {
        "name": "solver",
        "objective": "command",
        "options": {
            "argv": ["awk", "BEGIN {{ print {x}, {y} }}"],
            "metrics": [{"name": "took_s", "unit": "s", "pattern": r"(\S+)", "kind": "time"}],
        },
        "space": {
            "parameters": {
                "x": {"type": "integer", "low": 1, "high": 16, "default": 16},
                "y": {"type": "integer", "values": [1, 2, 4], "default": 1},
                "z": {"type": "integer", "low": 1, "high": 3, "default": 2},
            },
            "constraints": [{"name": "few", "rule": "x * y <= cores", "reason": "a core each"}],
        },
    }
)
FACTS = {"cores": 16, "nodes": 1, "cores_per_node": 16, "sockets": 1, "memory_bytes": 2**34, "vendor": "a"}
MARS = Target("mars", FACTS)


def asked_of(target, folder, study=STUDY):
    return question(study, target, local_launcher(), folder)


@pytest.fixture
def asked(tmp_path):
    return asked_of(MARS, tmp_path)


def law(x, y):
    return 8.0 / x + 0.3 * y + x / 8.0


def rows(asked, machine, scale=1.0, metric=TOOK, **facts):
    place = replace(asked.setting, machine=machine, metric=metric, machine_facts={**FACTS, **facts})
    tried = [{"x": x, "y": y, "z": 2} for x in range(1, 17) for y in (1, 2, 4) if x * y <= 16]
    return [Measured(place, one, scale * law(one["x"], one["y"])) for one in tried]


def two(asked):
    return [*rows(asked, "earth"), *rows(asked, "moon", 2.0)]


def many(asked):
    return [row for number, name in enumerate("abcd", 1) for row in rows(asked, name, number)]


def test_a_question_about_another_machine(asked):
    assert asked.setting.program == "solver"
    assert asked.setting.machine == "mars"
    assert asked.setting.metric == TOOK
    assert asked.setting.machine_facts == FACTS
    assert asked.rules == ("x * y <= cores",)
    assert asked.space.size.value == 3 * (16 + 8 + 4)


@pytest.mark.slow
def test_of_another_problem_nothing_was_measured_where_the_studys_own_was(asked):
    own = replace(asked, setting=replace(asked.setting, identity="abc"))
    known = [*rows(own, "mars"), *two(asked)]
    assert all(proposal.measured_runs for proposal in predict(own, known, 3).proposals)
    other = for_problem(own, {"cells": 100, "cores": 3})
    assert other.setting.workload != own.setting.workload
    assert (other.setting.workload_facts, other.setting.identity) == ({"cells": 100}, "")
    assert not any(proposal.measured_runs for proposal in predict(other, known, 3).proposals)
    assert for_problem(other, {"cells": 100}) is other
    assert for_problem(own, {"cells": 200}).setting.workload != other.setting.workload


def test_limits_are_not_predicted_and_that_is_said(tmp_path):
    study = STUDY.model_copy(update={"limits": {"peak_memory_bytes": LimitSection(max="2 GiB")}})
    asked = asked_of(MARS, tmp_path, study)
    words = "whether a proposal keeps peak_memory_bytes <= 2 GiB is not known, unless it was measured here"
    assert any(line.startswith(words) for line in predict(asked, two(asked), 3).grounds)


def test_what_was_measured_beyond_a_limit_is_never_proposed(tmp_path):
    study = STUDY.model_copy(update={"limits": {"peak_memory_bytes": LimitSection(max="2 GiB")}})
    asked = asked_of(MARS, tmp_path, study)
    here = [
        replace(row, told={"peak_memory_bytes": 2.0**30 * row.configuration["x"] / 3}) for row in rows(asked, "mars")
    ]
    without = predict(replace(asked, limits=()), here, 3)
    assert without.proposals[0].configuration["x"] == 8
    found = predict(asked, here, 3)
    assert found.proposals[0].configuration["x"] == 6
    assert all(
        one.configuration not in [row.configuration for row in here if row.told["peak_memory_bytes"] > 2.0**31]
        for one in found.proposals
    )
    assert any("never proposed" in line and "beyond peak_memory_bytes <= 2 GiB" in line for line in found.grounds)
    assert any("the default failed or breaks a limit here" in line for line in found.doubts)


def test_the_space_is_that_of_the_other_machine(tmp_path):
    venus = Target("venus", {**FACTS, "cores": 64, "cores_per_node": 64})
    assert asked_of(venus, tmp_path).space.size.value == 3 * (16 + 16 + 16)


def test_a_machine_without_cores_is_refused(tmp_path):
    with pytest.raises(CannotRunHereError, match="description of 'venus' does not say its cores"):
        asked_of(Target("venus", {"sockets": 1}), tmp_path)


SERVED = StudyFile.model_validate(
    {
        "name": "served",
        "objective": "command",
        "options": {
            "argv": ["awk", "BEGIN {{ print {batch} }}"],
            "metrics": [{"name": "rate", "unit": "1/s", "pattern": r"(\S+)", "kind": "rate", "direction": "maximize"}],
        },
        "space": {
            "parameters": {"batch": {"type": "integer", "values": [1, 4, 16, 64, 256], "default": 1}},
            "derived": {"weights": "14e9"},
        },
        "model": {
            "seconds": True,
            "terms": ["2 * weights / gpu_bandwidth_bytes_per_s / batch", "2 * weights / gpu_flops_fp16"],
        },
    }
)


def of_card(asked, card, weights, reached):
    facts = {**find_target(card, 1).facts, "framework": "quick" if reached > 0.5 else "slow"}
    work = {"weights": weights}
    place = replace(asked.setting, machine=card, machine_facts=facts, workload=f"{weights}", workload_facts=work)

    def rate(batch):
        return reached / (2 * weights * (1 / batch / facts["gpu_bandwidth_bytes_per_s"] + 1 / facts["gpu_flops_fp16"]))

    return [Measured(place, {"batch": batch}, rate(batch)) for batch in (1, 4, 16, 64, 256)]


def test_a_model_on_a_card_that_nobody_measured(tmp_path):
    asked = asked_of(find_target("nvidia-h100", 1, ["framework=quick"]), tmp_path, SERVED)
    assert any("its host is taken to be like this machine" in remark for remark in asked.remarks)
    known = [
        row
        for card in ("nvidia-a100", "amd-mi250", "intel-gaudi2")
        for weights in (7e9, 70e9)
        for reached in (0.6, 0.1)
        for row in of_card(asked, card, weights, reached)
    ]
    (first, *_) = predict(asked, known, 3).proposals
    true = of_card(asked, "nvidia-h100", 14e9, 0.6)[-1]
    assert first.configuration == true.configuration
    assert first.value.low < true.value < first.value.high
    assert first.value.value == pytest.approx(true.value, rel=0.35)


def test_terms_whose_facts_are_not_known_predict_nothing(tmp_path):
    asked = asked_of(MARS, tmp_path, SERVED)
    assert predict(asked, [], 3).proposals == ()


def test_what_the_objective_refuses_is_told(tmp_path):
    wrong = STUDY.model_copy(update={"options": {"arg": []}})
    with pytest.raises(CannotRunHereError, match=r"options\.arg"):
        asked_of(MARS, tmp_path, wrong)


@pytest.mark.parametrize("here", [True, False])
def test_only_here_does_the_installation_count(tmp_path, monkeypatch, here):
    plan_of, seen = registry.plan, {}

    def planned(*words, machine, **others):
        seen.update(machine)
        plan = plan_of(*words, machine=machine, **others)
        return replace(plan, facts={"n": 9, "blas": "openblas"}, installation=("blas",))

    monkeypatch.setattr(registry, "plan", planned)
    setting = asked_of(Target("mars", FACTS, here=here), tmp_path).setting
    assert seen["described"] is not here
    assert "vendor" not in seen
    assert setting.workload_facts == {"n": 9}
    assert setting.machine == ("mars, openblas" if here else "mars")
    assert ("blas" in setting.machine_facts) is here


@pytest.mark.parametrize("described", [True, False])
def test_of_a_described_problem_the_version_of_the_program_is_not_known(tmp_path, monkeypatch, described):
    plan_of = registry.plan
    monkeypatch.setattr(registry, "plan", lambda *a, **b: replace(plan_of(*a, **b), is_described=described))
    assert bool(asked_of(Target("mars", FACTS, here=True), tmp_path).setting.identity) is not described


def test_this_machine_and_others_by_name():
    here, gadi = find_target("this", 1), find_target("gadi", 2)
    assert here.here
    assert here.facts["cores"] == this_machine().cores
    assert (gadi.machine, gadi.facts["cores"], gadi.facts["nodes"], gadi.here) == ("gadi", 96, 2, False)
    with pytest.raises(MachineError, match="did you mean 'gadi'"):
        find_target("gady", 1)


def test_rules_of_the_user_narrow_the_space(asked):
    known = two(asked)
    narrower = restrict(asked, ["x >= 12", "y < 4", "x >= 12"])
    assert narrower.space.size.value == 3 * 5
    assert all(one["x"] >= 12 and one["y"] == 1 for one in narrower.space.configurations())
    assert narrower.plan.notes == ()
    assert all(one.configuration["x"] >= 12 for one in predict(narrower, known, 5).proposals)
    assert restrict(asked, []) is asked


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("q <= 3", "unknown name 'q'"),
        ("x <=", "cannot read this"),
        ("x", "must be true or false"),
        ("x > 99", "no configuration is valid"),
    ],
)
def test_wrong_rules_are_told(asked, rule, said):
    with pytest.raises(StudyFileError, match=said) as told:
        restrict(asked, [rule])
    assert str(told.value).startswith("--where: ")
    assert rule in str(told.value)


def test_a_default_that_breaks_a_rule_gives_way_to_the_nearest(asked):
    narrower = restrict(asked, ["x <= 12"])
    (note,) = narrower.plan.notes
    assert "x=16 y=1 z=2, breaks --where" in note
    assert "x=12 y=1 z=2" in note
    found = predict(narrower, two(asked), 5)
    assert found.default == narrower.space.default() == {"x": 12, "y": 1, "z": 2}
    assert all(one.configuration["x"] <= 12 for one in found.proposals)


def test_a_default_value_that_a_rule_forbids_may_become_none(tmp_path):
    optional = {"type": "integer", "low": 1, "high": 16, "default": 16, "optional": True}
    space = STUDY.space.model_copy(update={"parameters": {**STUDY.space.parameters, "x": optional}})
    open_ended = asked_of(MARS, tmp_path, STUDY.model_copy(update={"space": space}))
    narrower = restrict(open_ended, ["not is_set(x)"])
    assert narrower.space.default() == {"y": 1, "z": 2}


@pytest.mark.parametrize("known", [[], ["others"]])
def test_of_a_program_that_was_never_measured_nothing_is_said(asked, known):
    others = (
        [replace(row, setting=replace(row.setting, program="others", marks=())) for row in rows(asked, "a")]
        if known
        else []
    )
    with pytest.raises(CannotRunHereError, match=r"no measurements of 'solver'.*autotune storage import") as told:
        predict(asked, others, 5)
    assert told.value.exit_code == ExitCode.CANNOT_RUN_HERE
    assert f"(programs with measurements: {'others' if known else 'nothing'})" in str(told.value)


def test_what_others_measured_of_other_programs_changes_nothing(asked):
    others = [
        replace(row, setting=replace(row.setting, program="others", marks=()), value=1e-9)
        for row in rows(asked, "mars", 1.0)
    ]
    assert predict(asked, two(asked) + others, 3) == predict(asked, two(asked), 3)


@pytest.mark.slow
@pytest.mark.parametrize("known", [two, many])
def test_proposals_are_valid_distinct_and_leave_alone_what_nobody_varied(asked, known):
    found = predict(asked, known(asked), 5)
    told = [one.configuration for one in found.proposals]
    assert len(told) == 5
    assert len({tuple(one.items()) for one in told}) == 5
    assert all(asked.space.contains(one) for one in told)
    assert {one["z"] for one in told} == {2}
    assert found.default == {"x": 16, "y": 1, "z": 2}


@pytest.mark.slow
def test_the_first_proposal_is_good(asked):
    best = law(8, 1)
    first = predict(asked, many(asked), 1).proposals[0]
    assert law(first.configuration["x"], first.configuration["y"]) <= 1.15 * best
    assert first.speed_up is not None
    assert first.speed_up.low <= law(16, 1) / best <= 1.05 * first.speed_up.high


@pytest.mark.slow
@pytest.mark.parametrize(("share", "names"), [(0.01, ["the first", "the default"]), (1000.0, []), (None, [])])
def test_a_run_that_its_input_stops_before_its_end_is_a_doubt(asked, share, names):
    default = predict(asked, many(asked), 1).default_value.value
    limited = replace(asked, plan=replace(asked.plan, stops_after_s=share and share * default))
    doubts = [doubt for doubt in predict(limited, many(asked), 1).doubts if "max_seconds" in doubt]
    assert [doubt.partition(" should take")[0] for doubt in doubts] == names


def test_each_reason_is_an_option_of_the_first_with_what_it_is_worth(asked):
    found = predict(asked, two(asked), 1)
    first, reasons = found.proposals[0].configuration, dict(found.reasons)
    assert reasons.keys() <= {name for name, value in first.items() if value != found.default[name]}
    assert reasons["x"] == pytest.approx(law(found.default["x"], first["y"]) / law(first["x"], first["y"]), rel=0.2)


def test_asking_for_more_than_there_is(asked):
    narrower = restrict(asked, ["x >= 15", "z == 2"])
    assert len(predict(narrower, many(asked), 50).proposals) == 2


def test_judged_by_another_metric_of_the_same_unit(asked):
    cpu, joules = Metric("cpu_s", "s", kind="time"), Metric("energy", "J")
    known = [*rows(asked, "earth", metric=cpu), *rows(asked, "moon", 2.0, metric=cpu)]
    found = predict(asked, known + rows(asked, "earth", metric=joules), 3)
    assert found.setting.metric == cpu
    assert found.doubts[0] == "little was measured by took_s: judged by cpu_s"
    assert found.proposals
    assert not found.promising
    none = predict(asked, rows(asked, "earth", metric=joules), 3)
    assert (none.proposals, none.default_value, none.promising) == ((), None, False)
    assert none.doubts == ("too little was measured of it by this metric to say anything",)


def test_values_of_another_metric_in_the_setting_itself_count_times_the_usual_ratio(asked):
    cpu = Metric("cpu_s", "s", kind="time")
    elsewhere = [*rows(asked, "earth"), *rows(asked, "earth", 2.0, metric=cpu), *rows(asked, "moon", 0.8)]
    known = [*elsewhere, *rows(asked, "mars", 10.0, metric=cpu)[::3]]
    found = predict(asked, known, 3)
    assert "10 values of cpu_s here count, times 0.5, as took_s" in found.grounds
    assert found.default_value.value == pytest.approx(5.0 * law(16, 1), rel=0.1)
    assert all(one.measured_runs == 0 for one in found.proposals)


def test_doubts_are_in_words(tmp_path):
    far = asked_of(Target("far", {**FACTS, "cores": 640, "cores_per_node": 640}), tmp_path)
    doubts = predict(far, two(far), 3).doubts
    assert "nothing was measured on far; nearest machine: earth" in doubts
    assert "no measurement with more than 16 cores per node: 640 asked" in doubts


def test_a_machine_like_none_gets_no_times(tmp_path):
    alien = Target("alien", {name: 1000 * value for name, value in FACTS.items() if name != "vendor"} | {"vendor": "b"})
    asked = asked_of(alien, tmp_path)
    found = predict(asked, two(asked), 3)
    assert found.default_value is None
    assert all(one.value is None for one in found.proposals)
    assert found.doubts


@pytest.mark.slow
@pytest.mark.parametrize("known", [two, many, lambda asked: two(asked)[:3]])
def test_as_json(asked, known):
    found = predict(asked, known(asked), 3)
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [one["configuration"] for one in again["proposals"]] == [one.configuration for one in found.proposals]
    assert again["doubts"] == list(found.doubts)
    assert again["default"]["configuration"] == found.default
    assert again["setting"]["metric"]["name"] == "took_s"
    assert again["promising"] is found.promising


def test_the_json_form_of_what_is_unknown(asked):
    found = Prediction(asked.setting, {"x": 1}, None, (Proposal({"x": 2}, Interval(2.0, 1.0, 4.0)),))
    (told,) = found.to_dict()["proposals"]
    assert told["value"] == {"value": 2.0, "low": 1.0, "high": 4.0, "confidence": 0.9}
    assert told["speed_up"] is None
    assert str(found.proposals[0].value) == "2 (1 to 4, 90%)"


def failing(asked, configurations, machine="mars", **changed):
    place = replace(asked.setting, machine=machine, **changed)
    return [Measured(place, one, failure="invalid result: too fast") for one in configurations]


@pytest.mark.slow
def test_what_was_measured_as_wrong_is_not_proposed(asked):
    first = predict(asked, [*two(asked), *rows(asked, "mars")], 3)
    wrong = [first.proposals[0].configuration, first.proposals[1].configuration]
    known = [*two(asked), *(row for row in rows(asked, "mars") if row.configuration not in wrong)]
    found = predict(asked, known + failing(asked, wrong), 5)
    assert found.proposals
    assert not [one for one in found.proposals if one.configuration in wrong]
    ground = "never proposed: 2 configurations that failed or gave wrong results here (2 invalid results)"
    assert ground in found.grounds


def test_what_is_equal_in_effect_to_a_failure_is_not_proposed(asked):
    best = predict(asked, two(asked), 1).proposals[0].configuration
    (wrong,) = failing(asked, [{**best, "z": 3}])
    left_out = predict(asked, [*two(asked), replace(wrong, idle=("z",))], 5)
    assert best not in [one.configuration for one in left_out.proposals]


@pytest.mark.slow
def test_a_failure_of_another_machine_or_program_is_a_doubt(asked):
    asked = replace(asked, setting=replace(asked.setting, identity="this version"))
    usual = predict(asked, rows(asked, "earth"), 1).proposals[0].configuration
    everything = [row.configuration for row in rows(asked, "earth")]
    for elsewhere in (
        failing(asked, everything, "venus"),
        failing(asked, everything, identity="another version"),
    ):
        found = predict(asked, rows(asked, "earth") + elsewhere, 1)
        assert found.proposals[0].configuration == usual
        assert any("proposal 1: configurations near it failed" in doubt for doubt in found.doubts)
        assert not found.promising
        assert not [line for line in found.grounds if "never proposed" in line]
        near = [doubt for doubt in predict(asked, rows(asked, "earth") + elsewhere, 5).doubts if "near" in doubt]
        assert any(doubt.startswith("proposals 1") for doubt in near)
        # One sentence for each chance.
        assert len({doubt.rpartition(" ")[2] for doubt in near}) == len(near) < 5


@pytest.mark.slow
def test_the_neighbours_of_failures_come_later_by_efficiency(asked):
    usual = predict(asked, many(asked), 1).proposals[0].configuration
    near = [one for one in asked.space.configurations() if one["z"] == 2 and abs(one["x"] - usual["x"]) in {1, 2}]
    found = predict(asked, many(asked) + failing(asked, near), 1).proposals[0].configuration
    assert found not in [usual, *near]


@pytest.mark.slow
def test_the_neighbours_of_failures_come_later_by_time(asked):
    known = [Measured(replace(asked.setting, machine="mars"), {"x": x, "y": 1, "z": 2}, 9.0 / x) for x in range(1, 13)]
    assert predict(asked, known, 1).proposals[0].configuration["x"] == 16
    wrong = failing(asked, [{"x": x, "y": 1, "z": 2} for x in (14, 16)])
    assert predict(asked, known + wrong, 1).proposals[0].configuration["x"] in {11, 12}


def test_a_default_that_failed_is_not_proposed(asked):
    known = [*two(asked), *failing(asked, [{"x": 16, "y": 1, "z": 2}])]
    found = predict(restrict(asked, ["x >= 16"]), known, 5)
    assert found.proposals == ()
    assert found.doubts


def test_values_over_orders_of_magnitude_are_no_prediction(asked):
    vague, sure = Interval(3.863, 0.00333, 4470.0), Interval(2.0, 1.5, 2.5)
    none = without_vague_values(
        Prediction(asked.setting, {"x": 1}, vague, (Proposal({"x": 2}, vague, Interval(1.0, 0.8, 1.3)),))
    )
    assert (none.proposals, none.default_value) == ((), None)
    assert none.doubts[0].startswith("took_s is not known here: anything from 0.00333 s to 4470 s is possible")
    assert "this is no prediction" in none.doubts[0]
    kept = without_vague_values(
        Prediction(asked.setting, {"x": 1}, vague, (Proposal({"x": 2}, vague, sure),), promising=True)
    )
    assert kept.proposals == (Proposal({"x": 2}, None, sure),)
    assert kept.promising
    clear = Prediction(asked.setting, {"x": 1}, sure, (Proposal({"x": 2}, sure, None),))
    assert without_vague_values(clear) is clear


def test_of_values_known_only_within_a_factor_above_the_widest_the_order_is_left(asked):
    wide, sure, gain = Interval(4.0, 1.5, 9.0), Interval(2.0, 1.5, 2.5), Interval(1.1, 0.8, 1.5)
    measured = Proposal({"x": 4}, wide, None, measured_runs=2)
    given = Prediction(
        asked.setting, {"x": 1}, wide, (Proposal({"x": 3}, sure, gain), Proposal({"x": 2}, wide, gain), measured)
    )
    assert without_vague_values(given) is given
    found = without_vague_values(replace(given, widest=3.0))
    assert found.default_value is None
    assert found.proposals == (Proposal({"x": 3}, sure, gain), Proposal({"x": 2}, None, gain), measured)
    (doubt,) = found.doubts
    assert doubt.startswith("took_s is not known here: anything from 1.5 s to 9 s is possible; ")
    assert doubt.endswith("only the order is predicted")


@pytest.mark.slow
def test_the_same_data_give_the_same_prediction(asked):
    assert predict(asked, many(asked), 5) == predict(asked, many(asked), 5)


def test_a_program_that_was_never_measured_is_answered_by_its_shape(asked):
    shaped = replace(asked, plan=replace(asked.plan, shape=strong_scaling("x", None)))
    assert predict(shaped, [], top=3).doubts
    with pytest.raises(CannotRunHereError, match="no measurements of"):
        predict(asked, [], top=3)


def test_a_parameter_without_a_predicted_effect_keeps_values_that_were_measured(asked):
    shaped = replace(asked, plan=replace(asked.plan, shape=strong_scaling("x", None)))
    # z = 3 is a third faster, which the shape cannot tell.
    here = [Measured(asked.setting, {"x": x, "y": 1, "z": z}, 30.0 / x / z) for x, z in ((1, 2), (1, 3), (2, 2))]
    found = predict(shaped, here, 40)
    rests = {(one.configuration["y"], one.configuration["z"]) for one in found.proposals}
    assert rests == {(1, 2), (1, 3)}
    assert found.proposals[0].configuration["z"] == 3
    assert any(line.startswith("not predicted: the effect of y and z;") for line in found.grounds)
    alike = {one.configuration["z"]: one.value for one in found.proposals if one.configuration["x"] == 2}
    assert alike[3].value == pytest.approx(5.0, rel=0.1)
    assert all(one.value.low < 0.95 * one.value.high for one in found.proposals)


def test_what_was_learnt_is_said_by_what_the_costs_alone_would_say(asked):
    shape = Shape((Term("computing", "1 / x", 100.0, 0.2), Term("messages", "x - 1", 0.01, 2.0)), level=0.2)
    shaped = replace(asked, plan=replace(asked.plan, shape=shape))
    lines = [line for line in predict(shaped, [], 3).grounds if line.startswith("without measurements")]
    assert lines == []
    here = [Measured(asked.setting, {"x": x, "y": 1, "z": 2}, 100.0 / x + 2.0 * (x - 1)) for x in (1, 4, 16)]
    found = predict(shaped, here, 1)
    assert 4 < found.proposals[0].configuration["x"] < 13
    (line,) = [line for line in found.grounds if line.startswith("without measurements")]
    assert "times as fast as the default, " in line
    assert line.endswith(" s")


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(2.0, 1.0, 4.0), "2 (1 to 4, 90%)"),
        (Interval(1.0874, 1.0861, 1.0893, 0.95), "1.087 (1.086 to 1.089, 95%)"),
    ],
)
def test_the_ends_of_a_narrow_interval_have_as_many_digits_as_its_value(interval, text):
    assert str(interval) == text
