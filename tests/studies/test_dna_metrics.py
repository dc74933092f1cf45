"""The figures of the training program `dna`, against their definitions."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from dna import metrics, progress
from hypothesis import given
from hypothesis import strategies as st

pytestmark = [
    pytest.mark.full,
]


scored = st.lists(st.tuples(st.integers(-8, 8).map(lambda n: n / 2), st.booleans()), min_size=1, max_size=30)


def arrays(pairs: Sequence[tuple[float, bool]]) -> tuple[Any, Any]:
    return np.array([s for s, _ in pairs], dtype=np.float32), np.array([y for _, y in pairs], dtype=np.float32)


@given(scored)
def test_average_precision_is_its_definition(pairs: list[tuple[float, bool]]) -> None:
    positives = sum(label for _, label in pairs)
    expected, recall_before = 0.0, 0.0
    for cut in sorted({score for score, _ in pairs}, reverse=True):
        chosen = [label for score, label in pairs if score >= cut]
        recall = sum(chosen) / positives if positives else math.nan
        expected += (recall - recall_before) * sum(chosen) / len(chosen)
        recall_before = recall
    assert metrics.average_precision(*arrays(pairs)) == pytest.approx(expected, nan_ok=True)


def test_the_area_through_thresholds_is_that_of_davis_and_goadrich() -> None:
    # Above the thresholds (below 0, .5, above 1) lie 4, 1 and 0 predictions; 2, 1 and 0 of them are right.
    found = metrics.interpolated_auc(np.array([0, 0.5, 0.3, 0.9]), np.array([0.0, 0, 1, 1]), 3)
    assert found == pytest.approx(0.5 * (1 + 2 / 3 * math.log(4)) / 3 + 0.5)


@given(scored)
def test_the_area_through_thresholds_is_the_integral_of_the_precision(pairs: list[tuple[float, bool]]) -> None:
    probabilities, labels = [(score + 4) / 8 for score, _ in pairs], [label for _, label in pairs]
    edges = [-1e-7, 0.25, 0.5, 0.75, 1 + 1e-7]
    counts = [
        (sum(p > e and y for p, y in zip(probabilities, labels, strict=True)), sum(p > e for p in probabilities))
        for e in edges
    ]
    area, steps = 0.0, 500
    for (true_low, all_low), (true_high, all_high) in pairwise(counts):
        for i in range(steps):
            part = (i + 0.5) / steps
            true = true_high + part * (true_low - true_high)
            everything = all_high + part * (all_low - all_high)
            area += (true_low - true_high) / steps * (true / everything if everything else 0)
    expected = area / sum(labels) if any(labels) else math.nan
    found = metrics.interpolated_auc(np.array(probabilities), np.array(labels, dtype=np.float32), 5)
    assert found == pytest.approx(expected, abs=5e-3, nan_ok=True)


@given(scored)
def test_losses_and_overlaps_are_their_definitions(pairs: list[tuple[float, bool]]) -> None:
    found = metrics.figures(*arrays(pairs))
    p = [1 / (1 + math.exp(-score)) for score, _ in pairs]
    y = [label for _, label in pairs]
    both = list(zip(p, y, strict=True))
    loss = -sum(math.log(a if b else 1 - a) for a, b in both) / len(both)
    assert found["val_loss"] == pytest.approx(loss)
    assert found["val_dice"] == pytest.approx((2 * sum(a * b for a, b in both) + 1) / (sum(p) + sum(y) + 1))
    shares = []
    for said in (False, True):
        union = sum(said in {a >= 0.5, b} for a, b in both)
        shares += [sum((a >= 0.5) == said and b == said for a, b in both) / union] if union else []
    assert found["val_iou"] == pytest.approx(sum(shares) / len(shares))


def test_great_logits_give_finite_figures() -> None:
    found = metrics.figures(np.array([-1e5, 1e5], dtype=np.float32), np.array([0.0, 1.0], dtype=np.float32))
    assert found == pytest.approx({"val_auc": 1, "val_loss": 0, "val_dice": 1, "val_iou": 1, "val_site_iou": 1})


@given(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=20))
def test_progress_knows_the_first_smallest_loss(losses: list[float]) -> None:
    now = progress.Progress()
    for loss in losses:
        now = now.after({"val_loss": loss}, 0.5)
    best = losses.index(min(losses)) + 1
    assert (now.best["step"], now.stale, now.epoch) == (best, len(losses) - best, len(losses))
    assert now.last == {"step": len(losses), "val_loss": losses[-1], "elapsed_s": 0.5 * len(losses)}
    assert progress.Progress(**now.as_plain()) == replace(now)
