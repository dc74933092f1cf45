import gzip
import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import ImportFileError
from autotune.performance.measurements.files import read_any
from autotune.performance.measurements.pwscf import OutputFile, read_outputs
from objectives.qe.objective import METRICS
from objectives.qe.output import parse
from spaces.qe import QeFacts, parameters

OUTPUTS = Path(__file__).parents[2] / "objectives" / "outputs"
GIVEN = {"machine": "mine", "source": "old runs"}


def place(machine, nodes):
    return machine, {"nodes": nodes, "cores_per_node": 4}


def text_of(name):
    return (OUTPUTS / f"{name}.stdout").read_text(encoding="utf-8")


def of(*names, **given):
    files = [OutputFile(name, text_of(name)) for name in names]
    return read_outputs(files, {**GIVEN, **given}, place)


def wall(found):
    return [one for one in found.measured if one.setting.metric.name == "wall_s"]


def test_a_folder_of_old_runs(tmp_path):
    shutil.copytree(OUTPUTS, tmp_path / "old" / "runs")
    (tmp_path / "old" / "CeO2.save").mkdir()
    (tmp_path / "old" / "CeO2.save" / "wfc1.dat").write_bytes(b"\x00" * 1000)
    (tmp_path / "old" / "notes.txt").write_text("nothing\n", encoding="utf-8")
    found = read_any(tmp_path / "old", None, GIVEN, place)
    ran = {dict(one.configuration)["np"] for one in wall(found) if one.value is not None}
    assert ran == {1, 2, 4}
    assert {one.setting.metric for one in found.measured} == set(METRICS[:2])
    assert {one.setting.program for one in found.measured} == {"qe"}
    assert any("failed before it said how large" in words for words in found.left_out)
    assert any("the machine's fault" in words and "signal-9" in words for words in found.left_out)
    assert any("no self-consistent calculation" in words for words in found.left_out)


def test_what_one_output_tells():
    (one, other) = of("converged-np4-nbgrp2-ntg2").measured
    parsed = parse(text_of("converged-np4-nbgrp2-ntg2"))
    assert one.configuration == {"np": 4, "npool": 1, "nbgrp": 2, "ntg": 2, "threads": 1}
    assert (one.value, other.value) == (parsed.total.wall_s, parsed.total.cpu_s)
    assert (other.setting.metric.name, other.setting.metric.unit) == ("cpu_s", "s")
    facts = one.setting.workload_facts
    assert (facts["kpoints"], facts["bands"], facts["atoms"], facts["cutoff_ry"]) == (6, 24, 6, 20.0)
    assert facts["planes"] == facts["fft_smooth_z"]
    assert (facts["pw_version"], facts["openmp"]) == ("6.7MaX", False)
    assert one.setting.workload.startswith("6 atoms, 48 electrons, 24 bands, 6 k-points, 20/160 Ry, grid 36x36x24")
    assert one.setting.source == "old runs"


def test_the_routines_of_a_run_come_with_its_times():
    (one, other) = of("converged-np4-nbgrp2-ntg2").measured
    assert one.parts == other.parts
    assert one.parts["PWSCF"] == one.value
    assert 0 < one.parts["h_psi:calbec"] < one.parts["h_psi"] < one.parts["electrons"] < one.value


def test_the_parameters_are_those_of_a_study():
    facts = QeFacts(cores=16, cores_per_node=16, kpoints=8, scalapack=True, threads_by_default=True)
    known = {parameter.name for parameter in parameters(facts)}
    told = [OutputFile("a", text_of("converged-np4-ndiag4")), OutputFile("b", shared_by(1)), OutputFile("c", SERIAL)]
    used = {name for one in read_outputs(told, GIVEN, place).measured for name in one.configuration}
    assert used == {"np", "npool", "nbgrp", "ntg", "threads", "ndiag"}
    assert used <= known


SUBSPACE = "scalapack distributed-memory algorithm (size of sub-group:  2*  2 procs)"
SERIAL = text_of("converged-np4-ndiag4").replace(SUBSPACE, "a serial algorithm will be used")


def shared_by(side, ranks=48, how="scalapack"):
    """An output of a run whose subspace problem a square of ranks shared."""
    words = f"{how} distributed-memory algorithm (size of sub-group: {side:2}* {side:2} procs)"
    text = text_of("converged-np4-ndiag4").replace(SUBSPACE, words)
    return re.sub(r"running on +4 processors", f"running on {ranks:5} processors", text)


