"""Programs that misbehave, run for real: each ends as the right typed outcome and leaves nothing running."""

import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from autotune.execution.run_folder import clean
from autotune.execution.task import Task, run_task
from autotune.records.outcome import Outcome
from launchers import STDERR, STDOUT, LineReader
from launchers.local import LocalLauncher
from launchers.run import run
from objectives.base import Answer, Context, FailureKind
from objectives.command import plan
from tests.launchers.jobs import STUBBORN, supervisors_in, wait_for
from tests.support.processes import left_in

pytestmark = pytest.mark.full

APPLICATION = FailureKind.APPLICATION_ERROR
INFRASTRUCTURE = FailureKind.INFRASTRUCTURE_ERROR
INVALID = FailureKind.INVALID_RESULT
MEMORY = FailureKind.OUT_OF_MEMORY
TIMED_OUT = FailureKind.TIMED_OUT

MIB = 2**20
# Of an output the last 64 MiB are looked through, which takes three times that; whoever held all of it would need more.
FLOOD_MIB = 320
FILL = "while True: file.write(bytes(65536))"
RESULT = "print('time: 1.5 answer: 42 done', flush=True)\n"
OPTIONS = {
    "success": ["done"],
    "metrics": [{"name": "time_s", "unit": "s", "pattern": r"time: (\S+)"}],
    "answer": {"pattern": r"answer: (\S+)", "tolerance": 1e-6},
}


@pytest.fixture
def folder(tmp_path: Path):
    yield tmp_path
    assert left_in(tmp_path) == []
    wait_for(lambda: not supervisors_in(tmp_path))


def task_of(
    place: Path, program: str, *, time_limit_s: float | None = None, reference: float | None = None, **options: object
) -> Task:
    """Make a run of a Python program ready in `place`."""
    place.mkdir(exist_ok=True)
    source = place / "program.py"
    source.write_text(program)
    argv = [sys.executable, "-S", str(source)]
    planned = plan(
        {"argv": argv, **OPTIONS, **options}, machine={}, run_job=lambda job: pytest.fail("ran"), folder=place
    )
    job = planned.objective.job({}, Context(place, time_limit_s=time_limit_s))
    return Task(0, job, planned.objective, None if reference is None else Answer("answer", reference, 1e-6))


def outcome_of(place: Path, program: str, *, launcher: LocalLauncher | None = None, **given: object) -> Outcome:
    """Run a Python program in `place` and return what a study would store."""
    return run_task(task_of(place, program, **given), launcher or LocalLauncher(grace_s=0.2))


def ending(outcome: Outcome) -> tuple[FailureKind | None, str]:
    assert (outcome.failure is None) == bool(outcome.metrics)
    assert (outcome.failure is None) == (not outcome.message)
    assert len(outcome.message) < 1000
    return outcome.failure, outcome.code


def test_a_good_program_is_a_measurement(folder):
    outcome = outcome_of(folder, RESULT, reference=42.0)
    assert ending(outcome) == (None, "")
    assert outcome.metrics == {"time_s": 1.5}


HANGS = {
    "hangs": "import time; time.sleep(1000)",
    "computes for ever": "while True: pass",
    "hangs after its result": f"import time\n{RESULT}time.sleep(1000)",
    "ignores signals": """
import signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
time.sleep(1000)
""",
    "stops itself": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "waits for a child that does not listen": STUBBORN % 1000,
    "starts again when it is asked to end": """
import os, signal, sys, time
def again(*_):
    if os.fork() == 0: os.setsid(); time.sleep(1000)
    time.sleep(1000)
signal.signal(signal.SIGTERM, again)
time.sleep(1000)
""",
}


@pytest.mark.parametrize("program", HANGS.values(), ids=HANGS)
def test_what_does_not_end_is_timed_out(folder, program):
    outcome = outcome_of(folder, program, time_limit_s=0.5)
    assert ending(outcome) == (TIMED_OUT, "time-limit")
    assert outcome.usage.elapsed_s >= 0.5


