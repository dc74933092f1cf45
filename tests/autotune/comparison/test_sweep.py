"""Sweeps over one or two parameters, compared with the base that fixes the others."""

from dataclasses import replace

import pytest
from typer import BadParameter

from autotune.cli.commands.sweep import _parse_fixed, _parse_over, _parse_trial
from autotune.comparison.sweep import Request, Variants, conclusion, sweep
from autotune.errors import StudyFileError
from autotune.pictures.chart import Line
from autotune.pictures.sweep import sweep_bars, sweep_chart
from autotune.storage.study_store import StudyStore
from objectives.base import Answer, FailureKind, Metric
from spaces import Choice, Constraint, Float, Integer, Space
from tests.support.command_line import invoke
from tests.support.contests import manager
from tests.support.fakes import SECONDS, ListDisplay, PaperExecutor, definition, failed, study_file, took

SPACE = Space(
    [
        Integer("np", (1, 2, 3, 4), default=4),
        Integer("work", (12, 24, 30), default=24),
        Choice("blas", ("slow", "fast"), optional=True),
    ],
    [Constraint("shares", "work % np == 0", "equal shares")],
)


def timed(configuration):
    return took(configuration["work"] / configuration["np"] / (2.0 if configuration.get("blas") == "fast" else 1.0))


@pytest.fixture
def store(tmp_path):
    return StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", definition(SPACE))


def swept(store, folder, executor, *, repeats=6, fixed=None, display=None, **over):
    request = Request(over or {"np": None}, fixed or {}, repeats)
    variants = Variants.of(SPACE, request, SPACE.default())
    found = manager(folder, executor, display)
    return sweep(store, found, study_file(), request=request, variants=variants, live=lambda result: "")


def test_each_value_is_compared_with_the_default_in_rounds_and_stored(store, tmp_path):
    display = ListDisplay()
    result = swept(store, tmp_path, PaperExecutor(timed), display=display)
    assert [(point.label, point.value) for point in result.points] == [
        ("np=1", pytest.approx(24.0)),
        ("np=2", pytest.approx(12.0)),
        ("np=3", pytest.approx(8.0)),
        ("np=4", 6.0),
    ]
    assert result.points[1].speed_up == pytest.approx((0.5, 0.5, 0.5))
    assert result.best is None
    assert "no value is better than the default beyond the noise" in conclusion(result)
    # The first value is known when its run ends, not when all have run.
    assert display.lines[0] == "np=4: 6 s"
    again = PaperExecutor(timed)
    assert swept(store, tmp_path, again) == result
    assert again.launched == []
    more = swept(store, tmp_path, again, repeats=7)
    assert (len(again.launched), more.points[0].runs) == (4, 7)
    assert store.trials() == []


def test_other_values_run_beside_the_base_in_rounds_of_their_own(store, tmp_path):
    swept(store, tmp_path, PaperExecutor(timed), repeats=6, np=["2"])
    slower = PaperExecutor(lambda configuration: took(10.0 * timed(configuration).metrics["wall_s"]))
    result = swept(store, tmp_path, slower, repeats=6, np=["2", "3"])
    # The machine is ten times slower now, which must not count against the new values.
    assert [point.speed_up[0] for point in result.points] == pytest.approx([0.5, 0.75])
    again = PaperExecutor(timed)
    assert swept(store, tmp_path, again, repeats=6, np=["3", "2"]).base_value == 60.0
    assert again.launched == []


def test_values_that_break_a_rule_with_the_others_fixed_are_named_with_it(store, tmp_path):
    result = swept(store, tmp_path, PaperExecutor(timed), repeats=1, fixed={"work": "30", "np": "3"}, blas=["fast"])
    assert result.points[0].value == pytest.approx(5.0)
    result = swept(store, tmp_path, PaperExecutor(timed), repeats=1, np=["3", "4"], work=["12", "30"])
    assert [(point.label, point.value is None) for point in result.points] == [
        ("np=3 work=12", False),
        ("np=3 work=30", False),
        ("np=4 work=12", False),
        ("np=4 work=30", True),
    ]
    assert "shares: work % np == 0" in result.points[-1].why
    assert sweep_chart(result, "paper").table.rows[0][:2] == ("3", "12")


def test_the_conclusion_has_the_best_value_with_its_interval(store, tmp_path):
    result = swept(store, tmp_path, PaperExecutor(timed), blas=None)
    assert [point.label for point in result.points] == ["blas=unset", "blas=slow", "blas=fast"]
    assert conclusion(result).startswith("best: blas=fast, 2.000 times as fast as the default (2.000 to 2.000;")
    assert [bar.label for bar in sweep_bars(result)] == ["blas=unset", "blas=slow", "blas=fast"]
    assert "intervals" in conclusion(swept(store, tmp_path, PaperExecutor(timed), repeats=2, blas=None))


