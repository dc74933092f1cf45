"""The wheel holds what a checkout holds, and works where nothing else is installed."""

import os
import subprocess
import sys
import zipfile

import pytest

from tests.docs.page import Page
from tests.support.structure import PACKAGES, ROOT

BUILD = "from hatchling.build import build_{0}; import sys; print(build_{0}(sys.argv[1]))"


def built(kind, folder):
    """Build the wheel or the sdist of this checkout."""
    words = [sys.executable, "-c", BUILD.format(kind), folder]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages_and_the_licence(wheel):
    own = {
        os.fspath(path.relative_to(ROOT))
        for package in (*PACKAGES, "studies")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    described = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert names - described == own
    assert {f"{package}/py.typed" for package in PACKAGES} <= own
    assert {name.partition("/")[2] for name in described} >= {"METADATA", "entry_points.txt", "licenses/LICENSE"}


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.cores(1)
def test_the_wheel_works_in_an_environment_of_its_own(wheel, tmp_path):
    python, work = tmp_path / "venv" / "bin" / "python", tmp_path / "work"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if subprocess.run([*pip, "twine"], check=False).returncode:
        pytest.skip("no network")
    checked = [wheel, built("sdist", tmp_path)]
    subprocess.run([python, "-m", "twine", "check", "--strict", *checked], check=True)
    subprocess.run([*pip, wheel], check=True)

    work.mkdir()
    tutorial = next(block for block in Page.read("docs/tutorial.md").blocks if "file" in block.attributes)
    (work / tutorial.attributes["file"]).write_text(tutorial.text)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def autotune(*words):
        words = [python.with_name("autotune"), *words]
        return subprocess.run(words, cwd=work, env=environment, check=True, capture_output=True, text=True).stdout

    assert "as fast as" in autotune("compare", "--runs", "3", "--", "true", "--", "sleep", "0.05")
    autotune("study", f"./{tutorial.attributes['file']}", "--trials", "4")
    assert "trial" in autotune("best", tutorial.attributes["file"].removesuffix(".toml"))
