"""Job scripts that run a study inside an allocation: their text and their behaviour."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.batch.pilot_job import PilotJob, pilot_form, pilot_script
from launchers.batch_systems.registry import find_batch_system
from launchers.batch_systems.system import WinnerRequest
from launchers.site import Site
from tests.support.command_line import invoke

ONE = PilotJob("qe", "/home/u/job.sh", "/home/u", "/venv/bin/python", ["qe", "--trials", "50"], walltime_s=5400)

SLURM_ONE = """\
#!/bin/bash -l
#SBATCH --job-name=autotune-qe
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:30:00
#SBATCH --output=autotune-qe-%j.log
# Written by `autotune pilot`. Submit it with: sbatch /home/u/job.sh
# If the study is not done when its time is over (exit code 7), it submits itself again.
script=/home/u/job.sh
cd /home/u || exit 5
set -u
asked=
trap 'asked=yes; kill -TERM "${!-}"' TERM INT
/venv/bin/python -P -m autotune study qe --trials 50 &
study=$!
wait "$study"; code=$?
while [ -n "$asked" ]; do
    asked=; wait "$study"; again=$?
    case $again in -1 | 127) ;; *) code=$again ;; esac
done
if [ "$code" = 7 ]; then
    sbatch "$script" && code=0
fi
exit "$code"
"""

SLURM_SEVERAL = """\
#!/bin/bash -l
#SBATCH --job-name=autotune-qe
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --no-kill
#SBATCH --time=01:30:00
#SBATCH --output=autotune-qe-%j.log
#SBATCH --account=a b
# Written by `autotune pilot`. Submit it with: sbatch /home/u/job.sh
# If the study is not done when its time is over (exit code 7), it submits itself again.
script=/home/u/job.sh
cd /home/u || exit 5
module load qe || exit 3
set -u
if [ "${1-}" = ray-node ]; then exec /venv/bin/python -P -m autotune.execution.ray_node "$2"; fi
meeting=$PWD/.autotune-ray-${SLURM_JOB_ID%%.*}
rm -rf "$meeting"; mkdir -m 700 "$meeting" || exit 5
end_ray() {
    touch "$meeting/stop"
    for _ in $(seq 150); do [ -n "$(jobs -rp)" ] || break; sleep 0.2; done
    kill -KILL $(jobs -rp) 2>/dev/null
    rm -rf "$meeting"
}
trap end_ray EXIT
unset RAY_AUTH_TOKEN; export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$meeting/token"
export SLURM_OVERLAP=1
/venv/bin/python -P -m autotune.execution.ray_node "$meeting" --head &
for host in $(scontrol show hostnames "$SLURM_JOB_NODELIST" | grep -vxF -- "$SLURMD_NODENAME"); do
    srun --overlap --mem=0 --nodes=1 --ntasks=1 --cpu-bind=none --no-kill --nodelist="$host" \\
        bash -l "$script" ray-node "$meeting" &
done
for _ in $(seq 600); do [ -s "$meeting/address" ] && break; sleep 0.2; done
[ -s "$meeting/address" ] || { echo "the Ray head did not start" >&2; exit 3; }
asked=
trap 'asked=yes; kill -TERM "${!-}"' TERM INT
/venv/bin/python -P -m autotune study qe --trials 50 --ray-address "$(cat "$meeting/address")" --ray-nodes 3 &
"""

PBS_SEVERAL = """\
#!/bin/bash -l
#PBS -N autotune-qe
#PBS -l select=2:ncpus=48:mpiprocs=48
#PBS -l place=scatter:excl
#PBS -l walltime=01:30:00
#PBS -j oe
#PBS -P jx00
# Written by `autotune pilot`. Submit it with: qsub /home/u/job.sh
# If the study is not done when its time is over (exit code 7), it submits itself again.
script=/home/u/job.sh
cd /home/u || exit 5
set -u
if [ "${1-}" = ray-node ]; then exec /venv/bin/python -P -m autotune.execution.ray_node "$2"; fi
meeting=$PWD/.autotune-ray-${PBS_JOBID%%.*}
"""

PBS_NODES = """\
/venv/bin/python -P -m autotune.execution.ray_node "$meeting" --head &
for host in $(awk 'NR == 1 { first = $0 } $0 != first && !seen[$0]++' "$PBS_NODEFILE"); do
    if command -v pbs_tmrsh >/dev/null; then
        pbs_tmrsh "$host" bash -l "$script" ray-node "$meeting" </dev/null &
    else
        ssh -o BatchMode=yes "$host" "$(printf '%q ' bash -l "$script" ray-node "$meeting")" </dev/null &
    fi
