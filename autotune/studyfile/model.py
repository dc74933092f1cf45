"""The study file: one TOML file that says what to tune, how, and for how long."""

import re
from collections import Counter
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from autotune.statistics.mixed_model import Statistic
from autotune.statistics.racing import RaceRules
from autotune.statistics.signed_rank import least_pairs
from autotune.studyfile.one_of import OneOf
from autotune.studyfile.section import Section
from autotune.studyfile.weights import row_problem
from launchers.software.containers import RUNTIMES
from objectives.mentions.words import VariableName
from spaces import Value
from spaces.parameters.errors import did_you_mean

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""Pattern of a study's name, which files and jobs also have."""

AUTO = "auto"
"""Value of `trials` for a study that decides by itself when to stop."""


def _number_as_text(value: object) -> object:
    """Return a number as the text of an expression; anything else as it is."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Expression = Annotated[str, BeforeValidator(_number_as_text)]


class InputSection(Section):
    """One input: its options override those of the study, and its weight is its share in the objective.

    An input of weight 0 is not optimised: the winner is compared with the default on it.
    """

    name: str = Field(pattern=NAME)
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    options: dict[str, Any] = Field(default_factory=dict)


class SpaceSection(Section):
    """Parameters and constraints in addition to those of the objective.

    A parameter with the name of one of the objective's replaces it. `spaces.tables` describes the format of the tables.
    `derived` gives names to numbers, or to expressions over parameters, facts and one another.
    """

    parameters: dict[str, dict[str, Any]] = Field(default_factory=dict)
    constraints: list[dict[str, Any]] = Field(default_factory=list)
    derived: dict[str, Expression] = Field(default_factory=dict)


class BudgetSection(Section):
    """How much may be spent. `trials` is the total over all sessions of the study.

    With `auto` the search ends when more of it no longer pays, or after `max_trials`.
    """

    trials: int | Literal["auto"] = 50
    max_trials: int = Field(default=200, ge=1)
    timeout_s: float | None = Field(default=None, gt=0)
    run_time_limit_s: float | None = Field(default=None, gt=0)
    workers: int = Field(default=1, ge=1)
    infrastructure_retries: int = Field(default=2, ge=0)
    give_up_after: int = Field(default=8, ge=1)

    @field_validator("trials", mode="plain")
    @classmethod
    def _check_trials(cls, trials: object) -> object:
        if trials == AUTO or (isinstance(trials, int) and not isinstance(trials, bool) and trials >= 1):
            return trials
        msg = f"must be a whole number from 1 up, or {AUTO!r}"
        raise ValueError(msg)

    @property
    def most(self) -> int:
        """The largest number of trials."""
        return self.max_trials if self.trials == "auto" else self.trials

    @property
    def auto(self) -> bool:
        """Whether the study ends when more search no longer pays."""
        return self.trials == AUTO


OWN_SAMPLER = "autotune"

SAMPLERS = (OWN_SAMPLER, "random", "exhaustive", "tpe", "gp", "cmaes")
"""Names of our samplers; others are `optuna:CLASS`, `optunahub:PACKAGE@COMMIT` and `MODULE:CLASS`."""

_OTHERS_SAMPLER = re.compile(
    r"optunahub:[A-Za-z]\w*(/\w+)*@[0-9a-f]{40}(:[A-Za-z]\w*)?|(?!optunahub:)[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"
)


class SamplerSection(Section):
    """Which configurations are tried. The first `startup` trials do not depend on measurements.

    With `warm_start` the search begins with the configurations that are predicted to be best, from the program's costs
    or measurements elsewhere. The prediction also guides the search, as far as the study's own runs confirm it.
    `options` are the arguments of a sampler class of Optuna, of OptunaHub, or of your own.
    """

    name: str = "autotune"
    seed: int = Field(default=0, ge=0)
    startup: int = Field(default=6, ge=1)
    warm_start: bool = True
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _check_known(cls, name: str) -> str:
        if name.startswith("optunahub:") and "@" not in name:
            msg = (
                f"{name} says not which revision: write optunahub:PACKAGE@COMMIT, with the 40 digits of a commit of "
                "github.com/optuna/optunahub-registry that you have looked at: the code runs as you"
            )
            raise ValueError(msg)
        if name not in SAMPLERS and not _OTHERS_SAMPLER.fullmatch(name):
            others = "optuna:CLASS (any sampler of Optuna's), optunahub:PACKAGE@COMMIT, MODULE:CLASS (one of your own)"
            msg = f"unknown sampler{did_you_mean(name, SAMPLERS)}; known: {', '.join(SAMPLERS)}, {others}"
            raise ValueError(msg)
        return name


class RepeatsSection(Section):
    """How often configurations run, so that noise does not decide which wins.

    The default configuration runs `baseline_runs` times at first, again after every `baseline_every` runs of others (0:
    never; a stopped run counts as its part of a whole one), and at the start of every session, after `warm_up_runs`
    runs that do not count. With `caps`, a run that has already lost is stopped.
    """

    min_runs: int = Field(default=1, ge=1)
    max_runs: int = Field(default=5, ge=1)
    error_rate: float = Field(default=0.05, gt=0, lt=0.5)
    min_gain: float = Field(default=0.01, ge=0)
    statistic: Statistic = "median"
    warm_up_runs: int = Field(default=1, ge=0)
    baseline_runs: int = Field(default=3, ge=1)
    baseline_every: int = Field(default=10, ge=0)
    caps: bool = True

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_runs < self.min_runs:
            msg = f"max_runs is {self.max_runs}, less than min_runs, {self.min_runs}"
            raise ValueError(msg)
        return self

    @property
    def for_a_table(self) -> Self:
        """The same for a decision table: trials of different contexts do not race, and each context has a default."""
        return self.model_copy(
            update={"max_runs": self.min_runs, "caps": False, "baseline_runs": 1, "baseline_every": 0}
        )

    @property
    def rules(self) -> RaceRules:
        """The rules of when a configuration runs again."""
        return RaceRules(self.min_runs, self.max_runs, self.error_rate, self.min_gain)


VerdictMode = Literal["interleaved", "duet", "auto"]


class VerdictSection(Section):
    """How the winner is chosen among the best `candidates`, in `rounds`, and compared with the baseline.

    The comparison takes from `pairs` to `max_pairs` pairs of runs, until the half-width of the interval is at most
    `precision` (relative) or `of_gain` of the gain, whichever is larger. More than `pairs` are made only while choosing
    and comparing cost less than `of_tuning` of the tuning's core-seconds (None: whatever they cost), or a core-minute.
    The pairs are spread over at least `nodes` nodes. By `mode`, the two runs of a pair are made one after the other or
    side by side; `auto` decides that on a machine that other processes use.
    """

    candidates: int = Field(default=3, ge=1)
    rounds: int = Field(default=4, ge=2)
    pairs: int = Field(default=8, ge=3)
    max_pairs: int = Field(default=20, ge=3)
    precision: float = Field(default=0.05, gt=0)
    of_gain: float = Field(default=0.25, ge=0, lt=1)
    of_tuning: float | None = Field(default=0.5, ge=0, allow_inf_nan=False)
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    nodes: int | None = Field(default=None, ge=1)
    mode: VerdictMode = "auto"

    @model_validator(mode="after")
    def _enough(self) -> Self:
        least = least_pairs(self.confidence)
        if self.pairs < least:
            msg = f"a {self.confidence:.0%} interval needs at least {least} pairs, pairs is {self.pairs}"
            raise ValueError(msg)
        if self.max_pairs < self.pairs:
            msg = f"max_pairs is {self.max_pairs}, less than pairs, {self.pairs}"
            raise ValueError(msg)
        if self.nodes is not None and self.nodes > self.pairs:
            msg = f"{self.pairs} pairs are on {self.pairs} nodes at most, nodes is {self.nodes}; ask for more pairs"
            raise ValueError(msg)
        if self.mode == "duet" and (self.nodes or 1) > 1:
            msg = f"a duet is on one node, nodes is {self.nodes}; use mode = 'interleaved'"
            raise ValueError(msg)
        return self


class StoppingSection(Section):
    """How far trials run whose program works in steps (epochs): the better ones continue, the others are stopped.

    No trial makes more than `max_steps` steps, and none is judged before `min_steps`; at every rung one in `eta`
    continues. `hyperband` has brackets with many short trials, and some with fewer, longer ones. `asha` is one bracket
    and does not wait for a rung to be complete. `median` stops a trial that is worse than the median of others at its
    step.
    """

    rule: Literal["hyperband", "asha", "median", "none"] = "hyperband"
    max_steps: int = Field(ge=1)
    min_steps: int = Field(default=1, ge=1)
    eta: int = Field(default=3, ge=2)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_steps > self.max_steps:
            msg = f"min_steps is {self.min_steps}, more than max_steps, {self.max_steps}"
            raise ValueError(msg)
        return self


def _several(names: object) -> object:
    """Return a single name as a list; anything else unchanged."""
    return [names] if isinstance(names, str) else names


class TradeoffSection(Section):
    """Other metrics that matter: the study looks for configurations that no other beats in all of them.

    Then no trial is the single winner. `metric` is a name, or a list of names. `weights` say how much each metric
    matters: the point of the front that they prefer is compared with the default.
    """

    metric: Annotated[list[str], BeforeValidator(_several)] = Field(min_length=1)
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)


class DecisionsSection(Section):
    """Look for a table of the best settings instead of one winner: a setting for each value of the parameters `over`.

    The user's program determines the values of `over`; the study does not choose them. `points` is the name of what one
    run measures at several values, such as message sizes. Fresh pairs of runs take `verdict_runs` runs at most.
    `weights` say how often a program uses each cell: rows of contexts, points and a `count`, or the CSV file that has
    them.
    """

    over: list[str] = Field(min_length=1)
    points: str | None = None
    verdict_runs: int = Field(default=400, ge=0)
    weights: str | list[dict[str, Value]] | None = None

    @field_validator("weights")
    @classmethod
    def _of_cells(
        cls, weights: str | list[dict[str, Value]] | None, given: ValidationInfo
    ) -> str | list[dict[str, Value]] | None:
        names = [*given.data.get("over", ()), *filter(None, [given.data.get("points")])]
        if isinstance(weights, list) and (wrong := row_problem(weights, names)) is not None:
            raise ValueError(wrong)
        return weights

    @property
    def rows(self) -> list[dict[str, Value]]:
        """The rows of the weights; empty without weights."""
        return self.weights if isinstance(self.weights, list) else []


class LimitSection(Section):
    """The range that a metric of the winner must keep: at least `min` and at most `max`.

    Each is a number in the metric's unit, or a text with another unit of its kind, such as `12 GiB`.
    """

    min: Annotated[float, Field(allow_inf_nan=False)] | str | None = None
    max: Annotated[float, Field(allow_inf_nan=False)] | str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.min is None and self.max is None:
            msg = "a limit has a min, a max, or both: { max = 20 }"
            raise ValueError(msg)
        return self


class ModelSection(Section):
    """The sum that a run time is made of: `terms` are expressions over parameters, facts and derived values, never
    negative.

    For a metric that is maximised, the sum is its inverse. The rate of each term is fitted to measurements. With
    `seconds` the terms are times already, which measurements correct.
    """

    terms: list[Expression] = Field(min_length=1)
    seconds: bool = False


class ScalingSection(Section):
    """The parameter that counts `processes`, for a sweep over it; `work` grows with it in weak scaling."""

    processes: str
    work: str | None = None


class EfficiencySection(Section):
    """Whether the ranks of each run measure their time in MPI, by a library that is loaded before the program (`mpi`).

    Parallel efficiency, load balance and communication efficiency are then metrics.
    """

    mpi: bool = False


class MeterSection(Section):
    """A command that prints an energy counter: its growth during a run, in joules, is the run's `energy_j`."""

    command: list[str] = Field(min_length=1)


