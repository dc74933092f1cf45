"""The text of a study file for a command line, with comments that teach what each section is for."""

import json
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from autotune.planning.command_line import CommandLineProposal, Knob, propose_knobs


def harmless() -> tuple[str, ...]:
    """Return a harmless command, where none was given: it packs a part of this Python, and throws the result away."""
    target = str(Path(getattr(unicodedata, "__file__", sys.executable)).resolve())
    if shutil.which("xz"):
        return ("xz", "--stdout", "--threads=1", "--block-size=262144", target)
    return ("gzip", "--stdout", "-6", target) if shutil.which("gzip") else (sys.executable, "-c", "sum(range(10 ** 7))")


_THREADS = Knob("threads", "1", "OMP_NUM_THREADS", "threads")


def study_text(words: Sequence[str]) -> str:
    """Return a study file for a command line; it can be tuned as it is."""
    proposal = propose_knobs(words)
    active = [knob for knob in proposal.knobs if knob.kind]
    if not active and proposal.knobs:
        active = list(proposal.knobs)
    elif not active:
        active = [_THREADS]
    left = [knob for knob in proposal.knobs if knob not in active]
    return "\n".join([*_head(words), *_options(proposal, active, left), *_space(active, left), _BUDGET])


def _head(words: Sequence[str]) -> Iterator[str]:
    yield "# What autotune is to tune, for the command"
    for line in shlex.join(words).splitlines():
        yield f"#     {_comment(line)}"
    yield "# Change what is not right (lines that begin with # do nothing), then:"
    yield "#     autotune check ./THIS-FILE          every mistake with its line; --run makes one run"
    yield "#     autotune study ./THIS-FILE          tunes"
    yield ""
    yield 'objective = "command"'
    yield 'description = ""                        # one line for people'


def _options(proposal: CommandLineProposal, active: Sequence[Knob], left: Sequence[Knob]) -> Iterator[str]:
    values = {knob.name: int(knob.value) if knob.is_whole else knob.value for knob in left}
    yield ""
    yield "[options]"
    yield "# The command line, word by word, without a shell: {name} is the value of parameter name, {{ is a brace"
    yield "# Each run has an empty folder of its own, so files are given by their full path. A word that mentions a"
    yield "# parameter without a value is left out."
    yield f"argv = [{', '.join(_text(_partly(word, values)) for word in proposal.argv)}]"
    kinds = {knob.kind: knob.name for knob in active}
    if "ranks" in kinds:
        yield "# mpirun (or what this machine has instead) starts that many ranks of it."
        yield f'ranks = "{kinds["ranks"]}"'
    else:
        yield '# ranks = "np"                         # an MPI program: the parameter that counts its ranks'
    if "threads" in kinds:
        yield "# Each run gets as many cores of its own (times the ranks); OMP_NUM_THREADS is set to it."
        yield f'threads = "{kinds["threads"]}"'
    else:
        yield '# threads = "threads"                  # the parameter that counts threads; OMP_NUM_THREADS is set to it'
    yield from _environment(proposal, values)
    yield _MORE_OPTIONS


def _environment(proposal: CommandLineProposal, values: dict[str, int | str]) -> Iterator[str]:
    yield "# Variables; a run sees few others of yours. With {name}, too."
    if proposal.environment:
        pairs = ", ".join(f"{name} = {_text(_partly(value, values))}" for name, value in proposal.environment)
        yield f"environment = {{ {pairs} }}"
    else:
        yield '# environment = { OMP_SCHEDULE = "{schedule}" }'


