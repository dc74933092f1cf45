"""The study file: one TOML file that says what to tune, how, and for how long."""

import re
from collections import Counter
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from autotune.statistics.mixed_model import Statistic
from autotune.statistics.racing import RaceRules
from autotune.statistics.signed_rank import least_pairs
from autotune.studyfile.one_of import OneOf
from launchers.batch_systems.registry import names
from launchers.software.containers import RUNTIMES
from objectives.mentions.words import VariableName
from spaces.parameters.errors import did_you_mean

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""What a study may be called: the name becomes that of files and of jobs."""


AUTO = "auto"
"""The number of trials of a study that decides by itself when to stop."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _written(value: object) -> object:
    """Return a number as the text of an expression; anything else as it is."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Expression = Annotated[str, BeforeValidator(_written)]


class InputSection(_Section):
    """One input of a mix: what its options have instead of the study's, and what it counts beside the others."""

    name: str = Field(pattern=NAME)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    options: dict[str, Any] = Field(default_factory=dict)


class SpaceSection(_Section):
    """Parameters and constraints beside (or instead of) those that the objective brings.

    A parameter with the name of one of the objective's replaces it. The tables' own format is that of
    `spaces.tables`. `derived` are names for expressions over parameters, facts and one another, or for
    numbers.
    """

    parameters: dict[str, dict[str, Any]] = Field(default_factory=dict)
    constraints: list[dict[str, Any]] = Field(default_factory=list)
    derived: dict[str, Expression] = Field(default_factory=dict)


class BudgetSection(_Section):
    """How much may be spent. `trials` is the total, over all sessions of the study.

    With `auto` the search ends where more of it no longer pays, after `max_trials` at the latest.
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
    def _counted(cls, trials: object) -> object:
        if trials == AUTO or (isinstance(trials, int) and not isinstance(trials, bool) and trials >= 1):
            return trials
        msg = f"must be a whole number from 1 up, or {AUTO!r}"
        raise ValueError(msg)

    @property
    def most(self) -> int:
        """How many trials there are at most."""
        return self.max_trials if self.trials == "auto" else self.trials

    @property
    def auto(self) -> bool:
        """Whether the study ends where more search no longer pays."""
        return self.trials == AUTO


OWN_SAMPLER = "autotune"

SAMPLERS = (OWN_SAMPLER, "random", "exhaustive", "tpe", "gp", "cmaes")
"""Samplers by name; `optuna:CLASS`, `optunahub:PACKAGE` and `MODULE:CLASS` are others'."""

