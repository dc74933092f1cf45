import re
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from launchers import EndReason, JobState, JobStatus, MpiStart, Resources, Usage
from objectives.base import (
    ApplicationError,
    Context,
    InfrastructureError,
    InvalidResult,
    OutOfMemory,
    Output,
    PlanError,
    RunFailure,
    TimedOut,
)
from objectives.command import make_plan, plan
from objectives.command_options import CommandOptions
from objectives.mentions.nodes import Nodes
from spaces import Integer, Space

FULL = {
    "argv": [sys.executable, "solve.py", "--grid={nx}x{ny}", "--tile={tile}", "--text={{nx}}", "{fast}"],
    "environment": {"TILE": "{tile}", "MODE": "quick"},
    "ranks": "np",
    "threads": "threads",
    "success": ["^done$"],
    "failure": ["^FAILED: .*"],
    "metrics": [
        {"name": "solve_s", "unit": "s", "pattern": r"solve: ([\d.]+) s"},
        {"name": "rate", "unit": "1/s", "direction": "maximize", "pattern": r"rate: ([\d.]+)"},
    ],
    "answer": {"pattern": r"norm = (\S+)", "tolerance": 1e-6},
    "progress": r"^step (\d+)",
}
GOOD = "step 1\nstep 2\nsolve: 9.0 s\nsolve: 1.5 s\nrate: 7\nnorm = 0.25\ndone\n"


def objective(**changes):
    options = {**FULL, **changes}
    return plan(options, machine={}, run_job=lambda job: None, folder=Path("/nowhere")).objective


def output(stdout="", stderr="", exit_code=0, reason=EndReason.EXITED, state=JobState.ENDED):
    return Output(stdout, stderr, JobStatus(state, reason, exit_code, Usage(2.5)), Path("/nowhere"))


def test_golden_command_full(tmp_path):
    configuration = {"np": 4, "threads": 2, "nx": 3, "ny": 5, "tile": 8, "fast": True}
    job = objective().job(configuration, Context(tmp_path, (0, 1), 9.0))
    assert job.argv == (sys.executable, "solve.py", "--grid=3x5", "--tile=8", "--text={nx}", "1")
    assert job.environment == {"OMP_NUM_THREADS": "2", "AUTOTUNE_SEED": "0", "TILE": "8", "MODE": "quick"}
    assert (job.mpi, job.resources) == (MpiStart(4), Resources(8, cpus=(0, 1)))
    assert job.time_limit_s == 9.0


def test_golden_command_without_what_is_unset(tmp_path):
    job = objective().job({"nx": 3, "ny": 5}, Context(tmp_path))
    assert job.argv == (sys.executable, "solve.py", "--grid=3x5", "--text={nx}")
    assert job.environment == {"OMP_NUM_THREADS": "1", "AUTOTUNE_SEED": "0", "MODE": "quick"}


def test_golden_command_minimal(tmp_path):
    found = plan({"argv": [sys.executable]}, machine={}, run_job=lambda job: None, folder=tmp_path)
    job = found.objective.job({}, Context(tmp_path))
    assert (job.argv, job.mpi, job.resources) == ((sys.executable,), None, Resources())
    assert found.parameters == ()
    assert found.objective.measure(output()).metrics == {"elapsed_s": 2.5}


@pytest.mark.parametrize(
    ("given", "nodes"),
    [({}, 2), ({"nodes": 4}, 4), ({"nodes": "ceil(np / spread)"}, 3), ({"nodes": "nodes_used"}, 4)],
    ids=["as its cores need", "a number", "an expression", "a name"],
)
def test_a_run_has_the_nodes_that_its_study_file_asks_for(given, nodes, tmp_path):
    cluster = {"nodes": 4, "cores_per_node": 8}
    made = plan({**FULL, "threads": 1, **given}, machine=cluster, run_job=lambda job: None, folder=tmp_path)
    values = {"np": 12, "= ceil(np / spread)": 3, "nodes_used": 4}
    resources = made.objective.job(values, Context(tmp_path)).resources
    assert (resources.cores, resources.nodes) == (12, nodes)


def test_more_nodes_than_there_are_are_refused_before_a_run(tmp_path):
    cluster = {"nodes": 4, "cores_per_node": 8}
    made = plan({**FULL, "nodes": "np // 2"}, machine=cluster, run_job=lambda job: None, folder=tmp_path)
    assert [rule.rule for rule in made.constraints] == ["(np // 2) <= 4"]
    assert "= np // 2" in {mention.key for mention in made.mentions}
    with pytest.raises(PlanError) as error:
        plan({**FULL, "nodes": 5}, machine=cluster, run_job=lambda job: None, folder=tmp_path)
    assert [problem.path for problem in error.value.problems] == ["options.nodes"]
    assert "each run asks for 5 nodes; there are 4" in str(error.value)


