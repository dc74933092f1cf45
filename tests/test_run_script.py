"""`./run` changes the system only if it may, and never if the user forbids it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / "run"


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


def test_no_python_of_it_imports_from_the_current_folder(tmp_path):
    for name in ("ensurepip", "venv"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w').close()\n")
    words = ["sh", "-euc", f"{function('find_python')}\nfind_python"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=True).stdout
    assert not (tmp_path / "imported").exists()
    options = re.findall(r'python" (-[\w-]+)', RUN.read_text())
    assert set(options) == {"-P", "--version"}


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
