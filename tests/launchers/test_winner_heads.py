"""The winner's job script requests the same of each scheduler as the measured runs did."""

import re
from dataclasses import replace

import pytest

from launchers.batch_systems.registry import BATCH_SYSTEMS
from launchers.batch_systems.system import WinnerRequest
from launchers.site import Site

ON_TWO = WinnerRequest(
    "best",
    nodes=2,
    ranks=96,
    cores=96,
    gpus=0,
    memory_per_node_mib=4000,
    walltime_s=3600,
    site=Site("", cores_per_node=48),
)
PART = replace(ON_TWO, nodes=1, ranks=8, cores=8)


def head(name: str, request: WinnerRequest) -> list[str]:
    return BATCH_SYSTEMS[name].winner.head(request)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("slurm", "#SBATCH --exclusive"),
        ("pbs", "#PBS -l place=scatter:excl"),
        ("grid-engine", "#$ -pe smp 48"),
        ("lsf", "#BSUB -x"),
        ("flux", "#flux: --exclusive"),
    ],
)
def test_winner_has_exclusive_nodes_if_the_measured_runs_did(name, line):
    assert line in head(name, replace(PART, site=replace(PART.site, exclusive=True)))
    assert line not in head(name, PART)
    assert line not in head(name, replace(PART, site=None))


@pytest.mark.parametrize(
    ("name", "on_one", "on_two"),
    [
        ("slurm", ["--mem=4000M"], ["--mem=4000M"]),
        ("pbs", ["mem=4000MB"], ["mem=4000MB"]),
        # Per slot; a node has 48 of them.
        ("grid-engine", ["h_vmem=500M"], ["h_vmem=84M"]),
        ("lsf", ["mem=4000MB/host"], ["mem=4000MB/host"]),
        ("flux", [], []),
    ],
)
def test_winner_requests_the_measured_memory_on_each_node(name, on_one, on_two):
    def memory(request: WinnerRequest) -> list[str]:
        return re.findall(r"(?:--|h_v)?mem=[\w/]+", "\n".join(head(name, request)))

    assert memory(PART) == on_one
    assert memory(ON_TWO) == on_two
    assert memory(replace(ON_TWO, memory_per_node_mib=None)) == []


@pytest.mark.parametrize("site", [None, Site("pbs", cores_per_node=48)])
def test_pbs_winner_requests_the_chunks_of_the_measured_runs(site):
    assert head("pbs", replace(ON_TWO, site=site))[1:3] == [
        "#PBS -l select=2:ncpus=48:mpiprocs=48:mem=4000MB",
        "#PBS -l place=scatter",
    ]
    assert "#PBS -l select=1:ncpus=8:mpiprocs=8:mem=4000MB" in head("pbs", replace(PART, site=site))
    # Two threads per rank, and more ranks than cores.
    assert "#PBS -l select=1:ncpus=8:mpiprocs=4:mem=4000MB" in head("pbs", replace(PART, ranks=4, site=site))
    assert "#PBS -l select=1:ncpus=8:mpiprocs=8:mem=4000MB" in head("pbs", replace(PART, ranks=16, site=site))


def test_pbs_winner_requests_totals_without_chunks():
    site = Site("pbs", cores_per_node=48, by_chunks=False)
    assert head("pbs", replace(ON_TWO, site=site))[1:3] == ["#PBS -l ncpus=96", "#PBS -l mem=8000MB"]
    assert head("pbs", replace(PART, site=site))[1:3] == ["#PBS -l ncpus=8", "#PBS -l mem=4000MB"]
