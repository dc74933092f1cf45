"""`autotune init`: a study file for any command, which can be checked and tuned as it is."""

import errno
import json
import os
import re
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autotune import files, studyfile
from autotune.machines.this_machine import this_machine
from autotune.planning.check import check
from autotune.planning.command_line import propose_knobs
from autotune.planning.known_programs import known_programs
from autotune.planning.study_template import parameter_notes, study_text
from autotune.studyfile.space import join_space
from launchers.local import LocalLauncher
from objectives.base import Context
from objectives.command import make_plan
from objectives.command_check import read_command_options
from objectives.mentions.nodes import Nodes
from tests.support.command_line import invoke, run_main
from tests.support.quick_study import QUICK
from tests.support.warm import autotune

pytestmark = pytest.mark.cores(1)

GOLDEN = Path(__file__).parent / "golden"
COMMANDS = {
    "ranks-and-threads": "OMP_NUM_THREADS=2 LEVEL=fast mpirun -np 4 /bin/echo -n 100 --tol=0.5 'a{b}'",
    "numbers": "/bin/echo --block-size 64 17 -j8 007 -1 1.5e3 word",
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs `autotune` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return run_main


@pytest.mark.parametrize("name", COMMANDS)
def test_golden_files(name):
    assert study_text(shlex.split(COMMANDS[name]), {}) == (GOLDEN / f"init-{name}.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "argv", "knobs"),
    [
        ("prog -np 4", ["prog", "-np", "{np}"], {"np": "processes"}),
        ("mpirun -n 4 prog", ["prog"], {"np": "ranks"}),
        ("mpirun --np=4 prog 5", ["prog", "{number2}"], {"np": "ranks", "number2": ""}),
        # A start command with unknown options is not taken apart.
        ("mpirun --new a:2 -np 4 prog", ["mpirun", "--new", "a:2", "-np", "{np}", "prog"], {"np": "processes"}),
        ("xz -T 4 --threads=2 x", ["xz", "-T", "{threads}", "--threads={threads_2}", "x"], {"threads": "threads"}),
        ("env OMP_NUM_THREADS=2 prog", ["prog"], {"threads": "threads"}),
        ("prog --cores-per-node 4 --range 2 --if 3", None, {"cores_per_node_2": "", "range_2": "", "if_2": ""}),
        ("ffmpeg -threads 4 -i in.mp4", ["ffmpeg", "-threads", "{threads}", "-i", "in.mp4"], {"threads": "threads"}),
        ("make -j8", ["make", "-j{threads}"], {"threads": "threads"}),
        ("OMP_NUM_THREADS=2 prog -t 2", ["prog", "-t", "{threads}"], {"threads": "threads"}),
        # Only the options that a known program defines: -t of ior is a transfer size, -nt of pw.x counts task groups.
        ("namd2 +p4 my.namd", ["namd2", "+p{p}", "my.namd"], {"p": "threads"}),
        ("/opt/bin/gmx mdrun -ntomp 2", None, {"ntomp": "threads", "ntmpi": "processes"}),
        ("gmx mdrun -ntmpi 2 -nstlist 20", None, {"ntmpi": "processes", "ntomp": "threads", "nstlist": "knob"}),
        ("gmx mdrun -nsteps 50", None, {"nsteps": ""}),
        ("gmx mdrun -nt 2", ["gmx", "mdrun", "-nt", "{nt}"], {"nt": "threads"}),
        ("gmx grompp -ntomp 2", None, {"ntomp": ""}),
        ("mpirun -np 2 gmx_mpi mdrun -ntomp 1", None, {"np": "ranks", "ntomp": "threads"}),
        ("mpirun -np 2 lmp -sf omp -pk omp 2 -in x", None, {"np": "ranks", "omp": "threads"}),
        ("torchrun --nproc_per_node=2 train.py --lr 0.1", None, {"nproc_per_node": "processes", "lr": ""}),
        ("accelerate launch --num_processes 2 train.py", None, {"num_processes": "processes"}),
        ("ior -t 4 -b 8", None, {"t": "", "b": ""}),
        ("mpirun -np 4 pw.x -nk 2 -nt 1 -inp my.in", None, {"np": "ranks", "nk": "knob", "nt": "knob"}),
        ("prog 007 1.50 1e3 0x1 -5 v1.2", ["prog", "007", "1.50", "1e3", "0x1", "-5", "v1.2"], {}),
    ],
)
def test_what_is_taken_for_a_knob(command, argv, knobs):
    found = propose_knobs(shlex.split(command), {})
    assert argv is None or list(found.argv) == argv
    assert {knob.name: knob.kind for knob in found.knobs}.items() >= knobs.items()
    assert len(found.knobs) == len(knobs) or "threads_2" in str(argv)


CORE = "OMPI_MCA_hwloc_base_binding_policy"


@pytest.mark.parametrize(
    ("command", "counts", "environment", "notes"),
    [
        ("mpirun -np 4 --bind-to core prog", {"np": "4"}, {CORE: "core"}, ""),
        # Open MPI refuses this binding together with several cores for each rank.
        ("mpirun -np 4 --bind-to socket prog", {"np": "4"}, {}, "mpirun --bind-to socket"),
        ("mpirun -np 2 --map-by socket:PE=3 prog", {"np": "2", "threads": "3"}, {}, ""),
        ("mpirun --map-by ppr:2:socket -np 4 prog", {"np": "4"}, {}, "--map-by ppr:2:socket"),
        ("mpirun -np 2 --mca btl self,vader prog", {"np": "2"}, {"OMPI_MCA_btl": "self,vader"}, ""),
        ("mpirun -np 2 -x OMP_NUM_THREADS=3 -x LIST=a,b prog", {"np": "2", "threads": "3"}, {"LIST": "a,b"}, ""),
        ("mpirun -np 2 -x HERE -x HF_TOKEN -x PATH -x AWAY prog", {"np": "2"}, {"HERE": "x", "HF_TOKEN": "***"}, ""),
        ("mpirun -hostfile h -np 4 --report-bindings prog", {"np": "4"}, {}, "mpirun -hostfile h"),
        ("mpirun prog", {"np": ""}, {}, ""),
        ("mpiexec -n 4 -ppn 2 prog", {"np": "4"}, {}, "mpiexec -ppn 2"),
        (
            "mpiexec.hydra -n 2 -genv A 1,2 -genv B=c -bind-to core prog",
            {"np": "2"},
            {"A": "1,2", "B": "c"},
            "-bind-to",
        ),
        ("srun -n 8 -c 4 prog", {"np": "8", "threads": "4"}, {}, ""),
        ("srun -n8 -c1 --export=ALL,A=b --cpu-bind=cores prog", {"np": "8"}, {"A": "b", "SLURM_CPU_BIND": "cores"}, ""),
        ("srun -N 2 --ntasks-per-node=4 prog", {"np": "8"}, {}, "srun -N 2 --ntasks-per-node=4"),
        ("srun prog", {"np": "1"}, {}, ""),
        ("aprun -n 64 -N 16 -d 2 -cc depth prog", {"np": "64", "threads": "2"}, {}, "not with aprun"),
        ("jsrun -n 2 -a 4 -c 8 -bpacked:2 prog", {"np": "8", "threads": "2"}, {}, "not with jsrun"),
        ("flux run -n 4 -c 2 prog", {"np": "4", "threads": "2"}, {}, "not with flux run"),
        ("time -p mpirun -np 4 prog", {"np": "4"}, {}, ""),
        ("nohup env -u B A=b mpirun -np 4 env C=d prog", {"np": "4"}, {"A": "b", "C": "d"}, ""),
        ("taskset -c 0-2,8 prog", {"threads": "4"}, {}, "taskset -c 0-2,8"),
        ("taskset 0x7 prog", {"threads": "3"}, {}, "taskset 0x7"),
        ("taskset -c 0-3 mpirun -np 2 prog", {"np": "2"}, {}, "taskset -c 0-3"),
        ("timeout 60 nice -n 5 mpirun -np 2 prog", {"np": "2"}, {}, "timeout 60"),
        ("OMP_NUM_THREADS=2 MKL_NUM_THREADS=1 prog", {"threads": "2"}, {"MKL_NUM_THREADS": "1"}, ""),
        (["mpirun -np 4 prog"], {"np": "4"}, {}, ""),
        # As Fugaku, Polaris, ARCHER2, Tianhe, TGCC and TACC write it.
        ("mpiexec -n 4 -stdout-proc out.%j -stderr-proc err prog", {"np": "4"}, {}, ""),
        ("mpiexec --max-proc-per-node 4 -n 16 prog", {"np": "16"}, {}, "mpiexec --max-proc-per-node 4"),
        ("mpiexec -stdin my.in -n 2 prog", {"np": "2"}, {}, "mpiexec -stdin my.in"),
        (
            "mpiexec -n 8 --ppn 4 --depth=8 --cpu-bind depth --no-vni prog",
            {"np": "8", "threads": "8"},
            {},
            "mpiexec --ppn 4 --cpu-bind depth --no-vni",
        ),
        (
            "srun --nodes=2 --ntasks-per-node=64 -c 2 --hint=nomultithread --distribution=block:block prog",
            {"np": "128", "threads": "2"},
            {"SLURM_DISTRIBUTION": "block:block"},
            "--hint=nomultithread",
        ),
        ("yhrun -n 4 prog", {"np": "4"}, {}, "not with yhrun"),
        ("ccc_mprun -n 4 -c 2 prog", {"np": "4", "threads": "2"}, {}, "not with ccc_mprun"),
        ("ibrun -n 16 -o 0 task_affinity prog", {"np": "16"}, {}, "ibrun -o 0"),
        # What a shell would do with the command.
        (["mpirun -np 4 prog > out 2>&1 &"], {"np": "4"}, {}, "keeps what a run prints: > out 2>&1"),
        (["mpirun -np 4 prog 2>log | tee -a out"], {"np": "4"}, {}, "2> log | tee -a out"),
        (["mpirun -np 4 prog |& tee out"], {"np": "4"}, {}, "|& tee out"),
        (["mpirun -np 4 prog < /dev/null"], {"np": "4"}, {}, ""),
        (["bash", "-c", "mpirun -np 4 prog"], {"np": "4"}, {}, ""),
        (["bash", "-c", "\nAWK='$1 ~ /x*/' B=\"{c}\" mpirun -np 4 prog\n"], {"np": "4"}, {"B": "{{c}}"}, ""),
    ],
)
def test_the_words_before_the_program_become_ranks_threads_and_variables(command, counts, environment, notes):
    here = {"HERE": "x", "HF_TOKEN": "secret", "PATH": "/bin"}
    found = propose_knobs(shlex.split(command) if isinstance(command, str) else command, here)
    assert found.argv == ("prog",)
    assert {knob.name: knob.value for knob in found.knobs if knob.kind} == counts
    assert dict(found.environment).items() >= environment.items()
    assert "PATH" not in dict(found.environment)
    assert notes in " ".join(found.notes)
    assert bool(notes) == bool(found.notes)


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("mpirun --new 3 -np 4 prog", "mpirun stays in the command as it is: its option --new is not known"),
        ("mpirun -np 1 a : -np 3 b", "mpirun stays in the command as it is: it starts several programs"),
        ("srun -n four prog", "-n four is no number"),
        ("nice -n 5", "no program follows"),
        ("time -z prog", "its option -z is not known"),
        ("sbatch job.sh", "it returns before its job has run"),
        ("mpiexec -n 4 -d 8 prog", "what -d 8 means is not known"),
        ("valgrind --tool=callgrind prog", "it measures or debugs a program"),
        ("bash -lc 'module load gcc && prog'", "only a shell understands its text"),
        ("bash -c 'prog $HOME/in'", "only a shell understands its text"),
        ("bash -c 'N=$N prog'", "only a shell understands its text"),
        ("bash -c 'prog `nproc`'", "only a shell understands its text"),
        ("bash -c 'prog \"-n $N\" 3'", "only a shell understands its text"),
        ("bash -c 'prog *.txt'", "only a shell understands its text"),
        ("bash -c 'prog ~/in'", "only a shell understands its text"),
        ("bash -c 'prog {a,b}.in'", "only a shell understands its text"),
        ("bash -c 'module load x\nprog 3'", "only a shell understands its text"),
        ("bash -c 'exec prog 3'", "only a shell understands its text"),
    ],
)
def test_a_start_command_that_is_not_understood_stays_and_one_line_says_so(command, note):
    found = propose_knobs(shlex.split(command), {})
    assert found.argv[0] == command.split(maxsplit=1)[0]
    assert len(found.notes) == 1
    assert note in found.notes[0]
    assert f"# {found.notes[0]}" in study_text(shlex.split(command), {})


