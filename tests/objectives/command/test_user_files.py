"""Files of the user's that each run gets: copied with what they mention, changed line by line, made once."""

import sys
import tomllib
from pathlib import Path

import pytest

from autotune import studyfile
from autotune.performance.predict import find_target, question
from launchers import STDERR
from launchers.local import LocalLauncher
from objectives import registry
from objectives.base import Context, PlanError
from objectives.run_files import EditedFile, LineEdit
from tests.objectives.command.plans import ARGV, errors, planned


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def mine(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder


def test_a_file_of_any_kind_is_copied_and_the_original_stays_as_it_is(run, mine):
    (mine / "topol.tpr").write_bytes(b"\0\xff" * 700_000)
    found = planned(files=[{"name": "topol.tpr", "copy": str(mine / "topol.tpr")}])
    job = found.objective.job({}, Context(run))
    assert (run / "topol.tpr").read_bytes() == (mine / "topol.tpr").read_bytes()
    assert job.copies == (("topol.tpr", str(mine / "topol.tpr")),)
    (run / "topol.tpr").write_text("written over")
    assert (mine / "topol.tpr").stat().st_size == 1_400_000
    (mine / "topol.tpr").write_bytes(b"\0\xfe")
    assert planned(files=[{"name": "topol.tpr", "copy": str(mine / "topol.tpr")}]).identity != found.identity


def test_what_a_copied_text_mentions_comes_with_it_and_what_these_mention(run, mine):
    (mine / "potentials").mkdir()
    (mine / "in.mine").write_text(
        "read_data 'data.al'\ninclude potentials/eam.in\nlog other.log # run data.al /etc/hosts\n"
    )
    (mine / "data.al").write_bytes(b"1 atoms\xff")
    (mine / "potentials" / "eam.in").write_text("pair_coeff * * Al.eam {in.mine}\n")
    (mine / "Al.eam").write_text("0 1 2\n")
    (mine / "unrelated").write_text("")
    planned(files=[{"name": "in.lammps", "copy": str(mine / "in.mine")}]).objective.job({}, Context(run))
    written = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert written == {"in.lammps", "data.al", "potentials/eam.in", "Al.eam"}


def test_a_file_that_a_text_mentions_does_not_take_the_place_of_another_of_the_study(run, mine):
    (mine / "in.mine").write_text("read_data data.al\n")
    (mine / "data.al").write_text("mine")
    files = [{"name": "in.mine", "copy": str(mine / "in.mine")}, {"name": "data.al", "text": "of the study"}]
    planned(files=files).objective.job({}, Context(run))
    assert (run / "data.al").read_text() == "of the study"


INPUT = "units lj\nneighbor 0.3 bin  # mine\ncreate_box 1 box\nneighbor 0.4 bin\nrun 10"
LINES = [
    {"line": "processors {px} 1 1", "replaces": r"^\s*processors\s", "before": r"^\s*create_box\s"},
    {"line": "neighbor {skin} bin", "replaces": r"^\s*neighbor\s", "before": r"^\s*run\s"},
    {"line": "newton {newton}", "replaces": r"^\s*newton\s"},
    {"line": "dump {dump}", "replaces": "^dump", "before": "^nowhere"},
]


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        ({}, "units lj\nneighbor 0.3 bin  # mine\ncreate_box 1 box\nneighbor 0.4 bin\nrun 10\n"),
        ({"skin": 0.5}, "units lj\nneighbor 0.5 bin\ncreate_box 1 box\nrun 10\n"),
        (
            {"px": 2, "newton": "off", "dump": 1},
            (
                "newton off\nunits lj\nneighbor 0.3 bin  # mine\nprocessors 2 1 1\n"
                "create_box 1 box\nneighbor 0.4 bin\nrun 10\ndump 1\n"
            ),
        ),
    ],
)
def test_lines_of_a_copied_text_are_replaced_or_added_when_their_parameters_have_values(run, mine, configuration, text):
    (mine / "in.mine").write_text(INPUT)
    found = planned(files=[{"name": "in.lammps", "copy": str(mine / "in.mine"), "lines": LINES}])
    assert {mention.text for mention in found.mentions} == {"dump", "newton", "px", "skin"}
    job = found.objective.job(configuration, Context(run))
    assert (run / "in.lammps").read_text() == text
    assert job.copies == ()


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_lines_are_matched_to_their_end_and_written_with_the_end_that_the_others_have(run, mine, end):
    (mine / "in.mine").write_bytes(f"units lj{end}neighbor  0.3{end}run 10{end}".encode())
    lines = [
        {"line": "neighbor {skin}", "replaces": r"^neighbor\s+[\d.]+$"},
        {"line": "newton off # {skin}", "replaces": "^newton", "before": r"^run \d+$"},
    ]
    found = planned(files=[{"name": "in.lammps", "copy": str(mine / "in.mine"), "lines": lines}])
    found.objective.job({"skin": 0.5}, Context(run))
    changed = f"units lj{end}neighbor 0.5{end}newton off # 0.5{end}run 10{end}"
    assert (run / "in.lammps").read_bytes() == changed.encode()


def making(counter: Path) -> list[list[str]]:
    count = f"open({str(counter)!r}, 'a').write('x')"
    make = "open('made', 'w').write(open('recipe').read() * 2)"
    return [[sys.executable, "-c", count], [sys.executable, "-c", make]]


