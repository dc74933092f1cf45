import os
import stat
import subprocess

import pytest

from autotune.execution.run_folder import fresh_folder, only_ours


def test_who_still_writes_into_a_runs_folder_does_not_disturb_the_next(tmp_path):
    folder = fresh_folder(tmp_path / "runs" / "00003")
    with (folder / "stdout").open("w") as left_over:
        again = fresh_folder(folder)
        left_over.write("from a host that was cut off")
        left_over.flush()
        assert again == folder
        assert list(again.iterdir()) == []
    assert [entry.name for entry in again.parent.iterdir()] == ["00003"]


@pytest.mark.parametrize(
    ("umask", "parent", "modes"),
    [
        (0o000, 0o755, (0o755, 0o644)),
        (0o002, 0o775, (0o755, 0o644)),
        (0o077, 0o775, (0o700, 0o600)),
        (0o002, 0o2775, (0o2775, 0o664)),
        (0o000, 0o2775, (0o2775, 0o664)),
        (0o022, 0o2775, (0o2755, 0o644)),
        (0o002, 0o2755, (0o2755, 0o644)),
    ],
)
def test_nobody_else_changes_what_a_session_makes(tmp_path, umask, parent, modes):
    tmp_path.chmod(parent)
    before = os.umask(umask)
    try:
        with only_ours(tmp_path / "runs" / "mine"):
            made = fresh_folder(tmp_path / "runs" / "mine" / "00001")
            (made / "input").write_text("1")
            subprocess.run(["touch", made / "output"], check=True)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    for folder in (made, made.parent, made.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == modes[0]
    assert {stat.S_IMODE((made / name).stat().st_mode) for name in ("input", "output")} == {modes[1]}
