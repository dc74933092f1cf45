"""From what an MPI library says of itself to a space: with tools that stand in for its own, and refuse what they do not
know.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launchers import JobState, JobStatus
from objectives.base import Output, PlanError
from objectives.mpi.plan import plan
from spaces import Space

OUTPUTS = Path(__file__).parents[1] / "outputs"
OMPI_INFO = (OUTPUTS / "ompi-info-4.1.4.txt").read_text()
MPIVARS = "\n".join(
    (
        "3 MPI Control Variables",
        "\tMPIR_CVAR_BCAST_INTRA_ALGORITHM =0\tSCOPE_ALL_EQ\tNo-object\tMPI_INT\tVERBOSITY\tVariable to select it",
        "auto - Internal algorithm selection",
        "binomial    - Force Binomial Tree",
        "nb          - Force nonblocking algorithm",
        "tree        - Force tree-based algorithm",
        "\tMPIR_CVAR_BCAST_TREE_KVAL       =2\tSCOPE_ALL_EQ\tNo-object\tMPI_INT\tVERBOSITY\tk value",
        "\tMPIR_CVAR_OTHER                 =2\tSCOPE_ALL_EQ\tNo-object\tMPI_INT\tVERBOSITY\tanother",
    )
)
TOOL = """#!{python} -I
import sys
known = {known!r}
words = " ".join(sys.argv[1:])
if words not in known:
    sys.exit(f"unrecognized: {{words}}")
