"""Input files of a command, and figures from JSON and from files that it wrote."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import ApplicationError, Context, InvalidResult, Output
from objectives.figure import Figure
from objectives.run_files import InputFile, name_error
from tests.objectives.command.plans import errors, planned


def output(folder: Path, stdout: str = "") -> Output:
    return Output(stdout, "", JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(2.5)), folder)


def test_golden_files_of_a_run(tmp_path):
    files = [
        {"name": "hpl.dat", "text": "{nb} NBs\n{{as is}}\n{depth} of {nb}\nflag {fast}\nend"},
        {"name": "in/main.c", "text": 'int main() { puts("@nb@ a@b"); }\n// @ depth @\n', "delimiters": ["@", "@"]},
        {"name": "plain", "text": "{ } @nb@ {nb}\n", "delimiters": []},
        {"name": "j2", "text": "{ {{ nb }} {{depth}} }\n{ {{nb}} }", "delimiters": ["{{", "}}"]},
    ]
    found = planned(files=files)
    found.objective.job({"nb": 64, "fast": True}, Context(tmp_path))
    assert (tmp_path / "hpl.dat").read_text() == "64 NBs\n{as is}\nflag 1\nend"
    assert (tmp_path / "in" / "main.c").read_text() == 'int main() { puts("64 a@b"); }\n'
    assert (tmp_path / "plain").read_text() == "{ } @nb@ {nb}\n"
    assert (tmp_path / "j2").read_text() == "{ 64 }"
    assert {mention.text for mention in found.mentions} == {"depth", "fast", "nb"}


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_file_without_placeholders_is_written_as_it_is(text):
    assert InputFile("x", text, ()).fill_in({}) == text
    escaped = text.replace("{", "{{").replace("}", "}}")
    assert InputFile("x", escaped).fill_in({}) == text
    assert InputFile("x", escaped).problems("here") == []


@given(st.text(alphabet="a\n\r\f@", max_size=30), st.integers())
def test_only_the_lines_of_an_unset_parameter_are_left_out(text, value):
    template = f"before\n{text}@n@\nafter\r\n"
    filled = InputFile("x", template, ("@", "@"))
    if {mention.text for mention in filled.mentions()} == {"n"}:
        assert filled.fill_in({"n": value}) == f"before\n{text}{value}\nafter\r\n".replace("@n@", str(value))
        kept = [line for line in re.findall(r"[^\n]*\n", template) if "@n@" not in line]
        assert filled.fill_in({}) == "".join(kept)


@pytest.mark.parametrize("delimiters", [("{", "}"), ("@", "@")])
def test_a_block_of_several_lines_goes_as_a_whole(delimiters):
    before, after = delimiters
    text = f"mixtype{before}?mix{after}\n {before}mix{after}\nend\n"
    file = InputFile("elk.in", text, delimiters)
    assert file.fill_in({"mix": 3}) == "mixtype\n 3\nend\n"
    assert file.fill_in({}) == "end\n"
    assert {mention.text for mention in file.mentions()} == {"mix"}


def test_a_template_full_of_braces_is_one_mistake_with_its_remedy():
    source = "int main() {\n  int a[] = {1, 2};\n  for (;;) {\n  }\n}\n"
    (problem,) = InputFile("x.c", source).problems("here")
    assert problem.message == (
        "x.c has braces, but no placeholder such as {np}: delimiters = [] leaves all braces as they are"
    )
    (problem,) = InputFile("x.c", f"{source}// {{nb}}\n").problems("here")
    assert problem.message.startswith("line 1 of x.c: 'int main() {': ")
    assert problem.message.endswith('(and 2 more such places); delimiters = ["@", "@"] is for files full of braces')


def test_a_template_is_read_when_the_study_is_planned_and_belongs_to_its_identity(tmp_path):
    template = tmp_path / "in.txt"
    template.write_bytes(b"x = {x}\r\n")
    given_files = [{"name": "in.txt", "template": str(template)}]
    first = planned(files=given_files)
    template.write_text("y = {y}\n")
    second = planned(files=given_files)
    (tmp_path / "run").mkdir()
    first.objective.job({"x": 1}, Context(tmp_path / "run"))
    assert (tmp_path / "run" / "in.txt").read_bytes() == b"x = 1\r\n"
    assert first.identity["files"].startswith("in.txt sha256:")
    assert {key for key in first.identity if first.identity[key] != second.identity[key]} == {"files"}
    assert "files" not in planned().identity


@pytest.mark.parametrize(
    "name", ["", ".", "/etc/passwd", "../x", "a/../../x", "a/..", "stdout", "stderr", ".autotune-x", "a/", "\0"]
)
def test_no_file_outside_of_the_run_and_none_of_our_own(name):
    assert name_error(name)
    (line,) = errors(files=[{"name": name, "text": ""}])
    assert line.endswith(" @ options.files.0.name")
    (line,) = errors(metrics=[{"name": "x", "pattern": "(.)", "file": name}])
    assert line.endswith(" @ options.metrics.0.file")
    (line,) = errors(outputs=[name])
    assert line.endswith(" @ options.outputs.0")


@pytest.mark.parametrize("name", ["a", "a/b.txt", "a..b", "stdout.txt", "a b"])
def test_names_of_files_that_can_be(name):
    assert name_error(name) is None


def test_all_errors_at_once_each_with_its_path(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"x" * (2**20 + 1))
    lines = errors(
        files=[
            {"name": "a", "text": "", "template": "x"},
            {"name": "b"},
            {"name": "c", "text": "ok\nint main() {"},
            {"name": "d", "template": str(tmp_path / "nowhere")},
            {"name": "e", "template": str(tmp_path / "binary")},
            {"name": "f", "template": str(tmp_path / "large")},
            {"name": "g", "text": "", "delimiters": ["@"]},
            {"name": "g", "text": ""},
        ],
        metrics=[
            {"name": "x"},
            {"name": "y", "pattern": "(.)", "json": "a"},
            {"name": "z", "json": "a", "fiel": "x"},
        ],
        answer={"json": "a", "tolerance": 1, "file": "/x"},
    )
    places = {line.rpartition(" @ ")[2] for line in lines}
    assert places == {
        "unknown key 'fiel' in options.metrics.2: did you mean 'file'?",
        *(f"options.files.{i}.{key}" for i, key in enumerate(["template", "template", "text", "template"])),
        *("options.files.4.template", "options.files.5.template", "options.files.6.delimiters", "options.files.7.name"),
        "options.answer.file",
    }
    assert any("c has braces" in line and "delimiters = []" in line for line in lines)
    lines = errors(metrics=[{"name": "x"}, {"name": "y", "pattern": "(.)", "json": "a"}])
    assert [line.rpartition(" @ ")[2] for line in lines] == ["options.metrics.0.pattern", "options.metrics.1.json"]


def figure(path: str) -> Figure:
    return Figure("it", None, tuple(path.split(".")))


@pytest.mark.parametrize(
    ("path", "value"),
    [("a", 1.5), ("list.0.b", 2.0), ("list.-1.b", 3.0), ("text", 0.25), ("list.1.b", 3.0)],
)
def test_a_number_in_json(tmp_path, path, value):
    document = {"a": 1.5, "list": [{"b": 2}, {"b": 3}], "text": "0.25"}
    assert figure(path).value(output(tmp_path, json.dumps(document, indent=1))) == value
    among_lines = f"{{not json\n[1]\n{json.dumps(document)}\nbye\n"
    assert figure(path).value(output(tmp_path, among_lines)) == value


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("b", "no 'b', which has a, list, flag, huge, word, nothing"),
        ("list.2", "no '2' in 'list', which is a list of 2"),
        ("list.x", "no 'x' in 'list'"),
        ("a.b", "no 'b' in 'a', which is 1.5"),
        ("flag", "is no number: true"),
        ("huge", "is no number"),
        ("word", 'is no number: "x"'),
        ("nothing", "is no number: null"),
        ("list", "is no number: [1, 2]"),
    ],
)
def test_what_is_no_number_in_json_is_said(tmp_path, path, words):
    document = '{"a": 1.5, "list": [1, 2], "flag": true, "huge": 1e999, "word": "x", "nothing": null}'
    with pytest.raises(InvalidResult, match=re.escape(words)):
        figure(path).value(output(tmp_path, document))


@pytest.mark.parametrize("text", ["no json\n", "{", "[" * 100_000])
def test_an_output_without_json(tmp_path, text):
    with pytest.raises(InvalidResult, match="no it in the output: it is not JSON"):
        figure("a").value(output(tmp_path, text))


def test_keys_with_dots_are_given_as_a_list(tmp_path):
    found = planned(metrics=[{"name": "x", "json": ["a.b", 0]}]).objective
    assert found.measure(output(tmp_path, '{"a.b": [7]}')).metrics == {"x": 7.0}


def test_figures_are_read_from_files_of_the_run(tmp_path):
    found = planned(
        metrics=[
            {"name": "x", "json": "a", "file": "out/result.json"},
            {"name": "y", "pattern": r"^y=(\d+)$", "file": "log"},
        ],
        answer={"json": "sum", "file": "out/result.json", "tolerance": 0.5},
        outputs=["log", "not-always"],
        success=["^y="],
        failure=["^bad"],
    ).objective
    with pytest.raises(InvalidResult, match=r"no match of '\^y='"):
        found.measure(output(tmp_path, "y=1\n".replace("y", "z")))
    (tmp_path / "log").write_text("y=1\ny=2\n")
    with pytest.raises(InvalidResult, match=r"no x in out/result\.json: the run left no such file"):
        found.measure(output(tmp_path))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "result.json").touch()
    with pytest.raises(InvalidResult, match=r"no x in out/result\.json: the file is empty"):
        found.measure(output(tmp_path))
    (tmp_path / "out" / "result.json").write_text('{"a": 4, "sum": 9}')
    measured = found.measure(output(tmp_path))
    assert measured.metrics == {"x": 4.0, "y": 2.0}
    assert measured.answer.value == 9.0
    (tmp_path / "log").write_text("y=1\nbad luck\n")
    with pytest.raises(ApplicationError, match="bad luck"):
        found.measure(output(tmp_path))


def test_of_a_long_pattern_a_message_has_the_beginning(tmp_path):
    with pytest.raises(InvalidResult) as found:
        Figure("energy", "b|" * 500 + r"(\S+)x").value(output(tmp_path, "y"))
    assert "nothing matches 'b|b|" in str(found.value)
    assert len(str(found.value)) < 200
