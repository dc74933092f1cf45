"""The text of a study file for a command line, with comments that teach what each section is for."""

import json
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autotune.planning.command_line import CommandLineProposal, Knob, propose_knobs
from autotune.planning.known_programs import KnownProgram


def example_command() -> tuple[str, ...]:
    """Return a example_command command, where none was given: it packs a part of this Python, and throws the result away."""
    target = str(Path(getattr(unicodedata, "__file__", sys.executable)).resolve())
    if shutil.which("xz"):
        return ("xz", "--stdout", "--threads=1", "--block-size=262144", target)
    return ("gzip", "--stdout", "-6", target) if shutil.which("gzip") else (sys.executable, "-c", "sum(range(10 ** 7))")


_COUNTS = ("ranks", "processes", "threads")


def study_text(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return a study file for a command line; it can be tuned as it is.

    Its default does what the command line does where `environment` holds the caller's variables.
    """
    proposal = propose_knobs(words)
    active = [knob for knob in proposal.knobs if knob.kind]
    if not any(knob.kind in _COUNTS for knob in active):
        # Where the variable is not set, programs with OpenMP have a thread for each core.
        threads = environment.get("OMP_NUM_THREADS", "")
        active.append(Knob("threads", threads if threads.isdecimal() else "", "OMP_NUM_THREADS", "threads"))
    left = [knob for knob in proposal.knobs if knob not in active]
    return "\n".join(
        [*_head(words, proposal.program), *_options(proposal, active, left), *_space(active, left), _BUDGET]
    )


def _head(words: Sequence[str], program: KnownProgram) -> Iterator[str]:
    yield "# What autotune is to tune, for the command"
    for line in shlex.join(words).splitlines():
        yield f"#     {_comment(line)}"
    yield "# Change what is not right (lines that begin with # do nothing), then:"
    yield "#     autotune check ./THIS-FILE          every mistake with its line; --run makes one run"
    yield "#     autotune study ./THIS-FILE          tunes"
    if program.study is not None:
        yield f"# A study of this program ships, with more of its knobs: autotune check {program.study}"
    yield ""
    yield 'objective = "command"'
    yield 'description = ""                        # one line for people'


def _options(proposal: CommandLineProposal, active: Sequence[Knob], left: Sequence[Knob]) -> Iterator[str]:
    values = {knob.name: int(knob.value) if knob.is_whole else knob.value for knob in left}
    yield ""
    yield "[options]"
    yield "# The command line, word by word, without a shell: {name} is the value of parameter name, {{ is a brace"
    yield "# Each run has a folder of its own, with the files below. A word that mentions a parameter without a value"
    yield "# is left out."
    yield f"argv = [{', '.join(_text(_partly(word, values)) for word in proposal.argv)}]"
    kinds = {knob.kind: knob.name for knob in active}
    if "ranks" in kinds:
        yield "# mpirun (or what this machine has instead) starts that many ranks of it."
        yield f'ranks = "{kinds["ranks"]}"'
    else:
        yield '# ranks = "np"                         # an MPI program: the parameter that counts its ranks'
    if "processes" in kinds:
        yield "# Each run gets as many cores of its own (times the ranks)."
        yield f'threads = "{" * ".join(kinds[kind] for kind in ("processes", "threads") if kind in kinds)}"'
    elif "threads" in kinds:
        yield "# Each run gets as many cores of its own (times the ranks); OMP_NUM_THREADS is set to it."
        yield f'threads = "{kinds["threads"]}"'
    else:
        yield '# threads = "threads"                  # the parameter that counts threads; OMP_NUM_THREADS is set to it'
    yield from _environment(proposal, kinds, values)
    yield from _reading(proposal.program)
    yield _PREPARE
    yield from _files(proposal)


def _environment(
    proposal: CommandLineProposal, kinds: Mapping[str, str], values: Mapping[str, int | str]
) -> Iterator[str]:
    yield "# Variables; a run sees few others of yours. With {name}, too."
    variables = dict(proposal.environment)
    if "processes" in kinds and "OMP_NUM_THREADS" not in variables:
        # It would be the number of cores, which is that of the processes times this one.
        variables["OMP_NUM_THREADS"] = f"{{{kinds['threads']}}}" if "threads" in kinds else "1"
    if variables:
        pairs = ", ".join(f"{name} = {_text(_partly(value, values))}" for name, value in variables.items())
        yield f"environment = {{ {pairs} }}"
    else:
        yield '# environment = { OMP_SCHEDULE = "{schedule}" }'


# How the output is read: what each key of the options is for, and an example of it.
_READING = {
    ("metrics",): r"""
# What is optimised. Without any, the time of the run. The last match of the pattern counts, its group is the
# number; json = "results.0.seconds" reads JSON instead; file = "out.json" reads a file that the run wrote. With
# kind = "time" (the run's time or that of its main part) or "rate" (work per time), lost runs can be stopped early.
# metrics = [{ name = "solve_s", unit = "s", pattern = 'solved in (\S+) s', kind = "time" }]""",
    ("answer",): r"""
# The result, which every run must have: without it a fast wrong answer would not be noticed.
# answer = { name = "checksum", pattern = 'checksum (\S+)', tolerance = 1e-9 }""",
    ("outputs", "success", "failure"): r"""
# What the output of a good run has, and that of a bad one. Exit codes other than 0 are failures anyway.
# success = ['^finished$']
# failure = ['^ERROR.*']""",
    ("progress",): r"""
# A number in the output that grows with the work done: slow runs are then stopped long before their end.
# progress = '^step (\d+)'""",
}


