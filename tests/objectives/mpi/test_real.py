"""The benchmark with the MPI library that is installed: figures of every collective, and what notices wrong ones."""

import csv
import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from autotune.execution.task import run_job
from launchers.detect import detect
from launchers.local import local_launcher
from objectives.base import POINTS, Context
from objectives.decision import Decision
from objectives.mpi import openmpi
from objectives.mpi.options import COLLECTIVES, NONBLOCKING
from objectives.mpi.plan import plan
from objectives.mpi.rules.openmpi import ALGORITHMS
from objectives.mpi.rules.write import write_rules
from objectives.probe import PROGRAMS

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not shutil.which("mpicc"), reason="no mpicc here: apt-get install libopenmpi-dev"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    launcher = local_launcher()
    options = {"message_bytes": [8, 4096], "seconds": 0.01, "ranks": [2, 3]}
    return plan(options, machine={"cores": 2}, run_job=lambda job: run_job(job, launcher), folder=folder), launcher


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_is_measured(made, tmp_path, collective):
    planned, launcher = made
    job = planned.objective.job({"collective": collective, "ranks": 3}, Context(tmp_path, time_limit_s=600))
    measured = planned.objective.measure(run_job(job, launcher))
    sizes = [size for size, _ in measured.details[POINTS]]
    assert sizes == ([0] if collective == "barrier" else [8, 4096])


@pytest.fixture(scope="module")
def behind_computation(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overlap")
    launcher = local_launcher()
    options = {"collectives": list(NONBLOCKING), "message_bytes": [8, 4096], "seconds": 0.01, "knobs": ["progress"]}
    return plan(options, machine={"cores": 2}, run_job=lambda job: run_job(job, launcher), folder=folder), launcher


@pytest.mark.parametrize("progress", [{}, {"test_calls": 4}, {"progress_thread_us": 100}])
@pytest.mark.parametrize("collective", NONBLOCKING)
def test_every_nonblocking_one_is_measured_behind_computation(behind_computation, tmp_path, collective, progress):
    planned, launcher = behind_computation
    job = planned.objective.job({"collective": collective, "ranks": 2} | progress, Context(tmp_path, time_limit_s=600))
    measured = planned.objective.measure(run_job(job, launcher))
    assert [size for size, _ in measured.details[POINTS]] == [8, 4096]
    assert all(0 <= share <= 100 for _, share in measured.details["hidden_percent"])
    assert measured.details["collective"] == collective


def test_a_wrong_number_of_a_nonblocking_one_is_noticed(behind_computation, tmp_path):
    """Spoil the received data after the operation has started, before MPI_Wait returns."""
    source = tmp_path / "wrong.c"
    source.write_text(
        "#include <mpi.h>\n"
        "static float *spoilt;\n"
        "int MPI_Ialltoall(const void *from, int n, MPI_Datatype a, void *to, int m, MPI_Datatype b, MPI_Comm comm,\n"
        "                  MPI_Request *request)\n"
        "{ spoilt = n > 10 ? (float *)to + n : 0; return PMPI_Ialltoall(from, n, a, to, m, b, comm, request); }\n"
        "int MPI_Wait(MPI_Request *request, MPI_Status *status)\n"
        "{ int ended = PMPI_Wait(request, status); if (spoilt) spoilt[-1] += 1; return ended; }\n"
    )
    library = tmp_path / "wrong.so"
    subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, source], check=True)
    planned, launcher = behind_computation
    (tmp_path / "run").mkdir()
    job = planned.objective.job({"collective": "ialltoall", "ranks": 2}, Context(tmp_path / "run", time_limit_s=600))
    job.environment["LD_PRELOAD"] = str(library)
    with pytest.raises(Exception, match=r"wrong result.*'ialltoall'.*'bytes': 4096, 'numbers': 1"):
        planned.objective.measure(run_job(job, launcher))


def test_a_wrong_number_is_noticed(made, tmp_path):
    """The same program, linked with a broadcast that spoils one number of what another rank gets."""
    assert detect() is not None
    source = tmp_path / "wrong.c"
    source.write_text(
        "#include <mpi.h>\n"
        "int MPI_Bcast(void *to, int n, MPI_Datatype of, int root, MPI_Comm comm)\n"
        "{ int rank, ended = PMPI_Bcast(to, n, of, root, comm); PMPI_Comm_rank(comm, &rank);\n"
        "  if (rank == 1 && n > 10) ((float *)to)[n - 1] += 1; return ended; }\n"
    )
    library = tmp_path / "wrong.so"
    subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, source], check=True)
    planned, launcher = made
    (tmp_path / "run").mkdir()
    job = planned.objective.job({"collective": "bcast", "ranks": 2}, Context(tmp_path / "run", time_limit_s=600))
    job.environment["LD_PRELOAD"] = str(library)
    with pytest.raises(Exception, match=r"wrong result.*'bytes': 4096, 'numbers': 1"):
        planned.objective.measure(run_job(job, launcher))


RULE_BYTES = 1200