done
"""


def changed(**changes) -> PilotJob:
    return PilotJob(**{**vars(ONE), **changes})


def test_one_node():
    assert pilot_script("slurm", ONE) == SLURM_ONE


def test_several_nodes_under_slurm():
    script = pilot_script("slurm", changed(nodes=3, directives=["--account=a b"], setup=["module load qe"]))
    assert script == SLURM_SEVERAL + SLURM_ONE[SLURM_ONE.index("study=$!") :]


def test_several_nodes_under_pbs():
    script = pilot_script("pbs", changed(nodes=2, cores_per_node=48, directives=["-P jx00"]))
    assert script.startswith(PBS_SEVERAL)
    assert PBS_NODES in script
    assert script.endswith(SLURM_ONE[SLURM_ONE.index("study=$!") :].replace("sbatch", "qsub"))


def test_a_sites_own_way_to_ask_for_cores_takes_the_place_of_ours():
    script = pilot_script("pbs", changed(nodes=2, directives=["-l ncpus=96", "-l wd"]))
    assert "select" not in script
    assert "place" not in script
    with pytest.raises(ValueError, match="--cores-per-node"):
        pilot_script("pbs", changed(nodes=2, directives=["-l mem=4GB"]))


def test_a_kind_of_node_is_in_each_chunk_of_a_pilot_and_of_a_winner():
    site = Site("pbs", cores_per_node=48, queue="gpu", chunk=("model=sky",))
    pilot = pilot_script("pbs", changed(nodes=2, directives=pilot_form("pbs").directives(site, 2)))
    assert "#PBS -l select=2:ncpus=48:mpiprocs=48:model=sky\n#PBS -l place=scatter:excl\n" in pilot
    assert pilot.count("select=") == 1
    winner = find_batch_system("pbs").winner
    head = winner.head(WinnerRequest("best", 2, 96, 96, 0, 4000, 3600, site))
    assert "#PBS -l select=2:ncpus=48:mpiprocs=48:mem=4000MB:model=sky" in head
    assert "#PBS -l place=scatter" in head


def test_only_a_module_that_cannot_be_loaded_ends_the_job():
    setup = ["module load a/1 b", "ml qe", "export X=1", "module load a || module load b", "module list"]
    lines = pilot_script("slurm", changed(setup=setup)).splitlines()
    first = lines.index("module load a/1 b || exit 3")
    assert lines[first + 1 : first + 5] == ["ml qe || exit 3", *setup[2:]]


@pytest.mark.parametrize("where", ["script", "folder", "python"])
def test_what_has_two_lines_is_refused(where):
    with pytest.raises(ValueError, match="a line break or a NUL"):
        changed(**{where: "/a\n#SBATCH --account=other"})


@pytest.mark.parametrize(
    ("name", "job_name"), [("qe", "autotune-qe"), ("my study.v2", "autotune-my-stu"), ("ü" * 40, "autotune")]
)
def test_names_that_every_batch_system_takes(name, job_name):
    assert changed(name=name).job_name == job_name


# A stand-in for Python in the scripts: it acts as a node of Ray, or as a study that ends with a given code.
PYTHON = """#!/bin/bash
echo "$@" >>"$LOG"
case $3 in
autotune.execution.ray_node)
    [ "${5-}" = --head ] && { sleep 0.3; echo 10.0.0.1:6379 >"$4/address"; }
    until [ -e "$4/stop" ]; do sleep 0.05; done
    echo "ended $*" >>"$LOG" ;;
autotune)
    [ -z "${HANG-}" ] || { trap 'exit "$HANG"' TERM; touch "$LOG.hangs"; while :; do sleep 0.05; done; }
    exit "$CODE" ;;
