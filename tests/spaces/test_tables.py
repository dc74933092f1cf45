"""The TOML form: what it gives, and all its mistakes at once."""

import tomllib

import pytest

from spaces import Choice, Constraint, Flag, Float, Integer, Space, SpaceError
from spaces.tables import constraints_from_tables, parameters_from_tables, space_from_tables

GOOD = """
[parameters.np]
type = "integer"
low = 1
high = "cores"
step = 1
default = "=cores // 2"
help = "ranks"

[parameters.threads]
type = "integer"
low = 1
high = "min(cores, 8)"
powers_of_two = true

[parameters.bands]
type = "integer"
values = [1, 2, 4]
optional = true

[parameters.mixing]
type = "choice"
values = ["plain", "TF"]
default = "plain"

[parameters.gpu]
type = "flag"
when = "np > 1"

[parameters.beta]
type = "float"
low = 0.1
high = 1
log = true
points = 5

[[constraints]]
name = "fits"
rule = "np * threads <= cores"
reason = "one core a thread"
"""


def test_reads_every_kind():
    tables = tomllib.loads(GOOD)
    assert parameters_from_tables(tables["parameters"], {"cores": 12}) == (
        Integer.range("np", 1, 12, default=6, help="ranks"),
        Integer.powers_of_two("threads", 1, 8),
        Integer("bands", (1, 2, 4), optional=True),
        Choice("mixing", ("plain", "TF"), default="plain"),
        Flag("gpu", when="np > 1"),
        Float("beta", 0.1, 1.0, log=True, points=5),
    )
    assert constraints_from_tables(tables["constraints"]) == (
        Constraint("fits", "np * threads <= cores", "one core a thread"),
    )
    assert space_from_tables(**tables, facts={"cores": 12}).size.exact


BAD = """
[parameters.np]
type = "integer"
low = 1
hihg = 4

[parameters.threads]
type = "intger"

[parameters.bands]
low = 1

[parameters.ranks]
type = "integer"
low = "core // 2"
high = 2.5
step = "one"

[parameters.mixing]
type = "choice"
values = "plain"
optional = 1

[parameters.beta]
type = "float"
low = 2
high = 1

[parameters.gpus]
type = "integer"
values = [1, 2]
low = 1
default = "=cores"

[[constraints]]
nam = "fits"
rule = ""
"""


def test_all_errors_at_once_with_their_places():
    with pytest.raises(SpaceError) as caught:
        space_from_tables(**tomllib.loads(BAD), facts={"cores": 12})
    assert [str(problem).splitlines()[0] for problem in caught.value.problems] == [
        "unknown key 'hihg' in [space.parameters.np]: did you mean 'high'?",
        "required field missing @ space.parameters.np.high",
        (
            "type must be one of integer, float, choice, flag, not 'intger' (did you mean 'integer'?)"
            " @ space.parameters.threads.type"
        ),
        "required field missing @ space.parameters.bands.type",
        "unknown name 'core' (did you mean 'cores'?) @ space.parameters.ranks.low",
        "must be a whole number, not 2.5 @ space.parameters.ranks.high",
        "unknown name 'one' @ space.parameters.ranks.step",
        "must be true or false, not 1 @ space.parameters.mixing.optional",
        "must be a list, not 'plain' @ space.parameters.mixing.values",
        "beta: low must be below high, not low=2.0, high=1.0 @ space.parameters.beta",
        "give either values or low, not both @ space.parameters.gpus.values",
        "unknown key 'nam' in space.constraints[0]: did you mean 'name'?",
        "required field missing @ space.constraints[0].name",
        "must be a string with something in it, not '' @ space.constraints[0].rule",
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (3, "must be a table, not 3 @ study.parameters.x"),
        ({"type": 3}, "must be a string with something in it, not 3 @ study.parameters.x.type"),
        ({"type": "flag", "when": True}, "must be an expression in quotes, not True @ study.parameters.x.when"),
        ({"type": "flag", "default": 1}, "x: default 1 is not one of its values: False, True @ study.parameters.x"),
        ({"type": "integer", "values": [1, "a b"]}, "cannot read this: .* @ study.parameters.x.values\\[1\\]"),
        ({"type": "integer", "low": 1, "high": "4 // 0"}, "has no value: .* @ study.parameters.x.high"),
        ({"type": "integer", "low": 1, "high": 4, "step": 2, "powers_of_two": True}, "powers_of_two has no step"),
    ],
)
def test_single_errors(table, message):
    with pytest.raises(SpaceError, match=message):
        parameters_from_tables({"x": table}, {}, path="study")


def test_values_may_be_expressions():
    (parameter,) = parameters_from_tables(
        {"np": {"type": "integer", "values": [1, "cores", "cores * nodes"], "default": "=cores"}},
        {"cores": 4, "nodes": 3},
    )
    assert parameter == Integer("np", (1, 4, 12), default=4)


@pytest.mark.parametrize(
    ("values", "parameter"),
    [
        ([1, 2, 4], Integer("x", (1, 2, 4))),
        ([1, "cores"], Integer("x", (1, 4))),
        ([0.1, 1, 10], Float("x", 0.1, 10.0, log=True, points=3, listed=(0.1, 1.0, 10.0))),
        ([0.5, "cores / 2"], Float("x", 0.5, 2.0, log=True, points=2, listed=(0.5, 2.0))),
        (["a", "b"], Choice("x", ("a", "b"))),
        ([False, True], Flag("x")),
    ],
)
def test_values_without_a_type_have_their_own(values, parameter):
    assert parameters_from_tables({"x": {"values": values}}, {"cores": 4}) == (parameter,)


def test_a_float_may_list_its_values_whose_type_wins():
    (parameter,) = parameters_from_tables({"x": {"type": "float", "values": [1, 2, 8], "default": 2}}, {})
    assert parameter.values == (1.0, 2.0, 8.0)
    space = Space([parameter])
    assert space.default() == {"x": 2.0}
    assert Space.from_dict(space.to_dict()).parameters == (parameter,)
    for extra in ({"low": 1}, {"points": 3}):
        with pytest.raises(SpaceError, match=r"give either values or .*, not both"):
            parameters_from_tables({"x": {"type": "float", "values": [1.5], **extra}}, {})
    for values in ([], [True], [1, None], ["a", True]):
        with pytest.raises(SpaceError, match=r"required field missing @ space.parameters.x.type"):
            parameters_from_tables({"x": {"values": values}}, {})
