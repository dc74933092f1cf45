"""Lines of a TOML file by path."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune import studyfile
from autotune.tomlfiles.lines import line_of, lines_of

TEXT = '''# comment
objective = "command" # not = [a] key
[options]
argv = [
  "a", "[b]",   # "c"
  \'\'\'
many
lines\'\'\',
  "last",
]
environment = { X = "{x}", "quoted.key" = "1" }
metrics = [{ name = "m", pattern = 'a' },
           { name = "n", pattern = """x
y\\"""", file = 'f' }]
[options . answer]
tolerance = 1.0
[[space.constraints]]
name = "one"
[[space.constraints]]
name = "two"
[space.parameters.x]
values.nested = [[1], [2,
 3]]
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("objective", 2),
        ("options", 3),
        ("options.argv", 4),
        ("options.argv.0", 5),
        ("options.argv.2", 6),
        ("options.argv.3", 9),
        ("options.environment.X", 11),
        ("options.metrics.0.pattern", 12),
        ("options.metrics[1].pattern", 13),
        ("options.metrics.1.file", 14),
        ("options.metrics.1.nothing", 13),
        ("options.answer.tolerance", 16),
        ("space.constraints.0.name", 18),
        ("space.constraints[1].rule", 19),
        ("space.parameters.x.values.nested.1.1", 23),
        ("space.parameters.x.type", 21),
        ("budget.trials", None),
    ],
)
def test_the_line_of_a_path(path, line):
    tomllib.loads(TEXT)
    assert line_of(lines_of(TEXT), path) == line


@pytest.mark.parametrize("name", ["qe", "ucx", "stream", "hpl", "pgbench", "flags"])
def test_every_key_of_a_shipped_study_stands_on_its_line(name):
    text = studyfile.catalogue()[name].read_text(encoding="utf-8")
    lines = text.splitlines()

    def walk(value: object, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                inside = f"{path}.{key}" if path else key
                assert key in lines[lines_of(text)[inside] - 1], inside
                walk(inner, inside)
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                assert f"{path}.{place}" in lines_of(text)
                walk(inner, f"{path}.{place}")

    walk(tomllib.loads(text), "")


@given(st.text())
def test_what_is_no_toml_has_no_lines_and_is_no_error(text):
    assert all(line >= 1 for line in lines_of(text).values())


KEYS = st.text("abc-_1", min_size=1, max_size=3)
LEAVES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8) | st.integers(-9, 9) | st.booleans()


@given(st.dictionaries(KEYS, st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=6), max_size=5))
def test_a_key_a_line(table):
    pairs = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]
    text = "\n\n".join(pairs).replace("\x7f", "")
    tomllib.loads(text)
    found = lines_of(text)
    assert [found[key] for key in table] == [1 + 2 * place for place in range(len(table))]
