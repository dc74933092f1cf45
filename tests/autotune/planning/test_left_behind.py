"""A file that a command names and that lies here is missed when no run would find it."""

from pathlib import Path

from autotune.planning.left_behind import left_behind
from launchers import Job


def warnings(job: Job, *folders: Path) -> list[str]:
    return [text.partition(" lies in ")[0] for text in left_behind(job, folders)]


def test_a_relative_file_that_will_not_be_in_the_folder_of_a_run(tmp_path):
    run, here, beside = (tmp_path / name for name in ("run", "here", "beside"))
    for folder in (run, here, beside):
        folder.mkdir()
    for name in ("topol.tpr", "in.mine", "main.c", "solve", "written"):
        (here / name).write_text("")
    (beside / "data.al").write_text("")
    (run / "in.mine").write_text("")
    words = ("solve", "-s", "topol.tpr", "--data=data.al", "in.mine", str(here / "main.c"), "nowhere", "-v", "x" * 400)
    (text, _) = left_behind(Job(words, run), [here, beside])
    assert f"topol.tpr lies in {here}" in text
    assert "[[options.files]] with name = 'topol.tpr' and copy = 'topol.tpr'" in text
    assert warnings(Job(words, run), here, beside) == ["topol.tpr", "data.al"]
    compiled = Job(("./solve", "written", "solve"), run, prepare=(("cc", "-o", "solve", "main.c"), ("gen", "written")))
    assert warnings(compiled, here) == ["main.c", "written"]
    assert warnings(Job(("solve", "-o", "written"), run), here) == []
