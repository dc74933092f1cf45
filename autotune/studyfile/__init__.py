"""The study file: a study as its user describes it, read from TOML and checked."""

from autotune.studyfile.loading import catalogue, changed, find, load, parse, read
from autotune.studyfile.model import (
    AUTO,
    NAME,
    OWN_SAMPLER,
    SAMPLERS,
    BudgetSection,
    LauncherSection,
    RepeatsSection,
    SamplerSection,
    ScalingSection,
    SpaceSection,
    StoppingSection,
    StudyFile,
    TradeoffSection,
    VerdictSection,
)

__all__ = [
    "AUTO",
    "NAME",
    "OWN_SAMPLER",
    "SAMPLERS",
    "BudgetSection",
    "LauncherSection",
    "RepeatsSection",
    "SamplerSection",
    "ScalingSection",
    "SpaceSection",
    "StoppingSection",
    "StudyFile",
    "TradeoffSection",
    "VerdictSection",
    "catalogue",
    "changed",
    "find",
    "load",
    "parse",
    "read",
]
