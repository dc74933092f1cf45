"""Every parser that is fuzzed reads what the fuzzer begins with, so that its description follows the parser."""

import contextlib
import signal

import pytest

from benchmarks.fuzz import TARGETS, Tally, count

DEEP = "[" * 100_000
LONG = "9" * 5_000  # more digits than Python makes a number of
FOUND = [
    ("status of a job", "{}"),
    ("status of a job", "[]"),
    ("status of a job", DEEP),
    ("status of a job", '{"state": "ended", "reason": "no reason"}'),
    ("tokens", DEEP),
    ("tokens", '{"a": {"sha256": "x", "made": "9999-12-31T23:59:59-23:00", "scope": "look"}}'),
    ("module, spack", "-" * 100_000 + "1"),
    ("nvidia-smi", f"a,{LONG},8.0"),
    ("nvidia-smi", "x" * 200_000 + ",1"),
    ("nvidia-smi", f"GPU {LONG}: a (UUID: GPU-1)"),
    ("nvidia-smi", "GPU 0: a (UUID: GPU-1)\nGPU-1, \0\n"),
    ("rocm-smi", DEEP),
    ("rocm-smi", '{"card0": {"PCI Bus": "\\ud800"}}'),
    ("allocation of PBS", f"a\n{LONG}"),
    ("allocation of LSF", "a ² b"),
    ("allocation of Grid Engine", "PE\n²\na ² q"),
    ("qsub, qstat of Grid Engine", "job_number:"),
    ("bsub, bjobs", "12|EXIT|²|X|-\n"),
    ("qsub, qstat of PBS", f"Resource_List.walltime = {'9' * 400}:00:00\n"),
    ("TOML", f"a = {LONG}"),
    ("site file", f"a = {LONG}"),
    ("site file", 'base = "a\\u0000.toml"'),
    ("site file", 'base = "slurm"\nmachine = "a\\u0000.toml"'),
    ("study file", f"a = {LONG}"),
    ("value of --set", f"a = {LONG}"),
]
"""Inputs that once ended in a traceback."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_parser_that_is_fuzzed_reads_what_the_fuzzer_begins_with(target):
    read, errors = target.make()
    seeds = target.corpus()
    assert seeds
    for content in seeds:
        with contextlib.suppress(*errors):
            read(content)


@pytest.mark.parametrize(("name", "text"), FOUND, ids=lambda value: str(value)[:20].encode("unicode_escape").decode())
def test_what_was_found_is_read_or_refused_in_words_and_soon(name, text):
    read, errors = next(target.make() for target in TARGETS if target.name == name)
    signal.signal(signal.SIGVTALRM, pytest.fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, 5)  # processor time: none of these needs a tenth of a second
    try:
        with contextlib.suppress(*errors):
            read(text.encode())
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def test_inputs_count_also_where_the_parser_has_no_coverage():
    tally = Tally()
    count(tally, "INFO: seed corpus\n#2\tINITED exec/s: 0 rss: 66Mb\n#4096\tDONE   exec/s: 409 rss: 70Mb\n")
    assert (tally.executions, tally.new_coverage) == (4096, 0)