@pytest.mark.parametrize(
    "command", ["mpirun -np 2 --bind-to core", "mpirun -np 2 --bind-to", "mpirun", "time srun -n 2", "flux run"]
)
def test_a_start_command_without_a_program_is_a_mistake(tmp_path, run, command):
    ended = run("init", "--", *shlex.split(command))
    assert ended.returncode == 2
    assert "no program follows; give it after the options of" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_memory_policy_stays_and_the_program_behind_it_is_known():
    found = propose_knobs(shlex.split("mpirun -np 2 numactl --interleave=all -C 0-3 lmp -sf omp -pk omp 2"), {})
    assert found.argv == ("numactl", "--interleave=all", "lmp", "-sf", "omp", "-pk", "omp", "{omp}")
    assert found.program.study == "lammps"


@pytest.mark.parametrize(
    "inside",
    [
        "singularity exec --nv -B /scratch:/scratch image.sif",
        "apptainer run --env A=b image.sif",
        "shifter --image=docker:user/image:1",
        "podman-hpc run --rm --mpi image:1",
        "conda run -n env",
        "uv run",
    ],
)
def test_the_program_in_a_container_or_an_environment_is_known(inside):
    found = propose_knobs(shlex.split(f"mpirun -np 4 {inside} pw.x -nk 2 -inp scf.in"), {})
    assert found.argv == (*inside.split(), "pw.x", "-nk", "{nk}", "-inp", "scf.in")
    assert {knob.name: knob.kind for knob in found.knobs} == {"np": "ranks", "nk": "knob"}
    assert found.program.study == "qe"
    assert found.notes == ()
    # Another MPI is inside: its start command is the program.
    assert propose_knobs(shlex.split(f"{inside} mpirun -np 4 prog"), {}).argv[:-3] == (*inside.split(), "mpirun")


