"""The page of supported inputs is what its generator writes, as far as that can be told without its inputs."""

from objectives.qe.deck import Deck
from objectives.qe.input_check import find_problems
from tests.docs.pwx_inputs import _READ, PAGE, page, read_rows
from tests.objectives.qe.described_inputs import SPELT

OUTPUT = (
    "     Program PWSCF v.6.7 starts\n     number of electrons       =         6.00\n"
    "     number of Kohn-Sham states=           7\n     number of k points=    {}\n"
)


def test_inputs_are_counted_by_kind(tmp_path):
    md = SPELT.replace("&control", "&control\n calculation = 'md'")
    texts = {
        "a.in": SPELT,
        "b.in": SPELT.replace("0 0 0", "0 0 sqrt(2)"),
        "md.in": md,
        "c.in": SPELT,
        "ph.in": "&inputph\n/\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for name, kpoints in (("a.in", 40), ("c.in", 41)):
        (tmp_path / f"benchmark.out.git.inp={name}.args=1").write_text(OUTPUT.format(kpoints))
    text = page(list(read_rows(tmp_path)), "ours")
    assert "3 of the 4 inputs" in text
    assert "| calculation | `scf` | 3 | 3 | 2 | 1 of 2 |" in text
    assert "| calculation | `md` | 1 | 0 | 0 |  |" in text
    stops = "pw.x stops: a coordinate 'sqrt(2)' in ATOMIC_POSITIONS, which may have numbers, + - * / ^ and brackets"
    assert f"| {stops} | 1 |" in text
    assert "| c.in: described with 40 k-points and 7 bands; pw.x 6.7 said 41 and 7 | 1 |" in text


def test_the_page_has_the_sentences_of_today():
    text = PAGE.read_text(encoding="utf-8")
    assert text.endswith(_READ)
    (md,) = find_problems(Deck(SPELT.replace("&control", "&control\n calculation = 'md'")))
    assert f"| {md} |" in text
