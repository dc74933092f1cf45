"""The forms of pw.x's output from 6.0 to 7.6: the lines that are read, as each version prints them.

Each excerpt names the whole output: Q is a file of the repository QEF/q-e (GPL-2), from which a few lines of figures
are kept; A is a file of aiidateam/aiida-quantumespresso (MIT), below tests/parsers/fixtures/pw. Lines that no stored
output has follow the FORMAT statements that are named.
"""

import pytest

from launchers import EndReason, JobState, JobStatus
from objectives.base import InvalidResult, Output
from objectives.qe.failures import find_failure
from objectives.qe.output import Layout, parse

MB = 1024**2

# Q: test-suite/pw_scf/benchmark.out.SVN.inp=scf.in, commit 6328b8c8
V6_0 = """
     Program PWSCF v.6.0 starts on  2Oct2016 at 19:29:56
     Serial multi-threaded version, running on    4 processor cores
     number of atoms/cell      =            2
     number of electrons       =         8.00
     number of Kohn-Sham states=            4
     kinetic-energy cutoff     =      12.0000  Ry
     charge density cutoff     =      48.0000  Ry
     number of k points=     2
     Dense  grid:     1459 G-vectors     FFT dimensions: (  15,  15,  15)

     Estimated max dynamical RAM per process >       0.93Mb
     iteration #  5     ecut=    12.00 Ry     beta=0.70
     total cpu time spent up to now is        0.1 secs
!    total energy              =     -15.79449593 Ry
     Harris-Foulkes estimate   =     -15.79449595 Ry
     estimated scf accuracy    <       0.00000005 Ry
     convergence has been achieved in   5 iterations
     Called by init_run:
     h_psi:calbec :      0.00s CPU      0.00s WALL (      35 calls)
     PWSCF        :     0.19s CPU         0.08s WALL
   JOB DONE.
"""

# A: default_xml_190304/aiida.out, commit 1c9e55d5
V6_3 = """
     Program PWSCF v.6.3 starts on 31May2019 at 13:27:38
     Parallel version (MPI), running on     1 processors

     MPI processes distributed on     1 nodes
     Subspace diagonalization in iterative solution of the eigenvalue problem:
     a serial algorithm will be used
     number of electrons       =         8.00
     number of Kohn-Sham states=            4
     kinetic-energy cutoff     =      30.0000  Ry
     charge density cutoff     =     240.0000  Ry
     Exchange-correlation      = PBE ( 1  4  3  4 0 0)
"""

# A: default_xml_191206/aiida.out, commit 316dc30e
V6_5 = """
     Program PWSCF v.6.5 starts on 11Feb2020 at 15:37:37
     Parallel version (MPI), running on     2 processors

     MPI processes distributed on     1 nodes
     R & G space division:  proc/nbgrp/npool/nimage =       2
     Subspace diagonalization in iterative solution of the eigenvalue problem:
     a serial algorithm will be used
     number of atoms/cell      =            4
     number of electrons       =        12.00
     number of Kohn-Sham states=            6
     kinetic-energy cutoff     =      10.0000  Ry
     charge density cutoff     =      20.0000  Ry
     number of k points=     4
     Dense  grid:      691 G-vectors     FFT dimensions: (  12,  12,  12)

     Estimated max dynamical RAM per process >       1.83 MB

     Estimated total dynamical RAM >       3.66 MB
     iteration #  1     ecut=    10.00 Ry     beta= 0.70
     Davidson diagonalization with overlap
     ethr =  1.00E-02,  avg # of iterations =  2.2

     Threshold (ethr) on eigenvalues was too large:
     Diagonalizing with lowered threshold

     Davidson diagonalization with overlap
     ethr =  3.51E-04,  avg # of iterations =  1.8

     total cpu time spent up to now is        1.1 secs

     total energy              =    -157.52653099 Ry
     Harris-Foulkes estimate   =    -157.53175101 Ry
     estimated scf accuracy    <       0.04311414 Ry
"""