def test_a_script_in_an_environment_is_found_from_the_folder_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "image.sif"):
        (tmp_path / name).touch()
    assert propose_knobs(["uv", "run", "train.py"], {}).argv == ("uv", "run", str(tmp_path / "train.py"))
    command = ["apptainer", "exec", "image.sif", "prog"]
    assert propose_knobs(command, {}).argv == ("apptainer", "exec", str(tmp_path / "image.sif"), "prog")


def test_a_file_for_standard_input_is_named_by_an_option():
    # The 2 of -nk is no stream, although 2>&1 has one.
    for ends in ("> scf.out", "> scf.out 2>&1", ">& scf.out", "2> errors | tee scf.out"):
        found = propose_knobs([f"mpirun -np 2 pw.x -nk 2 < scf.in {ends}"], {})
        assert found.argv == ("pw.x", "-nk", "{nk}", "-inp", "scf.in")


@pytest.mark.parametrize(
    ("command", "argv", "left"),
    [
        ("lmp -in in.x -screen none -log none", "lmp -in in.x -log none", "-screen none"),
        ("lmp -sc out -in in.x", "lmp -in in.x", "-sc out"),
        ("cp2k.psmp -i x.inp -o x.out", "cp2k.psmp -i x.inp", "-o x.out"),
    ],
)
def test_an_option_that_prints_elsewhere_is_left_out_since_the_output_is_read(command, argv, left):
    found = propose_knobs(command.split(), {})
    assert list(found.argv) == argv.split()
    assert f"left out, since autotune keeps what a run prints: {left}" in found.notes


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("mpirun -np 2 pw.x -nk 2 -in scf.in", "scf.in"),
        ("mpirun -np 2 lmp -i in.melt", "in.melt"),
        ("prog --input case.dat -i 3", "case.dat"),
        ("gmx mdrun -ntmpi 1", "topol.tpr"),
        ("gmx mdrun -deffnm md", "md.tpr"),
        ("mpirun -np 2 gmx_mpi mdrun -ntomp 1", "topol.tpr"),
        ("xhpl", "HPL.dat"),
    ],
)
def test_an_input_that_is_not_here_is_named(tmp_path, monkeypatch, command, missing):
    monkeypatch.chdir(tmp_path)
    note = f"there is no {missing} here, which the command reads: no run will find it"
    assert note in propose_knobs(command.split(), {}).notes
    (tmp_path / missing).touch()
    assert propose_knobs(command.split(), {}).notes == ()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("prog < my.in", "reads its standard input (< my.in)"),
        ("cd case && mpirun -np 4 prog", "has '&&'"),
        ("module load gcc; prog", "has ';'"),
        ("prog | sort", "has '|'"),
        ("prog $HOME/x", "has '$HOME/x', which a shell would expand"),
        ('prog "--in=${HOME}/x"', "${HOME}/x"),
        ("prog ~/x", "has '~/x'"),
        ("prog --in *.dat", "has '*.dat'"),
        ("prog $(nproc)", "has '$(nproc)'"),
        ("prog -n `nproc`", "has '`nproc`'"),
        ("prog x{1..3}.dat", "has 'x{1..3}.dat'"),
        ("prog 1\nprog 2", "which a shell would expand"),
    ],
)
def test_a_command_that_needs_a_shell_is_a_mistake(tmp_path, run, command, words):
    ended = run("init", "--", command)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "write the line into a script and give that" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_no_shell_would_expand_stays_in_a_command_that_is_quoted_as_a_whole():
    found = propose_knobs(["""prog '$HOME/x' "a*b" \\$x {y} a~b"""], {})
    assert found.argv == ("prog", "$HOME/x", "a*b", "$x", "{{y}}", "a~b")