def _launcher_kinds() -> list[str]:
    from launchers.batch_systems.registry import names  # noqa: PLC0415  what reads storage needs no batch system

    return ["local", *names()]


class LauncherSection(Section):
    """Where runs are made: on this machine, or as jobs of a batch system at a `site`, by default the user's own.

    Without a `kind`, the site decides; without a site, runs are made on this machine.
    """

    kind: Annotated[str, OneOf(_launcher_kinds)] | None = None
    site: str | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.kind == "local" and self.site is not None:
            msg = f"a site ({self.site}) is for batch systems, not for kind = 'local'"
            raise ValueError(msg)
        return self

    @property
    def submits_jobs(self) -> bool:
        """Whether runs are jobs of a batch system."""
        return self.site is not None or self.kind not in {None, "local"}


class RunsSection(Section):
    """How long `autotune storage clean` keeps the folders of runs.

    Without `keep_days` it keeps none that it may remove. Measurements stay in storage.
    """

    keep_days: float | None = Field(default=None, gt=0, allow_inf_nan=False)


def _check_name(name: str) -> str:
    if not re.fullmatch(NAME, name):
        msg = (
            "a study's name begins with one of A-Z, a-z, 0-9, and has these, '.', '_' and '-' only; "
            'a study without one is called like its file: write name = "..." at the start of the file'
        )
        raise ValueError(msg)
    return name


