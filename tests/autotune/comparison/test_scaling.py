"""Strong and weak scaling, from a sweep over the number of processes."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from autotune.cli.commands.sweep import _scaling_table
from autotune.comparison.round_table import RoundTable, Side
from autotune.comparison.scaling import ScalingVariants
from autotune.comparison.sweep import Request, Variants, sweep
from autotune.formatting import configuration_text
from autotune.storage.study_store import StudyStore
from autotune.studyfile import ScalingSection
from objectives.base import REMARK, Metric
from spaces import Choice, Constraint, Integer, Space
from tests.support.contests import manager
from tests.support.fakes import SECONDS, PaperExecutor, definition, study_file, took

SPACE = Space(
    [Integer("np", (1, 2, 3, 4), default=2), Integer("work", (12, 24, 48), default=24)],
    [Constraint("shares", "work % np == 0", "equal shares")],
)
SECTION = ScalingSection(processes="np", work="work")


def amdahl(configuration):
    """Return the time of a program with a serial share of a tenth."""
    return took(configuration["work"] / 12 * (0.1 + 0.9 / configuration["np"]))


def swept(folder, timed, section=SECTION, *, repeats=6, metrics=(SECONDS,), over=("np",)):
    store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", definition(SPACE, metrics=metrics))
    request = Request(dict.fromkeys(over), {}, repeats)
    variants = Variants.of(SPACE, request, SPACE.default(), section)
    working, executor = manager(folder, PaperExecutor(timed)), study_file()
    found = sweep(store, working, executor, request=request, variants=variants, live=lambda result: "")
    return found, working


def by_processes(found, kind):
    return {point.processes: point for point in found.scaling if point.kind == kind}


@pytest.mark.slow
def test_strong_and_weak_scaling_are_against_the_fewest_processes(tmp_path):
    found, _ = swept(tmp_path, amdahl)
    strong, weak = by_processes(found, "strong"), by_processes(found, "weak")
    gain = 1 / (0.1 + 0.9 / 4)
    assert strong[1].speed_up == strong[1].efficiency == (1.0, None, None)
    assert strong[4].speed_up == pytest.approx((gain, gain, gain))
    assert strong[4].efficiency == pytest.approx((gain / 4,) * 3)
    # Three processes would need work=36, which is not a value of the parameter.
    assert {count: point.configuration["work"] for count, point in weak.items()} == {1: 12, 2: 24, 4: 48}
    assert weak[2].speed_up == pytest.approx((1.0 / (2 * 0.55) * 2,) * 3)
    assert {point.runs for point in found.scaling} == {6}


def test_weak_scaling_adds_no_points_to_the_sweep(tmp_path):
    found, _ = swept(tmp_path, amdahl)
    assert [point.label for point in found.points] == ["np=1", "np=2", "np=3", "np=4"]
    assert found.compared == 3


def test_a_sweep_over_another_parameter_has_no_scaling(tmp_path):
    assert swept(tmp_path, amdahl, repeats=1, over=("work",))[0].scaling == ()


def test_without_work_there_is_strong_scaling_only_and_with_few_rounds_no_interval(tmp_path):
    found, _ = swept(tmp_path, amdahl, ScalingSection(processes="np"), repeats=1)
    assert {point.kind for point in found.scaling} == {"strong"}
    assert by_processes(found, "strong")[2].speed_up == (pytest.approx(1.0 / 0.55), None, None)
    table = Console(width=200, file=StringIO())
    table.print(_scaling_table(list(found.scaling), "strong scaling"))
    assert "1.82 " in table.file.getvalue()
    assert "91%" in table.file.getvalue()


def test_a_rate_already_counts_the_larger_work(tmp_path):
    rate = Metric("rate", "1/s", "maximize", kind="rate")

    def timed(configuration):
        return replace(amdahl(configuration), metrics={"rate": 10.0 * configuration["np"] * 0.9})

    found, _ = swept(tmp_path, timed, metrics=(rate,))
    for kind in ("strong", "weak"):
        point = by_processes(found, kind)[4]
        assert (point.speed_up[0], point.efficiency[0]) == pytest.approx((4.0, 1.0))


@pytest.mark.parametrize("work", ["size", "rows"])
def test_work_that_is_no_whole_number_gives_strong_scaling_only_and_a_remark(work):
    space = Space([Integer("np", (1, 2), default=1), Choice("size", ("small", "large"), default="small")])
    swept = [{"np": 1, "size": "small"}, {"np": 2, "size": "small"}]
    scaled = ScalingVariants.of(ScalingSection(processes="np", work=work), space, space.default(), swept)
    assert (list(scaled.strong), scaled.weak) == ([1, 2], {})
    assert scaled.remark == f"no weak scaling: {work} must be a whole number that is always set"


def test_before_any_run_there_is_no_scaling():
    sides = (Side("np=1", {"np": 1}), Side("np=2", {"np": 2}))
    scaled = ScalingVariants({1: {"np": 1}, 2: {"np": 2}}, {})
    assert scaled.points(RoundTable(sides, {}, SECONDS), (SECONDS,), 0.95) == ()


def test_missing_metrics_are_reported_and_the_others_shown(tmp_path):
    balance = Metric("load_balance", "", "maximize")

    def told(configuration):
        ended = amdahl(configuration)
        if configuration["np"] == 1:
            return replace(ended, details={REMARK: "no efficiencies: no rank wrote"})
        return replace(ended, metrics={**ended.metrics, balance.name: 0.5})

    found, working = swept(tmp_path, told, ScalingSection(processes="np"), repeats=2, metrics=(SECONDS, balance))
    assert [dict(point.others) for point in found.scaling] == [{}, *[{"load_balance": 0.5}] * 3]
    assert "np=1: no efficiencies: no rank wrote" in working.display.lines
    table = Console(width=200, file=StringIO())
    table.print(_scaling_table(list(found.scaling), "strong scaling"))
    assert "load balance" in table.file.getvalue()
    assert configuration_text(found.scaling[0].configuration) in table.file.getvalue()
