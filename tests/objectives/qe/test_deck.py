import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.qe.deck import Deck, to_fortran
from objectives.qe.input_check import find_problems
from objectives.qe.options import SHIPPED_INPUTS, shipped_input

HOSTILE = """! pseudo_dir = 'not this one' &SYSTEM
# a remark
 &control   Calculation='scf' , PREFIX = "it's/here!" ! outdir = 'nor this'
   pseudo_dir='./a/b''c', tprnfor = .TRUE., Wf_Collect=.false.
 /
&SYSTEM
  ibrav=6, celldm(1) = 8.680, celldm( 3 )= 0.644 nat=6
  nat = 7
  ecutwfc = 25
/
&electrons
conv_thr = 1.0D-8 /
ATOMIC_SPECIES
 Ti 47.867 Ti.UPF  ! the metal
# O 1 Nothing.UPF

 O  15.9994 O.UPF
 Ti2 47.867 Ti.UPF
ATOMIC_POSITIONS {crystal}
Ti 0 0 0
K_POINTS (automatic)
 3 3 4 0 0 0
"""


@pytest.fixture
def hostile():
    return Deck(HOSTILE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("calculation", "scf"),
        ("prefix", "it's/here!"),
        ("pseudo_dir", "./a/b'c"),
        ("TPRNFOR", ".TRUE."),
        ("wf_collect", ".false."),
        ("outdir", None),
        ("celldm(1)", "8.680"),
        ("celldm(3)", "0.644"),
        ("nat", "7"),
        ("conv_thr", "1.0D-8"),
        ("ATOMIC_SPECIES", None),
    ],
)
def test_get(hostile, name, value):
    assert hostile.get(name) == value


def test_cards(hostile):
    assert hostile.groups == ("control", "system", "electrons")
    assert hostile.pseudopotentials == ("Ti.UPF", "O.UPF")
    assert hostile.card("K_POINTS") == ("automatic", ("3 3 4 0 0 0",))
    assert hostile.card("ATOMIC_POSITIONS") == ("crystal", ("Ti 0 0 0",))
    assert hostile.card("CELL_PARAMETERS") is None


def test_tolerance(hostile):
    assert hostile.energy_tolerance_ry == 2e-8, "what is printed has eight decimals"
    assert Deck("&control calculation='bands' /\n&electrons\nconv_thr=1d-9\n/").energy_tolerance_ry == 2e-8
    assert Deck("&control\n/\n&electrons\n/").energy_tolerance_ry == 1e-6
    assert Deck("&control calculation='relax' /\n&electrons\nconv_thr=1d-9\n/").energy_tolerance_ry == 1e-4
    assert Deck("&electrons\nconv_thr = oops /").energy_tolerance_ry == 1e-6


def test_one_value_changes_and_nothing_else(hostile):
    changed = hostile.with_values("control", {"prefix": "new"})
    assert changed.text == HOSTILE.replace('"it\'s/here!"', "'new'")
    changed = hostile.with_values("electrons", {"conv_thr": 1e-9})
    assert changed.text == HOSTILE.replace("1.0D-8 /", "1e-09 /")
    changed = hostile.with_values("system", {"nat": 8})
    assert changed.text == HOSTILE.replace("nat = 7", "nat = 8")


def test_a_new_value_is_a_new_line(hostile):
    changed = hostile.with_values("electrons", {"mixing_beta": 0.3})
    assert changed.text == HOSTILE.replace("&electrons\n", "&electrons\n  mixing_beta = 0.3\n")


def test_a_new_value_beside_others_on_the_line(hostile):
    changed = hostile.with_values("control", {"outdir": "./out/"})
    assert changed.get("outdir") == "./out/"
    assert changed.get("calculation") == "scf"
    assert changed.text.replace("\n  outdir = './out/'\n  ", "") == HOSTILE


def test_a_namelist_that_is_not_there(hostile):
    with pytest.raises(KeyError, match="&IONS"):
        hostile.with_values("ions", {"x": 1})


