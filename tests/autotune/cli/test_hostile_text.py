"""A study file, a storage and a program of others: whatever they hold, no command prints what a terminal would obey."""

import io
import json
import logging
import shutil
import unicodedata

import pytest

from autotune.cli import common
from autotune.cli.command_table import COMMANDS
from autotune.cli.plain_output import PlainFormatter
from autotune.cli.tables import Column, fit_table
from autotune.records.labels import Labels
from autotune.results.export import as_csv
from autotune.storage.observation import Observation
from autotune.storage.studies import StoredStudies
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind, Metric
from spaces import Choice, Constraint, Integer, Space
from tests.support.command_line import run_main
from tests.support.fakes import definition, failed, took
from tests.support.stored import add_trial

# A colour, the clipboard (OSC 52), a link (OSC 8), a bell, text from right to left, C1's CSI, and a line of its own.
HOSTILE = "seen\x1b[31m\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x1b\\\u202e\u2066\x9b2J\x00\r\nforged\u2028line"
FILE = f"""
name = "mine"
description = {json.dumps(HOSTILE)}
objective = "command"
{json.dumps(HOSTILE)} = 1

[options]
argv = ["printf", {json.dumps(HOSTILE.replace(chr(0), "") + "1.5")}, "{{x}}"]
environment = {{ A = {json.dumps(HOSTILE)} }}
metrics = [{{ name = "seconds", pattern = '(\\S+)$', unit = {json.dumps(HOSTILE)} }}]

[space.parameters.x]
type = "choice"
choices = [{json.dumps(HOSTILE)}, "b"]

[[space.constraints]]
name = {json.dumps(HOSTILE)}
rule = {json.dumps("x == " + HOSTILE)}
reason = {json.dumps(HOSTILE)}
"""
STUDY = ("mine", "--storage", "autotune.db")
# Words for each command: those that show what others wrote, and those that can at least be refused.
WORDS = {
    "init": [["--output", "-", "--", "printf", HOSTILE.replace("\0", "")]],
    "check": [["./hostile.toml", "--static"], ["./hostile.toml"], ["./runs.toml", "--run"], [HOSTILE]],
    "study": [
        ["./hostile.toml", "--trials", "1"],
        ["./runs.toml", "--dry-run"],
        ["--dry-run", "--", "printf", HOSTILE.replace("\0", ""), "{n=1,2}"],
    ],
    "best": [STUDY, [*STUDY, "--json"]],
    "trials": [STUDY, [*STUDY, "--csv"], [*STUDY, "--runs"], [*STUDY, "--runs", "--format", "csv"], [*STUDY, "--json"]],
    "studies": [["--known"], ["--known", "--markdown"]],
    "report": [[*STUDY, "--format", form, "--output", "-"] for form in ("markdown", "json", "html")],
    "picture": [[*STUDY, "--over", HOSTILE]],
    "importance": [STUDY],
    "compare": [["--runs", "1", "--", "printf", HOSTILE.replace("\0", ""), "--", "printf", "x"]],
    "confirm": [STUDY],
    "ablate": [STUDY],
    "sweep": [
        [*STUDY, "--over", "x"],
        ["--over", "n=1,2", "--repeats", "1", "--", "printf", HOSTILE.replace("\0", ""), "{n}"],
        ["--over", f"n=1,{HOSTILE[:9]}", "--repeats", "1", "--", "sh", "-c", "printf '\\033[31m' >&2; exit 3", "{n}"],
    ],
    "watch": [STUDY],
    "cancel": [STUDY],
    "pilot": [["./hostile.toml"]],
    "predict": [["./hostile.toml"]],
    "rightsize": [["./hostile.toml", "--deadline", "1h"]],
    "model": [["--storage", "autotune.db"]],
    "replay": [STUDY, ["hostile.csv", "--set", "options.metric=nothing"]],
    "serve": [["--url", "--port", "1"]],
    "serve token": [[]],
    "mcp": [["--url", f"http://{HOSTILE}"]],
    "machine": [[HOSTILE]],
    "doctor": [["--site", HOSTILE.replace("\0", "")]],
    "storage list": [[], ["--archived"], ["--json"]],
    "storage show": [[]],
    "storage merge": [["other.db", "--into", "autotune.db", "--dry-run"]],
    "storage rename": [[HOSTILE, "new"], ["mine", HOSTILE]],
    "storage label": [["mine"], ["mine", "--tag", HOSTILE]],
    "storage reset": [["mine"], ["none"]],
    "storage delete": [["mine"], ["none"]],
    "storage clean": [["--dry-run"]],
    "storage import": [["hostile.csv"]],
    "storage reread": [["mine", "--dry-run"]],
}
NAMES = [entry.name for entry in COMMANDS if entry.module]
NAMES += [f"{entry.name} {below.name}" for entry in COMMANDS for below in entry.commands]


