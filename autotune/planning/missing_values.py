"""Find the values of parameters that name programs or files which this machine lacks."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from autotune.held_folders import temporary_folder
from launchers import Job
from objectives.base import Context, Objective, Plan
from spaces import Configuration, Space, Value
from spaces.parameters.problem import Problem

# Words and variables by which make and configure are given a compiler.
_COMPILER = re.compile(r"(?:MPI)?(?:CC|CXX|FC|F77|F90)=([^\s=]+)$")


def missing_values(plan: Plan, space: Space, steps: int | None = None, *, as_jobs: bool = False) -> list[Problem]:
    """Return a problem for each value that names a program or file which does not exist here.

    Args:
        plan: The plan of a study.
        space: Its space.
        steps: The steps of a training, for jobs that mention them.
        as_jobs: Whether a batch system makes the runs, whose nodes may have what this one lacks.
    """
    mentioned = {
        parameter
        for mention in plan.mentions
        if {"argv", "prepare", "environment"} & set((mention.path or "").split("."))
        for name in mention.names
        for parameter in space.behind(name)
    }
    named = [
        (parameter.name, value)
        for parameter in space.parameters
        if parameter.name in mentioned
        for value in parameter.values
        if isinstance(value, str)
    ]
    if plan.runs != "launched" or plan.recorded is not None or not named:
        return []
    default = space.default()
    found = []
    with temporary_folder("plan") as scratch:
        jobs = _Jobs(plan.objective, scratch, steps)
        usual = jobs.of(default)
        for name, value in named:
            configuration = space.nearest({**default, name: value})
            if configuration.get(name) == value:
                found += [
                    Problem(_message(what, f"{name}={value}", as_jobs=as_jobs), f"space.parameters.{name}")
                    for what in _missing(jobs.of(configuration), usual, value)
                ]
    return found


def _message(what: str, choice: str, *, as_jobs: bool) -> str:
    if as_jobs:
        return f"{what} does not exist on this node: every run with {choice} fails unless the nodes of the jobs have it"
    return f"{what} does not exist here, so every run with {choice} would fail; provide it, or leave the value out"


class _Jobs:
    def __init__(self, objective: Objective, scratch: Path, steps: int | None) -> None:
        self._objective, self._scratch, self._steps = objective, scratch, steps
        self._made = 0

    def of(self, configuration: Configuration) -> tuple[Job, ...]:
        """Return the jobs of a configuration, each in a folder of its own with its input files."""
        self._made += 1
        folder = self._scratch / f"run-{self._made}"
        folder.mkdir()
        job = self._objective.job(configuration, Context(folder, steps=self._steps))
        return job.parts or (job,)


def _missing(jobs: tuple[Job, ...], usual: tuple[Job, ...], value: Value) -> Iterator[str]:
    """Yield the programs that `jobs` lack, and the files that they name in place of an existing one of `usual`."""
    for job, other in zip(jobs, usual, strict=False):
        if job.software is not None:  # its programs are elsewhere
            continue
        for variable in (f"{name}={text}" for name, text in job.environment.items() if str(value) in text):
            if (compiler := _COMPILER.match(variable)) and not _is_program(compiler[1], job):
                yield f"program {compiler[1]!r}"
        for words, usual_words in zip(job.commands, other.commands, strict=False):
            called = [words[0], *(match[1] for word in words[1:] if (match := _COMPILER.match(word)))]
            yield from (f"program {one!r}" for one in called if str(value) in one and not _is_program(one, job))
            if len(words) != len(usual_words):  # a word that only one of them has would shift the others
                continue
            for word, usual_word in zip(words[1:], usual_words[1:], strict=True):
                path, usual_path = _path_in(word), _path_in(usual_word)
                is_named = word != usual_word and str(value) in path
                if is_named and (other.folder / usual_path).is_file() and not (job.folder / path).exists():
                    yield f"file {path!r}"


def _is_program(word: str, job: Job) -> bool:
    if "/" not in word or Path(word).is_absolute():
        return shutil.which(word) is not None
    # A relative program is in the run's folder, where `prepare` may make it.
    return bool(job.prepare) or (job.folder / word).exists()


def _path_in(word: str) -> str:
    """Return the word, or the value in `--option=value`."""
    option, equals, value = word.partition("=")
    return value if equals and option.startswith("-") else word
