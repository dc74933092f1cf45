"""Write a study file for a command line, with comments that explain each section."""

import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from autotune.formatting import plain_line
from autotune.planning.command_line import CommandLineProposal, Knob, propose_knobs
from autotune.planning.known_programs import KnownProgram
from autotune.tomlfiles.writing import text_to_toml
from spaces.expressions.constant import constant_value
from spaces.parameters.parameter import Value


def example_command() -> tuple[str, ...]:
    """Return a harmless command to show: it compresses a file of this Python and discards the result."""
    target = str(Path(getattr(unicodedata, "__file__", sys.executable)).resolve())
    if shutil.which("xz"):
        return ("xz", "--stdout", "--threads=1", "--block-size=262144", target)
    return ("gzip", "--stdout", "-6", target) if shutil.which("gzip") else (sys.executable, "-c", "sum(range(10 ** 7))")


_HEAD, _INDENT = "# A study of the command", "#     "
_COUNTS = ("ranks", "processes", "threads")
DESCRIPTION = 'description = ""                        # one line for people'


def study_text(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return a study file for a command line, ready to be tuned.

    Its default configuration runs the command as given, under the variables in `environment`, with fewer ranks or
    threads if the machine has fewer cores.
    """
    proposal = propose_knobs(words, environment)
    active, left = _split_knobs(proposal, environment)
    return "\n".join([*head_lines(words, proposal), *_options(proposal, active, left), *_space(active, left), _BUDGET])


def study_file_name(words: Sequence[str]) -> str:
    """Return a legal name for the study file of a command, after its program."""
    name = unicodedata.normalize("NFKD", propose_knobs(words, {}).name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-") or "study"


def command_in(text: str) -> str:
    """Return the command line at the head of a file of `study_text`; empty if the file has none."""
    head, *lines = text.splitlines() or [""]
    command = takewhile(lambda line: line.startswith(_INDENT), lines)
    return "\n".join(line.removeprefix(_INDENT) for line in command) if head == _HEAD else ""


def has_values(words: Sequence[str]) -> bool:
    """Whether a command has values to try, as in `--threads {threads=1..8}`."""
    return any(knob.values for knob in propose_knobs(words, {}).knobs)


def parameter_notes(words: Sequence[str], environment: Mapping[str, str], facts: Mapping[str, Value]) -> list[str]:
    """Return where the parameters of `study_text` differ from the command, on a machine with these facts."""
    proposal = propose_knobs(words, environment)
    active, left = _split_knobs(proposal, environment)
    cores = facts[_cores(active)]
    notes = []
    for knob in (knob for knob in _counts(active) if not knob.values):
        default = constant_value(_default_count(knob, active), facts)
        if knob.value and default != int(knob.value):
            notes.append(
                f"this machine has {cores} core{'' if cores == 1 else 's'}: the default is {knob.name}={default}, "
                f"not {knob.value} as in your command"
            )
    if len(active) == 1 and active[0] not in proposal.knobs:
        names = ", ".join(knob.name for knob in left)
        candidates = f"; other candidates stand in comments: {names}" if left else ""
        notes.append(f"{active[0].where} is the only parameter: delete it if the program has no threads{candidates}")
    return notes


def _split_knobs(proposal: CommandLineProposal, environment: Mapping[str, str]) -> tuple[list[Knob], list[Knob]]:
    """Return the knobs that become parameters, and those that are proposed in comments."""
    active = [knob for knob in proposal.knobs if knob.kind]
    if any(knob.values for knob in active):
        return active, [knob for knob in proposal.knobs if knob not in active]
    kinds = {knob.kind for knob in active if knob.kind in _COUNTS}
    threads = environment.get("OMP_NUM_THREADS", "")
    given = threads if re.fullmatch(r"[1-9]\d{0,8}", threads, re.ASCII) else ""
    # Without the variable, programs with OpenMP start a thread on each core; a run of several ranks starts one each.
    if not kinds or (kinds == {"ranks"} and given not in {"", "1"}):
        active.append(Knob("threads", given, "OMP_NUM_THREADS", "threads"))
    return active, [knob for knob in proposal.knobs if knob not in active]


def head_lines(words: Sequence[str], proposal: CommandLineProposal) -> Iterator[str]:
    """Yield the first lines of a study file: its command and what to do next."""
    yield _HEAD
    for line in shlex.join(words).splitlines():
        yield f"{_INDENT}{plain_line(line)}"
    yield "# Correct what is wrong below (lines that begin with # do nothing), then:"
    yield "#     autotune check ./THIS-FILE          list every mistake with its line; --run makes one run"
    yield "#     autotune study ./THIS-FILE          tune the command"
    yield from (f"# {plain_line(note)}" for note in proposal.notes)
    if (study := proposal.program.study) is not None:
        yield f"# autotune ships a study of this program with more parameters: autotune check {study}"
    yield ""


def _options(proposal: CommandLineProposal, active: Sequence[Knob], left: Sequence[Knob]) -> Iterator[str]:
    yield 'objective = "command"'
    yield DESCRIPTION
    values = {knob.name: int(knob.value) if knob.is_whole else knob.value for knob in left}
    yield ""
    yield "[options]"
    yield "# The words of the command; no shell reads them. {name} is the value of the parameter name, {{ is a brace."
    yield "# A word is left out if a parameter in it has no value. Each run has a folder of its own, with the files"
    yield "# listed below."
    yield f"argv = [{', '.join(text_to_toml(fill_in(word, values)) for word in proposal.argv)}]"
    kinds = {knob.kind: knob.name for knob in active}
    if "ranks" in kinds:
        yield "# The number of ranks, which mpirun (or the start command of this machine) starts."
        yield f'ranks = "{kinds["ranks"]}"'
    else:
        yield '# ranks = "np"                         # for an MPI program: the number of its ranks'
    if "processes" in kinds:
        yield "# The cores of a run (of each rank, if it has ranks)."
        yield f'threads = "{" * ".join(kinds[kind] for kind in ("processes", "threads") if kind in kinds)}"'
    elif "threads" in kinds:
        yield "# The cores of a run (of each rank, if it has ranks); OMP_NUM_THREADS is set to this number."
        yield f'threads = "{kinds["threads"]}"'
    else:
        yield '# threads = "threads"                  # the cores of a run; OMP_NUM_THREADS is set to this number'
    yield from _environment(proposal, kinds, values)
    yield from _reading(proposal.program)
    yield _PREPARE
    yield from file_lines(proposal)


def _environment(
    proposal: CommandLineProposal, kinds: Mapping[str, str], values: Mapping[str, int | str]
) -> Iterator[str]:
    yield "# Environment variables; {name} works here too. A run sees few other variables of your environment."
    variables = dict(proposal.environment)
    if "processes" in kinds and "OMP_NUM_THREADS" not in variables:
        # A run would get the number of its cores by default, which is processes times threads.
        variables["OMP_NUM_THREADS"] = f"{{{kinds['threads']}}}" if "threads" in kinds else "1"
    if variables:
        pairs = ", ".join(f"{name} = {text_to_toml(fill_in(value, values))}" for name, value in variables.items())
        yield f"environment = {{ {pairs} }}"
    else:
        yield '# environment = { OMP_SCHEDULE = "{schedule}" }'


# By keys of the options: how the output is read, and an example.
_READING = {
    ("metrics",): r"""
# The metric to optimise; by default the time of the run. The last match of the pattern counts, and its group is
# the number. json = "results.0.seconds" reads JSON, file = "out.json" reads a file of the run. With kind = "time"
# (of the run or of its main part) or "rate" (work per time), runs that are too slow can be stopped early.
# metrics = [{ name = "solve_s", unit = "s", pattern = 'solved in (\S+) s', kind = "time" }]""",
    ("answer",): r"""
# The result that every run must compute; without it a fast wrong answer is not noticed.
# answer = { name = "checksum", pattern = 'checksum (\S+)', tolerance = 1e-9 }""",
    ("outputs", "success", "failure"): r"""
# Patterns in the output of successful and of failed runs. An exit code other than 0 is always a failure.
# success = ['^finished$']
# failure = ['^ERROR.*']""",
    ("progress",): r"""
# A number in the output that grows with the work done. With it, slow runs are stopped long before their end.
# progress = '^step (\d+)'""",
}