# A: default_xml_230310/aiida.out, commit 0090998f
V7_2 = """
     Program PWSCF v.7.2 starts on 30Mar2023 at 20:18:33
     Parallel version (MPI), running on     8 processors

     MPI processes distributed on     1 nodes
     K-points division:     npool     =       2
     R & G space division:  proc/nbgrp/npool/nimage =       4
     Subspace diagonalization in iterative solution of the eigenvalue problem:
     a serial algorithm will be used
     number of atoms/cell      =            4
     number of electrons       =        32.00
     number of Kohn-Sham states=           16
     kinetic-energy cutoff     =      30.0000  Ry
     number of k points=    13
     Dense  grid:    13621 G-vectors     FFT dimensions: (  48,  48,  48)

     Smooth grid:     4825 G-vectors     FFT dimensions: (  36,  36,  36)

     Estimated max dynamical RAM per process >      12.95 MB

     Estimated total dynamical RAM >     100.30 MB
"""

# A: default_xml_241015/aiida.out, commit 17d80824
V7_4 = """
     Program PWSCF v.7.4 starts on 17Jan2025 at 14:32:54
     Parallel version (MPI & OpenMP), running on       1 processor cores
     Number of MPI processes:                 1
     Threads/MPI process:                     1

     MPI processes distributed on     1 nodes
     0 MiB available memory on the printing compute node when the environment starts
     number of atoms/cell      =            2
     number of electrons       =         8.00
     number of Kohn-Sham states=            8
     scf convergence threshold =      8.0E-10
     iteration #  7     ecut=    30.00 Ry     beta= 0.40
     Davidson diagonalization with overlap

---- Real-time Memory Report at c_bands before calling an iterative solver
             0 MiB given to the printing process from OS
------------------
     ethr =  5.33E-10,  avg # of iterations =  1.7

     total cpu time spent up to now is        2.3 secs
     WARNING: integrated charge=     8.00248798, expected=     8.00000000

!    total energy              =     -22.67145894 Ry
     estimated scf accuracy    <          7.0E-10 Ry
     internal energy E=F+TS    =     -22.67148320 Ry
     convergence has been achieved in   7 iterations
     PWSCF        :      2.62s CPU      2.72s WALL
   JOB DONE.
"""

# A: default_xml_260226/aiida.out, commit d155ceb5: on a card, with the report of verbosity = 'high'
V7_6 = """
     Program PWSCF v.7.6 starts on 16Sep2026 at 22:54:44
     Parallel version (MPI & OpenMP), running on      80 processor cores
     Number of MPI processes:                 4
     Threads/MPI process:                    20

     MPI processes distributed on     1 nodes
     806299 MiB available memory on the printing compute node when the environment starts

     Reading input from aiida.in
     K-points division:     npool     =       4
     Subspace diagonalization in iterative solution of the eigenvalue problem:
     a serial algorithm will be used
     GPU acceleration is ACTIVE.  1 visible GPUs per MPI rank
     number of k points=    20  Marzari-Vanderbilt smearing, width (Ry)=  0.0275
     Dense  grid:    16889 G-vectors     FFT dimensions: (  36,  36,  36)

     Smooth grid:     5985 G-vectors     FFT dimensions: (  32,  32,  32)

     Dynamical RAM for                 wfc:       0.09 MB
     Estimated static dynamical RAM per process >       8.22 MB

     Estimated max dynamical RAM per process >      25.39 MB

     Estimated total dynamical RAM >      89.20 MB
[tb_dev] Currently allocated     1.10E+00 Mbytes, locked:    0 /   3

     iteration #  1     ecut=    30.00 Ry     beta= 0.40
     GPU memory used/free/total (MiB): 1498 / 95782 / 97280
     total cpu time spent up to now is        1.1 secs
     total energy              =     -22.67616487 Ry
     estimated scf accuracy    <       0.05515813 Ry
"""


