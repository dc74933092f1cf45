"""The space as a value: defaults, messages, neighbours, encoding, storing."""

import json
import pickle
import re

import numpy as np
import pytest

from spaces import Choice, Constraint, Count, Flag, Float, Integer, Space, SpaceError


def qe_space(ranks=96, kpoints=10):
    """The parallelisation of pw.x, reduced to what is hard about it."""
    return Space(
        [
            Integer("np", (*range(1, 49), *range(96, ranks + 1, 48)), default=48),
            Integer.range("npool", 1, kpoints, default=1),
            Integer("ndiag", tuple(k * k for k in range(1, 20)), optional=True),
            Integer.powers_of_two("threads", 1, 8, default=1),
            Choice("mixing", ("plain", "TF", "local-TF"), default="plain"),
            Flag("gpu", default=False),
            Integer.range("gpus", 1, 4, when="gpu", default=1),
        ],
        [
            Constraint("pools_divide", "np % npool == 0", "pools have equally many ranks"),
            Constraint("diag_fits", "ndiag <= np // npool", "a pool diagonalises by itself"),
            Constraint("cores", "np * threads <= cores", "one core a thread"),
            Constraint("gpus_used", "np % gpus == 0", "ranks share GPUs evenly"),
        ],
        {"cores": ranks},
    )


def test_default_leaves_out_what_is_unset_or_inactive():
    assert qe_space().default() == {"np": 48, "npool": 1, "threads": 1, "mixing": "plain", "gpu": False}


def test_a_default_that_breaks_rules_names_them():
    space = Space([Integer.range("np", 1, 4, default=3)], [Constraint("even", "np % 2 == 0", "two sockets")])
    with pytest.raises(SpaceError) as caught:
        space.default()
    assert (
        str(caught.value) == "the default configuration is not valid: even: np % 2 == 0 (two sockets): not so with np=3"
    )


def test_a_parameter_without_a_default_is_named_with_its_path_and_a_hint():
    with pytest.raises(SpaceError) as caught:
        Space([Integer("py", (1, 2))]).default()
    (problem,) = caught.value.problems
    assert problem.path == "space.parameters.py"
    assert problem.message.endswith("py: has no value; values: 1, 2; give it a default, or optional = true")


@pytest.mark.parametrize(
    ("grid", "default", "values"),
    [
        ({"low": 0.5, "high": 2.0, "points": 4}, 1.2, (0.5, 1.0, 1.2, 1.5, 2.0)),
        ({"low": 0.01, "high": 1.0, "points": 3, "log": True}, 0.3, (0.01, 0.1, 0.3, 1.0)),
        ({"low": -1, "high": 1, "points": 3}, 0.5, (-1.0, 0.0, 0.5, 1.0)),
        ({"low": 0.0, "high": 1.0, "points": 11}, 0.1 + 0.2, tuple(k / 10 for k in range(11))),
    ],
    ids=["even", "logarithmic", "across zero", "on the grid but for rounding"],
)
def test_a_default_between_two_grid_values_joins_the_grid(grid, default, values):
    parameter = Float("x", **grid, default=default)
    assert parameter.values == values
    space = Space([parameter])
    assert space.default() == {"x": pytest.approx(default)}
    assert Space.from_dict(space.to_dict()).parameters == space.parameters
    columns = space.encode([{"x": value} for value in values])[:, 0]
    assert (columns[0], columns[-1]) == (0.0, 1.0)
    assert list(columns) == sorted(columns)


def test_a_default_that_joins_an_even_grid_leaves_its_scale_linear():
    space = Space([Float("x", 0.5, 2.0, points=4, default=1.2)])
    assert space.encode([{"x": 1.2}])[0, 0] == pytest.approx(0.7 / 1.5)


@pytest.mark.parametrize(("default", "said"), [(2.0, "write high = 2.0"), (0, "write low = 0")])
def test_a_default_outside_of_a_float_is_told_which_bound_to_move(default, said):
    with pytest.raises(SpaceError, match=re.escape(f"it lies outside: {said}, or another default")):
        Float("x", 0.1, 1.0, points=4, default=default)


def test_every_violation_has_its_sentence():
    wrong = {"np": 49, "npool": 3, "ndiag": 25, "thread": 1, "mixing": "TFF", "gpu": False, "gpus": 2}
    assert qe_space().violations(wrong) == [
        "unknown parameter 'thread' (did you mean 'threads'?)",
        "np: 49 is not one of its values: 1, 2, 3, 4, 5, 6, 7, 8, ..., 48, 96",
        "threads: has no value; values: 1, 2, 4, 8",
        "mixing: 'TFF' is not one of its values: 'plain', 'TF', 'local-TF'",
        "gpus: has the value 2, but exists only when gpu",
    ]
    crowded = {"np": 48, "npool": 5, "ndiag": 25, "threads": 4, "mixing": "TF", "gpu": True, "gpus": 4}
    assert qe_space().violations(crowded) == [
        "pools_divide: np % npool == 0 (pools have equally many ranks): not so with np=48, npool=5",
        "diag_fits: ndiag <= np // npool (a pool diagonalises by itself): not so with np=48, npool=5, ndiag=25",
        "cores: np * threads <= cores (one core a thread): not so with np=48, threads=4, cores=96",
    ]
    del crowded["gpus"]
    assert "gpus: has no value, but exists here since gpu" in qe_space().violations(crowded)


