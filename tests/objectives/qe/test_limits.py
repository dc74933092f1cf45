"""The limits that an input sets to a run: iterations, steps of the ions, seconds."""

import pytest

from objectives.qe.deck import Deck
from objectives.qe.input_check import find_problems

INPUT = """&CONTROL
 {control}
/
&SYSTEM
 ecutwfc = 12
/
&ELECTRONS
 {electrons}
/
&IONS
/
ATOMIC_SPECIES
Si 28.08 Si.UPF
K_POINTS gamma
"""


def deck(electrons="", control=""):
    return Deck(INPUT.format(electrons=electrons, control=control))


@pytest.mark.parametrize(
    ("electrons", "limit"),
    [
        ("electron_maxstep = 2", 2),
        ("electron_maxstep=1,", 1),
        ("ELECTRON_MAXSTEP = 5 ! a benchmark", 5),
        ("electron_maxstep = 4\n scf_must_converge=.FALSE.", 4),
        ("electron_maxstep = 80, scf_must_converge = F", 80),
        ("scf_must_converge = .f.", 100),
        ("electron_maxstep = 80, scf_must_converge = .true.", None),
        ("electron_maxstep = 60", None),
        ("electron_maxstep = 100", None),
        ("", None),
    ],
)
def test_few_iterations_are_a_limit_on_purpose_and_so_is_any_number_that_need_not_converge(electrons, limit):
    assert deck(electrons).iteration_limit == limit


@pytest.mark.parametrize(
    ("calculation", "electrons", "limit"),
    [
        ("relax", "electron_maxstep = 2", None),  # pw.x stops before the ions have moved
        ("relax", "electron_maxstep = 2, scf_must_converge = .false.", 2),
        ("nscf", "electron_maxstep = 2, scf_must_converge = .false.", None),
        ("bands", "electron_maxstep = 2", None),
    ],
)
def test_other_calculations(calculation, electrons, limit):
    assert deck(electrons, f"calculation = '{calculation}'").iteration_limit == limit


def test_an_input_that_computes_nothing_is_refused():
    assert "electron_maxstep = 0: pw.x needs at least one iteration" in find_problems(deck("electron_maxstep = 0"))
    (problem,) = find_problems(deck(control="nstep = 0"))
    assert problem.startswith("nstep = 0: pw.x then only describes the problem")
    assert find_problems(deck("electron_maxstep = 1", "nstep = 1, max_seconds = 21400")) == []
