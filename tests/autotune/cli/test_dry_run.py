"""`study --dry-run` of a study whose runs have files: what can be pasted must find them."""

import subprocess

from tests.support.command_line import invoke

STUDY = """
objective = "command"
[options]
argv = ["cat", "in.melt"]
[[options.files]]
name = "in.melt"
template = "melt.tmpl"
delimiters = ["@", "@"]
[space.parameters.skin]
type = "integer"
values = [1, 2]
default = 2
[budget]
trials = 1
"""


def dry_run(folder, *words):
    (folder / "melt.tmpl").write_text("skin @skin@\n" + "line\n" * 9)
    (folder / "melt.toml").write_text(STUDY)
    ended = invoke("study", str(folder / "melt.toml"), "--dry-run", *words)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def test_files_of_a_run_are_shown(tmp_path):
    text = dry_run(tmp_path)
    assert "#   file in.melt: 10 lines\n#     | skin 2\n#     | line\n" in text
    assert text.count("| line") == 3
    assert "cd RUN-FOLDER && " in text


def test_with_runs_the_files_are_there_and_the_command_can_be_pasted(tmp_path):
    text = dry_run(tmp_path, "--runs", str(tmp_path / "look"))
    command = next(line for line in text.splitlines() if line.startswith("cd "))
    assert subprocess.check_output(["sh", "-c", command], text=True).startswith("skin 2\n")
