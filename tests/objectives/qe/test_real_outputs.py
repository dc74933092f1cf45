"""pw.x's output from 6.5 to 7.5, besides the versions of `test_versions.py`: excerpts of real runs.

Each names the whole output: A is a file of aiidateam/aiida-quantumespresso (MIT), below tests/parsers/fixtures/pw, from
which a few lines of figures are kept.
"""

import pytest

from objectives.qe.output import Layout, parse

MB = 1024**2

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

# A: default_xml_200420/aiida.out, commit fe75c80c
V6_6 = """
     Program PWSCF v.6.6 starts on  2Sep2020 at 22:42:40
     Serial version
     Fft bands division:     nmany     =       1
     number of atoms/cell      =            2
     number of electrons       =         8.00
     number of Kohn-Sham states=            4
     kinetic-energy cutoff     =      30.0000  Ry
     charge density cutoff     =     240.0000  Ry
     number of k points=     3
     Dense  grid:    16529 G-vectors     FFT dimensions: (  36,  36,  36)

     Smooth grid:     5817 G-vectors     FFT dimensions: (  32,  32,  32)

     Estimated static dynamical RAM per process >      11.82 MB

     Estimated max dynamical RAM per process >      59.23 MB
     iteration #  6     ecut=    30.00 Ry     beta= 0.70
     Davidson diagonalization with overlap
     ethr =  2.85E-08,  avg # of iterations =  5.3

     total cpu time spent up to now is        2.8 secs

!    total energy              =     -22.64596645 Ry
     estimated scf accuracy    <       0.00000017 Ry
     convergence has been achieved in   6 iterations
     Called by h_psi:
     h_psi:calbec :      0.02s CPU      0.02s WALL (      70 calls)
     PWSCF        :      2.48s CPU      2.88s WALL
   JOB DONE.
"""

# A: default_xml_210716/aiida.out, commit d7bc09fa
V6_8 = """
     Program PWSCF v.6.8 starts on 20Aug2021 at 20:51:49
     Parallel version (MPI), running on     1 processors

     MPI processes distributed on     1 nodes
     18083 MiB available memory on the printing compute node when the environment starts
     number of atoms/cell      =            2
     number of electrons       =         8.00
     number of Kohn-Sham states=            4
     kinetic-energy cutoff     =      30.0000  Ry
     number of k points=     3
     Dense  grid:    16889 G-vectors     FFT dimensions: (  36,  36,  36)

     Estimated max dynamical RAM per process >      60.43 MB
     iteration #  5     ecut=    30.00 Ry     beta= 0.70
     Davidson diagonalization with overlap

---- Real-time Memory Report at c_bands before calling an iterative solver
           147 MiB given to the printing process from OS
             0 MiB allocation reported by mallinfo(arena+hblkhd)
         18057 MiB available memory on the node where the printing process lives
------------------
     ethr =  4.70E-07,  avg # of iterations =  2.7

     total cpu time spent up to now is        1.7 secs

!    total energy              =     -22.65170438 Ry
     estimated scf accuracy    <       0.00000032 Ry
     convergence has been achieved in   5 iterations
     PWSCF        :      1.32s CPU      1.73s WALL
   JOB DONE.
"""

# A: default_xml_220603/aiida.out, commit c6f44858
V7_1 = """
     Program PWSCF v.7.1 starts on 12Jul2022 at  0: 3:10
     Parallel version (MPI), running on     1 processors

     MPI processes distributed on     1 nodes
     13364 MiB available memory on the printing compute node when the environment starts
     number of atoms/cell      =            2
     number of electrons       =         8.00
     number of Kohn-Sham states=            8
     kinetic-energy cutoff     =      30.0000  Ry
     iteration #  8     ecut=    30.00 Ry     beta= 0.40
     ethr =  3.46E-11,  avg # of iterations =  3.0

     total cpu time spent up to now is        1.6 secs

!    total energy              =     -22.65373597 Ry
     estimated scf accuracy    <          2.5E-10 Ry
     smearing contrib. (-TS)   =       0.00002313 Ry
     internal energy E=F+TS    =     -22.65375910 Ry
     convergence has been achieved in   8 iterations
     PWSCF        :      1.71s CPU      2.02s WALL
   JOB DONE.
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

# A: default_xml_240411/aiida.out, commit 4f280021: the first SCF cycle of a vc-relax
V7_3_1 = """
     Program PWSCF v.7.3.1 starts on 24Jul2024 at 16:39:13
     Parallel version (MPI), running on    12 processors

     MPI processes distributed on     1 nodes
     K-points division:     npool     =       3
     R & G space division:  proc/nbgrp/npool/nimage =       4
     number of atoms/cell      =            2
     number of Kohn-Sham states=            8
     iteration #  7     ecut=    30.00 Ry     beta= 0.40
     ethr =  6.26E-10,  avg # of iterations =  1.8

     total cpu time spent up to now is        0.8 secs

