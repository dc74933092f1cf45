import pytest

from launchers.detect import detect, lacks_tm, parse_flavour
from launchers.mpi import MpiFlavour
from launchers.mpi.intel_mpi import INTEL_MPI
from launchers.mpi.mpich import MPICH
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.mpi.srun import SRUN
from tests.support.descriptors import none_left

HYDRA = """HYDRA build details:
    Version:                                 4.0.2
    Release Date:                            Thu Apr  7 12:34:45 CDT 2022
"""
INTEL = """Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)
Copyright 2003-2026, Intel Corporation.
"""

# As printed by the programs themselves.
VERSIONS = [
    (
        "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
        OPEN_MPI,
        (4, 1, 4),
    ),
    (
        "mpirun (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/community/help/\n",
        OPEN_MPI,
        (5, 0, 11),
    ),
    ("mpirun (Open MPI) 4.1.7rc1\n", OPEN_MPI, (4, 1, 7)),
    ("mpiexec (OpenRTE) 4.0.3\n", OPEN_MPI, (4, 0, 3)),
    (HYDRA, MPICH, (4, 0, 2)),
    (INTEL, INTEL_MPI, (2021, 18, 1)),
    ("slurm 23.02.7\n", SRUN, (23, 2, 7)),
    ("slurm-wlm 22.05.8\n", SRUN, (22, 5, 8)),
]


@pytest.mark.parametrize(("text", "kind", "version"), VERSIONS)
def test_versions_are_read(text, kind, version):
    assert parse_flavour(text, "/opt/bin/x") == MpiFlavour(kind, version, "/opt/bin/x")


@pytest.mark.parametrize("text", ["", "mpirun: command not found", "Open MPI", "\ufffd\n"])
def test_unknown_version_text_gives_no_flavour(text):
    assert parse_flavour(text) is None


@pytest.mark.parametrize(
    ("version", "program", "text", "lacks"),
    [
        ((4, 1, 4), "ompi_info", 'mca:plm:rsh:version:"component:4.1.4"\nmca:plm:slurm:version:"x"\n', True),
        ((4, 1, 4), "ompi_info", 'mca:plm:rsh:version:"x"\nmca:plm:tm:version:"x"\n', False),
        ((5, 0, 5), "prte_info", 'mca:plm:ssh:version:"x"\n', True),
        # It says nothing of how it starts processes.
        ((5, 0, 5), "ompi_info", 'mca:btl:tcp:version:"x"\n', False),
    ],
)
def test_open_mpi_that_was_built_without_pbs(version, program, text, lacks, tmp_path):
    command(tmp_path, program, text)
    assert lacks_tm(MpiFlavour(OPEN_MPI, version, str(tmp_path / "mpirun"))) is lacks
    assert not lacks_tm(MpiFlavour(MPICH, (4,), str(tmp_path / "mpirun")))


def command(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    (folder / name).chmod(0o755)


def test_first_known_command_is_found(tmp_path):
    command(tmp_path / "a b", "mpirun", "a wrapper of our site")
    command(tmp_path / "a b", "mpiexec", VERSIONS[4][0])
    command(tmp_path / "a b", "srun", VERSIONS[6][0])
    found = detect(f"{tmp_path}/a b")
    assert found is not None
    assert (found.kind, found.version, found.path) == (MPICH, (4, 0, 2), f"{tmp_path}/a b/mpiexec")


def test_command_that_cannot_run_is_skipped(tmp_path):
    command(tmp_path, "mpirun", "")
    (tmp_path / "mpirun").write_bytes(b"\1\2")
    assert detect(str(tmp_path)) is None


def test_lack_of_descriptors_raises_instead_of_skipping_a_command(tmp_path):
    command(tmp_path, "mpirun", "")
    with none_left(), pytest.raises(OSError, match="Too many open files"):
        detect(str(tmp_path))


def test_no_command_gives_no_flavour(tmp_path):
    assert detect(str(tmp_path)) is None
