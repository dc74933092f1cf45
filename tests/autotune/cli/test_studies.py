"""`autotune studies`: what ships, and what it came to here."""

import json

import pytest
from typer.testing import CliRunner

from autotune import studyfile
from autotune.cli.app import app
from tests.autotune.results.test_known import study


@pytest.fixture
def storage(tmp_path):
    return f"{tmp_path / 'studies.db'}"


def ran(*words):
    ended = CliRunner().invoke(app, ["studies", *words])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_every_study_that_ships_is_listed_before_anything_was_tuned(storage):
    rows = json.loads(ran("--storage", storage, "--json"))
    assert [row["study"] for row in rows] == list(studyfile.catalogue())
    assert {row["over_the_default"] for row in rows} == {"not tuned here"}
    assert all(row["description"] for row in rows)


def test_a_study_that_was_tuned_here_has_its_verdict(storage):
    study(f"sqlite:///{storage}", "stream", *[(2.0, 1.0)] * 6)
    row = next(row for row in json.loads(ran("--storage", storage, "--json")) if row["study"] == "stream")
    assert row["over_the_default"] == "2.000x (2.000 to 2.000)"
    assert row["runs"] == 2
    table = ran("--storage", storage, "--table").splitlines()
    assert table[1] == "| --- | --- | --- | --- |"
    assert any(line.startswith("| stream | 2.000x (2.000 to 2.000) | 2 |") for line in table)