_OTHERS_SAMPLER = re.compile(r"optunahub:[A-Za-z]\w*(/\w+)*(:[A-Za-z]\w*)?|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class SamplerSection(_Section):
    """Which configurations are tried. `startup` of them come first, before any measurement is looked at.

    With `warm_start` what is predicted to be best goes first, by the program's costs or measurements elsewhere, and
    guides the search, as far as the study's own runs bear it out.
    `options` are the arguments of a sampler that is a class: Optuna's, OptunaHub's, or one of your own.
    """

    name: str = "autotune"
    seed: int = Field(default=0, ge=0)
    startup: int = Field(default=6, ge=1)
    warm_start: bool = True
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in SAMPLERS and not _OTHERS_SAMPLER.fullmatch(name):
            others = "optuna:CLASS (any sampler of Optuna's), optunahub:PACKAGE, MODULE:CLASS (one of your own)"
            msg = f"unknown sampler{did_you_mean(name, SAMPLERS)}; known: {', '.join(SAMPLERS)}, {others}"
            raise ValueError(msg)
        return name


class RepeatsSection(_Section):
    """How often configurations are run, so that noise does not decide who wins.

    The default configuration is run `baseline_runs` times at first, again after every `baseline_every` runs of others
    (0: never), and at the start of every session, after `warm_up_runs` runs that do not count. With `caps`, a run that
    has already lost is stopped.
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
    def without_races(self) -> Self:
        """The same for a study without a single winner: no trial is repeated to beat another, or capped by it."""
        return self.model_copy(update={"max_runs": self.min_runs, "caps": False})

    @property
    def rules(self) -> RaceRules:
        """When a configuration is run again."""
        return RaceRules(self.min_runs, self.max_runs, self.error_rate, self.min_gain)


class VerdictSection(_Section):
    """How the winner is chosen among the best few `candidates`, in `rounds`, and compared with the baseline.

    The comparison takes `pairs` interleaved runs, and then as many more, up to `max_pairs`, as an interval needs that
    reaches `precision` (relative) to either side.
    """

    candidates: int = Field(default=3, ge=1)
    rounds: int = Field(default=4, ge=2)
    pairs: int = Field(default=8, ge=3)
    max_pairs: int = Field(default=20, ge=3)
    precision: float = Field(default=0.05, gt=0)
    confidence: float = Field(default=0.95, gt=0.5, lt=1)

    @model_validator(mode="after")
    def _enough(self) -> Self:
        least = least_pairs(self.confidence)
        if self.pairs < least:
            msg = f"a {self.confidence:.0%} interval needs at least {least} pairs, pairs is {self.pairs}"
            raise ValueError(msg)
        if self.max_pairs < self.pairs:
            msg = f"max_pairs is {self.max_pairs}, less than pairs, {self.pairs}"
            raise ValueError(msg)
        return self


class StoppingSection(_Section):
    """How far trials go whose program works in steps (epochs): the better ones go on, the others are stopped.

    No trial makes more than `max_steps` steps, none is judged before `min_steps`; at every rung one of `eta` goes on.
    `hyperband` mixes brackets from many short trials to few long ones, `asha` is the one with most trials and does not
    wait for a rung to be complete, `median` stops a trial that is worse than the median of others at its step.
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


class TradeoffSection(_Section):
    """A second metric that matters: the study looks for configurations that no other beats in both.

    There is no single winner then, hence neither races nor a verdict.
    """

    metric: str


class ModelSection(_Section):
    """What a run time is a sum of: `terms` are expressions over parameters, facts and derived values, never negative.

    Of a metric that is maximised, its inverse is that sum. The rate of each term follows from measurements; with
    `seconds` the terms are times already, which measurements correct.
    """

    terms: list[Expression] = Field(min_length=1)
    seconds: bool = False


class ScalingSection(_Section):
    """What `autotune scaling` varies: the parameter that counts `processes`; `work` grows with it in weak scaling."""

    processes: str
    work: str | None = None


class LauncherSection(_Section):
    """Where the runs are made: on this machine, or as jobs of a batch system at a `site`, by default the user's own.

    Without a `kind` it is what the site has, and this machine if there is no site either.
    """

    kind: Annotated[str, OneOf(lambda: ["local", *names()])] | None = None
    site: str | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.kind == "local" and self.site is not None:
            msg = f"a site ({self.site}) is for batch systems, not for kind = 'local'"
            raise ValueError(msg)
        return self


class RunsSection(_Section):
    """For how long the folders of runs are kept; `autotune runs STUDY --prune` removes those that are older.

    Without `keep_days` they are kept for ever. What was measured stays in storage.
    """

    keep_days: float | None = Field(default=None, gt=0, allow_inf_nan=False)


def _named(name: str) -> str:
    if not re.fullmatch(NAME, name):
        msg = (
            "a study's name begins with one of A-Z, a-z, 0-9, and has these, '.', '_' and '-' only; "
            'a study without one is called like its file: write name = "..." at the start of the file'
        )
        raise ValueError(msg)
    return name


class SoftwareSection(_Section):
    """Where the programs come from, as one value of the parameter `software`; empty: from where they are found here.

    `modules` are loaded in their order, after all others were unloaded with `purge`. `spack` are specs of installed
    packages, `spack_environment` is a name or a folder. `container` is an image that `runtime` starts: the first of
    apptainer, singularity and ch-run that is on the search path. `programs` and `libraries` are folders of a build that
    are searched before all others, `environment` are variables that it needs.
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


class StudyFile(_Section):
    """A whole study file.

    With `inputs` the program is tuned for all of them together. `workloads` are other problems for the same program, by
    name: what their options have instead of `options`. The winner is compared with the default on each.
    """

    name: Annotated[str, AfterValidator(_named)]
    description: str = ""
    objective: str
    options: dict[str, Any] = Field(default_factory=dict)
    inputs: list[InputSection] = Field(default_factory=list)
    workloads: dict[Annotated[str, Field(pattern=NAME)], dict[str, Any]] = Field(default_factory=dict)
    software: dict[Annotated[str, Field(pattern=NAME)], SoftwareSection] = Field(default_factory=dict)
    space: SpaceSection = SpaceSection()
    budget: BudgetSection = BudgetSection()
    sampler: SamplerSection = SamplerSection()
    repeats: RepeatsSection = RepeatsSection()
    verdict: VerdictSection = VerdictSection()
    stopping: StoppingSection | None = None
    model: ModelSection | None = None
    scaling: ScalingSection | None = None
    tradeoff: TradeoffSection | None = None
    launcher: LauncherSection = LauncherSection()
    runs: RunsSection = RunsSection()

    @property
    def whole_steps(self) -> int | None:
        """How many steps a whole run makes; None if the program is not asked to stop at a step."""
        return None if self.stopping is None else self.stopping.max_steps

    @field_validator("inputs")
    @classmethod
    def _several(cls, inputs: list[InputSection]) -> list[InputSection]:
        if len(inputs) == 1:
            msg = "a mix has two inputs or more; what a study of one input changes stands in [options]"
            raise ValueError(msg)
        # Facts carry the name of an input in theirs, where only letters, digits and _ may stand.
        alike = Counter(re.sub(r"\W", "_", one.name) for one in inputs)
        same = [one.name for one in inputs if alike[re.sub(r"\W", "_", one.name)] > 1]
        if same:
            msg = f"each input needs a name of its own ('.' and '-' count as '_'); these are alike: {', '.join(same)}"
            raise ValueError(msg)
        return inputs

    @model_validator(mode="after")
    def _can_be_mixed(self) -> Self:
        clashing = {"workloads": bool(self.workloads), "stopping": self.stopping is not None}
        reasons = {
            "workloads": "the winner is judged on each input anyway; make the workloads inputs",
            "stopping": "the steps of several inputs are not those of one training",
        }
        for name in (name for name, given in clashing.items() if given and self.inputs):
            msg = f"[[inputs]] and [{name}] cannot go together: {reasons[name]}"
            raise ValueError(msg)
        return self

    @property
    def planned_options(self) -> dict[str, dict[str, Any]]:
        """What the program is planned with: the options of each input by its name; those of the study as ''."""
        return {one.name: {**self.options, **one.options} for one in self.inputs} or {"": self.options}
