"""Principal components, clusters or a separating plane of rows over MPI ranks, for the studies `bigdata-*`.

    mpirun -np 2 python3 bigdata.py kmeans --rows 80000 --blas openblas-pthread --block 1000

The kernels are those of the Big Data Analysis Suite of CORAL-2, which is written in R (pbdR): `pca`, the largest and
the least standard deviation along the principal components of normal rows; `kmeans`, two iterations for 2, 3 and 4
clusters of rows around 0, 2 and 10; `svm`, 500 evaluations of a linear support vector machine between rows around 0
and 2. All ranks have the same number of rows, of 250 columns. Rows and answer do not depend on the number of ranks.
Generating rows is not timed.

Prints the seconds of a pass on the fastest rank, on average and on the slowest rank, which is the time; the input in
GB/s, the suite's figure of merit; and the answer. Each run also checks itself, with the same ranks and library: on
Fisher's iris data as the suite does, and against the distribution of the generated rows.
"""

# ruff: noqa: T201  a program of its own: it prints

import argparse
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

try:
    import numpy as np
    from bigdata_blas import open_library
    from bigdata_kernels import accuracy, clusters, decomposition_error, deviations, plane, rand_index
    from bigdata_rows import Rows, make_rows, share
    from mpi4py import MPI
except ImportError as missing:
    sys.exit(
        f"error: {sys.executable} has no {missing.name or missing}; install it with './run study bigdata-pca', or with "
        f"{sys.executable} -m pip install mpi4py numpy"
    )

SETOSA = 0


class WrongError(Exception):
    """A result that contradicts a known one."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: rows around `means`, one pass over them, the check of its result, and the check on iris data."""

    means: tuple[float, ...]
    compute: Callable[[Rows, argparse.Namespace], Any]
    check: Callable[[Rows, Any], Iterator[str]]
    check_iris: Callable[[Rows], Iterator[str]]


def check(holds: bool, what: str) -> str:
    """Return a description of a result that is right.

    Raises:
        WrongError: the result is wrong.
    """
    if not holds:
        raise WrongError(what)
    return what


def pca(rows: Rows, asked: argparse.Namespace) -> Any:  # noqa: ANN401  an array
    """Return the deviations along all components, (p,)."""
    return deviations(rows, asked.centre)


def check_pca(rows: Rows, found: Any) -> Iterator[str]:  # noqa: ANN401  an array
    """Check the extremes against the limits for large tables (V. A. Marchenko and L. A. Pastur, 1967)."""
    spread = (rows.columns / rows.total) ** 0.5
    near = max(abs(found[0] - 1.0 - spread), abs(found[-1] - 1.0 + spread)) < 0.25 * spread
    yield check(near, f"deviations {found[0]:.12f} {found[-1]:.12f}, expected {1 + spread:.4f} {1 - spread:.4f}")
    yield f"answer {found[0]:.12f}"


def check_iris_pca(iris: Rows) -> Iterator[str]:
    """Check that the decomposition reproduces the data."""
    lost = decomposition_error(iris)
    yield check(lost < np.finfo(float).eps ** 0.5, f"iris: reconstruction error {lost:.1e}, less than 1.5e-8 is right")


def kmeans(rows: Rows, asked: argparse.Namespace) -> Any:  # noqa: ANN401  of each number of clusters
    """Return 2, 3 and 4 clusters; each search starts from the first rows of rank 0."""
    return [clusters(rows, asked.starts[:k], 2, asked.sums) for k in (2, 3, 4)]


def check_kmeans(rows: Rows, found: Any) -> Iterator[str]:  # noqa: ANN401  of each number of clusters
    """Check that three clusters are the three classes, and that two merge two of them."""
    two, three, _ = found
    agreed = rand_index(rows, three)
    yield check(agreed > 0.999, f"rand index of 3 clusters {agreed:.6f}, more than 0.999 is right")
    lost = 1.0 - rand_index(rows, two)
    yield check(abs(lost - 2.0 / 9.0) < 0.001, f"rand index of 2 clusters {1.0 - lost:.6f}, 7/9 is right")
    yield f"answer {sum(each.squares for each in found) / rows.total:.12f}"


def check_iris_kmeans(iris: Rows) -> Iterator[str]:
    """Check the clusters against the three species: the best of a hundred starts, by distances."""
    drawn = np.random.default_rng(0)
    whole = np.zeros((iris.total, iris.columns))
    first, end = share(iris.total, MPI.COMM_WORLD.size, MPI.COMM_WORLD.rank)
    whole[first:end] = iris.x
    iris.together(whole)
    starts = (whole[drawn.choice(iris.total, 3, replace=False)] for _ in range(100))
    best = min((clusters(iris, start, 100) for start in starts), key=lambda found: found.squares)
    agreed = rand_index(iris, best)
    yield check(agreed > 0.75, f"iris: rand index {agreed:.4f}, more than 0.75 is right")