LEAVES_CHILDREN = {
    "in another session": STUBBORN % 0.3,
    "many": "import os, time\nfor _ in range(50):\n    if os.fork() == 0: os.setsid(); time.sleep(1000)\n",
    "in another folder": "import os, time\nif os.fork() == 0: os.chdir('/'); time.sleep(1000)\n",
    "that fork on": """
import os, time
if os.fork() == 0:
    while True:
        if os.fork(): os._exit(0)
        os.setsid()
        time.sleep(0.01)
""",
}


@pytest.mark.parametrize("program", LEAVES_CHILDREN.values(), ids=LEAVES_CHILDREN)
def test_children_that_are_left_behind_end_with_the_run(folder, program):
    outcome = outcome_of(folder, program + RESULT)
    assert ending(outcome) == (None, "")
    assert outcome.metrics == {"time_s": 1.5}


FILLS_ITS_DISK = {
    "disk": f"file = open('/dev/full', 'wb', 0)\n{FILL}",
    "quota": "import errno, os; raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))",
}


@pytest.mark.parametrize("program", FILLS_ITS_DISK.values(), ids=FILLS_ITS_DISK)
def test_a_full_disk_is_not_the_configurations_fault(folder, program):
    outcome = outcome_of(folder, program)
    assert ending(outcome) == (INFRASTRUCTURE, "disk-full")
    assert outcome.retryable


@pytest.fixture
def small_disk(folder: Path):
    disk = folder / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and not subprocess.call(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk], stderr=subprocess.DEVNULL
    )
    if not mounted:
        pytest.skip("only root can mount, and not everywhere")
    yield disk
    wait_for(lambda: not supervisors_in(disk))
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("end", ["raise", "import os; os._exit(0)"], ids=["says so", "does not notice"])
def test_a_full_disk_is_known_when_nobody_can_write_it_down(small_disk, end):
    program = f"file = open('scratch', 'wb', 0)\ntry:\n    {FILL}\nexcept OSError:\n    {end}\n"
    outcome = outcome_of(small_disk, program)
    assert ending(outcome) == (INFRASTRUCTURE, "disk-full")


# How the program ends, and its outcome.
ENDINGS = {
    "prints nothing": ("", INVALID, "no-success-pattern"),
    "prints no metric": ("print('done')", INVALID, "no-metric"),
    "prints no number": (RESULT.replace("1.5", "fast"), INVALID, "no-metric"),
    "prints half its result": ("print('time: 1.5 done')", INVALID, "no-metric"),
    "prints zero bytes": ("print(chr(0) * 10_000_000)", INVALID, "no-success-pattern"),
    "fails after its result": (RESULT + "raise SystemExit(3)", APPLICATION, "exit-code"),
    "fails without a word": ("raise SystemExit(3)", APPLICATION, "exit-code"),
    "fails at the end of an endless line": ("print(' x' * 10_000_000, end=''); exit(3)", APPLICATION, "exit-code"),
    "crashes": ("import os; os.kill(os.getpid(), 11)", APPLICATION, "signal"),
    "aborts": ("import os; os.abort()", APPLICATION, "signal"),
    "is killed from outside": ("import os; os.kill(os.getpid(), 9)", INFRASTRUCTURE, "killed"),
    "kills its supervisor": ("import os, time; os.kill(os.getppid(), 9); time.sleep(1000)", INFRASTRUCTURE, "lost"),
    "wants more memory than there is": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28)); bytearray(2**29)",
        MEMORY,
        "out-of-memory",
    ),
    "recurses without end": ("def f(): f()\nf()", APPLICATION, "exit-code"),
    "closes its output": ("import os; os.close(1); os.close(2)", INVALID, "no-success-pattern"),
    "removes its output": (f"import os; os.remove({STDOUT!r}); os.remove({STDERR!r})", INVALID, "no-success-pattern"),
}