def ndiag(*texts):
    found = wall(read_outputs([OutputFile(str(place), text) for place, text in enumerate(texts)], GIVEN, place))
    return [one.configuration.get("ndiag") for one in found]


def test_how_the_subspace_problem_was_solved():
    assert ndiag(shared_by(4), shared_by(6, 48, "custom")) == [16, 36]
    assert ndiag(shared_by(6, 40), SERIAL) == [None, 1]
    assert "ndiag" not in wall(of("converged-np2"))[0].configuration


def test_what_pw_x_does_by_itself_is_unset_as_in_the_default_of_a_study():
    assert ndiag(shared_by(6, 48)) == [None]  # the largest square of 48
    assert ndiag(SERIAL) == [None]  # a build that cannot share it


def test_repeats_become_one_and_copies_count_once():
    text = text_of("converged-np2")
    slower = re.sub(r"(PWSCF  .* CPU) ", r"\1 1m", text)
    files = [OutputFile("a", text), OutputFile("b", text), OutputFile("c", slower)]
    found = read_outputs(files, GIVEN, place)
    (one,) = wall(found)
    first, second = parse(text).total.wall_s, parse(slower).total.wall_s
    assert first != second
    assert one.value == pytest.approx((first + second) / 2)
    assert one.runs == 2
    assert found.left_out == ("1 x a copy of another run: b",)


def test_several_runs_in_one_file():
    text = "module load qe\n" + text_of("converged-np1") + text_of("converged-np2")
    found = wall(read_outputs([OutputFile("all.out", text)], GIVEN, place))
    assert [one.configuration["np"] for one in found] == [1, 2]


def test_a_failed_run_belongs_to_the_workload_that_ran_and_says_why():
    text = text_of("converged-np4-ndiag4")
    start = text.index("     Self-consistent Calculation")
    killed = text[:start] + "\nslurmstepd: error: Detected 1 oom-kill event(s)\n"
    found = wall(read_outputs([OutputFile("a", killed), OutputFile("b", text_of("converged-np2"))], GIVEN, place))
    assert [one.failed for one in found] == [False, True]
    assert found[1].failure.startswith("out of memory: ")
    assert found[0].setting.workload == found[1].setting.workload
    alone = read_outputs([OutputFile("a", killed)], GIVEN, place)
    assert alone.measured == ()
    assert alone.left_out == ("1 x it failed, and no run of its problem ended well: a",)