def svm(rows: Rows, asked: argparse.Namespace) -> Any:  # noqa: ANN401  a plane
    """Return the plane after the suite's 500 evaluations."""
    return plane(rows, 500, asked.points)


def check_svm(rows: Rows, found: Any) -> Iterator[str]:  # noqa: ANN401  a plane
    """Check accuracy and cost; the cost is 1 at the start."""
    right = accuracy(rows, found.weights)
    yield check(
        right > 0.95 and found.cost < 1.0, f"accuracy {right:.4f}, cost {found.cost:.6f}: 0.95 and 1 are limits"
    )
    yield f"answer {found.cost:.12f}"


def check_iris_svm(iris: Rows) -> Iterator[str]:
    """Check the plane between one species and the two others."""
    two = replace(iris, classes=(iris.classes == SETOSA).astype(int), kinds=2)
    right = accuracy(two, plane(two, 500).weights)
    yield check(right > 0.8, f"iris: accuracy {right:.4f}, more than 0.8 is right")


KERNELS = {
    "pca": Kernel((0.0,), pca, check_pca, check_iris_pca),
    "kmeans": Kernel((0.0, 2.0, 10.0), kmeans, check_kmeans, check_iris_kmeans),
    "svm": Kernel((0.0, 2.0), svm, check_svm, check_iris_svm),
}


def time_passes(compute: Callable[[], Any], passes: int) -> tuple[Any, list[float]]:
    """Return a result, and the median seconds of a pass: on the fastest rank, on average, on the slowest.

    An untimed pass before them starts threads and touches memory.
    """
    result, took = compute(), []
    for _ in range(passes):
        MPI.COMM_WORLD.Barrier()
        begun = time.perf_counter()
        result = compute()
        took.append(MPI.COMM_WORLD.allgather(time.perf_counter() - begun))
    return result, [statistics.median(by(each) for each in took) for by in (min, statistics.fmean, max)]


def run(asked: argparse.Namespace) -> Iterator[str]:
    """Generate the rows, run the kernel, and yield the lines to print.

    Raises:
        WrongError: a result contradicts a known one.
    """
    kernel, ranks, rank = KERNELS[asked.kernel], MPI.COMM_WORLD.size, MPI.COMM_WORLD.rank
    blas = open_library(asked.blas)
    x, classes = make_rows(asked.rows, asked.columns, kernel.means, share(asked.rows, ranks, rank))
    asked.starts, _ = make_rows(asked.rows, asked.columns, kernel.means, (0, 4))
    rows = Rows(x, classes, len(kernel.means), asked.rows, blas, sum_over_ranks, asked.block)
    result, (least, mean, most) = time_passes(lambda: kernel.compute(rows, asked), asked.passes)
    yield f"{asked.kernel}: {asked.rows} rows x {asked.columns} columns, {asked.rows // ranks} on each of {ranks} ranks"
    yield f"seconds {least:.6f} {mean:.6f} {most:.6f}"
    yield f"input {asked.rows * asked.columns * 8 / most / 1e9:.6f} GB/s"
    yield from kernel.check(rows, result)
    table = np.loadtxt(asked.iris, delimiter=",")
    first, end = share(len(table), ranks, rank)
    species = table[first:end, -1].astype(int)
    yield from kernel.check_iris(
        Rows(np.ascontiguousarray(table[first:end, :-1]), species, 3, len(table), blas, sum_over_ranks)
    )
    yield "valid"


def sum_over_ranks(array: Any) -> None:  # noqa: ANN401  an array
    """Sum an array over all ranks, in place."""
    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", choices=list(KERNELS))
    parser.add_argument("--rows", type=int, default=40000, help="on all ranks together")
    parser.add_argument("--columns", type=int, default=250)
    parser.add_argument("--passes", type=int, default=3, help="timed passes, after one untimed")
    parser.add_argument("--blas", default="numpy", help="NumPy's own, or the folder of a libblas.so.3")
    parser.add_argument("--block", type=int, default=0, help="rows per block; 0: all rows of a rank")
    parser.add_argument(
        "--centre", choices=["before", "after"], default="before", help="pca: when to subtract the mean"
    )
    parser.add_argument(
        "--sums", choices=["product", "select"], default="product", help="kmeans: how to sum the rows of a cluster"
    )
    parser.add_argument("--points", type=int, default=1, help="svm: first points per pass over the rows")
    parser.add_argument("--iris", type=Path, default=Path(__file__).with_name("iris.csv"))
    return parser.parse_args()


def main() -> None:
    """Run the kernel; rank 0 prints."""
    try:
        for line in run(arguments()):
            if MPI.COMM_WORLD.rank == 0:
                print(line, flush=True)
    except WrongError as wrong:
        # Every rank has the same results, so all of them end here.
        sys.exit(f"error: {wrong}")
    except Exception:  # noqa: BLE001  printed; the other ranks must not wait for this one
        traceback.print_exc()
        MPI.COMM_WORLD.Abort(1)


if __name__ == "__main__":
    main()