def test_true_is_not_one():
    space = Space([Integer.range("np", 0, 1), Flag("gpu")])
    assert not space.contains({"np": True, "gpu": True})
    assert not space.contains({"np": 1, "gpu": 1})
    assert space.contains({"np": np.int64(1), "gpu": np.bool_(True)})


def test_a_constraint_over_an_unset_parameter_does_not_apply():
    space = Space([Integer.range("np", 1, 4), Integer.range("n", 5, 6, optional=True)], [Constraint("c", "n <= np")])
    assert list(space.configurations()) == [{"np": k} for k in range(1, 5)]
    assert space.raw_size == 12


@pytest.mark.parametrize(
    ("rule", "without_suffix"),
    [
        ("suffix == 'omp'", True),
        ("threads == 1 or suffix == 'omp'", True),
        ("threads == 1 or (is_set(suffix) and suffix == 'omp')", False),
        ("(is_set(suffix) and suffix == 'omp') or threads == 1", False),
        ("not (is_set(suffix) and suffix == 'omp')", True),
        ("threads == 1 if is_set(suffix) else threads == 2", True),
        ("threads == (2 if suffix == 'omp' else 2)", True),
        ("threads == (1 if suffix == 'omp' else 1)", False),
        ("threads <= 1 <= len", False),
    ],
)
def test_a_rule_forbids_where_it_is_false_and_not_where_it_is_unknown(rule, without_suffix):
    threads, suffix = Integer("threads", (1, 2)), Choice("suffix", ("gpu", "omp"), optional=True)
    space = Space([threads, suffix, Integer("len", (1,), optional=True)], [Constraint("needs", rule)])
    assert space.contains({"threads": 2}) == without_suffix
    assert ({"threads": 2} in list(space.configurations())) == without_suffix
    assert (not any("needs" in sentence for sentence in space.violations({"threads": 2}))) == without_suffix


def test_a_parameter_exists_where_its_condition_is_true_in_spite_of_what_is_unknown():
    mode = Choice("mode", ("thread", "poll"), optional=True)
    late = Flag("late", when="not is_set(mode) or mode == 'thread'")
    found = list(Space([mode, late]).configurations())
    assert found == [
        {"late": False},
        {"late": True},
        {"mode": "thread", "late": False},
        {"mode": "thread", "late": True},
        {"mode": "poll"},
    ]


def test_neighbours_step_repair_and_toggle():
    space = qe_space()
    neighbours = space.neighbours(space.default())
    changed = [{k for k in c.keys() | space.default().keys() if c.get(k) != space.default().get(k)} for c in neighbours]
    assert {"np": 96, "npool": 1, "threads": 1, "mixing": "plain", "gpu": False} in neighbours
    assert {"gpu", "gpus"} in changed
    assert sum(c == {"mixing"} for c in changed) == 2
    assert sum(c == {"ndiag"} for c in changed) == 6
    assert sum(c == {"npool"} for c in changed) == 1
    with pytest.raises(SpaceError, match="pools_divide"):
        space.neighbours({**space.default(), "npool": 5})


@pytest.mark.parametrize("space", [qe_space(48, 6), qe_space(60, 4)])
def test_all_of_the_qe_space_can_be_reached_from_the_default(space):
    start = space.indices([space.default()])[0]
    seen, edge = {start.tobytes()}, [start]
    while edge and len(seen) < 400:
        reached = space.indices(space.neighbours(space.decode(edge.pop()[None])[0]))
        edge += [row for row in reached if row.tobytes() not in seen]
        seen |= {row.tobytes() for row in reached}
    assert len(seen) >= min(400, space.size.value)


def test_nearest_reads_what_it_can_of_an_invalid_configuration():
    space = qe_space()
    assert space.nearest({"np": 47.2, "npool": 1, "mixing": "TF"}) == {**space.default(), "np": 47, "mixing": "TF"}
    assert space.nearest({}) == space.default()
    assert space.contains(space.nearest({"np": 10**9, "npool": "many", "mixing": 3, "gpus": 2, "other": 1}))


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf"), None, [1], {}, "48", 1j, b"x"])
def test_strange_values_are_refused_not_stumbled_over(value):
    space = qe_space()
    given = {**space.default(), "np": value, "mixing": value}
    assert not space.contains(given)
    assert space.contains(space.nearest(given))
    with pytest.raises(SpaceError, match="is not one of its values"):
        space.indices([given])


def test_braces_in_a_condition_do_no_harm():
    space = Space([Integer.range("a", 1, 3), Flag("f", when="a in {1, 2}")])
    assert space.violations({"a": 3, "f": True}) == ["f: has the value True, but exists only when a in {1, 2}"]


