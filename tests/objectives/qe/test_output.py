import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.qe.output import IterationReader, Layout, Timer, duration_s, parse

OUTPUTS = Path(__file__).parents[1] / "outputs"
NAMES = sorted(path.stem for path in OUTPUTS.glob("*.stdout"))


@pytest.fixture
def np2():
    return parse((OUTPUTS / "converged-np2.stdout").read_text())


def test_reads_what_was_computed(np2):
    assert np2.version == "6.7MaX"
    assert not np2.openmp
    assert np2.job_done
    assert np2.converged_after == len(np2.iterations) == 9
    assert np2.energy_ry == pytest.approx(-361.5, abs=1)
    assert np2.not_converged_after is None


def test_reads_the_size_of_the_problem(np2):
    size = np2.workload
    assert (size.kpoints, size.bands, size.electrons, size.atoms) == (6, 24, 48.0, 6)
    assert size.dense_grid
    assert size.smooth_grid
    assert (size.cutoff_ry, size.density_cutoff_ry) == (20.0, 160.0)
    assert size.dense_grid > size.smooth_grid
    assert size.memory_per_rank_bytes
    assert size.memory_bytes
    assert size.memory_bytes == pytest.approx(2 * size.memory_per_rank_bytes, rel=0.01)


def test_reads_the_table_of_routines(np2):
    assert {"init_run", "electrons", "c_bands", "fftw", "h_psi", "h_psi:calbec", "PWSCF"} <= np2.timers.keys()
    assert np2.timers["electrons"].calls == 1
    assert np2.timers["fftw"].calls > 1000
    assert np2.total == np2.timers["PWSCF"]
    assert np2.total.calls == 0
    assert np2.timers["electrons"].wall_s < np2.total.wall_s


def test_iterations_have_energy_accuracy_and_time(np2):
    assert [iteration.number for iteration in np2.iterations] == list(range(1, 10))
    assert all(iteration.energy_ry for iteration in np2.iterations)
    assert np2.iterations[-1].accuracy_ry < 1e-6 < np2.iterations[0].accuracy_ry
    times = [iteration.elapsed_s for iteration in np2.iterations]
    assert times == sorted(times)
    assert times[-1] > 0


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("converged-np1", Layout(nodes=1)),
        ("converged-np2", Layout(ranks=2, nodes=1)),
        ("converged-npool2", Layout(ranks=2, pools=2, nodes=1)),
        ("converged-np4-nbgrp2-ntg2", Layout(ranks=4, band_groups=2, task_groups=2, nodes=1)),
        ("converged-np4-ndiag4", Layout(ranks=4, diagonalization="scalapack", diagonalization_grid=2, nodes=1)),
    ],
)
def test_reads_the_layout_that_was_used(name, layout):
    assert parse((OUTPUTS / f"{name}.stdout").read_text()).layout == layout


def test_reads_the_header_of_an_openmp_build():
    text = """
     Program PWSCF v.7.0 starts on 13Oct2022 at  0:19:14
     Parallel version (MPI & OpenMP), running on      40 processor cores
     Number of MPI processes:                20
     Threads/MPI process:                     2
     K-points division:     npool     =      10
     ELPA distributed-memory algorithm (size of sub-group:  4*  4 procs)
     PWSCF        :   1m52.55s CPU   1m58.50s WALL
"""
    parsed = parse(text)
    assert parsed.openmp
    assert parsed.version == "7.0"
    assert parsed.layout == Layout(ranks=20, threads=2, pools=10, diagonalization="ELPA", diagonalization_grid=4)
    assert parsed.total == Timer(112.55, 118.50)


def test_the_nodes_are_those_that_pw_x_was_distributed_on_and_unknown_where_it_does_not_say():
    text = "     Parallel version (MPI), running on  1200 processors\n\n     MPI processes distributed on    25 nodes\n"
    assert parse(text).layout == Layout(ranks=1200, nodes=25)
    assert parse(text.splitlines()[0]).layout.nodes is None


def test_the_sizes_have_the_names_that_the_facts_of_a_study_have(np2):
    sizes = np2.workload.sizes
    assert (sizes["bands"], sizes["electrons"], sizes["atoms"], sizes["cutoff_ry"]) == (24, 48.0, 6, 20.0)
    assert [sizes[f"fft_dense_{axis}"] for axis in "xyz"] == list(np2.workload.dense_grid)
    assert parse("").workload.sizes == {}


def test_a_dry_run_tells_the_size():
    parsed = parse((OUTPUTS / "dry-run.stdout").read_text())
    assert (parsed.workload.kpoints, parsed.workload.bands, parsed.workload.smooth_grid) == (9, 24, (30, 30, 18))
    assert parsed.iterations == ()
    assert parsed.energy_ry is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0.79s", 0.79),
        ("     1m52.55s", 112.55),
        ("1m 2.55s", 62.55),
        ("1h 2m", 3720),
        ("1d 2h 3m", 93780),
        ("12d23h59m", 1123140),
        (".50s", 0.5),
        ("", None),
        ("s", None),
        ("1x", None),
        ("*****s", None),
    ],
)
def test_times(text, seconds):
    assert duration_s(text) == (None if seconds is None else pytest.approx(seconds))


