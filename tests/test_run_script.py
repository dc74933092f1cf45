"""`./run` changes the system only if it may, and fetches nothing that a bundle or an earlier call has brought."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.structure import PACKAGES

RUN = Path(__file__).parent.parent / "run"
REQUIREMENTS = RUN.parent / "requirements"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def function(name):
    """Return one of the script's functions."""
    return re.search(rf"^{name}\(\) \{{.*?^\}}", RUN.read_text(), re.MULTILINE | re.DOTALL)[0]


@pytest.mark.parametrize(("forbidden", "code"), [("", 0), ("1", 1)])
def test_system_packages_are_installed_unless_the_user_forbids_it(tmp_path, forbidden, code):
    for tool, body in {"apt-get": "exit 0", "id": "echo 0"}.items():
        (tmp_path / tool).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / tool).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "AUTOTUNE_NO_SYSTEM": forbidden}
    done = subprocess.run(["sh", "-uc", f"{function('can_install')}\ncan_install"], env=environment, check=False)
    assert done.returncode == code


def test_root_is_used_in_two_functions():
    lines = re.findall(r"^[^#\n]*\bsudo\b.*$", RUN.read_text(), re.MULTILINE)
    assert [any(line in function(name) for name in ("as_root", "can_install")) for line in lines] == [True, True]


def test_no_python_of_it_imports_from_the_current_folder(tmp_path):
    for name in ("ensurepip", "venv"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w').close()\n")
    words = ["sh", "-euc", f"bundle_python=\n{function('serves')}\n{function('find_python')}\nfind_python"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=True).stdout
    assert not (tmp_path / "imported").exists()
    options = re.findall(r'python" (-[\w-]+)', RUN.read_text())
    assert set(options) == {"-P", "--version"}


def test_comparing_commands_looks_for_no_program_of_a_study(tmp_path):
    venv, root = tmp_path / "venv", RUN.parent
    (venv / "bin").mkdir(parents=True)
    for tool, code in {"bin/autotune": 0, "bin/dpkg": 1}.items():
        (venv / tool).write_text(f"#!/bin/sh\nexit {code}\n")
        (venv / tool).chmod(0o755)
    made = f'{{ echo "{root} {venv} 1"; cd {root} && cat run pyproject.toml requirements/run.lock; }} | cksum'
    (venv / ".ready").write_bytes(subprocess.run(["sh", "-c", made], capture_output=True, check=True).stdout)
    environment = {"PATH": f"{venv}/bin:/usr/bin:/bin", "AUTOTUNE_VENV": str(venv), "AUTOTUNE_NO_SYSTEM": "1"}
    for words in (["compare", "--", "true", "--", "true"], ["study", "mine"]):
        assert not (venv / ".ready-programs").exists()
        subprocess.run([RUN, *words], cwd=tmp_path, env=environment, check=True)
    assert (venv / ".ready-programs").exists()


def test_it_says_how_to_prevent_what_it_installs():
    assert "AUTOTUNE_NO_SYSTEM=1 prevents that" in function("apt_install")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "-n 3"),
        (["-m", "not slow", "--durations=20"], "-n 3"),
        (["-n", "2"], ""),
        (["-n2"], ""),
        (["-x", "tests/spaces"], ""),
        (["-p", "no:xdist"], ""),
        (["--pdb"], ""),
    ],
)
def test_all_tests_go_on_in_three_processes_whatever_else_is_asked_of_them(words, said):
    script = f'{function("processes")}\nprocesses "$@"'
    done = subprocess.run(["sh", "-euc", script, "sh", *words], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said


@pytest.mark.parametrize(
    ("listed", "said"), [("a==1 --hash=sha256:0", "checked by hashes"), ("a==1", "without hashes")]
)
def test_a_python_of_a_studys_own_is_made_once_and_says_whether_hashes_are_checked(tmp_path, listed, said):
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\n[ "$3" != venv ] || { mkdir -p "$5/bin" && cp "$0" "$5/bin/python"; }\n')
    python.chmod(0o755)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "mine.txt").write_text(f"{listed}\n")
    set_up = f"root={tmp_path} venv={tmp_path}/venv\nsay() {{ printf '%s\\n' \"$*\" >&2; }}\n{function('own_python')}\n"
    words = ["sh", "-euc", f"{set_up}own_python mine 'a package' 'without it'"]
    first, second = (subprocess.run(words, capture_output=True, text=True, check=True) for _ in range(2))
    assert f"installing a package into {tmp_path}/venv/share/autotune/mine: exact versions, {said}" in first.stderr
    assert second.stderr == ""