@pytest.mark.parametrize(
    ("given", "cores", "per_core"),
    [
        ({}, 6, 1),
        ({"threads_per_core": 2}, 3, 2),
        ({"threads_per_core": "smt"}, 2, 4),
        ({"threads_per_core": "off"}, 6, 1),
    ],
    ids=["one", "a number, filled", "a name, of which one core is not filled", "a parameter without a value"],
)
def test_threads_share_cores_as_the_study_file_says(given, cores, per_core, tmp_path):
    machine = {"cores_per_node": 8, "threads_per_core": 4}
    made = plan({**FULL, **given}, machine=machine, run_job=lambda job: None, folder=tmp_path)
    resources = made.objective.job({"np": 3, "threads": 2, "smt": 4}, Context(tmp_path)).resources
    assert (resources.cores, resources.threads_per_core) == (cores, per_core)


@pytest.mark.parametrize(
    ("nodes", "options", "most"),
    [
        (1, {"threads": "threads"}, 16),  # oversubscription is the study's own affair
        (4, {"threads": "threads"}, 8),
        (4, {"threads": "threads", "ranks": 1}, 16),
        (4, {"threads": "threads", "nodes": 2}, 16),  # it spreads by itself
    ],
)
def test_a_program_without_ranks_has_the_cores_of_one_node_at_most(nodes, options, most):
    machine = {"nodes": nodes, "cores_per_node": 8, "cores": 8 * nodes}
    argv = [sys.executable, "-c", "pass"]
    made = plan({"argv": argv, **options}, machine=machine, run_job=None, folder=Path("/nowhere"))
    space = Space([Integer("threads", (1, 8, 16), default=1)], made.constraints)
    assert max(each["threads"] for each in space.configurations()) == most


@pytest.mark.parametrize(("configuration", "gpus"), [({}, 0), ({"cards": 2}, 2)], ids=["unset", "two"])
def test_a_run_has_no_gpus_where_their_number_is_unset_and_one_of_everything_else(configuration, gpus, tmp_path):
    job = objective(gpus="cards", nodes="places").job({"nx": 3, "ny": 5, **configuration}, Context(tmp_path))
    assert (job.mpi, job.resources) == (MpiStart(1), Resources(1, 1, gpus))
    assert job.environment["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    ("options", "binding"),
    [
        ({"environment": {"OMP_PROC_BIND": "{bind}"}}, "OMP_PROC_BIND"),
        ({"environment": {"OMP_PROC_BIND": "false", "OMP_PLACES": "cores"}}, "OMP_PLACES"),
        ({"environment": {"OMP_PROC_BIND": "FALSE", "I_MPI_PIN": "off"}}, None),
        ({"argv": ["/usr/bin/taskset", "-c", "0-3", "solve"]}, "taskset"),
        ({"argv": ["numactl", "-C", "0-3", "solve"]}, "numactl"),
        ({"argv": ["numactl", "--interleave=all", "solve"]}, None),
        ({"argv": ["gmx", "mdrun", "-pin", "on"]}, "-pin on"),
        ({"argv": ["gmx", "mdrun", "-pin", "{pin}"]}, None),  # the study's own rule decides
        ({"argv": ["solve", "-pinned", "on"]}, None),
    ],
)
def test_a_command_that_binds_itself_is_warned_of_where_jobs_share_nodes(options, binding):
    checked = CommandOptions.model_validate({"argv": ["solve"], **options})
    notes = make_plan(checked, (), Nodes(shared=True), is_elsewhere=True).notes
    assert [note.startswith(f"{binding} binds the program to cores") for note in notes] == [True] * (
        binding is not None
    )
    assert make_plan(checked, (), Nodes(), is_elsewhere=True).notes == ()


def test_more_hardware_threads_than_a_core_has_are_refused_before_a_run(tmp_path):
    one = {"nodes": 1, "cores_per_node": 8, "threads_per_core": 2}
    made = plan({**FULL, "threads_per_core": "smt"}, machine=one, run_job=lambda job: None, folder=tmp_path)
    assert [rule.rule for rule in made.constraints] == ["(smt) <= 2"]
    assert "smt" in {mention.key for mention in made.mentions}
    with pytest.raises(PlanError) as error:
        plan({**FULL, "threads_per_core": 4}, machine=one, run_job=lambda job: None, folder=tmp_path)
    assert [problem.path for problem in error.value.problems] == ["options.threads_per_core"]
    assert "asks for 4 hardware threads of each core, which has 2 here; use no more" in str(error.value)


def test_the_last_match_of_a_figure_counts():
    measurement = objective().measure(output(GOOD))
    assert measurement.metrics == {"solve_s": 1.5, "rate": 7.0}
    assert (measurement.answer.value, measurement.answer.tolerance) == (0.25, 1e-6)


