"""Fuzz every parser of foreign text, guided by coverage; find inputs that fail without a proper message.

    pip install -r benchmarks/fuzz-requirements.txt                     # into an environment that has autotune
    python -m benchmarks.fuzz                                           # every parser, a minute each
    python -m benchmarks.fuzz --targets "study file" rule --seconds 600
    python -m benchmarks.fuzz --list

Each parser runs in its own process, in which atheris (libFuzzer) changes inputs so that they reach new branches. The
first inputs are files and answers from the project (`tests/support/fuzzing/`). A finding is an exception that the
parser is not allowed to raise, or an input that takes more than `--limit-s` of CPU time or `--memory-mib` of memory.
Each finding is saved to a file under `--found`. The exit code is 1 if there is any.
"""

import argparse
import hashlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.fuzzing import TARGETS
from tests.support.fuzzing.target import ROOT, Target

_ROOMS = ["autotune", "objectives", "spaces", "launchers"]
_FAILS = "finding "  # a child prints this before an error, and continues
# For a parser that is not written in Python, libFuzzer reports executions but no coverage.
_COVERAGE = re.compile(r"^#(\d+)\s+(\w+)\s+(?:cov: (\d+))?", re.MULTILINE)
_ENDED_BY = re.compile(r"ERROR: libFuzzer: ([\w-]+)|SUMMARY: libFuzzer: ([\w-]+)")
# Python's SIGVTALRM limits CPU time, but cannot interrupt code in C. libFuzzer's own timeout can; it is in wall time,
# so this factor keeps a busy machine from causing false findings.
_CODE_IN_C = 6
_GRACE_S = 600  # a child imports first, maybe on a busy machine, and libFuzzer checks its clock only between inputs


class _TooLongError(BaseException):
    """An input exceeds its time limit. A BaseException, so that no parser catches it."""


@dataclass
class ParserResult:
    """Counts and findings of one parser."""

    executions: int = 0
    new_coverage: int = 0
    findings: dict[str, str] = field(default_factory=dict)  # from error and place to the file with the input
    trouble: str = ""


