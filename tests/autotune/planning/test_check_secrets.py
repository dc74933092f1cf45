"""Secrets in a study file: they are not stored, and `autotune check` reports those that are missing here."""

import json

import pytest

from autotune.errors import CannotRunHereError
from autotune.machines.this_machine import this_machine
from autotune.planning.prepare import prepare
from autotune.studyfile import parse
from autotune.studyfile.loading import load
from launchers.local import local_launcher
from tests.autotune.planning.test_check import GOOD, checked

pytestmark = pytest.mark.cores(1)


def test_a_secret_is_not_part_of_what_is_stored_and_is_asked_for_where_it_is_missing(tmp_path, monkeypatch):
    secret = GOOD.replace("[options]", "[options]\nenvironment = { API_KEY = 'open-sesame' }", 1)
    secret += (
        "\n[space.parameters.seed]\ntype = 'flag'\ndefault = false\nhelp = '--token=open-sesame, 3 in the command'\n"
    )
    (tmp_path / "mine.toml").write_text(secret, encoding="utf-8")
    prepared = prepare(load(tmp_path / "mine.toml"), this_machine(), local_launcher(), tmp_path / "plan")
    assert "open-sesame" not in json.dumps(prepared.definition.to_dict())
    stored = parse(prepared.definition.study, "the stored study")
    monkeypatch.delenv("API_KEY", raising=False)
    with pytest.raises(CannotRunHereError, match="API_KEY: secrets are not stored with a study"):
        prepare(stored, this_machine(), local_launcher(), tmp_path / "again")
    monkeypatch.setenv("API_KEY", "open-sesame")
    again = prepare(stored, this_machine(), local_launcher(), tmp_path / "again")
    assert again.definition == prepared.definition


def test_options_and_variables_that_are_taken_for_secrets_are_noted(tmp_path):
    text = GOOD.replace('"{y}"]', '"{y}", "--fish-key", "custkey", ["--sesame-pass={x}"]]')
    text = text.replace("[options]", '[options]\nenvironment = { SALT_KEY = "abc", API_KEY = "{x}", N = "1" }')
    notes = checked(tmp_path, text)[1]["notes"]
    assert [note for note in notes if note.startswith("SALT_KEY, fish-key: taken for secrets because of their names")]
    assert not [note for note in checked(tmp_path, GOOD)[1]["notes"] if "secrets" in note]


def test_a_secret_that_is_not_in_the_environment_is_told_before(tmp_path, monkeypatch):
    text = GOOD.replace("[options]", '[options]\nenvironment = { MY_API_KEY = "***" }')
    monkeypatch.delenv("MY_API_KEY", raising=False)
    code, found = checked(tmp_path, text)
    assert code == 3
    assert "MY_API_KEY: secrets are not stored" in found["missing"][0]["message"]
    monkeypatch.setenv("MY_API_KEY", "x")
    assert checked(tmp_path, text)[0] == 0