def unseen(text):
    return sorted({c for c in text if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}})


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "autotune.db"
    space = Space(
        [Choice("x", (HOSTILE, "b"), default="b"), Integer.range("n", 1, 4, default=1)],
        [Constraint(HOSTILE, "n < 9", HOSTILE)],
    )
    about = definition(
        space,
        study={"name": "mine", "description": HOSTILE, "objective": "command", "options": {"argv": [HOSTILE]}},
        metrics=(Metric("wall_s", HOSTILE, kind="time"),),
        identity={"input": HOSTILE},
        machine={"host": HOSTILE, "cores": 8, "cpu_model": HOSTILE},
        facts={"version": HOSTILE},
    )
    store = StudyStore.create(f"sqlite:///{path}", "mine", about)
    add_trial(store, space, {"x": "b", "n": 1}, took(2.0), worth=Observation(2.0))
    add_trial(store, space, {"x": HOSTILE, "n": 1}, took(1.0), worth=Observation(1.0))
    add_trial(store, space, {"x": HOSTILE, "n": 2}, failed(FailureKind.APPLICATION_ERROR, HOSTILE))
    StoredStudies(f"sqlite:///{path}").note("mine", Labels(note=HOSTILE))
    return path


@pytest.fixture
def folder(storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("autotune.db", "other.db"):
        shutil.copy(storage, name)
    (tmp_path / "hostile.toml").write_text(FILE, encoding="utf-8")
    runs = FILE.partition("[[space.constraints]]")[0].replace(f"{json.dumps(HOSTILE)} = 1\n", "").replace("\\u0000", "")
    (tmp_path / "runs.toml").write_text(runs, encoding="utf-8")
    (tmp_path / "hostile.csv").write_text(f'x,"{HOSTILE}"\n1,2\n', encoding="utf-8")
    return tmp_path


def test_every_command_is_tried():
    assert sorted(WORDS) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_no_command_prints_what_a_terminal_obeys(name, folder):
    for words in WORDS[name]:
        ended = run_main(*name.split(), *words)
        assert "Traceback" not in ended.stderr
        assert unseen(ended.stdout + ended.stderr) == [], (words, ended.stdout, ended.stderr)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_script_is_exact_in_a_pipe_and_harmless_in_a_terminal(monkeypatch):
    for out, printed in ((io.StringIO(), "a\x1b[31m\u202eb\n"), (Terminal(), "a[31mb\n")):
        monkeypatch.setattr("sys.stdout", out)
        common.echo("a\x1b[31m\u202eb\n", exact=True)
        assert out.getvalue() == printed


def test_a_cell_and_a_record_of_a_log_are_one_line(capsys):
    common.output().print(fit_table([Column("a"), Column("b")], [[HOSTILE, "c"]], common.output()))
    record = logging.LogRecord("x", logging.INFO, "", 0, "%s: %s", ("mine", HOSTILE), None)
    logged, rows = PlainFormatter("%(message)s").format(record), as_csv([{"a": HOSTILE, "b": "c"}]).splitlines()
    for text in (capsys.readouterr().out, logged, *rows):
        assert unseen(text) == []
        assert not any(line.lstrip(" │|").startswith("forged") for line in text.splitlines())
    assert (len(logged.splitlines()), len(rows)) == (1, 2)
    assert as_csv([{"a": HOSTILE}], exact=True) == f'a\n"{HOSTILE}"\n'


def test_markup_of_others_is_printed_as_text(capsys):
    common.output().print("[link=http://evil][red]x[/red][/link] :smile:")
    assert capsys.readouterr().out == "[link=http://evil][red]x[/red][/link] :smile:\n"