def test_a_python_finds_what_is_installed_for_another_after_its_own(tmp_path):
    for name, packages in {"inference": ("both",), "torch": ("both", "only_there")}.items():
        own = tmp_path / "venv" / "share" / "autotune" / name
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
        (folder,) = own.glob("lib/python3*/site-packages")
        for package in packages:
            (folder / f"{package}.py").write_text(f"of = {name!r}\n")
    script = f"venv={tmp_path}/venv\n{function('finds_packages_of')}\nfinds_packages_of inference torch"
    subprocess.run(["sh", "-euc", script], check=True)
    words = ["import both, only_there; print(both.of, only_there.of)"]
    for name, found in {"inference": "inference torch", "torch": "torch torch"}.items():
        python = tmp_path / "venv" / "share" / "autotune" / name / "bin" / "python"
        said = subprocess.run([python, "-c", *words], capture_output=True, text=True, check=True).stdout
        assert said.split() == found.split()


def locked(text):
    """Return the packages of a lock: name, version, condition."""
    return re.findall(r"^([\w.-]+)==(\S+)( ; .*)? \\$", text, re.MULTILINE)


@pytest.mark.parametrize("version", ["3.11", "3.14"])
def test_a_bundle_holds_one_version_of_each_package_the_one_for_its_python(version):
    script = f'{function("lock_for")}\nlock_for "$@"'
    words = ["sh", "-euc", script, "sh", sys.executable, version, REQUIREMENTS / "run.lock"]
    found = locked(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    names = [name for name, _, _ in found]
    assert len(names) == len(set(names))
    assert {"numpy", "ray", "optuna"} <= set(names)
    assert not {"pywin32", "colorama"} & set(names)
    later = {
        name: number
        for name, number, marker in locked((REQUIREMENTS / "run.lock").read_text())
        if ">= '3.12'" in marker
    }
    assert ({name: number for name, number, _ in found}["numpy"] == later["numpy"]) is (version == "3.14")
    assert not any(marker for _, _, marker in found)


def test_the_light_packages_are_some_of_all_in_the_same_versions():
    table = tomllib.loads((RUN.parent / "pyproject.toml").read_text())
    assert set(table["dependency-groups"]["light"]) < set(table["project"]["dependencies"])
    assert set(locked((REQUIREMENTS / "light.lock").read_text())) < set(locked((REQUIREMENTS / "run.lock").read_text()))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (None, "is no bundle: make one where there is a network"),
        (f"{HERE} other requirements/run.lock", f"is for other, this machine is {platform.machine()}"),
        (f"2.7 {platform.machine()} requirements/run.lock", "is for Python 2.7, which is not here"),
    ],
)
def test_a_bundle_of_another_machine_is_refused_before_anything_changes(tmp_path, target, said):
    if target is not None:
        (tmp_path / "target").write_text(f"{target}\n")
    environment = {**os.environ, "AUTOTUNE_VENV": f"{tmp_path}/venv"}
    words = ["sh", RUN, "--from", tmp_path]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 3
    assert said in ended.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"target"}


@pytest.mark.parametrize(
    "words", [[], ["--python", "3.12"], ["f", "--python", "3.10"], ["f", "--arch", "arm"], ["f", "--arch"]]
)
def test_a_bundle_of_a_python_or_machine_that_is_not_supported_is_refused(tmp_path, words):
    ended = subprocess.run(["sh", RUN, "--bundle", *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 3
    assert "./run --bundle FOLDER [--python 3.12] [--arch aarch64]" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root can take the network away")
def test_a_machine_without_network_is_made_ready_from_a_bundle(tmp_path):
    for name in ("run", "pyproject.toml", "README.md", "LICENSE", "requirements", *PACKAGES, "studies"):
        copy = shutil.copytree if (RUN.parent / name).is_dir() else shutil.copy
        copy(RUN.parent / name, tmp_path / name)
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "AUTOTUNE_VENV"}}
    run = tmp_path / "run"
    if subprocess.run(
        [run, "--bundle", "bundle"], cwd=tmp_path, env=environment | {"AUTOTUNE_LIGHT": "1"}, check=False
    ).returncode:
        pytest.skip("no network")
    alone = ["unshare", "--net", run]
    subprocess.run([*alone, "--from", "bundle"], cwd=tmp_path, env=environment, check=True)
    words = [*alone, "compare", "--runs", "2", "--", "true", "--", "sleep", "0.05"]
    said = subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout
    assert "as fast as" in said
