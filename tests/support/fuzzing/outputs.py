"""Parsers of inputs and outputs of measured programs: pw.x, patterns, progress of trainings."""

# ruff: noqa: PLC0415  imports wait until the fuzzer can instrument them

import re
from pathlib import Path
from types import SimpleNamespace

from tests.support.fuzzing.target import OUTPUTS, Made, Target, of_file, of_text


def _pwx_output() -> Made:
    from launchers.job import EndReason, JobState, JobStatus
    from objectives.base import Output, RunFailure
    from objectives.qe.failures import find_failure
    from objectives.qe.output import IterationReader, parse

    def read(text: str) -> object:
        output = Output(text, text[-500:], JobStatus(JobState.ENDED, EndReason.EXITED, exit_code=1), Path("/nowhere"))
        reader = IterationReader()
        for line in text.splitlines()[:50]:
            reader.read(line)
        return find_failure(output, parse(text))

    return of_text(read, RunFailure)


def _pwx_input() -> Made:
    from objectives.qe.deck import Deck
    from objectives.qe.description import describe
    from objectives.qe.input_check import find_problems
    from objectives.qe.known_sizes import KnownSizes
    from objectives.qe.lattice import UndescribedError

    def read(text: str) -> object:
        deck = Deck(text)
        if find_problems(deck):
            return None
        deck.with_values("system", {"nbnd": 8})
        return describe(deck, dict.fromkeys(deck.pseudopotentials, 4.0), KnownSizes())

    return of_text(read, UndescribedError)


def _pseudopotential() -> Made:
    from objectives.qe.description import valence_electrons
    from objectives.qe.lattice import UndescribedError

    return of_file(valence_electrons, "x.UPF", UndescribedError)


def _json_figure() -> Made:
    from objectives.base import InvalidResult
    from objectives.figure import Figure

    figure = Figure("time", path=("a", 0, "b"))
    return of_text(lambda text: figure.value(SimpleNamespace(stdout=text, stderr="")), InvalidResult)  # type: ignore[arg-type]


def _pattern() -> Made:
    """Take the first line as a pattern and the rest as an output; a slow pattern must hit the time limit."""
    from objectives import patterns

    patterns.LIMIT_S = 1.0

    def read(text: str) -> object:
        pattern, _, output = text.partition("\n")
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError, MemoryError):
            return None
        return patterns.find_last(pattern, output)

    return of_text(read, patterns.SlowPatternError)


def _training_line() -> Made:
    from objectives.training import progress

    def read(text: str) -> object:
        for kind in ("auto", "json", "keras", "lightning", "plain"):
            reader = progress.make_reader(kind)  # type: ignore[arg-type]
            for line in text.splitlines()[:20]:
                reader(line)
        return None

    return of_text(read)


TARGETS = (
    Target("pw.x output", _pwx_output, (OUTPUTS,), most_bytes=32768),
    Target("pw.x input", _pwx_input, ("studies/inputs/*.in",)),
    Target("pseudopotential", _pseudopotential, words=('<PP_HEADER z_valence="4.0"/>', " 4.0  Z valence\n")),
    Target("figure in JSON", _json_figure, words=('{"a": [{"b": 1.5}]}', '{"a": [{"b": "1e5"}]}')),
    Target(
        "output pattern",
        _pattern,
        words=(r"time: (\d+)" + "\ntime: 12\n", "(a|aa)+$\naaaaaaaaaaaaaaaaaaaaab\n"),
        most_bytes=400,
    ),
    Target(
        "training progress",
        _training_line,
        words=(
            '{"step": 1, "loss": 0.5}',
            "Epoch 1/3\n10/10 [==] - 1s - loss: 0.5 - val_loss: 0.4\n",
            "Epoch 1:  50%|#####     | 5/10 [00:01<00:01,  5.0it/s, loss=0.5]",
            "epoch 1 step 3 loss 0.5",
        ),
    ),
)
