"""Write a study file for the command line of a training, whose poor settings are stopped early.

A command is taken for a training if an option gives its number of epochs, or gives steps and a learning rate.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autotune.formatting import plain_line
from autotune.planning.command_line import CommandLineProposal, Knob, propose_knobs
from autotune.planning.study_template import DESCRIPTION, file_lines, fill_in, head_lines
from autotune.tomlfiles.writing import text_to_toml

_EPOCHS = re.compile(r"(?:n|num|max|train|total|num_train|n_train)?_?epochs?")
_STEPS = re.compile(r"(?:num|max|train|total|num_train|max_train)_(?:steps|iters|iterations)")
_RATE = re.compile(r"lr|(?:base|max|peak|init|initial)_lr|learning_rate|weight_decay|wd")
_BATCH = re.compile(r"(?:train_|micro_|mini_?|per_device_|per_device_train_|per_gpu_)?batch(?:_?size)?")
_SEED = re.compile(r"(?:random_|rng_)?seed")
# A learning rate may be a hundredth to ten times of that in the command, in ten values for each power of ten.
_DOWN, _UP, _POINTS = 100.0, 10.0, 31


@dataclass(frozen=True)
class Training:
    """A command line that trains.

    Attributes:
        proposal: The command line.
        steps: The knob with the number of steps after which it stops.
        rates: The knobs that are tuned over powers of ten: learning rates and the like.
        batches: The knobs that are tuned over powers of two.
        seed: The knob with the seed of its random numbers.
    """

    proposal: CommandLineProposal
    steps: Knob
    rates: tuple[Knob, ...]
    batches: tuple[Knob, ...]
    seed: Knob | None

    @property
    def left(self) -> list[Knob]:
        """The other knobs, which keep the values of the command."""
        taken = (self.steps, self.seed, *self.rates, *self.batches)
        return [knob for knob in self.proposal.knobs if knob not in taken]

    @property
    def note(self) -> str:
        """A sentence that tells the user why the command counts as a training."""
        return (
            f"{self.steps.where} makes this a training: metric has to be the name of what it prints after each step; "
            "if only its time matters, see docs/own-program.md"
        )


def find_training(words: Sequence[str], environment: Mapping[str, str]) -> Training | None:
    """Return the training that a command line starts; None for another command, or one that names values to try."""
    proposal = propose_knobs(words, environment)
    if any(knob.values or knob.kind == "ranks" for knob in proposal.knobs):
        return None
    rates = tuple(knob for knob in proposal.knobs if _is_named(_RATE, knob) and float(knob.value) > 0.0)
    counts = [knob for knob in proposal.knobs if knob.is_whole and int(knob.value) > 0]
    steps = next((knob for knob in counts if _is_named(_EPOCHS, knob)), None)
    if steps is None and rates:
        steps = next((knob for knob in counts if _is_named(_STEPS, knob)), None)
    if steps is None:
        return None
    seed = next((knob for knob in proposal.knobs if _is_named(_SEED, knob)), None)
    return Training(proposal, steps, rates, tuple(knob for knob in counts if _is_named(_BATCH, knob)), seed)


def training_text(words: Sequence[str], training: Training) -> str:
    """Return a study file for a training."""
    return "\n".join([*head_lines(words, training.proposal), *_options(training), *_space(training), _END])


def _is_named(names: re.Pattern[str], knob: Knob) -> bool:
    """Whether an option, such as `--batch-size` or `training.lr`, has one of these names."""
    name = re.split(r"[./]", knob.where.lstrip("-"))[-1].replace("-", "_").lower()
    return knob.value != "" and names.fullmatch(name) is not None


def _options(training: Training) -> Iterator[str]:
    proposal, left = training.proposal, training.left
    values = {knob.name: knob.value for knob in left} | {training.steps.name: "{steps}"}
    if training.seed is not None:
        values[training.seed.name] = "{seed}"
    counts = [knob.value for knob in left if knob.kind in {"processes", "threads"} and knob.value]
    yield 'objective = "training"'
    yield DESCRIPTION
    yield ""
    yield "[options]"
    yield "# The words of the command; no shell reads them. {name} is the value of the parameter name, {{ is a brace."
    yield "# {steps} is the step after which a run stops, {seed} a number for its random numbers."
    yield f"argv = [{', '.join(text_to_toml(fill_in(word, values)) for word in proposal.argv)}]"
    yield "# What is optimised: the name of a number that the script prints after each step (as a rule an epoch);"
    yield "# check --run lists what it reads. If a name does not imply what is better:"
    yield '# metric = { name = "x", direction = "maximize" }'
    yield 'metric = "val_loss"'
    yield "# Most frameworks' lines are read as they are. A regular expression for others, step first, then the metric:"
    yield r"# progress = '^epoch (\d+)/\d+ .*val_loss=(\S+)'"
    yield "# The cores and GPUs of a run."
    cores = f"min({' * '.join(counts)}, cores_per_node)" if counts else "cores_per_node"
    yield f"cores = {text_to_toml(cores)}"
    yield "# gpus = 1"
    environment = {name: fill_in(value, values) for name, value in proposal.environment}
    if environment:
        pairs = ", ".join(f"{name} = {text_to_toml(value)}" for name, value in environment.items())
        yield f"environment = {{ {pairs} }}"
    if proposal.files:
        yield from file_lines(proposal)
    yield ""
    yield "[stopping]"
    yield f"max_steps = {training.steps.value}"
    yield "# min_steps = 1                        # no trial is judged before; the metric must be printed by then"


def _space(training: Training) -> Iterator[str]:
    yield ""
    yield "# The parameters to tune. type is integer (low and high, or values), float (low, high, points), choice"
    yield "# (values) or flag. The default should be what you run today: everything is compared with it."
    for knob in training.rates:
        yield ""
        yield from _rate(knob)
    for knob in training.batches:
        yield ""
        yield from _batch(knob)
    if not training.rates:
        yield ""
        yield "# No learning rate stands in the command. With {lr} in it:"
        yield from (f"# {line}" for line in _rate(Knob("lr", "0.001", "", "")))
    for knob in training.left:
        if not knob.kind and knob.value:
            yield ""
            given = f"{plain_line(knob.where)} {knob.value}"
            yield f"# To tune {given}, write {{{knob.name}}} in its place, and describe it here."


def _rate(knob: Knob) -> Iterator[str]:
    value = float(knob.value)
    yield f"[space.parameters.{knob.name}]"
    yield 'type = "float"'
    yield f"low = {_rounded(value / _DOWN)}"
    yield f"high = {_rounded(value * _UP)}"
    yield "log = true"
    yield f"points = {_POINTS}"
    yield f"default = {_rounded(value)}"


def _batch(knob: Knob) -> Iterator[str]:
    value = int(knob.value)
    yield f"[space.parameters.{knob.name}]"
    yield 'type = "integer"'
    yield f"values = {sorted({size for size in (value // 4, value // 2, value, 2 * value, 4 * value) if size > 0})}"
    yield f"default = {value}"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


_END = """
[budget]
trials = 30                             # configurations to try, including the default; most stop early
# timeout_s = 3600                      # start no new trial after this time
"""
