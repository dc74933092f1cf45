"""A study of a command that takes no time, and sessions whose runs wait."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STUDY = """
objective = "command"
description = "a command that is fastest at x = 7"

[options]
argv = ["awk", "BEGIN {{ d = {x} - 7; print \\"took\\", 1 + d * d }}"]
metrics = [{ name = "took_s", unit = "s", pattern = 'took (\\S+)' }]

[budget]
trials = 12

[repeats]
max_runs = 3

[verdict]
pairs = 6
max_pairs = 6
rounds = 2

[space.parameters.x]
type = "integer"
low = 1
high = 40
default = 20
help = "how far"

[space.parameters.y]
type = "integer"
values = [1, 2, 4]
optional = true

[[space.constraints]]
name = "whole"
rule = "x % y == 0"
reason = "y shares x out"
"""


def brief(study: str) -> str:
    """Return the study with a verdict of few runs, for tests of something else."""
    few = "candidates = 1\nconfidence = 0.75\npairs = 3\nmax_pairs = 3\n"
    return study.replace("pairs = 6\nmax_pairs = 6\n", few)


def held(folder: Path) -> str:
    """Return a study whose runs wait, from trial 3 on, while the file `hold` exists, and create that file."""
    (folder / "hold").touch()
    wait = f"0000[3-9]*|000[1-9]*) while [ -e {folder}/hold ]; do sleep 0.1; done"
    # Values large enough that no cap stops a run.
    program = f"case ${{{{PWD##*/}}}} in {wait};; esac; echo took 100{{x}}"
    return brief(STUDY).replace('"awk", "BEGIN', f'"sh", "-c", "{program}", "BEGIN')


@contextmanager
def held_session(folder: Path, *words: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a session of the held study, and provide it after its third trial."""
    (folder / "mine.toml").write_text(held(folder), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "autotune", "study", "./mine.toml", "--verbose", *words],
        cwd=folder,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as session:
        assert session.stderr is not None
        for line in session.stderr:
            if line.startswith("trial 2:"):
                break
        try:
            yield session
        finally:
            (folder / "hold").unlink(missing_ok=True)
            session.kill()  # a failed test must not wait for it