def test_encoding():
    space = Space(
        [
            Integer.range("a", 1, 5),
            Integer.powers_of_two("b", 1, 16),
            Float("c", 1e-4, 1.0, log=True, points=5),
            Choice("d", ("x", "y"), optional=True),
            Flag("e"),
            Integer("f", (0, 1, 10), when="e"),
        ]
    )
    assert space.feature_names == ("a", "b", "c", "d=x", "d=y", "d is unset", "e", "f", "f is unset")
    rows = space.encode(
        [
            {"a": 2, "b": 4, "c": 0.01, "d": "y", "e": True, "f": 1},
            {"a": 5, "b": 16, "c": 1.0, "e": False},
        ]
    )
    np.testing.assert_allclose(rows, [[0.25, 0.5, 0.5, 0, 1, 0, 1, 0.5, 0], [1, 1, 1, 0, 0, 1, 0, 0.5, 1]])


def test_round_trips_through_json_and_pickle():
    space = qe_space()
    _ = space.size
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    again = pickle.loads(pickle.dumps(space))
    assert again == space
    assert hash(again) == hash(space)
    assert again.size == Count(space.size.value)
    with pytest.raises(SpaceError, match="not a stored space"):
        Space.from_dict({"parameters": [{"type": "integer", "nam": "x"}]})


def test_nothing_may_change_a_space():
    space = qe_space()
    with pytest.raises(TypeError):
        space.facts["cores"] = 1
    with pytest.raises(AttributeError):
        space.parameters = ()


def test_a_space_without_parameters_has_one_configuration():
    space = Space([])
    assert space.size == Count(1)
    assert list(space.configurations()) == [{}]
    assert space.sample(np.random.default_rng(0), 3) == [{}]
    assert space.encode([{}]).shape == (1, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Integer("np", ()), "np: has no values"),
        (lambda: Integer("np", (2, 1)), "np: values must increase"),
        (lambda: Integer("np", (1, 2.5)), "np: values must be whole numbers, not 2.5"),
        (lambda: Integer("np", (1, 2), default=3), "np: default 3 is not one of its values: 1, 2"),
        (lambda: Integer.range("np", 4, 1), "np: needs low <= high"),
        (lambda: Integer.range("np", 1, 10**9), "raise step"),
        (lambda: Integer.powers_of_two("np", 5, 7), "there is no power of two"),
        (lambda: Integer("not a name", (1,)), "'not a name' is not a name"),
        (lambda: Integer("if", (1,)), "'if' is not a name"),
        (lambda: Float("x", 1, 0), "x: low must be below high"),
        (lambda: Float("x", 0, 1, log=True), "logarithmic grid needs low > 0"),
        (lambda: Float("x", 0, 1, points=1), "points must be"),
        (lambda: Float("x", 0, 1, points=3, default=1.3), "default 1.3 is not one of its values: 3 even steps"),
        (lambda: Float.of_values("x", (0.1, 0.2), default=0.3), "default 0.3 is not one of its values: 0.1, 0.2"),
        (lambda: Float.of_values("x", (0.2, 0.1)), "x: values must increase"),
        (lambda: Float.of_values("x", ()), "x: has no values"),
        (lambda: Float.of_values("x", (0.1, float("nan"))), "x: values must be finite numbers"),
        (lambda: Choice("m", ("a", "a")), "m: values must not repeat"),
        (lambda: Flag("f", default="yes"), "default 'yes' is not one"),
        (lambda: Space([Flag("f"), Flag("f")]), "parameter 'f' is declared twice"),
        (lambda: Space([Flag("min")]), "'min' is the name of a function"),
        (lambda: Space([Flag("f")], facts={"f": 1}), "both a parameter and a fact"),
        (lambda: Space([Flag("f")], facts={"g": float("nan")}), "fact 'g' must be finite"),
        (lambda: Space([Flag("f")], [Constraint("c", "f"), Constraint("c", "f")]), "constraint 'c' is declared twice"),
    ],
)
def test_refuses_what_makes_no_sense(make, message):
    with pytest.raises(SpaceError, match=message):
        make()


def test_a_float_lies_on_a_grid_that_reads_well():
    assert Float("x", 0.1, 0.7, points=7).values == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    assert Float("x", 1e-3, 10, log=True, points=5).values == (0.001, 0.01, 0.1, 1.0, 10.0)
    assert Space([Float("x", 0.1, 0.7, points=7)]).indices([{"x": 0.1 + 0.2}]).tolist() == [[2]]


@pytest.mark.parametrize(("low", "high", "points"), [(-0.1, 0.3, 5), (-0.3, 0.1, 5)])
def test_a_grid_across_zero_has_zero_among_its_values(low, high, points):
    parameter = Float("x", low, high, points=points, default=0.0)
    assert 0.0 in parameter.values
    assert len(parameter.values) == points
    # As it was stored before zero was zero.
    assert Space([parameter]).indices([{"x": 1.38777878078e-17}]).tolist() == [[parameter.values.index(0.0)]]
