"""Figures of a validation, from logits z and labels y (0 or 1), flat arrays over all bases of all windows.

All are computed over the whole set. Keras' Dice is a mean over batches, and so depends on the batch size.
"""

from typing import Any

import numpy as np

SMOOTH = 1.0


def figures(logits: Any, labels: Any, thresholds: int = 0) -> dict[str, float]:
    """Return all figures by their names in the progress line.

    `val_auc` is the `area`; `val_iou` the mean over both classes (the default of Keras' BinaryIoU), `val_site_iou` that
    of the sites alone.
    """
    probabilities = _probabilities(logits)
    background, sites = intersections_over_union(probabilities, labels)
    return {
        "val_auc": area(logits, labels, thresholds),
        "val_loss": cross_entropy(logits, labels),
        "val_dice": dice(probabilities, labels),
        "val_iou": float(np.nanmean([background, sites])),
        "val_site_iou": sites,
    }


def area(logits: Any, labels: Any, thresholds: int = 0) -> float:
    """Return the area under the precision-recall curve: `average_precision`, with thresholds `interpolated_auc`."""
    if thresholds:
        return interpolated_auc(_probabilities(logits), labels, thresholds)
    return average_precision(logits, labels)


def _probabilities(logits: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(logits.astype(np.float64), -700, 700)))


def cross_entropy(logits: Any, labels: Any) -> float:
    """Return the mean of -y log p - (1 - y) log(1 - p), where p is the sigmoid of the logit."""
    exact = logits.astype(np.float64)
    return float(np.mean(np.maximum(exact, 0) - exact * labels + np.log1p(np.exp(-np.abs(exact)))))


def average_precision(scores: Any, labels: Any) -> float:
    """Return the sum over distinct scores, from the greatest, of (recall gained) x (precision there).

    The area under the precision-recall curve as steps, exact, without interpolation; nan without a positive label.
    """
    positives = int(np.count_nonzero(labels))
    if not positives:
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last_of_ties = np.append(np.flatnonzero(np.diff(ranked)), ranked.size - 1)
    hits = np.cumsum(labels[order] > 0, dtype=np.int64)[last_of_ties]
    precision = hits / (last_of_ties + 1)
    return float(np.sum(np.diff(hits, prepend=0) * precision) / positives)


def interpolated_auc(probabilities: Any, labels: Any, thresholds: int) -> float:
    """Return the area under the precision-recall curve through evenly spread thresholds.

    This is Keras' AUC(curve="PR", num_thresholds=thresholds), which the competition used with 1001. Between thresholds
    true positives are linear in all positives (J. Davis and M. Goadrich, ICML 2006, 233). It does not distinguish
    scores below the first threshold, where almost all bases are.

    Raises:
        ValueError: fewer than two thresholds.
    """
    if thresholds < 2:
        raise ValueError(f"the thresholds are two or more, got {thresholds}")
    positives = int(np.count_nonzero(labels))
    if not positives:
        return float("nan")
    edges = np.linspace(0.0, 1.0, thresholds)
    edges[0], edges[-1] = -1e-7, 1 + 1e-7  # all scores are above the first, none above the last
    above = np.searchsorted(edges, probabilities, side="left") - 1  # the last threshold that p is greater than
    true = _at_least(above[labels > 0], thresholds)
    predicted = _at_least(above, thresholds)
    gained, widened = -np.diff(true), -np.diff(predicted)
    slope = np.divide(gained, widened, out=np.zeros(thresholds - 1), where=widened > 0)
    intercept = true[1:] - slope * predicted[1:]
    ratio = np.divide(predicted[:-1], predicted[1:], out=np.ones(thresholds - 1), where=predicted[1:] > 0)
    return float(np.sum(slope * (gained + intercept * np.log(ratio))) / positives)


def _at_least(above: Any, thresholds: int) -> Any:
    """Return the number of scores above each threshold."""
    return np.cumsum(np.bincount(above, minlength=thresholds)[::-1])[::-1].astype(np.float64)


def dice(probabilities: Any, labels: Any) -> float:
    """Return (2 sum(p y) + 1) / (sum(p) + sum(y) + 1), with probabilities, not decisions."""
    common = float(np.sum(probabilities * labels, dtype=np.float64))
    both = float(np.sum(probabilities, dtype=np.float64)) + float(np.sum(labels, dtype=np.float64))
    return (2 * common + SMOOTH) / (both + SMOOTH)


def intersections_over_union(probabilities: Any, labels: Any, threshold: float = 0.5) -> tuple[float, float]:
    """Return |predicted and true| / |predicted or true| of the background and of the sites; nan if both are empty.

    Bases are predicted to be in a site from the threshold on.
    """
    predicted, true = probabilities >= threshold, labels > 0
    return _shared(~predicted, ~true), _shared(predicted, true)


def _shared(predicted: Any, true: Any) -> float:
    union = int(np.count_nonzero(predicted | true))
    return int(np.count_nonzero(predicted & true)) / union if union else float("nan")