def test_figures_are_looked_for_in_standard_error_where_standard_output_has_none():
    measurement = objective().measure(output("solve: 2 s\ndone\n", "solve: 9 s\nrate: 6\nrate: 7\nnorm = 0.5\n"))
    assert measurement.metrics == {"solve_s": 2.0, "rate": 7.0}
    assert measurement.answer.value == 0.5


def test_json_is_looked_for_in_standard_output_only():
    found = objective(metrics=[{"name": "x", "json": "a"}], answer=None, success=[])
    with pytest.raises(InvalidResult, match="no x in the output"):
        found.measure(output("nothing\n", '{"a": 1}\n'))


def test_progress():
    read = objective().progress_reader()
    assert [p.step for line in GOOD.splitlines() if (p := read(line))] == [1, 2]


@pytest.mark.parametrize(
    ("ended", "failure", "words"),
    [
        (output(GOOD + "FAILED: no heat\n"), ApplicationError, "FAILED: no heat"),
        (output(GOOD, "last words\n", 3), ApplicationError, "exit code 3: last words"),
        (output(GOOD.replace("done", "")), InvalidResult, "no match of '^done$'"),
        (
            output(GOOD.replace("rate: 7", "")),
            InvalidResult,
            r"no rate in the output: nothing matches 'rate: ([\d.]+)'",
        ),
        (output(GOOD.replace("0.25", "nan")), InvalidResult, "no answer"),
        (output(GOOD, "std::bad_alloc", 1), OutOfMemory, "memory"),
        (output("", "", None, EndReason.TIMED_OUT), TimedOut, "time limit"),
        (output("", "", -15, EndReason.OUTPUT_LIMIT), ApplicationError, "printed more"),
        (output("", "", -15, EndReason.MEMORY_LIMIT), OutOfMemory, "was stopped"),
        (output("", "No space left on device", 1), InfrastructureError, "No space"),
        (output("", "No space left on device", 0), InfrastructureError, "No space"),
        (output("", "", None, None, JobState.LOST), InfrastructureError, "lost"),
        (output("", "", -11), ApplicationError, "SIGSEGV"),
    ],
)
def test_failures(ended, failure, words):
    with pytest.raises(RunFailure) as caught:
        objective().measure(ended)
    assert type(caught.value) is failure
    assert words in str(caught.value)
    assert caught.value.code


def test_a_run_that_prints_nothing_is_said_with_the_remedy():
    silenced = "the run printed nothing: leave out what silences it (an option such as --quiet), or name a file"
    with pytest.raises(
        InvalidResult, match=rf"no match of '\^done\$', .*; {re.escape(silenced)} that it writes in outputs"
    ):
        objective().measure(output(" \n"))
    for metric in ({"name": "x", "pattern": "x=(.*)"}, {"name": "x", "json": "a"}):
        found = objective(metrics=[metric], answer=None, success=[])
        with pytest.raises(InvalidResult, match=rf"no x in the output: {re.escape(silenced)} that it writes by file"):
            found.measure(output(""))


def test_all_errors_at_once():
    options = {
        "argv": [sys.executable, "{", "{not a name}"],
        "success": ["("],
        "metrics": [{"name": "x", "pattern": "no group"}],
        "answer": {"pattern": "(a)(b)", "tolerance": 1},
    }
    with pytest.raises(PlanError) as caught:
        objective_of(options)
    lines = str(caught.value).splitlines()
    places = ["options.success.0", "options.metrics.0.pattern", "options.answer.pattern", "options.argv.1"]
    assert [line.rpartition(" @ ")[2] for line in lines] == [*places, "options.argv.2"]


def objective_of(options):
    return plan(options, machine={}, run_job=lambda job: None, folder=Path("/nowhere")).objective


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "@ options.argv"),
        ({"argv": []}, "@ options.argv"),
        ({"argv": ["no-such-program-here"]}, "was not found; give its full path"),
        ({"argv": ["/no/such-file"]}, "there is no file /no/such-file @ options.argv.0"),
        ({"argv": ["/etc/passwd"]}, "/etc/passwd is no program: it is not executable @ options.argv.0"),
        ({"argv": [sys.executable], "metrics": [{"name": "a"}]}, "@ options.metrics.0.pattern"),
        ({"argv": [sys.executable], "typo": 1}, "unknown key 'typo' in [options]: known: argv, environment, "),
    ],
)
def test_options_that_are_wrong(options, words):
    with pytest.raises(PlanError) as caught:
        objective_of(options)
    assert words in str(caught.value)