def test_threads_of_the_callers_environment_are_those_of_each_rank():
    assert 'threads = "threads"' in study_text(["mpirun", "-np", "2", "prog"], {"OMP_NUM_THREADS": "3"})
    assert '# threads = "threads"' in study_text(["mpirun", "-np", "2", "prog"], {"OMP_NUM_THREADS": "1"})


def test_slurm_says_how_many_ranks_a_start_command_without_a_number_starts():
    for command in ("srun", "mpirun"):
        assert propose_knobs([command, "prog"], {"SLURM_NTASKS": "6"}).knobs[0].value == "6"


# What exists here, such as the folder ".", would get its full path.
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
WORDS = TEXT.filter(lambda word: not os.path.lexists(word)) | st.sampled_from(
    [
        "-np",
        "4",
        "--threads",
        "--threads=3",
        "-n=5",
        "-j8",
        "{",
        "}}",
        "{np}",
        "0",
        "0.5",
        "OMP_NUM_THREADS=2",
        "mpirun",
    ]
)


@settings(deadline=None, max_examples=25)
@given(st.lists(WORDS, max_size=6), st.booleans())
@example(["-np", "{np}", "--np", "7"], True)
@example(["\\", "'''", '"""', "\x7f", "\u2028"], False)
@example(["9" * 9, "--max", "1", "--cores=3"], False)
def test_the_file_for_any_command_is_right_and_runs_that_command(tmp_path_factory, words, ranks):
    command = ["/bin/echo", *words]
    text = study_text(["mpirun", "-np", "1", *command] if ranks else command, {})
    path = tmp_path_factory.mktemp("init") / "mine.toml"
    path.write_text(text, encoding="utf-8")
    found = check(path, (), this_machine(), LocalLauncher())
    # This launcher cannot start ranks, which is no mistake of the file.
    assert [str(problem) for problem in found.mistakes] == []
    assert [problem for problem in found.missing if "needs MPI" not in str(problem)] == []
    job = found.plan.objective.job(found.space.default(), Context(path.parent))
    if not any(knob.kind in {"threads", "processes"} for knob in propose_knobs(command, {}).knobs):
        assert list(job.argv) == command
    assert (job.mpi is not None) == ranks