MANY = Space([Integer("block", tuple(range(1, 13)), default=1)])


def _block(configuration):
    if configuration["block"] == 3:
        return failed(FailureKind.APPLICATION_ERROR)
    return took(9.0 if configuration["block"] == 7 else 10.0)


@pytest.mark.parametrize(("repeats", "is_sure"), [(6, False), (8, True)])
def test_the_best_of_many_values_may_be_chance_those_that_fail_among_them(tmp_path, repeats, is_sure):
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", definition(MANY))
    variants = Variants.of(MANY, request := Request({"block": None}, {}, repeats), MANY.default())
    found = manager(tmp_path, PaperExecutor(_block))
    result = sweep(store, found, study_file(), request=request, variants=variants, live=lambda result: "")
    assert result.best.label == "block=7"
    assert result.best.is_sure is is_sure
    chance = "\nthis may be chance: with 11 values that do nothing, one looks this good in 24% of sweeps (--repeats 8 "
    assert (chance in conclusion(result)) is not is_sure


def test_two_parameters_have_a_leader_at_each_value_of_the_first(store, tmp_path):
    def crossing(configuration):
        fast = configuration.get("blas") == "fast"
        return took({1: 5.0 if fast else 8.0, 2: 4.0, 4: 3.0 if fast else 2.0}[configuration["np"]])

    over = {"np": ["1", "2", "4"], "blas": ["unset", "fast"]}
    result = swept(store, tmp_path, PaperExecutor(crossing), **over)
    even = "do not differ beyond the noise; blas=unset is 1.000 times as fast as blas=fast (1.000 to 1.000)"
    assert [leader.sentence(result.metric) for leader in result.leaders] == [
        "at np=1: blas=fast is best, 1.600 times as fast as blas=unset (1.600 to 1.600)",
        f"at np=2: blas=unset and blas=fast {even}",
        "at np=4: blas=unset is best, 1.500 times as fast as blas=fast (1.500 to 1.500)",
    ]
    assert [entry["is_clear"] for entry in result.to_dict()["leaders"]] == [True, False, True]
    chart = sweep_chart(result, "paper")
    lines = [(mark.number, mark.y) for mark in chart.panels[0].marks if isinstance(mark, Line)]
    assert lines == [(0, (8.0, 4.0, 2.0)), (1, pytest.approx((5.0, 4.0, 3.0)))]
    assert swept(store, tmp_path, PaperExecutor(timed), repeats=2, **over).leaders == result.leaders
    assert swept(store, tmp_path, PaperExecutor(timed), repeats=1, np=["1", "2"], blas=["fast"]).leaders == ()


P99 = Metric("p99", "ms")
LIMITED = study_file(limits={"p99": {"max": "20 ms"}})


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        ([], "best: work=12, 2.000 times"),
        ([12], "best that keeps the limits: work=15, 1.600 times"),
        ([12, 15], "no value that keeps the limits is better than the default"),
        ([12, 15, 24], "best that keeps the limits: work=30, 0.800 times"),
        ([12, 15, 24], "which breaks p99 <= 20 ms: 30 ms"),
        ([12, 15, 24, 30], "no value keeps the limits"),
    ],
)
def test_a_value_that_breaks_a_limit_is_named_and_is_never_the_best(tmp_path, slow, said):
    space = Space([Integer("work", (12, 15, 24, 30), default=24)], [])
    known = definition(space, metrics=(SECONDS, P99), study=LIMITED.model_dump(mode="json"))
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", known)

    def run(configuration):
        work = configuration["work"]
        return replace(took(float(work)), metrics={"wall_s": float(work), "p99": 30.0 if work in slow else 9.0})

    request = Request({"work": None}, {}, 6)
    variants = Variants.of(space, request, space.default())
    found = manager(tmp_path, PaperExecutor(run))
    result = sweep(store, found, LIMITED, request=request, variants=variants, live=lambda result: "")
    broken = [point for point in result.points if point.broken]
    assert [point.label for point in broken] == [f"work={work}" for work in slow]
    assert all(point.to_dict()["broken"] == ["p99 <= 20 ms: 30 ms"] for point in broken)
    assert said in conclusion(result)
    drawn = sweep_chart(result, "paper").description.partition("break limits: ")[2]
    assert all(point.label in drawn for point in broken)


