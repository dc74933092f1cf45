"""LARS: each layer has its own rate, proportional to the ratio of its weights to their gradient.

You, Gitman and Ginsburg 2017, arXiv:1708.03888, algorithm 1: with the rate r, momentum m, decay b and trust t, a weight
tensor w of gradient g gets v = m v + r t |w| / (|g| + b |w|) (g + b w), and w = w - v. Biases and scales of
normalisations, which have one dimension, are updated by plain momentum without decay, as is usual.
"""

from typing import Any

import torch

TRUST = 0.001  # of the paper


class Lars(torch.optim.Optimizer):  # type: ignore[misc]  # torch is of another interpreter
    """Stochastic gradient descent with momentum and layer-wise rates."""

    def __init__(self, parameters: Any, lr: float, momentum: float, weight_decay: float) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def step(self, closure: None = None) -> None:
        """Update the weights that have a gradient."""
        del closure
        with torch.no_grad():
            for group in self.param_groups:
                for weights in group["params"]:
                    if weights.grad is not None:
                        self._update(weights, group)

    def _update(self, weights: Any, group: dict[str, Any]) -> None:
        update, rate = weights.grad, group["lr"]
        if weights.dim() > 1:
            decay = group["weight_decay"]
            size, slope = weights.norm(), update.norm() + decay * weights.norm()
            # For a layer of zeros, or without a gradient, the ratio is undefined: use the plain rate.
            local = torch.where((size > 0) & (slope > 0), TRUST * size / slope, 1.0)
            update = local * (update + decay * weights)
        state = self.state[weights]
        if "velocity" not in state:
            state["velocity"] = torch.zeros_like(weights)
        velocity = state["velocity"]
        velocity.mul_(group["momentum"]).add_(rate * update)
        weights.sub_(velocity)