def test_without_a_command_a_template_that_can_be_tuned_at_once(tmp_path, run):
    ended = run("init")
    assert ended.returncode == 0, ended.stderr
    assert "autotune study ./mine.toml" in ended.stdout
    assert "note: no command was given: this is an example that tunes " in ended.stderr
    assert run("check", "./mine.toml").returncode == 0
    ended = autotune(tmp_path, "study", "./mine.toml", "--trials", "2", "--json", *QUICK)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["trials"] >= 1


def test_a_file_that_is_there_is_kept(tmp_path, run):
    (tmp_path / "other.toml").write_text("mine")
    ended = run("init", "other.toml", "--", "ls", "-1")
    assert ended.returncode == 2
    assert "replace it with --force" in ended.stderr
    assert (tmp_path / "other.toml").read_text() == "mine"
    assert run("init", "--force", "-o", "other.toml", "--", "ls", "-1").returncode == 0
    assert '"ls", "-1"' in (tmp_path / "other.toml").read_text()


def test_a_full_disk_leaves_no_part_of_a_file_and_keeps_an_older_one(tmp_path, run, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", fail)
        assert "No space left" in run("init", "--", "ls", "-1").stderr
    assert list(tmp_path.iterdir()) == []
    assert run("init", "--", "ls", "-1").returncode == 0
    before = (tmp_path / "mine.toml").read_text()
    monkeypatch.setattr(files.os, "fsync", fail)
    assert run("init", "--force", "--", "ls", "-2").returncode == 2
    assert (tmp_path / "mine.toml").read_text() == before


def test_printed(tmp_path):
    ended = invoke("init", "-o", "-", "--", "prog", "--", "--json", "-n", "3")
    assert ended.exit_code == 0
    assert tomllib.loads(ended.stdout)["options"]["argv"] == ["prog", "--", "--json", "-n", "3"]
    assert "note: OMP_NUM_THREADS is the only parameter: " in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_command_are_copied_for_each_run_and_numbers_that_stay_are_written_out(tmp_path, monkeypatch):
    here = tmp_path / "here"
    (here / "data").mkdir(parents=True)
    monkeypatch.chdir(here)
    for name in ("solve", "my.in", "data/mesh", "../other"):
        (here / name).write_text("")
    words = ["./solve", "my.in", "--mesh=data/mesh", "../other", "data/", ".", "data", "--threads", "2", "--size", "10"]
    text = study_text(words, {})
    options = tomllib.loads(text)["options"]
    assert options["argv"] == [
        str(here / "solve"),
        "my.in",
        "--mesh=data/mesh",
        str(here / "../other"),
        str(here / "data"),
        str(here),
        "data",
        "--threads",
        "{threads}",
        "--size",
        "10",
    ]
    assert options["files"] == [{"name": name, "copy": str(here / name)} for name in ("my.in", "data/mesh")]
    # The parameter proposed for the size is right too, once uncommented.
    block = re.search(r"(?m)^# \[space\.parameters\.size\]\n(?:# .*\n)+", text)
    assert block
    proposed = tomllib.loads(block[0].replace("# ", ""))["space"]["parameters"]["size"]
    assert (proposed["values"], proposed["default"]) == ([5, 10, 20], 10)


def test_a_command_that_is_no_text_is_refused():
    ended = invoke("init", "-o", "-", "--", "prog", "\udcff")
    assert ended.exit_code != 0
    assert "UTF-8" in str(ended.exception)


def test_a_name_that_is_no_study_file_is_refused(run):
    ended = run("init", "prog")
    assert ended.returncode == 2
    assert "give a command after --" in ended.stderr


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("./x --threads 4", "-- ./x --threads 4"),
        ("mpirun -np 2 ./x", "-- mpirun -np 2 ./x"),
        ("-o mine.toml --force x -n 'a b'", "-o mine.toml --force -- x -n 'a b'"),
        ("mine.toml x -n 3", "mine.toml -- x -n 3"),
    ],
)
def test_unknown_options_after_a_program_show_that_the_dashes_are_missing(tmp_path, run, words, right):
    ended = run("init", *shlex.split(words))
    assert ended.returncode == 2
    assert f"put -- before the command: autotune init {right}\n" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["mine.toml --froce", "--froce prog", "prog --froce -- ls"])