def _reading(program: KnownProgram) -> Iterator[str]:
    """Yield the lines on reading the output: those of a known program, or examples in comments."""
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
# Commands before each run, in its folder, such as a compiler. Their time does not count.
# prepare = [["gcc", "-O{level}", "-o", "program", "/home/me/program.c"]]"""

_TEMPLATE = """
# An input file for each run, with {name} in it; template = "input.txt" reads it from a file beside this one.
# [[options.files]]
# name = "input.txt"
# text = '''
# block = {block}
# '''"""


def file_lines(proposal: CommandLineProposal) -> Iterator[str]:
    """Yield the lines on the files of each run."""
    if not proposal.files:
        yield _TEMPLATE
        return
    yield ""
    yield "# Files that the command reads. Each run gets copies of them, and of files beside them that they mention."
    yield "# lines = [...] tunes lines of a file; template = ... in place of copy allows {name} in it."
    for name, path in proposal.files:
        yield "[[options.files]]"
        yield f"name = {text_to_toml(name)}"
        yield f"copy = {text_to_toml(str(path))}"


_BUDGET = """
[budget]
trials = 20                             # configurations to try, including the default; you can add more later
# timeout_s = 1800                      # start no new trial after this time
# run_time_limit_s = 600                # a run that takes longer fails

[verdict]
pairs = 6                               # at the end: pairs of fresh runs, of the winner and of the default
max_pairs = 12                          # more pairs, up to this number, while the interval is too wide
precision = 0.05                        # the half width to reach, as a share of the speed-up
"""