def _reading(program: KnownProgram) -> Iterator[str]:
    """Yield how the output is read: as it is known of the program, or examples in comments."""
    known = program.model_dump()
    for keys, text in _READING.items():
        mine = [key for key in keys if known[key]]
        if not mine:
            yield text
            continue
        examples = tuple(f"# {key} = " for key in keys)
        yield "\n".join(line for line in text.splitlines() if not line.startswith(examples))
        yield from (f"{key} = {_inline(known[key])}" for key in mine)


_PREPARE = """
# Commands that run before each run, in its folder, and do not count: a compiler.
# prepare = [["gcc", "-O{level}", "-o", "program", "/home/me/program.c"]]"""

_TEMPLATE = """
# An input file for each run, with {name} in it; or template = "input.txt", a file beside this one.
# [[options.files]]
# name = "input.txt"
# text = '''
# block = {block}
# '''"""


def _files(proposal: CommandLineProposal) -> Iterator[str]:
    if not proposal.files:
        yield _TEMPLATE
        return
    yield ""
    yield "# Files that the command reads: each run gets copies of them, and of the files beside them that they"
    yield "# mention. lines = [...] makes knobs of what is in one, template instead of copy has {name} in it."
    for name, path in proposal.files:
        yield "[[options.files]]"
        yield f"name = {_text(name)}"
        yield f"copy = {_text(str(path))}"


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
    yield "# cores (of all nodes), cores_per_node, memory_bytes. The default is what you run today: everything is"
    yield "# compared with it."
    for knob in active:
        yield ""
        yield from _parameter(knob, active)
    for knob in left:
        yield ""
        yield f"# {_comment(knob.where)} {knob.value}: a knob, or the size of the problem, which must stay as it is?"
        yield f"# To tune it, write {{{knob.name}}} in its place above, and uncomment:"
        yield from (f"# {line}" for line in _parameter(knob, active))
    yield ""
    yield "# What cannot work, or need not be tried, with its reason."
    names = [knob.name for knob in _counts(active)]
    lead = "" if len(names) > 1 else "# "
    yield f"{lead}[[space.constraints]]"
    yield f'{lead}name = "cores"'
    cores = _cores(active) if len(names) > 1 else "cores"
    yield f'{lead}rule = "{" * ".join(names) if len(names) > 1 else "np * threads"} <= {cores}"'
    yield f'{lead}reason = "more of them than cores wait for each other"'


def _counts(active: Sequence[Knob]) -> list[Knob]:
    """Return the knobs whose product is the number of cores, the outermost first."""
    return [knob for kind in _COUNTS for knob in active if knob.kind == kind]


def _cores(active: Sequence[Knob]) -> str:
    """Return the fact that bounds the counts: only ranks are spread over nodes."""
    return "cores" if any(knob.kind == "ranks" for knob in active) else "cores_per_node"


def _default_count(knob: Knob, active: Sequence[Knob]) -> str:
    """Return the default of one of the counts: as in the command, as far as there are cores; or what fills these."""
    counts = _counts(active)
    others = [count for count in counts if count.value and count is not knob]
    if knob.value:
        others = [count for count in others if counts.index(count) < counts.index(knob)]
    cores = " // ".join([_cores(active), *(count.value for count in others)])
    if not others:
        return f"min({knob.value}, {cores})" if knob.value else cores
    return f"max(1, min({knob.value}, {cores}))" if knob.value else f"max(1, {cores})"


def _parameter(knob: Knob, active: Sequence[Knob]) -> Iterator[str]:
    yield f"[space.parameters.{knob.name}]"
    if knob.kind in _COUNTS:
        yield 'type = "integer"'
        yield "low = 1"
        yield f'high = "{_cores(active)}"'
        yield f'default = "={_default_count(knob, active)}"'
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
    given = f"{knob.value} in the command" if knob.value else "not in the command"
    yield f"help = {_text(f'{knob.where}, {given}')}"


def _partly(template: str, values: Mapping[str, int | str]) -> str:
    """Return a template with the values of some parameters in their places."""
    words = re.split(r"(\{\{|\}\}|\{\w+\})", template)
    return "".join(str(values[w[1:-1]]) if w[1:-1] in values and w.startswith("{") else w for w in words)


def _text(text: str) -> str:
    """Return a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline(value: object) -> str:
    """Return a value of TOML on one line; a text with backslashes as it is, in single quotes."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_inline(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, str):
        return f"'{value}'" if "\\" in value and "'" not in value else _text(value)
    return repr(value)


def _comment(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