def test_6_0():
    found = parse(V6_0)
    size = found.workload
    assert (found.version, found.openmp, found.layout) == ("6.0", False, Layout(threads=4))
    assert (size.kpoints, size.bands, size.atoms, size.cutoff_ry) == (2, 4, 2, 12.0)
    assert size.memory_per_rank_bytes == round(0.93 * MB)
    assert (found.energy_ry, found.converged_after, found.iterations[-1].elapsed_s) == (-15.79449593, 5, 0.1)
    assert (found.total.wall_s, found.timers["h_psi:calbec"].calls, found.job_done) == (0.08, 35, True)


def test_6_0_names_task_groups_and_memory_otherwise():
    # Q: Modules/environment.f90 and PW/src/memory_report.f90 of 6.0 (commit cd0140c7)
    found = parse(
        "     R & G space division:  proc/nbgrp/npool/nimage =      16\n"
        "     wavefunctions fft division:  fft and procs/group =       4      4\n\n"
        "     Estimated max dynamical RAM per process >      12.50Mb\n\n"
        "     Estimated total allocated dynamical RAM >     200.00Mb\n"
    )
    assert found.layout.task_groups == 4
    assert (found.workload.memory_per_rank_bytes, found.workload.memory_bytes) == (12.5 * MB, 200 * MB)


def test_6_3():
    found = parse(V6_3)
    assert (found.version, found.layout, found.workload.density_cutoff_ry) == ("6.3", Layout(nodes=1), 240.0)


SHIFTED = """
     electrons    :   9900.00s CPU  10100.00s WALL (       1 calls)

     PWSCF        : {}

      {}h
"""


@pytest.mark.parametrize(
    ("line", "minutes", "wall_s"),
    [
        ("    2h45m CPU       45h 2m WALL", "50", 10_200),
        ("    6h26m CPU       26h 6m WALL", "35", 23_700),
        ("   59m30.01s CPU    59h 1m WALL", " 2", 3_720),
        (" 1d 2h 0m CPU        0h23m WALL", "59", 86_340),
    ],
)
def test_6_3_prints_the_wall_time_from_an_hour_on_one_place_too_far_on(line, minutes, wall_s):
    # Q: aiidateam/aiida-quantumespresso, issue 201
    assert parse(SHIFTED.format(line, minutes)).total.wall_s == wall_s


def test_a_time_of_hours_with_another_line_after_it_is_taken_as_printed():
    assert parse(SHIFTED.format("    2h45m CPU        2h50m WALL", "7")).total.wall_s == 10_200


# In the manner of version 4, which prints no JOB DONE.
V4 = """
     Program PWSCF     v.4.1CVS starts ...
     Number of processors in use:     800
     R & G space division:  proc/pool =  800
     wavefunctions fft division:  fft/group =    2
     ortho sub-group =   14*  14 procs
     number of k points=    1
     G cutoff =88645.8955  (******* G-vectors)     FFT grid: (540,540,540)
     G cutoff =44322.9477  (9771712 G-vectors)  smooth grid: (375,375,375)
     iteration #  1     ecut=    25.00 Ry     beta=0.70
     total energy              =-14741.73792703 Ry
     estimated scf accuracy    <   133.09173584 Ry
     convergence NOT achieved after   1 iterations: stopping

     PWSCF        :     2h 2m CPU time,        2h 9m wall time

     electrons    :  6405.33s CPU
"""


def test_4_1():
    found = parse(V4)
    assert (found.version, found.total.wall_s, found.total.cpu_s) == ("4.1CVS", 7_740, 7_320)
    assert (found.layout.ranks, found.layout.task_groups, found.layout.diagonalization_grid) == (800, 2, 14)
    assert (found.workload.dense_grid, found.workload.smooth_grid) == ((540,) * 3, (375,) * 3)
    assert (found.limited_to, found.last_energy_ry) == (1, -14741.73792703)
    assert find_failure(output(V4), found, iteration_limit=1) is None


