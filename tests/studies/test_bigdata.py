"""The program of the studies `bigdata-*`: the answer is right for any number of ranks and any library."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

PROGRAMS = Path("studies/programs").absolute()
PYTHON = Path(os.environ.get("AUTOTUNE_BIGDATA_PYTHON") or Path(sys.prefix) / "share/autotune/bigdata/bin/python3")
NAMES = ("bigdata_blas", "bigdata_rows", "bigdata_kernels")


def imported():
    sys.path.insert(0, str(PROGRAMS))
    try:
        return [importlib.import_module(name) for name in NAMES]
    finally:
        sys.path.remove(str(PROGRAMS))


blas, rows, kernels = imported()
LIBRARIES = [blas.OWN, *blas.libraries()]


class Ranks:
    """Threads that sum arrays among them, as ranks do."""

    def __init__(self, count):
        self.count, self.barrier, self.given = count, threading.Barrier(count), [None] * count

    def run(self, compute):
        found = [None] * self.count

        def one(rank):
            try:
                found[rank] = compute(rank, lambda array: self.add_up(rank, array))
            except BaseException:
                self.barrier.abort()
                raise

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(each is not None for each in found)
        return found

    def add_up(self, rank, array):
        self.given[rank] = array.copy()
        self.barrier.wait()
        array[...] = sum(self.given)
        self.barrier.wait()


def over(count, means, compute, *, total=300, columns=8, library=blas.OWN, block=0):
    """Return what each rank finds in rows around means."""

    def one(rank, together):
        x, classes = rows.make_rows(total, columns, means, rows.share(total, count, rank))
        return compute(rows.Rows(x, classes, len(means), total, blas.open_library(library), together, block))

    return Ranks(count).run(one)


def whole(means, total=300, columns=8):
    return rows.make_rows(total, columns, means, (0, total))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_the_products_of_every_library_are_those_of_numpy(library, n, k):
    drawn, open_library = np.random.default_rng(0), blas.open_library(library)
    x, points, weights = drawn.normal(size=(n, 5)), drawn.normal(size=(k, 5)), drawn.normal(size=(n, k))
    gram = np.ones((5, 5))
    open_library.gram(x, gram)
    assert np.tril(gram) == pytest.approx(np.tril(1.0 + x.T @ x))
    assert open_library.times(x, points) == pytest.approx(x @ points.T)
    assert open_library.sums(weights, x) == pytest.approx(weights.T @ x)


def test_what_fortran_would_read_wrongly_is_refused():
    if len(LIBRARIES) == 1:
        pytest.skip("no libblas.so.3 here")
    with pytest.raises(ValueError, match="64-bit numbers, rows one after the other"):
        blas.open_library(LIBRARIES[1]).times(np.ones((4, 6))[:, ::2], np.ones((1, 3)))


def test_a_library_that_is_not_there_is_named():
    with pytest.raises(SystemExit, match="no BLAS library 'mine' here; there are numpy"):
        blas.open_library("mine")


@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_rows_are_the_same_however_many_ranks_have_them(ranks):
    x, classes = whole((0.0, 5.0), total=1201)
    parts = [rows.make_rows(1201, 8, (0.0, 5.0), rows.share(1201, ranks, rank)) for rank in range(ranks)]
    assert np.array_equal(np.concatenate([part for part, _ in parts]), x)
    assert np.array_equal(np.concatenate([part for _, part in parts]), classes)
    assert max(map(len, (part for part, _ in parts))) - min(map(len, (part for part, _ in parts))) <= 1
    assert x[classes == 1].mean() == pytest.approx(5.0, abs=0.1)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("centre", ["before", "after"])
@pytest.mark.parametrize(("ranks", "block"), [(1, 0), (3, 0), (2, 16)])
def test_deviations_are_those_of_the_whole(library, centre, ranks, block):
    x, _ = whole((0.0, 3.0))
    expected = np.linalg.svd(x - x.mean(axis=0), compute_uv=False) / np.sqrt(len(x) - 1)
    for found in over(ranks, (0.0, 3.0), lambda one: kernels.deviations(one, centre), library=library, block=block):
        assert found == pytest.approx(expected)


def plainly_clustered(x, centres, iterations):
    for _ in range(iterations):
        labels = ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        centres = np.array([x[labels == cluster].mean(axis=0) for cluster in range(len(centres))])
    return centres, ((x[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum()


@pytest.mark.parametrize("how", ["product", "select"])
@pytest.mark.parametrize(("ranks", "block"), [(1, 0), (3, 0), (2, 16)])
@pytest.mark.parametrize("k", [2, 4])
def test_clusters_are_those_of_the_plain_method(how, ranks, block, k):
    means = (0.0, 2.0, 10.0)
    x, _ = whole(means)
    centres, squares = plainly_clustered(x, x[:k], 2)
    for found in over(ranks, means, lambda one: kernels.clusters(one, x[:k], 2, how), block=block):
        assert found.centres == pytest.approx(centres)
        assert found.squares == pytest.approx(squares)


def test_a_centre_without_rows_stays():
    centres = np.vstack([np.zeros(8), np.full(8, 1e6)])
    (found,) = over(1, (0.0,), lambda one: kernels.clusters(one, centres, 2))
    assert np.array_equal(found.centres[1], centres[1])


def test_the_rand_index_counts_pairs():
    means = (0.0, 2.0, 10.0)
    x, classes = whole(means, total=60)

    def both(one):
        found = kernels.clusters(one, x[[0, 3]], 1)
        return found.labels, kernels.rand_index(one, found)

    parts = over(3, means, both, total=60)
    labels = np.concatenate([part for part, _ in parts])
    first, second = np.triu_indices(60, 1)
    agreed = (classes[first] == classes[second]) == (labels[first] == labels[second])
    assert 0.3 < agreed.mean() < 1.0
    assert [index for _, index in parts] == pytest.approx([agreed.mean()] * 3)


@pytest.mark.parametrize("at_once", [1, 4, 100])
@pytest.mark.parametrize(("ranks", "block"), [(1, 0), (3, 0), (2, 16)])
def test_a_plane_has_the_cost_that_it_says_and_keeps_the_classes_apart(at_once, ranks, block):
    x, classes = whole((0.0, 4.0))
    signs = np.where(classes == 1, 1.0, -1.0)

    def both(one):
        found = kernels.plane(one, 300, at_once)
        return found, kernels.accuracy(one, found.weights)

    for found, right in over(ranks, (0.0, 4.0), both, block=block):
        lost = np.maximum(0.0, 1.0 - signs * (x @ found.weights[:-1] + found.weights[-1])).mean()
        assert found.cost == pytest.approx(lost + 0.5 * (found.weights**2).sum() / len(x))
        assert found.cost < 0.3
        assert right == (((x @ found.weights[:-1] + found.weights[-1]) > 0) == (classes == 1)).mean()
        assert right > 0.95


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_decomposition_that_is_put_together_again_loses_nothing(library):
    for lost in over(2, (0.0, 3.0), kernels.decomposition_error, library=library):
        assert lost < 1e-12


needs_mpi = pytest.mark.skipif(
    not PYTHON.is_file() or shutil.which("mpirun") is None,
    reason="no mpirun, or no Python with mpi4py here: AUTOTUNE_BIGDATA_PYTHON",
)
LOCAL = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}


def ended(ranks, *words):
    start = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
    return subprocess.run(
        [*start, str(PYTHON), str(PROGRAMS / "bigdata.py"), *words, "--columns", "50", "--passes", "1"],
        env=os.environ | LOCAL | {"OPENBLAS_NUM_THREADS": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def answer(said):
    return float(re.search(r"^answer (\S+)$", said, re.MULTILINE)[1])


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "other"),
    [
        ("pca", ("--centre", "after", "--block", "100")),
        ("kmeans", ("--sums", "select", "--block", "100")),
        ("svm", ("--points", "16", "--block", "100")),
    ],
)
def test_ranks_agree_with_one_rank(kernel, other):
    one = ended(1, kernel, "--rows", "2000")
    assert one.returncode == 0, one.stdout + one.stderr
    two = ended(2, kernel, "--rows", "2000", *other)
    assert two.returncode == 0, two.stdout + two.stderr
    assert "1000 on each of 2 ranks" in two.stdout
    for said in (one.stdout, two.stdout):
        assert re.search(r"^seconds \S+ \S+ \S+$", said, re.MULTILINE)
        assert re.search(r"^iris: ", said, re.MULTILINE)
        assert said.rstrip().endswith("valid")
    assert answer(two.stdout) == pytest.approx(answer(one.stdout), rel=1e-6)


@needs_mpi
@pytest.mark.slow
def test_a_wrong_answer_is_no_measurement(tmp_path):
    lines = (PROGRAMS / "iris.csv").read_text(encoding="utf-8").splitlines()
    shuffled = [f"{line[:-1]}{number % 3}" for number, line in enumerate(lines)]
    (tmp_path / "iris.csv").write_text("\n".join(shuffled), encoding="utf-8")
    found = ended(2, "kmeans", "--rows", "2000", "--iris", str(tmp_path / "iris.csv"))
    assert found.returncode != 0
    assert "error: iris: rand index" in found.stderr
    assert "valid" not in found.stdout


@needs_mpi
@pytest.mark.slow
def test_no_rank_waits_for_one_that_failed(tmp_path):
    found = ended(2, "pca", "--rows", "2000", "--iris", str(tmp_path / "none.csv"))
    assert found.returncode != 0
    assert "none.csv" in found.stderr
