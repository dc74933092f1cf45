"""The study file: a user's description of a study, parsed from TOML and checked."""

from autotune.studyfile.decisions import DecisionsSection
from autotune.studyfile.loading import apply_overrides, catalogue, find, load, parse, read, with_overrides
from autotune.studyfile.model import (
    AUTO,
    NAME,
    NOISE_MODES,
    OWN_SAMPLER,
    SAMPLERS,
    BudgetSection,
    LauncherSection,
    NoiseMode,
    NoiseSection,
    RepeatsSection,
    SamplerSection,
    ScalingSection,
    SpaceSection,
    StudyFile,
    TradeoffSection,
)
from autotune.studyfile.stopping import StoppingSection
from autotune.studyfile.verdict import VerdictMode, VerdictSection
from autotune.studyfile.weights import COUNT

__all__ = [
    "AUTO",
    "COUNT",
    "NAME",
    "NOISE_MODES",
    "OWN_SAMPLER",
    "SAMPLERS",
    "BudgetSection",
    "DecisionsSection",
    "LauncherSection",
    "NoiseMode",
    "NoiseSection",
    "RepeatsSection",
    "SamplerSection",
    "ScalingSection",
    "SpaceSection",
    "StoppingSection",
    "StudyFile",
    "TradeoffSection",
    "VerdictMode",
    "VerdictSection",
    "apply_overrides",
    "catalogue",
    "find",
    "load",
    "parse",
    "read",
    "with_overrides",
]
