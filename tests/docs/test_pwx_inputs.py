"""The page of supported inputs is what its generator writes, as far as that can be told without its inputs."""

from objectives.qe.deck import Deck
from objectives.qe.input_check import find_problems
from tests.docs.pwx_inputs import _READ, PAGE
from tests.objectives.qe.described_inputs import SPELT


def test_the_page_has_the_sentences_of_today():
    text = PAGE.read_text(encoding="utf-8")
    assert text.endswith(_READ)
    (md,) = find_problems(Deck(SPELT.replace("&control", "&control\n calculation = 'md'")))
    assert f"| {md} |" in text
