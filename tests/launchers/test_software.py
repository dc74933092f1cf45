"""Software from modules, Spack and images: its changes, its identity, and what a job gets of it."""

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.execution.task import describe_job
from autotune.studyfile.software import load_software
from launchers import Job, JobState, MpiStart, Resources
from launchers.batch import BatchLauncher
from launchers.batch_systems.registry import find_batch_system
from launchers.local import LocalLauncher
from launchers.mpi import MpiFlavour
from launchers.mpi.intel_mpi import INTEL_MPI
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.mpi.srun import SRUN
from launchers.run import run
from launchers.site import Site
from launchers.software import modules, spack
from launchers.software.changes import Changes
from launchers.software.containers import RUNTIMES, Container, image_digest
from launchers.software.loading import load
from launchers.software.software import LoadedSoftware, Software, SoftwareError
from objectives.software import with_software
from tests.support.fakes import study_file

LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")

MODULE = """#%Module1.0
prepend-path PATH {bin}
setenv SOLVER_HOME {bin}
setenv SAID {{it's "so" \\ done}}
unsetenv EDITOR
set-alias s {{solver -v}}
"""

# Printed by Environment Modules 5.2 and Lmod 8.6.
PRINTED = {
    "modules": r"""import os
os.environ['PATH'] = '/opt/solver:/usr/bin'
os.environ['SAID'] = 'it\'s "so" \ done'
os.environ['EDITOR'] = ''
del os.environ['EDITOR']
_mlstatus = True
""",
    "lmod": r"""import os
os.environ["EDITOR"] = ''
del os.environ["EDITOR"]
os.environ["PATH"] = "/opt/solver:/usr/bin";
os.environ["SAID"] = "it's \"so\" \\ done";
_mlstatus = True
""",
}

NAMES = st.sampled_from(["PATH", "A", "B", "C"])
CHANGES = st.builds(
    lambda variables, unset: Changes(variables, frozenset(unset - variables.keys())),
    st.dictionaries(NAMES, st.sampled_from(["1", "2"])),
    st.sets(NAMES),
)


@given(CHANGES, CHANGES, st.dictionaries(NAMES, st.just("0")))
def test_changes_combine_in_order(first, second, environment):
    assert first.then(second).apply_to(environment) == second.apply_to(first.apply_to(environment))


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
def test_module_output_is_parsed_not_run(printed):
    changes = modules.parse_statements(printed)
    assert changes == Changes({"PATH": "/opt/solver:/usr/bin", "SAID": 'it\'s "so" \\ done'}, frozenset({"EDITOR"}))


@pytest.mark.parametrize(
    "printed", ["_mlstatus = False\n", "export PATH=/opt\nthis is a shell's", "False\n_mlstatus = False"]
)
def test_module_command_that_failed_changes_nothing(printed):
    assert modules.parse_statements(printed) is None


def test_code_that_a_module_command_prints_is_ignored():
    changes = modules.parse_statements(
        "os.system('touch /gone')\nos.environ['A'] = '1'\nos.environ['B'] = open('x').read()\n"
    )
    assert changes == Changes({"A": "1"})


def test_spack_output_is_parsed_not_run():
    printed = (
        "export PATH=\"/a b:/c\";\nexport X='1';\nunset Y;\nrm -rf /;\nexport BAD-NAME=1;\nexport Q=unfinished';\n"
    )
    assert spack.parse_exports(printed) == Changes({"PATH": "/a b:/c", "X": "1"}, frozenset({"Y"}))


@pytest.fixture
def modulefiles(tmp_path):
    """Return an environment with a module `solver/2.1`, whose program prints its version."""
    folder = tmp_path / "bin"
    program(folder / "solver", 'echo "solver 2.1 of $SOLVER_HOME"')
    module = tmp_path / "modulefiles" / "solver" / "2.1"
    module.parent.mkdir(parents=True)
    module.write_text(MODULE.format(bin=folder))
    own = {
        "PATH": os.environ["PATH"],
        "MODULEPATH": str(tmp_path / "modulefiles"),
        "EDITOR": "vi",
        "HOME": str(tmp_path),
    }
    return own, module