def test_without_a_measured_default_the_others_must_agree_with_the_answer_of_the_first_run(store, tmp_path):
    references = []

    class Checked(PaperExecutor):
        def submit(self, task):
            references.append(task.reference)
            super().submit(task)

    answer = Answer("energy", 1.0, 0.1, "")
    executor = Checked(lambda configuration: replace(timed(configuration), answer=answer))
    swept(store, tmp_path, executor, repeats=1)
    assert executor.launched[0][1] == SPACE.default()
    assert references == [None, answer, answer, answer]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request({"np": ["5"]}, {}, 1), "np: '5' is not one of its values: 1, 2, 3, 4"),
        (Request({"wrk": None}, {}, 1), r"no parameter 'wrk' \(did you mean 'work'\?\); known: np, work, blas"),
        (Request({"np": None}, {"np": "1"}, 1), "np: swept, so it cannot be fixed"),
        (Request({"blas": None}, {"np": "4", "work": "30"}, 1), "is not valid: shares"),
    ],
)
def test_an_impossible_sweep_is_an_error(request_, message):
    with pytest.raises(StudyFileError, match=message):
        Variants.of(SPACE, request_, SPACE.default())


ENGINES = Space(
    [
        Choice("engine", ("onnx", "torch"), default="onnx"),
        Integer("spinning", (0, 1), default=1, when="engine == 'onnx'"),
        Integer("pause", (10, 20), default=20, when="is_set(spinning) and spinning == 0"),
        Choice("compiler", ("inductor",), default="inductor", when="engine == 'torch'"),
        Choice("layout", ("last",), optional=True, when="engine == 'torch'"),
    ]
)


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        (
            {"engine": "onnx", "spinning": 0, "pause": 10},
            {"engine": None},
            [{"engine": "onnx", "spinning": 0, "pause": 10}, {"engine": "torch", "compiler": "inductor"}],
        ),
        (
            {"engine": "torch", "compiler": "inductor", "layout": "last"},
            {"engine": None},
            [{"engine": "onnx", "spinning": 1}, {"engine": "torch", "compiler": "inductor", "layout": "last"}],
        ),
        (
            {"engine": "onnx", "spinning": 1},
            {"spinning": None},
            [{"engine": "onnx", "spinning": 0, "pause": 20}, {"engine": "onnx", "spinning": 1}],
        ),
        (
            {"engine": "onnx", "spinning": 1},
            {"engine": None, "spinning": ["unset", "1"]},
            [None, {"engine": "onnx", "spinning": 1}, {"engine": "torch", "compiler": "inductor"}, None],
        ),
    ],
)
def test_parameters_come_and_go_with_the_values_that_they_exist_for(base, over, expected):
    points = Variants.of(ENGINES, Request(over, {}, 1), base).points
    assert [configuration for _, configuration in points] == expected


def test_an_impossible_fixed_value_is_an_error():
    with pytest.raises(StudyFileError, match="spinning: has the value 1, but exists only when"):
        Variants.of(ENGINES, Request({"compiler": None}, {"engine": "torch", "spinning": "1"}, 1), ENGINES.default())


@pytest.mark.parametrize("text", ["0.282843", "0.282842712475"])
def test_a_number_is_known_as_it_is_shown_and_with_all_its_digits(text):
    space = Space([Float("pause", low=0.05, high=1.6, points=11, log=True, default=0.4)])
    (point, configuration), *_ = Variants.of(space, Request({"pause": [text]}, {}, 1), space.default()).points
    assert configuration == point.values == {"pause": 0.282842712475}


def test_many_values_are_thinned_out_and_keep_the_ends_and_the_default():
    space = Space([Integer.range("n", 1, 100, default=42)], [])
    points = Variants.of(space, Request({"n": None}, {}, 1), space.default()).points
    values = [point.values["n"] for point, _ in points]
    assert len(values) == 13
    assert {1, 42, 100} <= set(values)


def test_options_of_a_sweep():
    assert _parse_over("np, work", ["1,2"]) == {"np": ["1", "2"], "work": None}
    assert _parse_fixed(["blas=fast"]) == {"blas": "fast"}
    assert _parse_trial("trial 7") == _parse_trial("7") == 7
    for wrong in (lambda: _parse_over("a,b,c", []), lambda: _parse_over("a", ["1", "2"]), lambda: _parse_fixed(["x"])):
        with pytest.raises(BadParameter):
            wrong()
    with pytest.raises(BadParameter, match="neither default, nor best"):
        _parse_trial("bset")


@pytest.mark.parametrize("words", [("--over", "secs"), ("--over", "seconds", "--values", "nine")])
def test_a_mistyped_sweep_leaves_no_study_behind(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    study = 'objective = "command"\n[options]\nargv = ["sleep", "{seconds}"]\n'
    parameter = '[space.parameters.seconds]\ntype = "integer"\nvalues = [1, 2]\ndefault = 1\n'
    (tmp_path / "mine.toml").write_text(study + parameter)
    ended = invoke("sweep", "./mine.toml", *words)
    assert isinstance(ended.exception, StudyFileError), ended.output
    assert not (tmp_path / "autotune.db").exists()