_MORE_OPTIONS = r"""
# What is optimised. Without any, the time of the run. The last match of the pattern counts, its group is the
# number; json = "results.0.seconds" reads JSON instead; file = "out.json" reads a file that the run wrote. With
# kind = "time" (the run's time or that of its main part) or "rate" (work per time), lost runs can be stopped early.
# metrics = [{ name = "solve_s", unit = "s", pattern = 'solved in (\S+) s', kind = "time" }]

# The result, which every run must have: without it a fast wrong answer would not be noticed.
# answer = { name = "checksum", pattern = 'checksum (\S+)', tolerance = 1e-9 }

# What the output of a good run has, and that of a bad one. Exit codes other than 0 are failures anyway.
# success = ['^finished$']
# failure = ['^ERROR.*']

# A number in the output that grows with the work done: slow runs are then stopped long before their end.
# progress = '^step (\d+)'

# Commands that run before each run, in its folder, and do not count: a compiler.
# prepare = [["gcc", "-O{level}", "-o", "program", "/home/me/program.c"]]

# An input file for each run, with {name} in it; or template = "input.txt", a file beside this one.
# [[options.files]]
# name = "input.txt"
# text = '''
# block = {block}
# '''"""

_BUDGET = """
[budget]
trials = 20                             # configurations in all, the default included; more are added later
# timeout_s = 1800                      # no new one after that
# run_time_limit_s = 600                # a run that takes longer has failed

[verdict]
pairs = 6                               # at the end: fresh runs of the winner and of the default, side by side
max_pairs = 12                          # at most, while the interval is wider than
precision = 0.05                        # to either side
"""


def _space(active: Sequence[Knob], left: Sequence[Knob]) -> Iterator[str]:
    yield ""
    yield "# What may be tried: a parameter for each knob. type is integer (low and high, or values), float (low, high,"
    yield "# points), choice (values) or flag; optional = true also tries without it. In quotes, facts of the machine:"
    yield "# cores, memory_bytes. The default is what you run today: everything is compared with it."
    ranks = next((knob for knob in active if knob.kind == "ranks"), None)
    for knob in active:
        yield ""
        yield from _parameter(knob, ranks)
    for knob in left:
        yield ""
        yield f"# {_comment(knob.where)} {knob.value}: a knob, or the size of the problem, which must stay as it is?"
        yield f"# To tune it, write {{{knob.name}}} in its place above, and uncomment:"
        yield from (f"# {line}" for line in _parameter(knob, ranks))
    yield ""
    yield "# What cannot work, or need not be tried, with its reason."
    threads = next((knob for knob in active if knob.kind == "threads"), None)
    lead = "" if ranks is not None and threads is not None else "# "
    names = (ranks.name if ranks else "np", threads.name if threads else "threads")
    yield f"{lead}[[space.constraints]]"
    yield f'{lead}name = "cores"'
    yield f'{lead}rule = "{names[0]} * {names[1]} <= cores"'
    yield f'{lead}reason = "more of them than cores wait for each other"'


def _parameter(knob: Knob, ranks: Knob | None) -> Iterator[str]:
    yield f"[space.parameters.{knob.name}]"
    if knob.kind:
        default = f"min({knob.value}, cores)"
        if knob.kind == "threads" and ranks is not None:
            default = f"max(1, min({knob.value}, cores // {ranks.value}))"
        yield 'type = "integer"'
        yield "low = 1"
        yield 'high = "cores"'
        yield f'default = "={default}"'
    elif knob.is_whole:
        value = int(knob.value)
        values = sorted({value // 2, value, 2 * value}) if value > 1 else [value, value + 1]
        yield 'type = "integer"'
        yield f"values = {values}"
        yield f"default = {value}"
    else:
        decimal = float(knob.value)
        yield 'type = "choice"'
        decimals = sorted({round(decimal / 2, 6), decimal, round(2 * decimal, 6) or 1.0})
        yield f"values = [{', '.join(_text(str(value)) for value in decimals)}]"
        yield f"default = {_text(knob.value)}"
    yield f"help = {_text(f'{knob.where}, {knob.value} in the command')}"


def _partly(template: str, values: dict[str, int | str]) -> str:
    """Return a template with the values of some parameters in their places."""
    words = re.split(r"(\{\{|\}\}|\{\w+\})", template)
    return "".join(str(values[w[1:-1]]) if w[1:-1] in values and w.startswith("{") else w for w in words)


def _text(text: str) -> str:
    """Return a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