NoiseMode = Literal["accept", "wait", "refuse"]
NOISE_MODES: tuple[NoiseMode, ...] = ("accept", "wait", "refuse")


class NoiseSection(Section):
    """What to do about runs that other processes disturb.

    With `wait` they are repeated, `again` for each run that counts and three more, and count afterwards; with `refuse`
    they never count; with `accept` they do. Without a `mode`, AUTOTUNE_NOISE decides, or else it is `wait`. The
    comparisons of a session wait at most `wait_s` for a quiet machine. Repeats and waits make a session at most `times`
    as long as on a quiet machine.
    """

    mode: NoiseMode | None = None
    again: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    wait_s: float = Field(default=600.0, ge=0, allow_inf_nan=False)
    times: float = Field(default=3.0, ge=1, allow_inf_nan=False)


class SoftwareSection(Section):
    """Where the programs come from, as one value of the parameter `software`; empty: where they are found here.

    `modules` are loaded in order; with `purge` all others are unloaded first. `spack` are specs of installed packages,
    `spack_environment` is a name or a folder. `container` is an image that `runtime` starts: by default the first of
    apptainer, singularity and ch-run on the search path. `programs` and `libraries` are folders of a build that are
    searched first, and `environment` are variables that it needs.
    """

    modules: list[str] = Field(default_factory=list)
    purge: bool = False
    spack: list[str] = Field(default_factory=list)
    spack_environment: str | None = None
    container: str | None = None
    runtime: Annotated[str, OneOf(lambda: [runtime.name for runtime in RUNTIMES])] | None = None
    programs: list[str] = Field(default_factory=list)
    libraries: list[str] = Field(default_factory=list)
    environment: dict[VariableName, str] = Field(default_factory=dict)