@pytest.mark.parametrize(("program", "kind", "code"), ENDINGS.values(), ids=ENDINGS)
def test_every_ending_has_its_type(folder, program, kind, code):
    assert ending(outcome_of(folder, program)) == (kind, code)


@pytest.mark.parametrize(
    ("answer", "code"), [("42.1", "wrong-answer"), ("-42", "wrong-answer"), ("nan", "no-metric"), ("inf", "no-metric")]
)
def test_a_wrong_answer_is_no_measurement_however_fast_it_came(folder, answer, code):
    outcome = outcome_of(folder, RESULT.replace("42", answer), reference=42.0)
    assert ending(outcome) == (INVALID, code)


WOULD_HIDE_ITS_RESULT = {
    "prints invalid UTF-8": r"import sys; sys.stdout.buffer.write(b'\xff\xfe\x80 \xc3')",
    "closes its errors": "import os; os.close(2)",
    "empties its folder": f"import os; [os.remove(name) for name in os.listdir() if name != {STDOUT!r}]",
    "makes its folder read-only": "import os; os.chmod('.', 0o500)",
    "closes its folder": "import os; os.chmod('.', 0)",
    "goes elsewhere": "import os; os.chdir('/')",
}


@pytest.mark.parametrize("program", WOULD_HIDE_ITS_RESULT.values(), ids=WOULD_HIDE_ITS_RESULT)
def test_a_result_is_found_nevertheless(folder, program):
    outcome = outcome_of(folder / "run", f"{program}\n{RESULT}")
    assert ending(outcome) == (None, "")
    assert outcome.metrics == {"time_s": 1.5}


@pytest.mark.parametrize("stream", [1, 2], ids=[STDOUT, STDERR])
@pytest.mark.parametrize("removed", [False, True], ids=["kept", "removed"])
def test_printing_without_end_is_stopped(folder, stream, removed):
    remove = f"os.remove({(STDOUT, STDERR)[stream - 1]!r})\n" if removed else ""
    endless = f"import os\n{remove}while True: os.write({stream}, b'again and ' * 100)"
    outcome = outcome_of(folder, endless, launcher=LocalLauncher(grace_s=0.2, output_limit_bytes=8 * MIB))
    assert ending(outcome) == (APPLICATION, "output-limit")
    assert "more than 8 MiB" in outcome.message


@pytest.fixture
def traced_memory():
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@pytest.mark.parametrize("line", [r"bytes(79) + b'\n'", "b'x'"], ids=["lines", "one line"])
def test_a_flood_of_output_is_a_measurement_in_bounded_memory(folder, traced_memory, line):
    place = folder / "run"
    program = f"import os\nblock = ({line}) * ({MIB} // len({line}))\nfor _ in range({FLOOD_MIB}): os.write(1, block)\n"
    outcome = outcome_of(place, f"{program}print()\n{RESULT}")
    assert ending(outcome) == (None, "")
    assert outcome.metrics == {"time_s": 1.5}
    assert traced_memory() < FLOOD_MIB * MIB
    clean(place)
    assert (place / STDOUT).stat().st_size < 8 * MIB
    shutil.rmtree(place)


def test_an_endless_line_can_be_followed_in_bounded_memory(folder, traced_memory):
    path = folder / STDOUT
    with path.open("wb") as file:
        file.truncate(1024 * MIB)
        file.seek(0, os.SEEK_END)
        file.write(b"\nshort\n")
    line, short = LineReader(path).new_lines()
    assert 0 < len(line) < MIB
    assert short == "short"
    assert traced_memory() < 16 * MIB


def test_many_lines_are_followed_a_part_at_a_time(folder):
    task = task_of(folder, "print('\\n'.join(map(str, range(1_000_000))), end='')")
    run(LocalLauncher(), task.job)
    reader = LineReader(folder / STDOUT)
    first = reader.new_lines()
    assert 0 < len(first) < 500_000
    seen: list[str] = []
    run(LocalLauncher(), task.job, seen.extend)
    assert seen == [str(number) for number in range(1_000_000)]
    assert seen[: len(first)] == first