def rules_file(folder, collective):
    """Decisions over two ranks for more than 1199 bytes, and then an algorithm that there is not in place of theirs."""
    names = {"allgather": "ring", "alltoall": "pairwise", "barrier": "tree", "bcast": "binomial"}
    chosen = {f"coll_tuned_{collective}_algorithm": names[collective]}
    contexts = {"collective": collective, "ranks": 2}
    sizes = (0,) if collective == "barrier" else (RULE_BYTES, 4 * RULE_BYTES)
    table = [Decision(contexts, float(size), chosen, {}) for size in sizes]
    (text,) = write_rules(table, {"mpi_library": "Open MPI", "mpi_version": "4.1.4"}).values()
    # A number that is no algorithm's ends the program: that shows at which size the rule is looked up.
    path = folder / "rules.conf"
    path.write_text(re.sub(r"^(\d+) [1-9]\d* ", r"\1 99 ", text, flags=re.MULTILINE))
    assert " 99 " in path.read_text()
    return {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(path),
    }


@pytest.mark.skipif(not shutil.which("ompi_info"), reason="rules files of Open MPI")
@pytest.mark.parametrize(("collective", "ranks"), [("bcast", 2), ("alltoall", 2), ("barrier", 2), ("allgather", 3)])
def test_a_rule_holds_from_the_size_on_that_was_decided(made, tmp_path, collective, ranks):
    planned, launcher = made
    objective = replace(planned.objective, sizes=f"{RULE_BYTES // 2},{RULE_BYTES - 4},{RULE_BYTES}", seconds=1e-5)
    environment = rules_file(tmp_path, collective)
    for number in range(10):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        job = objective.job({"collective": collective, "ranks": ranks}, Context(folder, time_limit_s=600))
        output = run_job(replace(job, environment=environment), launcher)
        # mpirun spoils the message of two ranks that end at once now and then, and says that instead.
        if "ORTE_ERROR_LOG" not in output.stderr:
            break
    measured = [json.loads(line)["bytes"] for line in output.stdout.splitlines() if '"step"' in line]
    if ranks != 2:
        # Another number of ranks than was measured is the library's own.
        assert measured == [RULE_BYTES // 2, RULE_BYTES - 4, RULE_BYTES]
    else:
        assert measured == ([] if collective == "barrier" else [RULE_BYTES // 2, RULE_BYTES - 4])
        assert "MPI_ERR_ARG" in output.stderr


def messages_sent(folder, planned, launcher, environment):
    """Return how many messages went from which rank to which in a run of a broadcast between three."""
    (folder / "run").mkdir(parents=True)
    objective = replace(planned.objective, sizes="64", seconds=1e-9)
    job = objective.job({"collective": "bcast", "ranks": 3}, Context(folder / "run", time_limit_s=600))
    counted = {f"OMPI_MCA_pml_monitoring_{name}": value for name, value in (("enable", "1"), ("enable_output", "3"))}
    counted["OMPI_MCA_pml_monitoring_filename"] = str(folder / "sent")
    objective.measure(run_job(replace(job, environment={**environment, **counted}), launcher))
    text = "".join(path.read_text() for path in sorted(folder.glob("sent*")))
    return {(int(a), int(b)): int(n) for a, b, n in re.findall(r"^E\s+(\d)\s+(\d)\s.*?(\d+) msgs", text, re.MULTILINE)}


@pytest.mark.skipif(not shutil.which("ompi_info"), reason="rules files of Open MPI")
def test_a_rule_changes_who_sends_to_whom(made, tmp_path):
    """The library's own broadcast of a short message is a tree, whose root sends to both; a pipeline's sends to one."""
    chosen = {"coll_tuned_bcast_algorithm": "pipeline"}
    decided = [Decision({"collective": "bcast", "ranks": 3}, float(size), chosen, {}) for size in (8, 4096)]
    (text,) = write_rules(decided, {"mpi_library": "Open MPI", "mpi_version": "4.1.4"}).values()
    path = tmp_path / "rules.conf"
    path.write_text(text)
    read = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(path),
    }
    tree = messages_sent(tmp_path / "tree", *made, {})
    pipeline = messages_sent(tmp_path / "pipeline", *made, read)
    assert tree[0, 1] == pipeline[0, 1]
    moved = tree[0, 2] - pipeline[0, 2]
    # Every call of it: warm-up, repetitions, and the checks before and after.
    assert moved >= 15
    assert pipeline[1, 2] == tree.get((1, 2), 0) + moved


@pytest.mark.skipif(not shutil.which("ompi_info"), reason="rules files of Open MPI")
def test_the_numbers_of_algorithms_are_those_of_the_installed_open_mpi():
    text = subprocess.run(
        ["ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    known = openmpi.parse_variables(text)
    for collective, names in ALGORITHMS.items():
        numbers = openmpi.algorithms(known, collective)
        assert numbers
        assert {name: names.index(name) + 1 for name in numbers} == numbers


def test_the_operations_of_a_program_are_counted_as_weights(made, tmp_path):
    planned, launcher = made
    source = PROGRAMS / "mpi" / "messages.c"
    library, counted = tmp_path / "messages.so", tmp_path / "messages.csv"
    subprocess.run(["mpicc", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "run").mkdir()
    job = planned.objective.job({"collective": "alltoall", "ranks": 3}, Context(tmp_path / "run", time_limit_s=600))
    seen = {"LD_PRELOAD": str(library), "MESSAGES_CSV": str(counted)}
    planned.objective.measure(run_job(replace(job, environment={**job.environment, **seen}), launcher))
    rows = list(csv.DictReader(counted.read_text().splitlines()))
    assert list(rows[0]) == ["collective", "ranks", "bytes", "count"]
    of_alltoall = {int(row["bytes"]): int(row["count"]) for row in rows if row["collective"] == "alltoall"}
    assert set(of_alltoall) == {8, 4096}
    assert min(of_alltoall.values()) >= 10
    assert {row["ranks"] for row in rows} == {"3"}
