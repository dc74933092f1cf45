"""Metrics of progress lines as a study file names them, and which of their values are better."""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from objectives.base import Metric

Direction = Literal["minimize", "maximize"]

_LOW_IS_GOOD = (
    *("loss", "error", "err", "mse", "rmse", "mae", "mape", "nll", "crossentropy", "perplexity", "ppl", "bpb", "bpc"),
    *("regret", "distance", "wer", "cer", "fid"),
)
_HIGH_IS_GOOD = (
    *("acc", "accuracy", "auc", "auroc", "auprc", "f1", "precision", "recall", "score", "map", "iou", "miou", "dice"),
    *("bleu", "rouge", "psnr", "ssim", "r2", "mcc", "reward"),
)


def direction_of(name: str) -> Direction | None:
    """Return which values of a metric are better, if its name says so: `val_loss`, `train/top1_acc`; None if not."""
    words = set(re.findall(r"[a-z]+\d*", name.lower()))
    low, high = not words.isdisjoint(_LOW_IS_GOOD), not words.isdisjoint(_HIGH_IS_GOOD)
    if low == high:
        return None
    return "minimize" if low else "maximize"


class ProgressMetric(BaseModel):
    """A metric of the progress lines, by the name that it has there; a name alone is enough.

    Without a `direction` its name says which values are better, or it is an error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    unit: str = ""
    direction: Direction | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: object) -> object:
        return {"name": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _has_direction(self) -> "ProgressMetric":
        if self.direction is None and direction_of(self.name) is None:
            how = f'{{ name = "{self.name}", direction = "minimize" }} (or "maximize")'
            msg = f"the name {self.name!r} does not say which values are better: write {how}"
            raise ValueError(msg)
        return self

    def metric(self) -> Metric:
        """Return it as a metric."""
        direction = self.direction or direction_of(self.name)
        assert direction is not None
        return Metric(self.name, self.unit, direction)
