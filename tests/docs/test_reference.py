"""The reference is complete and true: generated pages match the code; every key is described, with its default."""

import json
import re
from typing import Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

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


@pytest.mark.parametrize("name", ["cli.md", "python.md"])
def test_a_page_is_what_the_code_generates(generated, name):
    path = FOLDER / name
    assert path.is_file(), f"there is no docs/reference/{name}: run `{REGENERATE}`"
    told = path.read_text(encoding="utf-8")
    assert told == generated[name], f"docs/reference/{name} is not what the code says: run `{REGENERATE}`"


def test_no_page_is_left_over(generated):
    assert {path.name for path in FOLDER.glob("*.md")} == set(generated)


def test_the_page_on_resuming_has_every_exit_code():
    told = (ROOT / "docs" / "how-to" / "resume.md").read_text(encoding="utf-8").partition("## Exit codes")[2]
    # 1 is the answer of a single command.
    codes = sorted({1, *(code.value for code in ExitCode)})
    assert re.findall(r"^\| (\d+) \|", told, re.MULTILINE) == list(map(str, codes))


def rows(heading):
    """Return the rows of the first table below a heading: the cell of the keys, and the meaning."""
    first = DESCRIBED[heading].partition("|---")[2].partition("\n\n")[0]
    return [tuple(cell.strip() for cell in line.split("|")[1:3]) for line in first.splitlines()[1:]]


def keys(heading):
    """Return the keys that the first table below a heading has, each with its default as the page says it."""
    return {
        key: f"{default}{required}"
        for cell, _ in rows(heading)
        for key, default, required in re.findall(r"`(\w+)(?: = ([^`]+))?`( \(required\))?", cell)
    }


def default_of(field):
    """Return the default of a key in TOML. A switch that is off is not said, and a list is described in words."""
    if field is StudyFile.model_fields["name"]:
        return ""  # a file without it has its own name
    if field.is_required():
        return " (required)"
    value = field.get_default(call_default_factory=True)
    if value is None or value is False or value == "" or isinstance(value, BaseModel | dict | list | tuple):
        return ""
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_is_described_and_no_other(heading):
    described = TABLES[heading].model_fields.keys() - ELSEWHERE.get(heading, set())
    assert keys(heading) == {key: default_of(TABLES[heading].model_fields[key]) for key in described}


@pytest.mark.parametrize("heading", TABLES)
def test_every_word_that_a_key_may_have_is_told(heading):
    told = dict(rows(heading))
    for key, field in TABLES[heading].model_fields.items():
        if get_origin(field.annotation) is Literal and key not in ELSEWHERE.get(heading, ()):
            (meaning,) = (text for cell, text in told.items() if f"`{key}" in cell)
            words = {word for word in get_args(field.annotation) if isinstance(word, str)}
            assert words <= set(re.findall(r"[\w-]+", meaning)) | {default_of(field).strip('"')}, key


@pytest.mark.parametrize("heading", TABLES)
def test_keys_of_keys_are_described(heading):
    inside = " ".join(re.findall(r"`\{ (.*?) \}`", DESCRIBED[heading]))
    for key, field in TABLES[heading].model_fields.items():
        model = nested(field)
        if model is not None and key not in ELSEWHERE.get(heading, set()):
            sections = re.split(rf"### `\[+options\.{key}\]+`\n", DESCRIBED[heading])
            own = sections[-1].partition("\n### ")[0] if len(sections) > 1 else ""
            first_cells = " ".join(re.findall(r"^\| (`.+?) \|", own, re.MULTILINE))
            told = re.findall(r"`(\w+)", first_cells) or re.findall(r"\w+", f"{inside} {own}")
            assert set(keys_of(model)) <= set(told), key


def test_every_key_of_a_parameter_and_of_a_constraint_is_described():
    assert set(keys("`[space.parameters.NAME]`")) == {*_COMMON, *(key for own in _OWN_KEYS.values() for key in own)}
    assert re.findall(r"`(\w+)`", DESCRIBED["`[[space.constraints]]`"])[:3] == ["name", "rule", "reason"]


def test_every_section_describes_something_that_exists():
    others = {"`[space.parameters.NAME]`", "`[space.derived]`", "`[[space.constraints]]`"}
    assert set(DESCRIBED) == {*TABLES, *others}