def test_6_5_with_a_lowered_threshold():
    found = parse(V6_5)
    (first,) = found.iterations
    assert (first.number, first.energy_ry, first.elapsed_s) == (1, -157.52653099, 1.1)
    assert (found.layout, found.workload.memory_per_rank_bytes) == (Layout(ranks=2, nodes=1), round(1.83 * MB))


def test_7_2_with_two_grids():
    found = parse(V7_2)
    size = found.workload
    assert (found.version, found.layout) == ("7.2", Layout(ranks=8, pools=2, nodes=1))
    assert (size.kpoints, size.bands, size.dense_grid, size.smooth_grid) == (13, 16, (48, 48, 48), (36, 36, 36))
    assert (size.memory_per_rank_bytes, size.memory_bytes) == (round(12.95 * MB), round(100.3 * MB))


def test_7_4():
    found = parse(V7_4)
    assert (found.version, found.openmp, found.layout) == ("7.4", True, Layout(nodes=1))
    assert (found.energy_ry, found.converged_after, found.total.wall_s) == (-22.67145894, 7, 2.72)
    assert [(each.number, each.accuracy_ry) for each in found.iterations] == [(7, 7.0e-10)]


def test_7_6_on_a_card():
    found = parse(V7_6)
    size = found.workload
    assert (found.version, found.layout) == ("7.6", Layout(ranks=4, threads=20, pools=4, nodes=1))
    assert (size.kpoints, size.dense_grid, size.smooth_grid) == (20, (36, 36, 36), (32, 32, 32))
    assert (size.memory_per_rank_bytes, size.memory_bytes) == (round(25.39 * MB), round(89.2 * MB))
    assert (found.iterations[0].energy_ry, found.iterations[0].elapsed_s) == (-22.67616487, 1.1)


def test_the_time_on_a_card_is_no_time_of_a_routine():
    # Q: UtilXlib/clocks_handler.f90, print_this_clock_gpu (commit 2a3c45bd)
    text = (
        "     h_psi        :      1.25s CPU      1.50s WALL (     400 calls)\n"
        "                                        1.40s GPU  (     400 calls)\n"
    )
    assert {name: timer.wall_s for name, timer in parse(text).timers.items()} == {"h_psi": 1.5}


# The lines of a real run of 6.7 with input_dft = 'pbe0'; so prints 7.x, too (PW/src/electrons.f90, commit 00105ca0).
HYBRID = """
     iteration #  5     ecut=    12.00 Ry     beta= 0.70
!    total energy              =     -15.80677634 Ry
     estimated scf accuracy    <          2.4E-09 Ry
     convergence has been achieved in   5 iterations
     EXX: now go back to refine exchange calculation
     iteration #  1     ecut=    12.00 Ry     beta= 0.70
!    total energy              =     -15.88476528 Ry
     estimated scf accuracy    <          2.4E-09 Ry
     convergence has been achieved in   1 iterations
!!   total energy              =     -15.88476530 Ry
     est. exchange err (dexx)  =       0.00000003 Ry
     EXX self-consistency reached
     PWSCF        :      1.00s CPU      2.83s WALL
   JOB DONE.
"""


def test_with_exact_exchange_the_energy_is_that_of_the_outer_cycle():
    found = parse(HYBRID)
    assert (found.energies_ry, len(found.iterations)) == ((-15.8847653,), 2)
    assert find_failure(output(HYBRID), found) is None


def test_an_outer_cycle_that_did_not_converge_is_no_result():
    text = HYBRID.replace("!!   total", "     total").replace(
        "EXX self-consistency reached", "EXX convergence NOT achieved after  10 iterations: stopping"
    )
    with pytest.raises(InvalidResult, match="NOT achieved after 10 iterations"):
        raise find_failure(output(text), parse(text))


def output(text):
    return Output(text, "", JobStatus(JobState.ENDED, EndReason.EXITED, 0), None)