def test_a_file_is_made_once_on_a_machine_and_again_when_its_source_changes(run, mine, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(mine / "cache"))
    (mine / "recipe").write_text("ab")
    files = [{"name": "made", "made_by": making(mine / "count"), "made_from": [str(mine / "recipe")]}]
    first = planned(files=files)
    assert planned(files=files).identity == first.identity
    assert (mine / "count").read_text() == "x"
    job = first.objective.job({}, Context(run))
    assert (run / "made").read_text() == "abab"
    assert Path(job.copies[0][1]).is_relative_to(mine / "cache")
    (mine / "recipe").write_text("c")
    assert planned(files=files).identity != first.identity
    assert (mine / "count").read_text() == "xx"


def test_a_prediction_makes_no_file_and_asks_of_the_same_problem(mine, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(mine / "cache"))
    (mine / "recipe").write_text("ab")
    files = [{"name": "made", "made_by": making(mine / "count"), "made_from": [str(mine / "recipe")]}]
    options = {"argv": ARGV, "files": files}
    study = studyfile.parse({"objective": "command", "name": "mine", "options": options}, "mine")
    asked = question(study, find_target("this", 1), LocalLauncher(), mine)
    assert not (mine / "cache").exists()
    assert not (mine / "count").exists()
    assert asked.plan.identity == planned(files=files).identity


def test_what_cannot_be_made_is_said_in_the_programs_own_words(mine, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(mine / "cache"))

    def error(program: str) -> str:
        (line,) = errors(files=[{"name": "made", "made_by": [[sys.executable, "-c", program]]}])
        return line

    failing = error("print('Reading recipe'); print('Fatal error:'); print('no such molecule'); exit(3)")
    assert "ended with exit code 3: Fatal error: no such molecule" in failing
    assert failing.endswith("@ options.files.0.made_by")
    assert "left no such file" in error("pass")
    (line,) = errors(files=[{"name": "made", "made_by": [["no-such-program"]]}])
    assert "program 'no-such-program' was not found" in line
    (line,) = errors(files=[{"name": "m", "made_by": [[sys.executable]], "made_from": [str(mine / "nowhere")]}])
    assert "nowhere: No such file" in line


def test_mistakes_in_such_files_each_with_its_path(mine):
    (mine / "binary").write_bytes(b"\0")
    lines = [{"line": "{", "replaces": "(", "before": "["}]
    found = errors(
        files=[
            {"name": "a", "copy": str(mine / "nowhere")},
            {"name": "b", "copy": str(mine / "binary"), "lines": [{"line": "x", "replaces": "y"}]},
            {"name": "c", "copy": str(mine / "binary"), "lines": lines},
            {"name": "d", "text": "", "lines": [{"line": "x", "replaces": "y"}]},
            {"name": "e", "copy": "x", "made_by": [[sys.executable]]},
            {"name": "f", "made_by": [[]]},
        ],
        input="g",
        progress={"pattern": "(x)", "file": "../log"},
    )
    places = {line.rpartition(" @ options.")[2] for line in found}
    assert places == {
        "files.0.copy",
        "files.1.copy",
        *(f"files.2.lines.0.{key}" for key in ("line", "replaces", "before")),
        "files.3.lines",
        "files.4.template",
        "files.5.made_by.0",
        "input",
        "progress.file",
    }


def test_an_own_input_replaces_the_file_that_the_study_names(run, mine, monkeypatch):
    (mine / "in.mine").write_text("run 10\n")
    monkeypatch.chdir(mine)
    lines = [{"line": "newton {newton}", "replaces": "^newton"}]
    files = [{"name": "in.lammps", "copy": "/shipped", "lines": lines}, {"name": "x", "text": "x"}]
    made = [{"name": "in.lammps", "made_by": [["no-such-program"]], "made_from": ["y"]}]
    own = registry.with_own_input("command", {"input": "in.lammps", "files": files}, "in.mine")
    planned(**own).objective.job({"newton": "off"}, Context(run))
    assert (run / "in.lammps").read_text() == "newton off\nrun 10\n"
    assert (run / "x").read_text() == "x"
    assert planned(**registry.with_own_input("command", {"input": "in.lammps", "files": made}, "in.mine"))
    assert registry.with_own_input("qe", {"input": "tio2"}, "in.mine") == {"input": "in.mine"}
    for options in ({}, {"input": "y", "files": files}, {"files": files}):
        with pytest.raises(PlanError, match=r"--input in\.mine: this study has no input to replace"):
            registry.with_own_input("command", options, "in.mine")


def test_progress_is_followed_in_a_file_of_the_run(run):
    found = planned(progress={"pattern": r"^step (\d+)", "file": "md.log"}).objective
    assert found.job({}, Context(run)).progress_file == "md.log"
    assert found.progress_reader()("step 7").step == 7
    assert (
        planned(progress={"pattern": r"(\d+)", "file": STDERR}).objective.job({}, Context(run)).progress_file == STDERR
    )
    assert planned(progress=r"(\d+)").objective.job({}, Context(run)).progress_file == "stdout"


def test_a_block_of_the_users_that_says_something_else_stays_in_an_input_of_nwchem(run):
    (file,) = tomllib.loads(Path("studies/nwchem.toml").read_text())["options"]["files"]
    mine = "geometry\nend\ndft; xc b3lyp; end\ndft; semidirect memsize 5 filesize 0; end\ntask dft energy\n"
    edits = tuple(LineEdit(**line) for line in file["lines"])
    EditedFile("mine.nw", mine, edits).write(run, {"integrals": "direct"})
    assert (run / "mine.nw").read_text().splitlines()[2:] == [
        "dft; xc b3lyp; end",
        "scf; direct; end",
        "dft; direct; end",
        "task dft energy",
    ]
