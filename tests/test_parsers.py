"""Every parser of text from outside reads its inputs, and refuses hostile ones quickly, with a message."""

import contextlib
import signal

import pytest

from tests.support.fuzzing import TARGETS

DEEP = "[" * 100_000
LONG = "9" * 5_000  # more digits than Python converts to a number
BIG = "9" * 400  # more than a float holds
T1 = '{"ConfigurationSpace": {"TuningParameters": [{"Name": "n", "Values": "VALUES"}]}}'
CACHE = (
    '{"tune_params_keys": ["n"], "tune_params": {"n": [1]}, "cache": {"1": {"n": 1, "time": VALUE, "times": [VALUE]}}}'
)
HOSTILE = [
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
    *(("T1 space", text) for text in (T1.replace("VALUES", values) for values in ("-" * 200_000 + "1", DEEP, LONG))),
    *(("T1 space", text) for text in (DEEP, '{"a":' * 100_000, f'{{"ConfigurationSpace": {LONG}}}')),
    *(
        ("replayed CSV", f"n,mode,time_s\n{n},a,{s}\n2,b,1\n")
        for n, s in ((LONG, 1), (BIG, 1), (1, BIG), ("x" * 200_000, 1))
    ),
    *(
        ("replayed JSON", text)
        for text in (DEEP, '{"a":' * 100_000, CACHE.replace("VALUE", LONG), CACHE.replace("VALUE", BIG))
    ),
    *(
        ("imported file", text)
        for text in (DEEP, '{"a":' * 100_000, CACHE.replace("VALUE", LONG), CACHE.replace("VALUE", BIG))
    ),
    *(("imported table", f"n,time_s\n{n},1\n") for n in (LONG, BIG, "x" * 200_000)),
]
"""Inputs that once ended in a traceback."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_parser_reads_its_inputs(target):
    read, errors = target.make()
    seeds = target.corpus()
    assert seeds
    for content in seeds:
        with contextlib.suppress(*errors):
            read(content)


@pytest.mark.parametrize(("name", "text"), HOSTILE, ids=lambda value: str(value)[:20].encode("unicode_escape").decode())
def test_a_hostile_input_is_read_or_refused_in_words_and_soon(name, text):
    read, errors = next(target.make() for target in TARGETS if target.name == name)
    signal.signal(signal.SIGVTALRM, pytest.fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, 5)  # processor time: each input needs less than 0.1 s
    try:
        with contextlib.suppress(*errors):
            read(text.encode())
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
