"""The command `autotune report`."""

import errno
import json
import os

import pytest

from autotune.cli.commands import report as command
from autotune.statistics.verdict import Verdict
from autotune.storage.readable_study import VERDICT
from tests.support.command_line import invoke
from tests.support.contests import DEFAULT, WINNER, add, new_store


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOTUNE_STORAGE", raising=False)
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), ({"np": 2}, 1.5), (WINNER, 0.8))
    return store


def report(*words, code=0):
    found = invoke("report", *words)
    assert found.exit_code == code, (found.output, found.exception)
    return found


@pytest.mark.slow
def test_html_goes_to_a_file_here_and_the_others_to_the_output(study, tmp_path):
    found = report("paper")
    assert found.stdout == ""
    assert "report: paper.html" in found.stderr
    assert (tmp_path / "paper.html").read_text().startswith("<!DOCTYPE html>")
    assert report("paper", "--format", "md").stdout.startswith("# Study paper\n")
    assert json.loads(report("paper", "--format", "json").stdout)["study"] == "paper"
    assert report("paper", "--output", "-").stdout == (tmp_path / "paper.html").read_text()
    assert [path.name for path in tmp_path.iterdir() if "autotune.db" not in path.name] == ["paper.html"]


@pytest.mark.slow
def test_pictures_are_drawn_beside_and_markdown_shows_them(study, tmp_path):
    (tmp_path / "out").mkdir()
    report("paper", "--format", "md", "-o", "out/report.md", "--png", "pictures")
    said = (tmp_path / "out/report.md").read_text()
    assert "![Best so far](<../pictures/progress.png>)" in said
    assert (tmp_path / "pictures/progress.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_study_is_an_error_of_the_storage(study):
    found = invoke("report", "nobody")
    assert "no study 'nobody'" in str(found.exception)


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_named(study, tmp_path):
    (tmp_path / "file").write_text("")
    found = report("paper", "-o", "file/report.html", code=2)
    assert "file/report.html" in found.output.replace("\n", "")


@pytest.mark.slow
def test_a_full_disk_leaves_what_was_there_before_and_no_half_file(study, tmp_path, monkeypatch):
    (tmp_path / "paper.html").write_text("before")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(command.os, "fsync", full)
    assert "No space left" in report("paper", code=2).output
    assert (tmp_path / "paper.html").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if "autotune.db" not in path.name] == ["paper.html"]


@pytest.mark.slow
def test_a_pdf_is_all_that_is_written(study, tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.report.printing.to_pdf", lambda html: f"%PDF {html[:15]}".encode())
    assert "report: paper.pdf" in report("paper", "--pdf", "paper.pdf").stderr
    assert (tmp_path / "paper.pdf").read_bytes() == b"%PDF <!DOCTYPE html>"
    assert not (tmp_path / "paper.html").exists()
    report("paper", "--pdf", "paper.pdf", "-o", "both.html")
    assert (tmp_path / "both.html").exists()
    assert "name another file" in " ".join(report("paper", "--pdf", "none/paper.pdf", code=2).output.split())


@pytest.fixture
def others(study, tmp_path):
    for name, times in (("two", 2.0), ("eight", 8.0)):
        store = new_store(tmp_path, name=name)
        add(store, (DEFAULT, times), (WINNER, 1.0))
        store.set_attribute(VERDICT, Verdict(1, (1,), 1, 0.95, 0.05, ((times, 1.0),) * 6).to_dict())


def test_several_studies_are_one_table_with_the_mean_of_their_speed_ups(others, tmp_path):
    told = json.loads(report("two", "eight", "paper", "--format", "json").stdout)
    assert told["studies"] == ["two", "eight", "paper"]
    assert told["summary"]["speed_up"]["ratio"] == pytest.approx(4.0)
    said = report("two", "eight", "paper", "--format", "md").stdout
    assert said.startswith("# Studies two, eight and paper\n")
    assert "4.000 times as fast as the default configurations" in said
    assert "| paper | not in the mean | not confirmed yet |" in said
    assert "report: studies.html" in report("two", "eight").stderr
    assert "<h1>Studies two and eight</h1>" in (tmp_path / "studies.html").read_text()


def test_several_studies_have_a_score_against_references(others, tmp_path):
    (tmp_path / "old.toml").write_text("description = 'the old machine'\n[references]\ntwo.wall_s = 4.0\n")
    said = report("two", "eight", "--references", "./old.toml", "--format", "md").stdout
    assert "| score | 4 times the references (95% interval 4 to 4, 1 of 2 studies) |" in said
    assert "| references | the old machine |" in said


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (("two", "two"), "name each study once"),
        (("two", "--references", "summit"), "for a report of several studies"),
        (("two", "eight", "--references", "summit"), "summit has no figure of two, eight; it has those of bigdata-pca"),
        (("two", "eight", "--png", "pictures"), "make a report of each study"),
    ],
)
def test_what_does_not_go_together_is_refused(others, words, mistake):
    assert mistake in " ".join(report(*words, code=2).output.replace("│", "").split())