def as_fortran(seconds: float) -> str:
    """UtilXlib/clocks_handler.f90, print_this_clock: whole program."""
    days, hours = int(seconds // 86400), int(seconds // 3600) % 24
    minutes, rest = int(seconds // 60) % 60, seconds % 60
    if days:
        return f" {days:2d}d{hours:2d}h{minutes:2d}m"
    if hours:
        return f"    {hours:2d}h{minutes:2d}m"
    if minutes:
        return f" {minutes:2d}m{rest:5.2f}s"
    return f"    {rest:5.2f}s"


@given(st.integers(0, 99 * 86400 * 100), st.integers(0, 99 * 86400 * 100))
def test_every_time_that_fortran_writes_is_read_back(cpu_cs, wall_cs):
    cpu_s, wall_s = cpu_cs / 100, wall_cs / 100
    line = f"     PWSCF        : {as_fortran(cpu_s)} CPU {as_fortran(wall_s)} WALL\n"
    total = parse(line).total
    assert total is not None
    for seconds, read in ((cpu_s, total.cpu_s), (wall_s, total.wall_s)):
        # Hours and days are written without seconds.
        assert read == pytest.approx(seconds if seconds < 3600 else seconds // 60 * 60, abs=0.011)


@given(
    st.floats(0, 999_999), st.floats(0, 999_999), st.integers(1, 99_999_999), st.sampled_from(["fftw", "h_psi:calbec"])
)
def test_every_routine_that_fortran_writes_is_read_back(cpu_s, wall_s, calls, name):
    line = f"     {name:12s} : {cpu_s:9.2f}s CPU {wall_s:9.2f}s WALL ({calls:8d} calls)"
    timer = parse(line).timers[name]
    assert timer.calls == calls
    assert timer.cpu_s == pytest.approx(cpu_s, abs=0.006)
    assert timer.wall_s == pytest.approx(wall_s, abs=0.006)


@given(st.sampled_from(NAMES), st.randoms(use_true_random=False))
def test_mutilated_output_is_read_as_far_as_it_goes(name, chance: random.Random):
    text = (OUTPUTS / f"{name}.stdout").read_text()
    for _ in range(chance.randrange(1, 6)):
        start = chance.randrange(len(text) + 1)
        end = start + chance.randrange(200)
        junk = "".join(chance.choices("0123456789.:-+dhms!#%\n \x00é", k=chance.randrange(30)))
        text = text[:start] + junk + text[end:]
    parsed = parse(text)
    assert all(timer.wall_s >= 0 for timer in parsed.timers.values())


@given(st.text(max_size=400))
def test_any_text_is_read(text):
    parse(text)
    reader = IterationReader()
    for line in text.splitlines():
        reader.read(line)


def test_huge_counts_are_no_counts():
    assert parse(f"     number of k points= {'9' * 5000}").workload.kpoints is not None
    assert parse(f"     x : 1.0s CPU 1.0s WALL ({'9' * 5000} calls)").timers == {}


@pytest.mark.parametrize(
    ("weights", "spins", "kpoints"),
    [((1.0,), True, 2), ((0.25, 0.75), True, 4), ((0.5, 0.5, 0.5, 0.5), True, 4), ((2.0,), False, 1), ((), True, 200)],
    ids=["one", "two", "early versions print both", "no spins", "too many to be printed"],
)
def test_where_spins_have_their_own_each_kpoint_counts_twice(weights, spins, kpoints):
    lines = [
        f"        k({n:5d}) = (   0.0000000   0.0000000   0.0000000), wk = {weight:11.7f}"
        for n, weight in enumerate(weights, 1)
    ]
    # With much output they are printed once more, in other axes.
    text = "\n".join([f"     number of k points= {len(weights) or 100:5d}", *lines, *lines])
    header = "     Starting magnetic structure \n" if spins else ""
    assert parse(header + text).workload.kpoints == kpoints


def test_relaxation_counts_every_iteration_and_keeps_the_last_energy(np2):
    text = (OUTPUTS / "converged-np2.stdout").read_text()
    moved = re.sub(r"(?m)^!(.*)= +\S+ Ry", r"!\1= -400.5 Ry", text)
    parsed = parse(text + moved)
    assert len(parsed.iterations) == 2 * len(np2.iterations)
    assert parsed.energy_ry == -400.5


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ("Program PWSCF v.6.1 (svn rev. 13369) starts on  3Mar2017 at 10:11:12", "6.1"),
        ("Program PWSCF v.5.0.99 (svn rev. 10869) starts on  3Mar2017 at 10:11:12", "5.0.99"),
    ],
)
def test_the_revision_is_no_part_of_the_version(banner, version):
    assert parse(f"\n     {banner}\n").version == version