def test_an_unknown_option_of_init_is_named(run, words):
    ended = run("init", *words.split())
    assert ended.returncode == 2
    assert "No such option: --froce" in ended.stderr


def test_every_line_that_is_proposed_is_toml_when_it_is_uncommented():
    text = study_text(shlex.split(COMMANDS["ranks-and-threads"]), {})
    keys = set(re.findall(r"(?m)^# (\w+) = ", text))
    assert {"metrics", "answer", "success", "failure", "progress", "prepare", "timeout_s"} <= keys
    for one in re.findall(
        r"(?m)^# ((?:metrics|answer|success|failure|progress|prepare|timeout_s|run_time_limit_s) = .*)$", text
    ):
        assert tomllib.loads(one)
    assert studyfile.parse(tomllib.loads(text) | {"name": "x"}, "x").budget.trials == 20


GROMACS = "gmx mdrun -s topol.tpr -ntmpi 1 -ntomp 2 -nsteps 50"


def test_a_known_program_is_tuned_as_its_user_ran_it_and_its_size_stays(tmp_path, monkeypatch):
    gmx = tmp_path / "bin" / "gmx"
    gmx.parent.mkdir()
    gmx.write_text("#!/bin/sh\n")
    gmx.chmod(0o755)
    monkeypatch.setenv("PATH", str(gmx.parent), prepend=":")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topol.tpr").write_bytes(b"\0")
    text = study_text(shlex.split(GROMACS), {})
    assert text.replace(str(tmp_path), "HERE") == (GOLDEN / "init-gromacs.toml").read_text(encoding="utf-8")
    path = tmp_path / "sub" / "mine.toml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    machine = replace(this_machine(), cpus=(0, 1))
    found = check(path, (), machine, LocalLauncher())
    assert (found.mistakes, found.missing) == ([], [])
    # No warning about the file, the metric, the answer, or an unused parameter.
    assert [text for text in found.warnings if "budget.trials" not in text] == []
    (tmp_path / "run").mkdir()
    job = found.plan.objective.job(found.space.default(), Context(tmp_path / "run"))
    assert list(job.argv) == shlex.split(GROMACS)
    assert job.environment["OMP_NUM_THREADS"] == "2"
    assert job.resources.cores == 2
    assert (tmp_path / "run" / "topol.tpr").is_file()
    assert {parameter.name for parameter in found.space.parameters} == {"ntmpi", "ntomp"}


