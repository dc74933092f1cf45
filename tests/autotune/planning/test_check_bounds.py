"""`autotune check` of bounds and defaults that use a derived value."""

import json

import pytest

from tests.support.command_line import invoke

STUDY = """\
name = "mine"
objective = "command"

[options]
argv = ["true", "{n}", "{m}"]

[space.derived]
%s

[space.parameters.m]
type = "integer"
values = [1, 2]
default = 1

[space.parameters.n]
type = "integer"
low = 1
high = "most"
default = 1
"""


@pytest.mark.parametrize(
    "derived",
    [
        'most = "cores // (nodes - 1)"',  # on one node
        'most = "2 * m"',
        'most = "twice"\ntwice = "m * 2"',
    ],
)
def test_a_bound_of_a_derived_value_without_a_value_says_so(tmp_path, derived):
    file = tmp_path / "mine.toml"
    file.write_text(STUDY % derived, encoding="utf-8")
    found = json.loads(invoke("check", str(file), "--json").stdout)
    (mistake,) = found["mistakes"]
    assert mistake["path"] == "space.parameters.n.high"
    text = derived.partition('"')[2].partition('"')[0]
    assert mistake["message"].startswith(f"most = {text!r} has no value here without parameters")


def test_a_bound_of_a_derived_value_of_facts_is_right(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(STUDY % 'most = "cores_per_node // 1"', encoding="utf-8")
    ended = invoke("check", str(file))
    assert ended.exit_code == 0, ended.output