def _space(active: Sequence[Knob], left: Sequence[Knob]) -> Iterator[str]:
    yield ""
    yield "# The parameters to tune. type is integer (low and high, or values), float (low, high, points), choice"
    yield "# (values) or flag; optional = true also tries without the parameter. In quotes you may use facts of the"
    yield "# machine: cores (of all nodes), cores_per_node, memory_bytes. The default should be what you run today:"
    yield "# everything is compared with it."
    for knob in active:
        yield ""
        yield from _parameter(knob, active)
    for knob in left:
        yield ""
        asked = "a setting to tune, or the size of the problem, which must stay?"
        yield f"# {plain_line(knob.where)} {knob.value}: {asked}"
        yield f"# To tune it, write {{{knob.name}}} in its place above, and uncomment:"
        yield from (f"# {line}" for line in _parameter(knob, active))
    yield ""
    yield "# Rules for configurations that cannot work or are not worth a trial, each with its reason."
    names = [knob.name for knob in _counts(active)]
    lead = "" if len(names) > 1 else "# "
    yield f"{lead}[[space.constraints]]"
    yield f'{lead}name = "cores"'
    cores = _cores(active) if len(names) > 1 else "cores"
    yield f'{lead}rule = "{" * ".join(names) if len(names) > 1 else "np * threads"} <= {cores}"'
    yield f'{lead}reason = "with more threads than cores, they wait for each other"'


def _counts(active: Sequence[Knob]) -> list[Knob]:
    """Return the knobs whose product is the number of cores, outermost first."""
    return [knob for kind in _COUNTS for knob in active if knob.kind == kind]


def _cores(active: Sequence[Knob]) -> str:
    """Return the fact that bounds the counts: cores of all nodes with ranks, of one node without."""
    return "cores" if any(knob.kind == "ranks" for knob in active) else "cores_per_node"


def _default_count(knob: Knob, active: Sequence[Knob]) -> str:
    """Return the default of a count: the number in the command, limited by the cores, or else what fills the cores."""
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
    if knob.values:
        are_whole = all(isinstance(value, int) for value in knob.values)
        tried = knob.values if are_whole else tuple(map(str, knob.values))
        yield f'type = "{"integer" if are_whole else "choice"}"'
        yield f"values = [{', '.join(map(_inline, tried))}]"
        yield f"default = {_inline(tried[0])}"
    elif knob.kind in _COUNTS:
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
        half, double = (str(float(f"{value:.6g}")) for value in (decimal / 2, 2 * decimal))
        tried = (half, knob.value, double) if decimal else (knob.value, "1.0")
        yield f"values = [{', '.join(map(text_to_toml, tried))}]"
        yield f"default = {text_to_toml(knob.value)}"
    given = f"{knob.value} in the command" if knob.value else "not in the command"
    yield f"help = {text_to_toml(f'{knob.where}, {given}')}"


def fill_in(template: str, values: Mapping[str, int | str]) -> str:
    """Return a template with the values of some parameters filled in."""
    words = re.split(r"(\{\{|\}\}|\{\w+\})", template)
    return "".join(str(values[w[1:-1]]) if w[1:-1] in values and w.startswith("{") else w for w in words)


def _inline(value: object) -> str:
    """Return a TOML value on a single line; a text with backslashes is put in single quotes."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_inline(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, str):
        return f"'{value}'" if "\\" in value and "'" not in value and value.isprintable() else text_to_toml(value)
    return repr(value)