def test_a_rebuilt_program_is_another_one(tmp_path, monkeypatch):
    program = tmp_path / "solve"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    def identity(*argv):
        return plan({"argv": list(argv)}, machine={}, run_job=lambda job: None, folder=Path("/nowhere")).identity

    first = identity("solve")
    assert first["program"].startswith("solve sha256:")
    assert identity(str(program))["program"] == first["program"] == identity("solve")["program"]
    program.write_text("#!/bin/sh\n# rebuilt\n")
    second = identity("solve")
    assert {key for key in first | second if first.get(key) != second.get(key)} == {"program"}
    assert "program" not in identity("{variant}")


def test_an_edited_script_or_source_is_another_program(tmp_path):
    script, source, data = (tmp_path / name for name in ("solve.py", "solve.c", "mesh.dat"))
    for file in (script, source, data):
        file.write_text("old")

    def identity():
        options = {
            "argv": [sys.executable, "-u", str(script), str(data), "solve.c", "{x}"],
            "prepare": [["cp", str(source), "."]],
        }
        return plan(options, machine={}, run_job=lambda job: None, folder=tmp_path).identity

    first = identity()
    for changed, key in ((script, "script"), (source, "sources"), (data, None)):
        changed.write_text("new")
        second = identity()
        assert {name for name in first | second if first.get(name) != second.get(name)} == ({key} if key else set())
        first = second


@pytest.mark.parametrize(
    "argv",
    [
        ["-m", "solver", "--out", "{log}"],
        ["-c", "print(1)", "{log}"],
        ["solver.py", "{log}"],
        ["-u", "solver.py", "{log}"],
    ],
    ids=lambda argv: argv[0],
)
def test_what_a_run_writes_is_no_script_and_no_source(tmp_path, argv):
    log = tmp_path / "log.csv"
    log.write_text("1")
    words = [word.replace("{log}", str(log)) for word in argv]
    options = {"argv": [sys.executable, *words, "{x}"], "prepare": [["touch", str(log)]]}
    identity = plan(options, machine={}, run_job=lambda job: None, folder=tmp_path).identity
    assert identity.keys().isdisjoint({"script", "sources"})


@pytest.mark.parametrize(
    ("changes", "key", "how"),
    [
        ({"environment": {"TILE": "{tile}"}}, "environment", None),
        ({"environment": {}}, "environment", None),
        ({"metrics": [{**FULL["metrics"][0], "direction": "maximize"}, FULL["metrics"][1]]}, "metrics", None),
        ({"metrics": [{**FULL["metrics"][0], "pattern": r"took: (\d+)"}, FULL["metrics"][1]]}, None, "metrics"),
        ({"metrics": [{**FULL["metrics"][0], "file": "log"}, FULL["metrics"][1]]}, None, "metrics"),
        ({"success": []}, None, "success"),
        ({"failure": ["x"]}, None, "failure"),
        ({"answer": None}, None, "answer"),
        ({"progress": None}, None, None),
    ],
)
def test_what_changes_what_is_run_is_another_identity_and_how_it_is_read_is_told_apart(changes, key, how):
    def planned(**changed):
        return plan({**FULL, **changed}, machine={}, run_job=lambda job: None, folder=Path("/nowhere"))

    def changed(before, after):
        return {name for name in before | after if before.get(name) != after.get(name)}

    before, after = planned(), planned(**changes)
    assert changed(before.identity, after.identity) == ({key} if key else set())
    assert changed(before.reading, after.reading) == ({how} if how else set())


def test_the_files_that_are_read_are_known():
    options = {**FULL, "outputs": ["log"], "metrics": [{**FULL["metrics"][0], "file": "out/figures"}]}
    found = plan(options, machine={}, run_job=lambda job: None, folder=Path("/nowhere"))
    assert found.output_files == ("log", "out/figures")


def test_placeholders():
    found = plan(FULL, machine={}, run_job=lambda job: None, folder=Path("/nowhere")).mentions
    assert {mention.text for mention in found} == {"nx", "ny", "tile", "fast", "np", "threads"}


def test_an_answer_has_an_absolute_tolerance_a_relative_one_or_both():
    def answer(**tolerances):
        return objective(answer={"pattern": r"norm = (\S+)", **tolerances}).measure(output(GOOD)).answer

    assert (answer(relative_tolerance=1e-6).tolerance, answer(relative_tolerance=1e-6).relative_tolerance) == (
        0.0,
        1e-6,
    )
    assert (answer(tolerance=0.5).tolerance, answer(tolerance=0.5).relative_tolerance) == (0.5, 0.0)
    with pytest.raises(PlanError, match="needs tolerance, relative_tolerance"):
        answer()


@pytest.mark.parametrize("name", ["A;touch here;B", "1ST", "MY-VALUE", "", "A B", "Ä"])
def test_the_name_of_a_variable_is_one_that_a_shell_can_set(name):
    with pytest.raises(ValidationError, match="the name of a variable has only letters"):
        CommandOptions.model_validate({"argv": ["true"], "environment": {name: "1"}})
