"""The reference is complete and true: what is generated is what the code says, and every key is described."""

import re
from typing import get_origin

import pytest

from autotune.errors import ExitCode
from autotune.studyfile import StudyFile
from spaces.tables import _COMMON, _OWN_KEYS
from tests.docs.page import ROOT
from tests.docs.reference import FOLDER, OBJECTIVES, REGENERATE, keys_of, nested, pages

OPTIONS_PAGES = ("ask-tell.md", "collectives.md", "quantum-espresso.md", "replay.md", "training.md", "ucx.md")
"""The pages that describe the `[options]` of their program."""


def sections(name):
    """Return what stands below each heading of a page, up to the next."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))


DESCRIBED = sections("study-files.md") | {
    heading: text
    for name in OPTIONS_PAGES
    for heading, text in sections(name).items()
    if heading.startswith("`[options]`")
}


def heading(key, field):
    """Return the heading of a section: `[software.NAME]`, `[[inputs]]` where it has several tables."""
    if get_origin(field.annotation) is list:
        return f"`[[{key}]]`"
    return f"`[{key}{'.NAME' if get_origin(field.annotation) is dict else ''}]`"


TABLES = {
    "Top level": StudyFile,
    **{f'`[options]` of `objective = "{name}"`': options for name, options in OBJECTIVES.items()},
    **{
        heading(key, field): model
        for key, field in StudyFile.model_fields.items()
        if key != "space" and (model := nested(field)) is not None
    },
}
# They have sections of their own.
ELSEWHERE = {"Top level": {"options", *(key for key, field in StudyFile.model_fields.items() if nested(field))}}


@pytest.fixture(scope="module")
def generated():
    return pages()


@pytest.mark.parametrize("name", ["cli.md", "study-file-keys.md", "expressions.md", "python.md"])
def test_a_page_is_what_the_code_generates(generated, name):
    path = FOLDER / name
    assert path.is_file(), f"there is no docs/reference/{name}: run `{REGENERATE}`"
    told = path.read_text(encoding="utf-8")
    assert told == generated[name], f"docs/reference/{name} is not what the code says: run `{REGENERATE}`"


def test_no_page_is_left_over(generated):
    assert {path.name for path in FOLDER.glob("*.md")} == set(generated)


def test_every_exit_code_has_a_meaning(generated):
    rows = dict(re.findall(r"^\| (\d+) \| `(\w+)` \| \w", generated["cli.md"], re.MULTILINE))
    assert rows == {str(code.value): code.name for code in ExitCode}


def test_the_page_on_resuming_has_every_exit_code():
    told = (ROOT / "docs" / "how-to" / "resume.md").read_text(encoding="utf-8").partition("## Exit codes")[2]
    # 1 is the answer of a single command.
    codes = sorted({1, *(code.value for code in ExitCode)})
    assert re.findall(r"^\| (\d+) \|", told, re.MULTILINE) == list(map(str, codes))


def keys(heading):
    """Return the keys that the first table below a heading has."""
    first = DESCRIBED[heading].partition("|---")[2].partition("\n\n")[0]
    return {
        key for line in first.splitlines() for key in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")
    }


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_is_described_and_no_other(heading):
    assert keys(heading) == set(TABLES[heading].model_fields) - ELSEWHERE.get(heading, set())


@pytest.mark.parametrize("heading", TABLES)
def test_keys_of_keys_are_described(heading):
    inside = " ".join(re.findall(r"`\{ (.*?) \}`", DESCRIBED[heading]))
    for key, field in TABLES[heading].model_fields.items():
        model = nested(field)
        if model is not None and key not in ELSEWHERE.get(heading, set()):
            own = DESCRIBED[heading].partition(f"### `[[options.{key}]]`")[2]
            first_cells = " ".join(re.findall(r"^\| (`.+?`) \|", own, re.MULTILINE))
            told = re.findall(r"`(\w+)`", first_cells) or re.findall(r"\w+", f"{inside} {own}")
            assert set(keys_of(model)) <= set(told), key


def test_every_key_of_a_parameter_and_of_a_constraint_is_described():
    assert keys("`[space.parameters.NAME]`") == {*_COMMON, *(key for own in _OWN_KEYS.values() for key in own)}
    assert re.findall(r"`(\w+)`", DESCRIBED["`[[space.constraints]]`"])[:3] == ["name", "rule", "reason"]


def test_every_section_describes_something_that_exists():
    others = {"`[space.parameters.NAME]`", "`[space.derived]`", "`[[space.constraints]]`"}
    assert set(DESCRIBED) == {*TABLES, *others}