def test_an_output_that_breaks_off_is_left_out_and_one_that_stopped_at_its_limit_is_a_bound():
    whole = text_of("converged-np2")
    cut = read_outputs([OutputFile("cut", whole[: len(whole) // 2])], GIVEN, place)
    assert cut.measured == ()
    assert cut.left_out == ("1 x it breaks off, and does not say why: cut",)
    (one,) = wall(of("max-seconds"))
    assert one.bound == parse(text_of("max-seconds")).total.wall_s
    assert one.value is None


def stopped_after(iterations, name="converged-np1"):
    text = text_of(name).replace("!    total energy", "     total energy")
    stopped = re.sub(
        r"convergence has been achieved in +\d+ iterations",
        f"convergence NOT achieved after {iterations:3} iterations",
        text,
    )
    assert stopped != text
    return stopped


def test_runs_that_their_input_stopped_after_a_few_iterations_are_a_workload_of_their_own():
    files = [
        OutputFile("a", stopped_after(2)),
        OutputFile("b", stopped_after(2, "converged-np2")),
        OutputFile("c", stopped_after(4)),
        OutputFile("d", text_of("converged-np2")),
    ]
    found = read_outputs(files, GIVEN, place)
    assert found.left_out == ()
    of = {}
    for one in wall(found):
        of.setdefault(one.setting.workload_facts.get("scf_iterations"), []).append(one.configuration["np"])
    assert of == {None: [2], 2: [1, 2], 4: [1]}
    assert any(", 2 iterations, pw.x 6.7MaX" in one.setting.workload for one in found.measured)


def test_a_run_that_did_not_converge_in_as_many_iterations_as_others_took_has_failed():
    needed = parse(text_of("converged-np2")).converged_after
    files = [OutputFile("a", stopped_after(needed)), OutputFile("b", text_of("converged-np2"))]
    failed, converged = sorted(wall(read_outputs(files, GIVEN, place)), key=lambda one: one.configuration["np"])
    assert failed.failure == f"convergence NOT achieved after {needed} iterations"
    assert failed.setting == converged.setting
    hopeless = read_outputs([OutputFile("a", stopped_after(100))], GIVEN, place)
    assert hopeless.left_out == ("1 x it failed, and no run of its problem ended well: a",)


def test_a_time_that_contradicts_the_others_is_left_out_or_doubted():
    text = text_of("converged-np2")
    long = re.sub(r"(PWSCF  .* CPU).* WALL", r"\1   45h 2m WALL", text)
    found = read_outputs([OutputFile("a", long)], GIVEN, place)
    assert found.left_out[0].startswith("1 x its time cannot be right")
    short = re.sub(r"(electrons  .* CPU).* WALL", r"\1   4500.00s WALL", text)
    found = read_outputs([OutputFile("a", short)], GIVEN, place)
    assert found.notes == ("doubt: 1 x it prints less time for the whole program than for a part of it: a",)


def test_nodes_are_as_printed_or_stated_and_never_guessed():
    text = text_of("converged-np2")
    many = text.replace("distributed on     1 nodes", "distributed on     3 nodes")
    assert many != text
    (one,) = wall(read_outputs([OutputFile("a", many)], {**GIVEN, "nodes": "2"}, place))
    assert one.setting.place == "mine, 3 nodes"
    silent = text.replace("MPI processes distributed on     1 nodes", "")
    found = read_outputs([OutputFile("a", silent)], GIVEN, place)
    assert not wall(found)[0].setting.nodes_known
    assert wall(found)[0].setting.key != one.setting.key
    assert "1 runs do not say on how many nodes: state it with --nodes N" in found.text()
    stated = read_outputs([OutputFile("a", silent)], {**GIVEN, "nodes": "2"}, place)
    assert (wall(stated)[0].setting.place, stated.notes) == ("mine, 2 nodes", ())
    alone = read_outputs(
        [OutputFile("a", silent.replace("running on     2 proc", "running on     1 proc"))], GIVEN, place
    )
    assert (wall(alone)[0].setting.nodes, alone.notes) == (1, ())


def test_the_ranks_own_words_beside_the_output_and_a_compressed_one(tmp_path):
    (tmp_path / "a.out.gz").write_bytes(gzip.compress(text_of("converged-np2").encode()))
    broken = text_of("converged-np4-ndiag4")
    (tmp_path / "b.out").write_text(broken[: broken.index("     Self-consistent")], encoding="utf-8")
    (tmp_path / "b.err").write_text("mpirun: cannot allocate memory\n", encoding="utf-8")
    found = wall(read_any(tmp_path, None, GIVEN, place))
    assert [one.configuration["np"] for one in found] == [2, 4]
    assert "cannot allocate memory" in found[1].failure


@given(st.sampled_from(sorted(path.stem for path in OUTPUTS.glob("*.stdout"))), st.randoms(use_true_random=False))
def test_outputs_that_were_mutilated_are_read_or_left_out(name, random):
    text = text_of(name)
    begin, end = sorted(random.randrange(len(text) + 1) for _ in range(2))
    other = text_of("converged-np1")
    cut = random.randrange(len(other))
    found = read_outputs([OutputFile("a", text[:begin] + other[cut : cut + 500] + text[end:])], GIVEN, place)
    for one in found.measured:
        assert one.value is None or one.value >= 0
        assert one.configuration["np"] >= 1


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path):
    shutil.copy(OUTPUTS / "converged-np2.stdout", tmp_path / "a.out")
    (tmp_path / "b.out.gz").write_bytes(gzip.compress(text_of("converged-np1").encode())[:40])
    os.mkfifo(tmp_path / "pipe")
    found = read_any(tmp_path, None, GIVEN, place)
    assert len(found.measured) == 2
    assert "b.out.gz cannot be read" in found.left_out[0]


def test_the_machine_is_needed_and_a_folder_without_outputs_is_refused(tmp_path):
    with pytest.raises(ImportFileError, match="--machine NAME"):
        read_any(OUTPUTS, None, {}, place)
    with pytest.raises(ImportFileError, match="there is no output of"):
        read_any(tmp_path, None, GIVEN, place)


def test_a_single_output_and_a_word_before_the_name_of_its_workload():
    found = read_any(OUTPUTS / "converged-np2.stdout", None, {**GIVEN, "workload": "rutile"}, place)
    assert found.measured[0].setting.workload.startswith("rutile, 6 atoms")
