"""`./run` as far as it changes the system: only where it may, and never where the user forbids it."""

import re
import subprocess
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


def test_it_says_how_to_prevent_what_it_installs():
    assert "AUTOTUNE_NO_SYSTEM=1 prevents that" in function("apt_install")
