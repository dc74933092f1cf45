"""What was ordered is written down: who, what, when; also what was refused."""

import json
import os
import stat

import pytest

from autotune.errors import BusyError, StorageError
from autotune.service.audit import AuditLog


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_order_is_written_down_before_it_is_carried_out_and_a_refusal_after(tmp_path):
    path = tmp_path / "service" / "orders.jsonl"
    audit = AuditLog(path)
    with audit.order("ada", "start", "qe", {"trials": 5}):
        (line,) = lines(path)
    assert line.pop("when")
    assert line == {"who": "ada", "what": "start", "name": "qe", "details": {"trials": 5}}
    with pytest.raises(BusyError), audit.order("bob", "delete", "qe"):
        raise BusyError("it runs")
    assert [(line["who"], line["what"], line.get("details")) for line in lines(path)[1:]] == [
        ("bob", "delete", None),
        ("bob", "delete", {"refused": "it runs"}),
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_cannot_be_written_down_is_not_done(tmp_path):
    (tmp_path / "orders.jsonl").mkdir()
    with (
        pytest.raises(StorageError, match="cannot be written down"),
        AuditLog(tmp_path / "orders.jsonl").order("a", "b", "c"),
    ):
        pytest.fail("it was done")


def test_an_order_that_a_full_disk_cuts_is_not_done_and_leaves_nothing(tmp_path, monkeypatch):
    path, real = tmp_path / "orders.jsonl", os.write
    audit = AuditLog(path)
    audit.note("ada", "start", "qe")
    before = path.read_bytes()
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:20]))
    with pytest.raises(StorageError, match="No space left on device"), audit.order("ada", "delete", "qe"):
        pytest.fail("it was done")
    assert path.read_bytes() == before


def test_a_line_that_a_crash_cut_spoils_no_other(tmp_path):
    path = tmp_path / "orders.jsonl"
    path.write_bytes(b'{"when": "2026')
    AuditLog(path).note("ada", "start", "qe")
    cut, whole = path.read_text().splitlines()
    assert (cut, json.loads(whole)["what"]) == ('{"when": "2026', "start")


def test_a_long_log_is_put_aside_and_no_order_is_lost(tmp_path):
    path = tmp_path / "orders.jsonl"
    audit = AuditLog(path, most_bytes=200)
    for number in range(9):
        audit.note("ada", "start", f"study{number}")
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files][:2] == ["orders.1.jsonl", "orders.2.jsonl"]
    assert {line["name"] for file in files for line in lines(file)} == {f"study{number}" for number in range(9)}
    assert all(file.stat().st_size < 320 for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