@pytest.mark.parametrize(
    ("command", "environment", "defaults", "cores"),
    [
        # Without OMP_NUM_THREADS a program with OpenMP starts a thread on each core.
        ("prog -n 5", {}, {"threads": 4}, 4),
        ("prog -n 5", {"OMP_NUM_THREADS": "2"}, {"threads": 2}, 2),
        ("prog -n 5", {"OMP_NUM_THREADS": "4,2"}, {"threads": 4}, 4),
        ("prog -np 3", {}, {"np": 3}, 3),
        # mdrun fills the cores with the option that is missing.
        ("gmx mdrun -ntmpi 2", {}, {"ntmpi": 2, "ntomp": 2}, 4),
        ("gmx mdrun -ntomp 1", {}, {"ntomp": 1, "ntmpi": 4}, 4),
        ("gmx mdrun -nt 2", {}, {"nt": 2}, 2),
        ("mpirun -np 2 gmx_mpi mdrun -ntomp 2", {}, {"np": 2, "ntomp": 2}, 4),
        ("mpirun -np 8 prog -t 2", {}, {"np": 4, "threads": 1}, 4),
    ],
)
def test_the_default_is_what_the_command_does(tmp_path, command, environment, defaults, cores):
    study = studyfile.parse(tomllib.loads(study_text(shlex.split(command), environment)) | {"name": "x"}, "x")
    checked, files, errors = read_command_options(study.options)
    assert errors == []
    found, space = join_space(
        study, make_plan(checked, files, Nodes()), {**this_machine().facts, "cores": 4, "cores_per_node": 4}
    )
    default = space.default()
    assert default == defaults
    assert found.objective.job(default, Context(tmp_path)).resources.cores == cores


@pytest.mark.parametrize(
    ("command", "notes"),
    [
        ("mpirun -np 4 prog", ["this machine has 2 cores: the default is np=2, not 4 as in your command"]),
        ("prog -t 8", ["this machine has 2 cores: the default is threads=2, not 8 as in your command"]),
        (
            "mpirun -np 2 prog -t 3",
            ["this machine has 2 cores: the default is threads=1, not 3 as in your command"],
        ),
        ("mpirun -np 2 prog", []),
        ("prog", ["OMP_NUM_THREADS is the only parameter: delete it if the program has no threads"]),
        (
            "prog 8 --size 3",
            [
                (
                    "OMP_NUM_THREADS is the only parameter: delete it if the program has no threads; "
                    "other candidates stand in comments: number1, size"
                )
            ],
        ),
    ],
)
def test_a_note_says_where_the_parameters_differ_from_the_command(command, notes):
    assert parameter_notes(shlex.split(command), {}, {"cores": 2, "cores_per_node": 2}) == notes