def test_bytes_survive(tmp_path):
    text = b"! \xff caf\xe9\r\n&CONTROL\r\n prefix='a'\r\n/\r\n"
    (tmp_path / "a").write_bytes(text)
    Deck.read(tmp_path / "a").with_values("control", {"prefix": "b"}).write(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == text.replace(b"'a'", b"'b'")


names = st.text(string.ascii_lowercase, min_size=1, max_size=8).filter(lambda name: name != "end")
values = st.one_of(
    st.integers(-(10**6), 10**6),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(string.printable.replace("\n", "").replace("\r", "").replace("\x0b", "").replace("\x0c", "")).map(
        str.strip
    ),
)


@given(st.sampled_from(["control", "system", "electrons"]), names, values)
def test_what_is_set_is_read_back_and_lines_of_others_stay(group, name, value):
    before = Deck(HOSTILE)
    after = before.with_values(group, {name: value})
    read = after.get(name)
    if isinstance(value, str):
        assert read == value
    elif isinstance(value, bool):
        assert read == to_fortran(value)
    else:
        assert float(read) == value
    kept = [line for line in before.text.splitlines() if name not in line.lower() and "&" not in line]
    remaining = iter(after.text.splitlines())
    assert all(line in remaining for line in kept)
    for other in ("calculation", "nat", "conv_thr", "celldm(3)"):
        assert other == name or after.get(other) == before.get(other)


@given(st.text(alphabet="&/=,'\"!#() \nabCONTROL1d-", max_size=120))
def test_any_text_is_read(text):
    deck = Deck(text)
    deck.get("a")
    assert isinstance(find_problems(deck), list)
    assert deck.energy_tolerance_ry > 0 or deck.get("conv_thr") is not None


@pytest.mark.parametrize("name", SHIPPED_INPUTS)
def test_shipped_inputs_are_sound(name):
    deck = Deck(shipped_input(name).decode())
    assert find_problems(deck) == []
    assert len(deck.pseudopotentials) == 2
    assert deck.get("outdir") is None


def test_everything_that_is_wrong_at_once():
    text = "&control calculation='nscf' restart_mode='restart' /\n&electrons startingpot='file' /\nK_POINTS gamma\n"
    found = find_problems(Deck(text))
    assert len(found) == 3
    assert found[0].startswith("namelist &SYSTEM is missing")
    assert "card ATOMIC_SPECIES is missing" in found[1]
    assert "prepared_by" in found[2]
    assert "saved" in found[2]


@pytest.mark.parametrize(
    ("name", "value"), [("calculation", "nscf"), ("calculation", "bands"), ("restart_mode", "restart")]
)
def test_what_continues_from_another_run_needs_what_that_has_saved(name, value):
    deck = Deck(HOSTILE).with_values("control", {name: value})
    assert find_problems(deck)
    assert not find_problems(deck, has_saved=True)


@pytest.mark.parametrize("text", ["", "root:x:0:0:root:/root:/bin/bash\n", "\x00\x01", '<?xml version="1.0"?>'])
def test_not_an_input(text):
    assert find_problems(Deck(text)) == ["this is not an input of pw.x: it has no namelist (&CONTROL ... /)"]


def test_molecular_dynamics_has_no_answer():
    found = find_problems(Deck(HOSTILE).with_values("control", {"calculation": "md"}))
    assert len(found) == 1
    assert "calculation = 'md' cannot be tuned: its length is a number of steps" in found[0]
    assert "can be: scf, relax, vc-relax" in found[0]


@pytest.mark.parametrize("line", ["k_points automatic", "K_POINTS{automatic}", "K_POINTS(automatic)", "K_points gamma"])
def test_a_card_that_pwx_ignores(line):
    found = find_problems(Deck(HOSTILE.replace("K_POINTS (automatic)", line)))
    assert found == [f"pw.x ignores the line {line!r}: the name of a card is in capitals, and a blank follows it"]


def test_namelists_that_pwx_needs():
    relax = Deck(HOSTILE).with_values("control", {"calculation": "vc-relax"})
    assert [problem[:25] for problem in find_problems(relax)] == [
        "namelist &IONS is missing",
        "namelist &CELL is missing",
    ]
    both = relax.text.replace("ATOMIC_SPECIES", "&ions\n/\n&cell\n/\nATOMIC_SPECIES")
    assert find_problems(Deck(both)) == []
    turned = relax.text.replace("ATOMIC_SPECIES", "&cell\n/\n&ions\n/\nATOMIC_SPECIES")
    assert "in this order: &CONTROL, &SYSTEM, " in find_problems(Deck(turned))[0]


@pytest.mark.parametrize(("calculation", "reason"), [("SCF", "no such"), ("ensemble", "its ensemble of energies")])
def test_calculations_that_are_not_tuned(calculation, reason):
    (found,) = find_problems(Deck(HOSTILE).with_values("control", {"calculation": calculation}))
    assert reason in found
