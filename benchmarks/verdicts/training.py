"""Train a network of one layer on a sum of sines; prints the error after each epoch.

python training.py RATE WIDTH EPOCHS SEED
"""

import sys

import numpy as np


def main() -> None:
    rate, width, epochs, seed = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    data, rng = np.random.default_rng(0), np.random.default_rng(seed)
    x = data.uniform(-2.0, 2.0, (1500, 1))
    y = np.sin(3.0 * x) + 0.5 * np.sin(7.0 * x) + 0.1 * data.standard_normal(x.shape)
    first, second = rng.normal(0.0, 2.0, (2, width)), rng.normal(0.0, 1.0 / width**0.5, (width, 1))
    for epoch in range(1, epochs + 1):
        for rows in np.array_split(rng.permutation(1000), 20):
            ahead = np.column_stack([x[rows], np.ones(len(rows))])
            hidden = np.tanh(ahead @ first)
            wrong = (hidden @ second - y[rows]) / len(rows)
            back = (wrong @ second.T) * (1.0 - hidden**2)
            second -= rate * hidden.T @ wrong
            first -= rate * ahead.T @ back
        hidden = np.tanh(np.column_stack([x[1000:], np.ones(500)]) @ first)
        print(f"epoch {epoch}: error {np.sqrt(np.mean((hidden @ second - y[1000:]) ** 2)):.6f}", flush=True)


if __name__ == "__main__":
    main()