class StudyFile(Section):
    """A whole study file.

    `target` is the metric to optimise; by default the first of the objective. With `inputs` the program is tuned for
    all inputs with a weight together, and the winner is compared with the default on the others.
    """

    name: Annotated[str, AfterValidator(_check_name)]
    description: str = ""
    objective: str
    target: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    inputs: list[InputSection] = Field(default_factory=list)
    software: dict[Annotated[str, Field(pattern=NAME)], SoftwareSection] = Field(default_factory=dict)
    space: SpaceSection = SpaceSection()
    budget: BudgetSection = BudgetSection()
    sampler: SamplerSection = SamplerSection()
    repeats: RepeatsSection = RepeatsSection()
    verdict: VerdictSection = VerdictSection()
    stopping: StoppingSection | None = None
    model: ModelSection | None = None
    scaling: ScalingSection | None = None
    efficiency: EfficiencySection = EfficiencySection()
    tradeoff: TradeoffSection | None = None
    decisions: DecisionsSection | None = None
    limits: dict[str, LimitSection] = Field(default_factory=dict)
    launcher: LauncherSection = LauncherSection()
    meter: MeterSection | None = None
    runs: RunsSection = RunsSection()
    noise: NoiseSection = NoiseSection()

    @property
    def has_one_winner(self) -> bool:
        """Whether the study looks for one best configuration, not for a trade-off or a decision table."""
        return self.tradeoff is None and self.decisions is None

    @property
    def looks_for(self) -> str:
        """The result that the study looks for, in words."""
        return "trade-off" if self.tradeoff is not None else "winner" if self.decisions is None else "decision table"

    @property
    def contexts(self) -> tuple[str, ...]:
        """The contexts of the decision table; empty without one."""
        return () if self.decisions is None else tuple(self.decisions.over)

    @property
    def whole_steps(self) -> int | None:
        """Number of steps of a whole run; None if the program is not asked to stop at a step."""
        return None if self.stopping is None else self.stopping.max_steps

    @field_validator("inputs")
    @classmethod
    def _several(cls, inputs: list[InputSection]) -> list[InputSection]:
        if len(inputs) == 1:
            msg = "[[inputs]] are two inputs or more; what a study of one input changes stands in [options]"
            raise ValueError(msg)
        if inputs and not any(one.weight for one in inputs):
            msg = "all weights are 0, so nothing is optimised: give what to tune for a weight above 0"
            raise ValueError(msg)
        # The names of facts contain the name of an input, with only letters, digits and _.
        alike = Counter(re.sub(r"\W", "_", one.name) for one in inputs)
        same = [one.name for one in inputs if alike[re.sub(r"\W", "_", one.name)] > 1]
        if same:
            msg = f"each input needs a name of its own ('.' and '-' count as '_'); these are alike: {', '.join(same)}"
            raise ValueError(msg)
        return inputs

    @model_validator(mode="after")
    def _can_be_mixed(self) -> Self:
        if self.is_mix and self.stopping is not None:
            msg = (
                "[[inputs]] and [stopping] cannot go together: the steps of several inputs are not those of one "
                "training; give all inputs but one the weight 0, or take [stopping] out"
            )
            raise ValueError(msg)
        return self

    @property
    def optimised_inputs(self) -> list[InputSection]:
        """The inputs with a weight, for which the program is tuned."""
        return [one for one in self.inputs if one.weight > 0.0]

    @property
    def verified_inputs(self) -> list[InputSection]:
        """The inputs of weight 0, on which the winner is compared with the default."""
        return [one for one in self.inputs if one.weight == 0.0]

    @property
    def is_mix(self) -> bool:
        """Whether the program is tuned for several inputs together."""
        return len(self.optimised_inputs) > 1

    def options_of(self, one: InputSection) -> dict[str, Any]:
        """Return the options with which the program is planned for an input."""
        return {**self.options, **one.options}

    @property
    def tuned_options(self) -> dict[str, Any]:
        """The options of the only optimised input; for a mix, or without inputs, those of the study."""
        return self.options if self.is_mix or not self.inputs else self.options_of(self.optimised_inputs[0])
