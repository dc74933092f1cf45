"""The direction of a metric, as its name shows it."""

import re
from typing import Literal

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
    """Return the direction of a metric if its name shows it (`val_loss`, `train/top1_acc`); else None."""
    words = set(re.findall(r"[a-z]+\d*", name.lower()))
    low, high = not words.isdisjoint(_LOW_IS_GOOD), not words.isdisjoint(_HIGH_IS_GOOD)
    if low == high:
        return None
    return "minimize" if low else "maximize"
