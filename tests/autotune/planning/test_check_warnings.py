"""Warnings of rules that forbid nothing on any machine, and of files that a run will not find."""

from pathlib import Path

import pytest

from autotune.planning.check_warnings import idle_rules, uncopied_files
from autotune.studyfile.model import SpaceSection
from launchers import Job
from spaces import space_from_tables

PARAMETERS = {
    "a": {"type": "integer", "values": [1, 2, 3]},
    "b": {"type": "integer", "values": [1, 2, 3]},
    "c": {"type": "integer", "values": [1, 2], "when": "a == 1"},
    "d": {"type": "integer", "values": [1, 2], "when": "a == 2"},
    "e": {"type": "choice", "values": ["x", "y"], "optional": True},
    "np": {"type": "integer", "low": 1, "high": "cores"},
}


def found(*rules):
    section = SpaceSection(
        parameters=PARAMETERS, constraints=[{"name": f"r{k}", "rule": rule} for k, rule in enumerate(rules)]
    )
    space = space_from_tables(section.parameters, section.constraints, {"cores": 1})
    return list(idle_rules(space, section))


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (["a <= 3"], "'r0' forbids nothing: it is true for all values"),
        (["c < d"], "'r0' forbids nothing: it is unknown wherever"),
        (["not (is_set(c) and d == 1)"], "'r0' forbids nothing: it is true or unknown for all values"),
        (["a + b <= 3", "a <= 2"], "'r1' forbids nothing: where it is false, other rules forbid"),
    ],
)
def test_a_rule_that_forbids_nothing_is_named_with_the_reason(rules, why):
    (sentence,) = found(*rules)
    assert why in sentence


@pytest.mark.parametrize(
    "rule",
    [
        "a <= 2",
        "a == 1 or (is_set(e) and e == 'x')",
        "c < 2",
        "e == 'x'",
        "np <= cores",
        "np * a <= 9",
        "b <= 8 * cores",
    ],
)
def test_rules_that_forbid_something_or_would_elsewhere_are_not(rule):
    assert found(rule) == []


def warnings(job: Job, *folders: Path) -> list[str]:
    return [text.partition(" lies in ")[0] for text in uncopied_files(job, folders)]


def test_a_relative_file_that_will_not_be_in_the_folder_of_a_run(tmp_path):
    run, here, beside = (tmp_path / name for name in ("run", "here", "beside"))
    for folder in (run, here, beside):
        folder.mkdir()
    for name in ("topol.tpr", "in.mine", "main.c", "solve", "written"):
        (here / name).write_text("")
    (beside / "data.al").write_text("")
    (run / "in.mine").write_text("")
    words = ("solve", "-s", "topol.tpr", "--data=data.al", "in.mine", str(here / "main.c"), "nowhere", "-v", "x" * 400)
    (text, _) = uncopied_files(Job(words, run), [here, beside])
    assert f"topol.tpr lies in {here}" in text
    assert "[[options.files]] with name = 'topol.tpr' and copy = 'topol.tpr'" in text
    assert warnings(Job(words, run), here, beside) == ["topol.tpr", "data.al"]
    compiled = Job(("./solve", "written", "solve"), run, prepare=(("cc", "-o", "solve", "main.c"), ("gen", "written")))
    assert warnings(compiled, here) == ["main.c", "written"]
    assert warnings(Job(("solve", "-o", "written"), run), here) == []
