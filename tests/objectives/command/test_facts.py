"""Facts that a program reports about itself, for rules."""

import sys
from pathlib import Path

import pytest

from objectives.base import PlanError
from objectives.command import plan
from objectives.command_facts import FactOptions, read_facts
from tests.support.descriptors import none_left

PYTHON = sys.executable


def planned(facts, machine=None, **options):
    argv = [PYTHON, "-c", "pass"]
    return plan({"argv": argv, "facts": facts, **options}, machine=machine or {}, run_job=None, folder=Path("/nowhere"))


def test_a_fact_is_what_a_program_prints_and_each_is_asked_once(tmp_path):
    count = tmp_path / "count"
    says = [
        PYTHON,
        "-c",
        f"open({str(count)!r}, 'a').write('x'); print('OPT PERI'); import sys; sys.exit('version 2.5')",
    ]
    facts = {
        "has_opt": {"command": says, "pattern": r"\bOPT\b"},
        "has_gpu": {"command": says, "pattern": r"\bGPU\b"},
        "version": {"command": says, "pattern": r"^version (\S+)"},
        "build": {"command": says, "pattern": r"^build (\S+)"},
        "absent": {"command": ["no-such-program"], "pattern": ""},
    }
    found = planned({name: fact for name, fact in facts.items() if name != "absent"})
    assert found.facts == {"has_opt": True, "has_gpu": False, "version": 2.5, "build": 0.0}
    assert set(found.installation) == set(found.facts)
    assert count.read_text() == "x"
    # Another machine's program cannot be asked here.
    assert planned({"has_opt": facts["has_opt"]}, {"described": True}).facts == {"has_opt": False}
    assert planned({"absent": facts["absent"] | {"pattern": "x"}}).facts == {"absent": False}


def test_a_program_that_cannot_be_asked_for_want_of_descriptors_has_not_said_no():
    facts = {"has_opt": FactOptions(command=[PYTHON, "-V"], pattern="Python")}
    assert read_facts(facts, ask=True) == {"has_opt": True}
    with none_left(), pytest.raises(OSError, match="Too many open files"):
        read_facts(facts, ask=True)


def test_mistakes_of_facts_each_with_its_path():
    says = [PYTHON, "-V"]
    facts = {
        "cores": {"command": says, "pattern": "x"},
        "has-opt": {"command": says, "pattern": "x"},
        "wrong": {"command": says, "pattern": "("},
        "two": {"command": says, "pattern": "(a)(b)"},
    }
    with pytest.raises(PlanError) as caught:
        planned(facts)
    places = {line.rpartition(" @ options.facts.")[2] for line in str(caught.value).splitlines()}
    assert places == {"cores", "has-opt", "wrong.pattern", "two.pattern"}


def test_a_program_that_is_missing_is_said_once():
    with pytest.raises(PlanError) as caught:
        planned({}, argv=["no-such-program"], prepare=[["no-such-program"], ["nor-this-one"]])
    lines = str(caught.value).splitlines()
    assert [line.rpartition(" @ options.")[2] for line in lines] == ["argv.0", "prepare.1.0"]
