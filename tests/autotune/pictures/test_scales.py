from hypothesis import given
from hypothesis import strategies as st

from autotune.formatting import UNSET
from autotune.pictures.downsampling import thin, thinning_note
from autotune.pictures.scales import Scale, scales_of, variance_shares
from spaces import Choice, Flag, Float, Integer, Space

PARAMETERS = [
    Integer.range("np", 1, 40),
    Integer.powers_of_two("block", 1, 2**20),
    Integer.range("npool", 1, 40, optional=True),
    Choice("blas", ("slow", "fast")),
    Flag("bind", optional=True),
    Float("rate", 1e-4, 1e-1, log=True),
    Float("share", 0.0, 1.0),
    Integer("alone", (7,)),
]


@given(st.sampled_from(PARAMETERS), st.data())
def test_every_value_has_its_place_in_order(parameter, data):
    scale = Scale.of(parameter)
    values = [None, *parameter.values] if parameter.may_be_missing else list(parameter.values)
    places = [scale.place({} if value is None else {parameter.name: value}) for value in values]
    assert places == sorted(set(places))
    shares = [scale.share({} if value is None else {parameter.name: value}) for value in values]
    assert shares == sorted(shares)
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert len(scale.ruler()) <= 5
    assert all(0.0 <= share <= 1.0 for share, _ in scale.ruler())
    strange = data.draw(st.sampled_from(["strange", 10**9]))
    assert scale.place({parameter.name: strange}) is None


def test_scales_read_a_stored_space():
    space = Space([*PARAMETERS[:4], Integer.range("inner", 1, 3, when="np > 2")])
    scales = scales_of(space.to_dict())
    assert [scale.parameter for scale in scales] == list(space.parameters)
    assert [scale.log for scale in scales] == [False, True, False, False, False]
    # "Unset" and a parameter that does not exist have their own position.
    assert scales[2].axis.ticks[0] == (-1.0, UNSET)
    assert scales[4].place({"np": 1}) == -1.0
    assert scales[0].place({}) is None


def test_the_share_that_a_parameter_explains():
    scales = [Scale.of(Choice(name, ("a", "b"))) for name in ("all", "nothing", "constant")]
    rows = [{"all": "ab"[k % 2], "nothing": "ab"[k // 2 % 2], "constant": "a"} for k in range(8)]
    found = variance_shares(scales, rows, [float(k % 2) for k in range(8)])
    assert found == {"all": 1.0, "nothing": 0.0}


def test_a_number_with_a_value_for_each_trial_explains_what_its_neighbours_share():
    scale = Scale.of(Integer.range("x", 1, 1000))
    rows = [{"x": 1 + 24 * k} for k in range(40)]
    steady = variance_shares([scale], rows, [float(k) for k in range(40)])["x"]
    wild = variance_shares([scale], rows, [float(k * 17 % 40) for k in range(40)])["x"]
    assert steady > 0.9
    assert wild < 0.5


@given(st.integers(0, 300), st.integers(1, 60), st.sets(st.integers(0, 299), max_size=10))
def test_thinning_keeps_order_and_what_must_stay(count, most, keep):
    found = thin(range(count), most, keep)
    assert found == sorted(set(found))
    assert len(found) <= max(most, len(keep)) or len(found) == count <= most
    assert {place for place in keep if place < count} <= set(found)
    assert len(found) >= min(count, max(most, 0))
    assert bool(thinning_note(len(found), count)) == (len(found) < count)