def main() -> int:
    """Fuzz the chosen parsers, one after another, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", metavar="NAME", default=None, help="parsers to fuzz; default: all")
    parser.add_argument("--seconds", type=float, default=60.0, help="time per parser")
    parser.add_argument("--limit-s", type=int, default=10, help="CPU time limit per input")
    parser.add_argument("--memory-mib", type=int, default=2048, help="memory limit per parser")
    parser.add_argument("--found", type=Path, default=None, help="folder for findings and corpora")
    parser.add_argument("--list", action="store_true", help="print the names of the parsers")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    known = {target.name: target for target in TARGETS}
    if given.list:
        print("\n".join(known))
        return 0
    if given.child is not None:
        _fuzz_in_this_process(known[given.child], given)
        return 0
    if unknown := [name for name in given.targets or () if name not in known]:
        parser.error(f"no parser is called {unknown[0]!r}; --list names them")
    folder = given.found or Path(tempfile.mkdtemp(prefix="autotune-fuzz-"))
    print(f"Failing inputs are saved in {folder}.\n", flush=True)
    print(f"{'parser':28} {'executions':>10} {'new coverage':>12} {'findings':>8} {'seconds':>8}", flush=True)
    findings = 0
    for target in (known[name] for name in given.targets or known):
        begun = time.monotonic()
        result = _fuzz_parser(target, folder / re.sub(r"\W+", "-", target.name), given)
        findings += len(result.findings) + bool(result.trouble)
        seconds = time.monotonic() - begun
        counts = f"{result.executions:10} {result.new_coverage:12} {len(result.findings):8} {seconds:8.0f}"
        print(f"{target.name:28} {counts}", flush=True)
        for what, where in result.findings.items():
            print(f"    {what}: {where}", flush=True)
        if result.trouble:
            print(f"    fuzzing stopped early: {result.trouble}", flush=True)
    return 1 if findings else 0


def _fuzz_parser(target: Target, folder: Path, given: argparse.Namespace) -> ParserResult:
    """Fuzz one parser; when an input ends the process, a new process continues with the corpus so far."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for content in target.corpus():
        (corpus / hashlib.sha256(content).hexdigest()).write_bytes(content)
    result, ends_at = ParserResult(), time.monotonic() + given.seconds
    while (left := ends_at - time.monotonic()) >= 1:
        command = [sys.executable, "-m", "benchmarks.fuzz", "--child", target.name, "--found", str(folder)]
        command += [
            f"--limit-s={given.limit_s}",
            f"--seconds={left:.0f}",
            "--",
            f"-timeout={given.limit_s * _CODE_IN_C}",
            f"-rss_limit_mb={given.memory_mib}",
            f"-max_len={target.most_bytes}",
            f"-artifact_prefix={folder}/",
            str(corpus),
        ]
        try:
            ended = subprocess.run(
                command,
                cwd=ROOT,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=left + _GRACE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            result.findings.setdefault("a hang that no limit ends", f"the last input in {corpus}")
            break
        said = ended.stdout + ended.stderr
        add_progress(result, said)
        for line in said.splitlines():
            if line.startswith(_FAILS):
                what, where = json.loads(line.removeprefix(_FAILS))
                result.findings.setdefault(what, where)
        if ended.returncode == 0:
            result.trouble = "" if result.executions else "nothing was executed"
            break
        end = _ENDED_BY.search(said)
        kept = re.search(r"Test unit written to (\S+)", said)
        if end is None or kept is None:
            result.trouble = (said.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
            break
        place = next((line.strip() for line in reversed(said.splitlines()) if re.search(r'File ".*", line', line)), "")
        result.findings.setdefault(f"{end[1] or end[2]} {place}".strip(), kept[1])
    return result


def add_progress(result: ParserResult, said: str) -> None:
    """Add the executions and coverage that libFuzzer printed."""
    states = [(int(number), word, int(covered or 0)) for number, word, covered in _COVERAGE.findall(said)]
    if not states:
        return
    result.executions += max(number for number, _, _ in states)
    begun = next((covered for _, word, covered in states if word == "INITED"), states[0][2])
    result.new_coverage += max(covered for _, _, covered in states) - begun


def _fuzz_in_this_process(target: Target, given: argparse.Namespace) -> None:
    """Fuzz in this process until libFuzzer ends it."""
    begun = time.monotonic()
    import atheris  # noqa: PLC0415  only the child needs it

    with atheris.instrument_imports(include=_ROOMS, enable_loader_override=False):
        read, allowed = target.make()
    seen: set[str] = set()
    signal.signal(signal.SIGVTALRM, _raise_too_long)

    def once(data: bytes) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, given.limit_s)
        try:
            read(data)
        except allowed:
            pass
        except (Exception, _TooLongError) as error:  # noqa: BLE001  any other error is a finding
            _save_input(error, data, given.found, seen)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    # libFuzzer counts from its own import. On a busy machine the imports after it can take longer than `--seconds`.
    total_s = given.seconds + time.monotonic() - begun
    atheris.Setup([sys.argv[0], f"-max_total_time={total_s:.0f}", *given.rest], once)
    atheris.Fuzz()


def _raise_too_long(*_: object) -> None:
    raise _TooLongError


def _save_input(error: BaseException, data: bytes, folder: Path, seen: set[str]) -> None:
    """Save the first input of each kind of error: same type, raised through the same last line of the project."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(ROOT))]
    own = [frame for frame in frames if "benchmarks" not in Path(frame.filename).parts] or frames
    at = f"{Path(own[-1].filename).relative_to(ROOT)}:{own[-1].lineno}" if own else "?"
    what = f"{type(error).__name__} at {at}"
    if what in seen:
        return
    seen.add(what)
    path = folder / f"error-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    print(_FAILS + json.dumps([what, str(path)]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