print(known[words])
"""
COMPILER = """#!/bin/sh
[ "$1 $2 $3 $4.c" = "-O2 -pthread -o $5" ] && [ -e checked.h ] || exit 2
cat "$5" >"$4"
"""


def tool(folder, name, known):
    (folder / name).write_text(TOOL.format(python=sys.executable, known=known))
    (folder / name).chmod(0o755)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mpicc").write_text(COMPILER)
    (folder / "mpicc").chmod(0o755)
    for name in ("sh", "cat"):
        (folder / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def open_mpi(folder):
    tool(folder, "ompi_info", {"--version": "Open MPI v4.1.4", "--all --level 9 --parsable": OMPI_INFO})


def run_job(job):
    done = subprocess.run(job.argv, capture_output=True, text=True, check=False, cwd=job.folder, env=dict(os.environ))
    return Output(done.stdout, done.stderr, JobStatus(JobState.ENDED, exit_code=done.returncode), job.folder)


def planned(tmp_path, **options):
    return plan(options, machine={"cores": 2}, run_job=run_job, folder=tmp_path / "plan")


def space(made, nodes=1):
    return Space(made.parameters, made.constraints, {"nodes": nodes, "cores_per_node": 2, **made.facts})


def test_the_library_itself_says_which_algorithms_there_are(tools, tmp_path):
    open_mpi(tools)
    made = planned(tmp_path, collectives=["allreduce", "barrier"])
    by_name = {parameter.name: parameter for parameter in made.parameters}
    names = ("basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring", "rabenseifner")
    assert by_name["coll_tuned_allreduce_algorithm"].values == names
    assert made.facts["mpi_version"] == "4.1.4"
    # The default is what the library does by itself.
    assert dict(space(made).default()) == {"collective": "allreduce", "ranks": 2}


def test_what_belongs_to_one_collective_or_algorithm_is_not_tried_with_another(tools, tmp_path):
    open_mpi(tools)
    found = space(planned(tmp_path, collectives=["bcast", "alltoall"], ranks=[2, 4]))
    chain = {"collective": "bcast", "ranks": 2, "coll_tuned_bcast_algorithm": "chain"}
    assert found.contains(chain | {"coll_tuned_bcast_algorithm_chain_fanout": 8})
    assert not found.contains(chain | {"coll_tuned_bcast_algorithm_knomial_radix": 8})
    assert not found.contains(chain | {"collective": "alltoall"})
    two = {"collective": "alltoall", "coll_tuned_alltoall_algorithm": "two_proc"}
    assert found.contains(two | {"ranks": 2})
    assert not found.contains(two | {"ranks": 4})


def test_a_choice_is_read_only_with_the_variable_that_says_so(tools, tmp_path):
    open_mpi(tools)
    variables = planned(tmp_path).objective.variables
    assert variables({"collective": "bcast", "ranks": 2}) == {}
    assert variables({"collective": "bcast", "ranks": 2, "coll_tuned_bcast_algorithm": "chain"}) == {
        "OMPI_MCA_coll_tuned_bcast_algorithm": "chain",
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    }


def test_components_transport_and_placement_are_tuned_where_they_are_asked_for(tools, tmp_path):
    open_mpi(tools)
    knobs = ["components", "transport", "placement"]
    found = space(planned(tmp_path, knobs=knobs, ranks=[2, 4]))
    base = {"collective": "allreduce", "ranks": 2}
    assert found.contains(base | {"coll_han_priority": 100, "btl_vader_eager_limit": 65_536, "bind_to": "core"})
    assert not found.contains(base | {"coll_han_priority": 100, "coll_sm_priority": 100})
    assert not found.contains(base | {"ranks": 4, "bind_to": "core"})
    assert found.contains(base | {"btl_vader_single_copy_mechanism": "none"})


def test_ranks_are_bound_only_where_no_other_job_has_the_same_cores(tools, tmp_path):
    open_mpi(tools)
    machine = {"cores": 4, "cores_per_node": 4, "shared_nodes": True}
    options = {"knobs": ["placement"], "ranks": [2, 4]}
    found = space(plan(options, machine=machine, run_job=run_job, folder=tmp_path / "plan"))
    assert not found.contains({"collective": "allreduce", "ranks": 2, "bind_to": "core"})
    assert found.contains({"collective": "allreduce", "ranks": 2, "bind_to": "none"})
    assert found.contains({"collective": "allreduce", "ranks": 4, "bind_to": "core"})


def test_nonblocking_ones_have_their_own_program_figures_and_algorithms(tools, tmp_path):
    open_mpi(tools)
    collectives = ["iallreduce", "ibcast", "iallgather", "ialltoall"]
    made = planned(tmp_path, collectives=collectives, knobs=["algorithms", "components", "progress"])
    found = space(made)
    assert dict(found.default()) == {"collective": "iallreduce", "ranks": 2}
    assert [metric.name for metric in made.objective.metrics] == ["exposed_s", "hidden_percent", "elapsed_s"]
    assert made.objective.program.endswith("/overlap")
    bcast = {"collective": "ibcast", "ranks": 2}
    assert found.contains(bcast | {"test_calls": 8, "coll_adapt_priority": 100})
    assert found.contains(bcast | {"progress_thread_us": 100, "coll_libnbc_ibcast_algorithm": "chain"})
    # One of them makes progress; the algorithm of a component that another takes the place of is not read.
    assert not found.contains(bcast | {"test_calls": 8, "progress_thread_us": 100})
    assert not found.contains(bcast | {"coll_adapt_priority": 100, "coll_libnbc_ibcast_algorithm": "chain"})
    assert not found.contains({"collective": "ialltoall", "ranks": 2, "coll_adapt_priority": 100})
    # Calls and threads are told to the program, and are no variables of the library.
    assert made.objective.variables(bcast | {"test_calls": 8, "coll_libnbc_ibcast_algorithm": "chain"}) == {
        "OMPI_MCA_coll_libnbc_ibcast_algorithm": "chain"
    }


TORCH = '#!/bin/sh\necho \'{"torch": "2.13.0", "numpy": "2.4.6", "gpus": %d, "gpu": ""}\'\n'


def with_torch(tools, gpus):
    (tools / "python-torch").write_text(TORCH % gpus)
    (tools / "python-torch").chmod(0o755)
    return {"knobs": ["backends"], "python": "python-torch"}


def test_torch_takes_the_place_of_mpi_by_the_backends_that_it_has_here(tools, tmp_path):
    open_mpi(tools)
    made = planned(tmp_path, ranks=[2, 4], **with_torch(tools, gpus=0))
    assert [(parameter.name, parameter.values) for parameter in made.parameters[2:]] == [("backend", ("gloo",))]
    assert dict(space(made).default()) == {"collective": "allreduce", "ranks": 2}
    assert made.objective.torch[0] == str(tools / "python-torch")
    assert made.identity["torch"] == "2.13.0"
    on_gpus = space(planned(tmp_path, ranks=[2, 4], **with_torch(tools, gpus=2)))
    assert on_gpus.contains({"collective": "bcast", "ranks": 2, "backend": "nccl"})
    # A GPU for each rank.
    assert not on_gpus.contains({"collective": "bcast", "ranks": 4, "backend": "nccl"})
    assert on_gpus.contains({"collective": "bcast", "ranks": 4, "backend": "gloo"})
    # MPI's ranks are spread over two nodes; a backend's would be processes of one, more than it has cores.
    on_two_nodes = space(made, nodes=2)
    assert on_two_nodes.contains({"collective": "bcast", "ranks": 4})
    assert on_two_nodes.contains({"collective": "bcast", "ranks": 2, "backend": "gloo"})
    assert not on_two_nodes.contains({"collective": "bcast", "ranks": 4, "backend": "gloo"})


def test_mpich_lists_its_own(tools, tmp_path):
    tool(tools, "mpivars", {"": MPIVARS})
    tool(tools, "mpichversion", {"": "MPICH Version:      5.0.2"})
    made = planned(tmp_path, collectives=["bcast", "reduce"])
    assert [(parameter.name, parameter.values) for parameter in made.parameters[2:]] == [
        ("MPIR_CVAR_BCAST_INTRA_ALGORITHM", ("binomial", "tree")),
        ("MPIR_CVAR_BCAST_TREE_KVAL", (4, 8, 16)),
    ]
    assert made.objective.variables({"collective": "bcast", "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "tree"}) == {
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "tree"
    }


def test_of_two_libraries_the_one_of_the_compiler_is_tuned(tools, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    open_mpi(other)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{other}")
    tool(tools, "mpivars", {"": MPIVARS})
    tool(tools, "mpichversion", {"": "MPICH Version:      5.0.2"})
    assert planned(tmp_path).facts["mpi_library"] == "MPICH"


def test_intel_mpi_is_told_numbers(tools, tmp_path):
    tool(tools, "mpiexec.hydra", {"--version": "Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 2026"})
    made = planned(tmp_path)
    assert made.facts["mpi_library"] == "Intel MPI"
    assert made.objective.variables({"collective": "allreduce", "I_MPI_ADJUST_ALLREDUCE": "ring"}) == {
        "I_MPI_ADJUST_ALLREDUCE": "8"
    }


def test_ranks_that_share_cores_are_said_to(tools, tmp_path):
    open_mpi(tools)
    made = planned(tmp_path, ranks=[2, 4])
    assert "4 ranks share 2 cores" in made.notes[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"collectives": ["gossip"]}, "options.collectives"),
        ({"collectives": ["bcast", "ibcast"]}, "name one kind"),
        ({"collectives": ["bcast"], "knobs": ["progress"]}, "leave it out"),
        ({"knobs": ["backends", "algorithms"]}, "without other knobs"),
        ({"collectives": ["ibcast"], "knobs": ["backends"]}, "without other knobs"),
        ({"knobs": ["backends"], "python": "no-such-python"}, "has no working PyTorch"),
        ({"ranks": [1]}, "options.ranks"),
        ({"message_bytes": [6]}, "options.message_bytes"),
        ({"compiler": "no-such-compiler"}, "apt-get install libopenmpi-dev"),
    ],
)
def test_what_is_wrong_is_said(tools, tmp_path, options, words):
    open_mpi(tools)
    with pytest.raises(PlanError) as caught:
        planned(tmp_path, **options)
    assert words in f"{caught.value.problems[0].path} {caught.value}"


def test_a_benchmark_that_cannot_be_built_is_said(tools, tmp_path):
    open_mpi(tools)
    (tools / "mpicc").write_text("#!/bin/sh\necho 'fatal error: mpi.h: No such file' >&2\nexit 1\n")
    with pytest.raises(PlanError, match=r"mpi\.h: No such file.*apt-get install libopenmpi-dev"):
        planned(tmp_path)


def test_a_library_that_does_not_say_what_it_has_is_said(tools, tmp_path):
    with pytest.raises(PlanError, match="none of ompi_info, mpivars"):
        planned(tmp_path)