@pytest.mark.parametrize(
    ("command", "read_from", "written"),
    [
        ("gmx mdrun", "topol.tpr", "md.log"),
        ("gmx mdrun -deffnm X -nsteps 50", "X.tpr", "X.log"),
        ("gmx_mpi mdrun -deffnm X.v2", "X.v2.tpr", "X.v2.log"),
        ("gmx mdrun -g other -deffnm X", "X.tpr", "other.log"),
        ("gmx mdrun -s X -g other.log", "X.tpr", "other.log"),
    ],
)
def test_files_are_called_as_the_options_of_the_program_say(tmp_path, monkeypatch, command, read_from, written):
    monkeypatch.chdir(tmp_path)
    for name in ("topol.tpr", "X.tpr", "X.v2.tpr"):
        (tmp_path / name).write_bytes(b"\0")
    options = tomllib.loads(study_text(shlex.split(command), {}))["options"]
    assert [file["name"] for file in options["files"]] == [read_from]
    assert {*options["outputs"], options["metrics"][0]["file"], options["answer"]["file"]} == {written}
    assert options["progress"]["file"] == written


def test_what_is_known_of_a_program_is_right_in_a_study_file():
    for program in known_programs():
        known = program.model_dump(exclude_none=True)
        keys = ("metrics", "answer", "success", "failure", "outputs", "progress")
        options = {key: known[key] for key in keys if known.get(key)}
        assert read_command_options({"argv": ["true"], **options})[2] == [], program.commands
        assert program.study is None or program.study in studyfile.catalogue()


def test_programs_stay_where_they_are_since_they_load_others_beside_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "wrapped", "in.mine"):
        (tmp_path / name).write_text("")
    (tmp_path / "wrapped").chmod(0o755)
    found = propose_knobs(["python3", "train.py", "wrapped", "--config=in.mine"], {})
    assert list(found.argv) == ["python3", str(tmp_path / "train.py"), str(tmp_path / "wrapped"), "--config=in.mine"]
    assert [name for name, _ in found.files] == ["in.mine"]
    # A known program reads any file on its command line.
    assert [name for name, _ in propose_knobs(["lmp", "-in", "train.py"], {}).files] == ["train.py"]


def test_the_study_that_ships_and_the_program_that_is_missing_are_named(run):
    ended = run("init", "--", "env", "LEVEL=3", "mpirun", "-np", "2", "no-folder/lmp", "-in", "in.mine")
    assert ended.returncode == 0
    assert "autotune study lammps" in ended.stdout
    assert "no program no-folder/lmp on this host" in ended.stderr


@pytest.mark.parametrize(
    ("command", "study"),
    [
        ("vllm serve /models/model --tensor-parallel-size 2", "llm-vllm"),
        ("/opt/env/bin/python3 -m sglang.launch_server --tp 2", "llm-sglang"),
        ("python -m llama_cpp.server --n_threads 4", "llm"),
        ("/usr/sbin/nginx -g 'daemon off;'", "nginx"),
        ("mpirun -np 2 ucx_perftest -t tag_bw", "ucx"),
        ("srun -n 2 cp2k.psmp -i H2O-32.inp", "cp2k"),
        ("python3 -m http.server", None),
    ],
)
def test_servers_and_other_programs_lead_to_the_study_that_ships(command, study):
    assert propose_knobs(shlex.split(command), {}).program.study == study


def test_two_files_to_write_are_a_mistake(tmp_path, run):
    ended = run("init", "mine.toml", "-o", "other.toml", "--", "ls")
    assert ended.returncode == 2
    assert "mine.toml and -o other.toml: give one file to write" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_word_with_its_own_value_is_no_option_of_the_next():
    # Its value may be a secret, and help texts and names of parameters are stored.
    assert [(knob.name, knob.where) for knob in propose_knobs(["./slow", "--token=abcdefghij", "4"], {}).knobs] == [
        ("number1", "an argument")
    ]