esac
"""
RUNS = '#!/bin/bash\necho "$(basename "$0") $*" >>"$LOG"\nwhile [ "$1" != bash ]; do shift; done\nexec "$@"\n'
SAYS = '#!/bin/bash\necho "$(basename "$0") $*" >>"$LOG"\n'
REMOTE = '#!/bin/bash\necho "$(basename "$0") $*" >>"$LOG"\nwhile [ $# -gt 1 ]; do shift; done\neval "$1"\n'
# It passes its words to tm_spawn without a shell: src/cmds/pbs_tmrsh.c of OpenPBS.
TMRSH = """#!/bin/bash
echo "$(basename "$0") $*" >>"$LOG"
[ $# -ge 2 ] || { echo "usage: pbs_tmrsh [-n][-l username] host [-n][-l username] command" >&2; exit 255; }
[ -n "${PBS_ENVIRONMENT-}" ] || { echo "pbs_tmrsh: not executing under PBS" >&2; exit 255; }
grep -qxF -- "$1" "$PBS_NODEFILE" || { echo "pbs_tmrsh: host \\"$1\\" is not a node in job" >&2; exit 255; }
shift
exec "$@"
"""
HOSTILE = "it's a $HOME; (dir)"


class Job:
    """A script in a folder with a hostile name, and programs that only record how they were called."""

    def __init__(self, folder: Path, system: str, nodes: int) -> None:
        self.folder = folder / HOSTILE
        self.programs = folder / "bin"
        self.log = folder / "log"
        self.folder.mkdir()
        self.programs.mkdir()
        self._program("my python", PYTHON)
        for name in ("sbatch", "qsub"):
            self._program(name, SAYS)
        self._program("srun", RUNS)
        self._program("ssh", REMOTE)
        if system == "pbs-with-tmrsh":
            self._program("pbs_tmrsh", TMRSH)
        self._program("scontrol", "#!/bin/bash\nprintf '%s\\n' n1 n2 n3\n")
        (folder / "nodes").write_text("n1\nn1\nn2\nn2\nn3\n")
        self.script = self.folder / "job.sh"
        job = PilotJob(
            "qe",
            str(self.script),
            str(self.folder),
            str(self.programs / "my python"),
            ["./a study.toml", "--set", "x=$(exit 1)"],
            nodes=nodes,
            cores_per_node=2,
        )
        self.script.write_text(pilot_script(system.partition("-")[0], job))

    def start(self, **environment: str) -> "subprocess.Popen[bytes]":
        known = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "LOG": str(self.log),
            "SLURM_JOB_ID": "17",
            "SLURM_JOB_NODELIST": "n[1-3]",
            "SLURMD_NODENAME": "n1",
            "PBS_JOBID": "17.server",
            "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_NODEFILE": str(self.log.parent / "nodes"),
        }
        return subprocess.Popen(["bash", str(self.script)], env={**known, **environment})

    def asked_to_end(self, ended_with: int) -> int:
        """Ask the job to end while its study runs; the study exits with `code`. Return the exit code of the job."""
        process = self.start(HANG=str(ended_with), CODE="0")
        while not Path(f"{self.log}.hangs").exists():
            assert process.poll() is None
        process.terminate()
        return process.wait(30)

    def said(self) -> list[str]:
        return self.log.read_text().splitlines()

    def _program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)


@pytest.mark.parametrize(("system", "submit"), [("slurm", "sbatch"), ("pbs", "qsub")])
@pytest.mark.parametrize(("code", "ends"), [(0, 0), (3, 3), (7, 0), (130, 130)])
def test_the_script_goes_on_only_when_time_is_over(tmp_path, system, submit, code, ends):
    job = Job(tmp_path, system, nodes=1)
    assert job.start(CODE=str(code)).wait(30) == ends
    study = "-P -m autotune study ./a study.toml --set x=$(exit 1)"
    assert job.said() == [study, *([f"{submit} {job.script}"] if code == 7 else [])]


@pytest.mark.parametrize(("system", "start"), [("slurm", "srun"), ("pbs", "ssh"), ("pbs-with-tmrsh", "pbs_tmrsh")])
def test_nodes_are_started_once_a_host_and_ended_whatever_happens(tmp_path, system, start):
    job = Job(tmp_path, system, nodes=3)
    assert job.start(CODE="3").wait(60) == 3
    meeting = job.folder / ".autotune-ray-17"
    said = job.said()
    nodes = [line for line in said if line.startswith("-P -m autotune.execution.ray_node")]
    assert sorted(nodes) == [f"-P -m autotune.execution.ray_node {meeting}"] * 2 + [
        f"-P -m autotune.execution.ray_node {meeting} --head"
    ]
    assert len([line for line in said if line.startswith("ended")]) == 3
    started = [line for line in said if line.startswith(start)]
    assert len(started) == 2
    assert all(any(host in line for line in started) for host in ("n2", "n3"))
    assert any("--ray-address 10.0.0.1:6379 --ray-nodes 3" in line for line in said)
    assert not meeting.exists()


def test_a_job_that_is_asked_to_end_asks_the_study_and_ends_ray(tmp_path):
    job = Job(tmp_path, "slurm", nodes=2)
    assert job.asked_to_end(130) == 130
    assert any(line.startswith("ended") for line in job.said())


def test_a_job_that_is_asked_to_end_submits_itself_again_for_the_rest_of_the_study(tmp_path):
    job = Job(tmp_path, "slurm", nodes=1)
    assert job.asked_to_end(7) == 0
    assert job.said()[-1] == f"sbatch {job.script}"


def test_the_command_writes_a_script_and_reads_the_options_of_study_now(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = invoke("pilot", "qe", "--trials", "50", "--nodes", "2", "--walltime", "90m", "--workers", "4")
    assert written.exit_code == 0
    assert "sbatch autotune-job.sh" in written.output
    script = (tmp_path / "autotune-job.sh").read_text()
    assert f"{sys.executable} -P -m autotune study qe --trials 50 --workers 4 --ray-address" in script
    assert "--time=01:30:00" in script
    assert f"cd {tmp_path}" in script
    wrong = invoke("pilot", "qe", "--trails", "50")
    assert wrong.exit_code == 2
    assert "--trials" in wrong.output
    assert "verdict.pairs" in str(invoke("pilot", "qe", "--set", "verdict.pairs=none").exception)
    assert "sets this itself" in str(invoke("pilot", "qe", "--ray-address=a:1").exception)