def program(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def module_commands():
    """Return the real module commands of this machine, as variables that select each."""
    tcl = [{"MODULESHOME": str(path.parent)} for path in Path("/usr/lib").glob("*/modulecmd.tcl")]
    return [{"LMOD_CMD": str(LMOD)}] * LMOD.is_file() + tcl


@pytest.mark.slow
@pytest.mark.parametrize("command", module_commands(), ids=lambda command: next(iter(command)))
def test_real_module_gives_its_programs_variables_and_identity(modulefiles, command):
    caller, module = modulefiles
    caller |= command
    loaded = load(Software(modules=("solver/2.1",)), caller)
    environment = loaded.changes.apply_to(caller)
    assert shutil.which("solver", path=environment["PATH"])
    assert environment["SAID"] == 'it\'s "so" \\ done'
    assert "EDITOR" not in environment
    assert loaded.script == ("module load solver/2.1 || exit 1",)
    before = loaded.identity["modules"]
    assert before.startswith("solver/2.1 ")
    module.write_text(module.read_text() + "setenv MORE 1\n")
    assert load(Software(modules=("solver/2.1",)), caller).identity["modules"] != before
    assert caller["EDITOR"] == "vi"
    with pytest.raises(SoftwareError, match=r"module load solver/3: .*solver/3.*module avail"):
        load(Software(modules=("solver/3",)), caller)


@pytest.mark.slow
@pytest.mark.parametrize("command", module_commands(), ids=lambda command: next(iter(command)))
@pytest.mark.parametrize("name", ["solver/2.1", "solver"])
def test_module_loaded_already_gives_the_same_environment(modulefiles, command, name):
    caller = modulefiles[0] | command
    wanted = Software(modules=(name,))
    clean = load(wanted, caller)
    again = load(wanted, clean.changes.apply_to(caller))
    assert again.identity == clean.identity
    for variable in ("PATH", "SOLVER_HOME", "SAID"):
        assert again.changes.variables[variable] == clean.changes.variables[variable]


def test_missing_module_command_is_reported_with_a_remedy(monkeypatch):
    monkeypatch.setattr(modules, "module_command", lambda environment: None)
    with pytest.raises(SoftwareError, match="no module command"):
        load(Software(modules=("gcc",)), {"PATH": "/usr/bin"})


SPACK = """
case "$*" in
  "find --format {name}@{version}/{hash} solver@2 +mpi") echo solver@2.1/abcdefg ;;
  "load --sh solver@2 +mpi") echo "export PATH='$HERE/bin:/usr/bin';"; echo "export SPACK_LOADED_HASHES='abcdefg';" ;;
  "env activate --sh prod") echo "export SPACK_ENV='$HERE';" ;;
  "location --env prod") echo "$HERE" ;;
  *) echo "==> Error: unknown: $*" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def with_spack(tmp_path):
    program(tmp_path / "spack" / "spack", SPACK)
    (tmp_path / "spack.lock").write_text("{}")
    return {"PATH": f"{tmp_path / 'spack'}:/usr/bin:/bin", "HERE": str(tmp_path)}


def test_spack_package_is_identified_by_its_hash(with_spack, tmp_path):
    loaded = load(Software(spack=("solver@2 +mpi",)), with_spack)
    assert loaded.changes.variables["PATH"] == f"{tmp_path}/bin:/usr/bin"
    assert loaded.identity == {"spack solver@2 +mpi": "solver@2.1/abcdefg"}
    assert loaded.script == ("loaded=\"$(spack load --sh 'solver@2 +mpi')\" || exit 1", 'eval "$loaded"')


def test_spack_environment_is_identified_by_its_lock_file(with_spack, tmp_path):
    identity = load(Software(spack_environment="prod"), with_spack).identity["spack environment"]
    (tmp_path / "spack.lock").write_text('{"roots": []}')
    assert load(Software(spack_environment="prod"), with_spack).identity["spack environment"] != identity


def test_unknown_spack_package_is_reported_in_spacks_words(with_spack):
    with pytest.raises(SoftwareError, match=r"Error: unknown: find .* nothing \(spack find"):
        load(Software(spack=("nothing",)), with_spack)
    with pytest.raises(SoftwareError, match="no `spack` on the search path"):
        load(Software(spack=("nothing",)), {"PATH": "/nowhere"})


def test_image_is_identified_by_its_content(tmp_path):
    image = tmp_path / "solver.sif"
    image.write_bytes(b"one")
    before = image_digest(str(image))
    image.write_bytes(b"two")
    assert image_digest(str(image)) != before
    folder = tmp_path / "image"
    program(folder / "bin" / "solver", "true")
    before = image_digest(str(folder))
    assert image_digest(str(folder)) == before
    program(folder / "bin" / "solver", "false # another")
    assert image_digest(str(folder)) != before


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("/nowhere/solver.sif", "there is no image /nowhere/solver.sif"),
        ("docker://solver:latest", "name its digest"),
    ],
)
def test_missing_or_mutable_image_is_refused(monkeypatch, tmp_path, image, said):
    program(tmp_path / "apptainer", "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SoftwareError, match=said):
        load(Software(container=image))
    with pytest.raises(SoftwareError, match="ch-run is not on the search path"):
        load(Software(container=image, runtime="ch-run"))


def test_registry_image_is_identified_by_the_digest_in_its_address(monkeypatch, tmp_path):
    program(tmp_path / "apptainer", "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    loaded = load(Software(container="docker://solver@sha256:0123"))
    assert loaded.identity == {"image": "solver@sha256:0123 sha256:0123 (apptainer)"}


def test_each_runtime_is_in_the_run_folder_and_ends_its_own_options(tmp_path):
    for runtime in RUNTIMES:
        words = Container("/x.sif", f"/usr/bin/{runtime.name}", runtime).command(tmp_path)
        assert words[0] == f"/usr/bin/{runtime.name}"
        assert any(str(tmp_path) in word for word in words)
        assert words[-1] in {"/x.sif", "--"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ch-run") is None, reason="no ch-run (apt-get install charliecloud)")
def test_program_inside_a_real_image_writes_into_the_run_folder(tmp_path):
    image = tmp_path / "image"
    for name in ("dev", "etc", "proc", "sys", "tmp", "bin", "lib", "lib64", "usr", "root", "home", "run", "mnt", "var"):
        (image / name).mkdir(parents=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (image / "etc" / name).touch()
    copy_with_libraries("/bin/sh", image)
    software = load(Software(container=str(image), runtime="ch-run"))
    folder = tmp_path / "run"
    folder.mkdir()
    argv = software.command(("/bin/sh", "-c", 'echo "$GREETING" > here; pwd'), folder)
    job = Job(argv, folder, environment={"GREETING": "hello", **software.variables})
    status = run(LocalLauncher(), job)
    assert (status.state, status.exit_code) == (JobState.ENDED, 0), (folder / "stderr").read_text()
    assert (folder / "here").read_text() == "hello\n"


def copy_with_libraries(file, image):
    from objectives.linked_libraries import find_linked_libraries  # noqa: PLC0415

    loader = next(Path("/lib64").glob("ld-linux*"), None)
    libraries = [path for path in find_linked_libraries(Path(file)).values() if path]
    for path in filter(None, [Path(file), loader, *libraries]):
        target = image / str(path).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path.resolve(), target)


def test_build_folders_come_first_on_the_search_path(tmp_path, monkeypatch):
    program(tmp_path / "it's mine" / "solver", "echo own $SOLVER_MODE $LD_LIBRARY_PATH")
    (tmp_path / "lib").mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/site")
    build = load(
        Software(
            programs=(str(tmp_path / "it's mine"),),
            libraries=(str(tmp_path / "lib"),),
            variables={"SOLVER_MODE": "a b"},
        )
    )
    folder = tmp_path / "run"
    folder.mkdir()
    assert run(LocalLauncher(), Job(("solver",), folder, software=build)).exit_code == 0
    assert (folder / "stdout").read_text() == f"own a b {tmp_path / 'lib'}:/site\n"
    text = "\n".join([*build.script, "solver"])
    said = subprocess.run(["sh", "-euc", text], capture_output=True, text=True, check=True).stdout
    assert said == f"own a b {tmp_path / 'lib'}:/site\n"


def test_rebuilt_library_changes_the_identity(tmp_path):
    library = tmp_path / "libsolve.so.1"
    library.write_bytes(b"old")
    (tmp_path / "README").write_text("old")
    before, same = (load(Software(libraries=(str(tmp_path),))).identity for _ in range(2))
    (tmp_path / "README").write_text("new")
    still = load(Software(libraries=(str(tmp_path),))).identity
    library.write_bytes(b"new")
    assert before == same == still != load(Software(libraries=(str(tmp_path),))).identity


@pytest.mark.parametrize("secret", ["hunt2", "pa'ssword1", "correct-horse"])
def test_secret_of_a_software_reaches_the_program_and_nothing_else(tmp_path, secret):
    own = {"environment": {"DB_PASSWORD": secret, "LEVEL": "3"}}
    loaded, errors = load_software(study_file(objective="command", software={"own": own}))
    assert errors == []
    software = loaded["own"]
    assert software.identity["DB_PASSWORD"] == "***"
    job = with_software(Job(("printenv", "DB_PASSWORD", "LEVEL"), tmp_path), software)
    launcher = LocalLauncher()
    run(launcher, job)
    assert (tmp_path / "stdout").read_text() == f"{secret}\n3\n"
    (tmp_path / "stdout").unlink()
    site = BatchLauncher(find_batch_system("slurm").scheduler, Site("slurm"))
    said = (launcher.preview(job), site.preview(job), json.dumps(describe_job(job)))
    assert not any(secret in text or shlex.quote(secret) in text for text in said)
    assert "export LEVEL=3" in said[0]


INTEL = MpiFlavour(INTEL_MPI, (2021, 9), "/opt/intel/bin/mpirun")


@pytest.mark.parametrize(
    ("own", "brought", "command", "kind"),
    [
        (MpiFlavour(OPEN_MPI, (4, 1, 2)), INTEL, "mpirun -n 8 solve", "Intel MPI"),
        (MpiFlavour(SRUN, (), "srun"), INTEL, "srun --nodes=1 --ntasks=8", "Slurm srun"),
        (MpiFlavour(OPEN_MPI, (4, 1, 2)), None, "mpirun -np 8 solve", "Open MPI"),
    ],
)
def test_ranks_on_a_site_are_started_by_what_is_recorded(tmp_path, own, brought, command, kind):
    software = LoadedSoftware(mpi=brought)
    job = Job(("solve",), tmp_path, mpi=MpiStart(8), resources=Resources(cores=8), software=software)
    launcher = BatchLauncher(find_batch_system("slurm").scheduler, Site("slurm", mpi=own, cores_per_node=8))
    assert " ".join(launcher.command(job)).startswith(command)
    assert describe_job(job, launcher.flavour, on_site=True)["flavour"]["kind"] == kind


def test_missing_build_folder_is_reported(tmp_path):
    with pytest.raises(SoftwareError, match=r"there is no folder .*gone of libraries"):
        load(Software(libraries=(str(tmp_path / "gone"),)))


def test_job_sees_the_variables_that_its_software_sets_and_not_those_it_removes(tmp_path, monkeypatch):
    monkeypatch.setenv("MODULE_LEFT", "1")
    software = LoadedSoftware(Changes({"SOLVER_HOME": "/opt", "A": "software"}, frozenset({"MODULE_LEFT"})))
    show = "import os; print(os.environ.get('SOLVER_HOME'), os.environ.get('MODULE_LEFT'), os.environ['A'])"
    job = Job((sys.executable, "-c", show), tmp_path, environment={"A": "own"}, software=software)
    assert run(LocalLauncher(), job).exit_code == 0
    assert (tmp_path / "stdout").read_text() == "/opt None own\n"


def test_program_is_found_on_the_search_path_of_its_software(tmp_path):
    program(tmp_path / "bin" / "solver-of-a-module", "echo from the module")
    software = LoadedSoftware(Changes({"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}))
    folder = tmp_path / "run"
    folder.mkdir()
    assert run(LocalLauncher(), Job(("solver-of-a-module",), folder, software=software)).exit_code == 0
    assert (folder / "stdout").read_text() == "from the module\n"