!    total energy              =     -22.66279927 Ry
     estimated scf accuracy    <          1.5E-10 Ry
     convergence has been achieved in   7 iterations
"""

# A: default_xml_250521/aiida.out, commit 9b4d3038
V7_5 = """
     Program PWSCF v.7.5 starts on 12Oct2025 at  6:10:24
     Parallel version (MPI), running on     1 processors

     MPI processes distributed on     1 nodes
     number of atoms/cell      =            8
     number of Kohn-Sham states=           24
     kinetic-energy cutoff     =      45.0000  Ry
     Dense  grid:    50733 G-vectors     FFT dimensions: (  45,  45,  45)

     Estimated max dynamical RAM per process >      83.15 MB
     iteration # 10     ecut=    45.00 Ry     beta= 0.40
     ethr =  1.05E-11,  avg # of iterations =  3.0

     total cpu time spent up to now is        2.1 secs

!    total energy              =    -252.68718165 Ry
     estimated scf accuracy    <          1.5E-09 Ry
     convergence has been achieved in  10 iterations
"""


@pytest.mark.parametrize(
    ("text", "version", "energy_ry", "cycles", "times_s"),
    [
        (V6_6, "6.6", -22.64596645, 6, (2.8, 2.88)),
        (V6_8, "6.8", -22.65170438, 5, (1.7, 1.73)),
        (V7_1, "7.1", -22.65373597, 8, (1.6, 2.02)),
        (V7_3_1, "7.3.1", -22.66279927, 7, (0.8, None)),
        (V7_5, "7.5", -252.68718165, 10, (2.1, None)),
    ],
)
def test_a_converged_cycle_of_each_version(text, version, energy_ry, cycles, times_s):
    elapsed_s, wall_s = times_s
    found = parse(text)
    assert (found.version, found.energy_ry, found.converged_after) == (version, energy_ry, cycles)
    assert [(each.number, each.elapsed_s) for each in found.iterations] == [(cycles, elapsed_s)]
    assert (found.total.wall_s if found.total else None) == wall_s
    assert found.job_done == (wall_s is not None)


@pytest.mark.parametrize(
    ("text", "layout", "memory_mb"),
    [
        (V6_5, Layout(ranks=2, nodes=1), 1.83),
        (V6_6, Layout(), 59.23),
        (V6_8, Layout(nodes=1), 60.43),
        (V7_2, Layout(ranks=8, pools=2, nodes=1), 12.95),
        (V7_3_1, Layout(ranks=12, pools=3, nodes=1), None),
        (V7_5, Layout(nodes=1), 83.15),
    ],
)
def test_the_layout_and_the_memory_of_each_version(text, layout, memory_mb):
    found = parse(text)
    assert found.layout == layout
    assert found.workload.memory_per_rank_bytes == (None if memory_mb is None else round(memory_mb * MB))


def test_6_5_with_a_lowered_threshold_and_7_2_with_two_grids():
    (first,) = parse(V6_5).iterations
    assert (first.number, first.energy_ry, first.elapsed_s) == (1, -157.52653099, 1.1)
    size = parse(V7_2).workload
    assert (size.kpoints, size.bands, size.dense_grid, size.smooth_grid) == (13, 16, (48, 48, 48), (36, 36, 36))
    assert size.memory_bytes == round(100.3 * MB)
