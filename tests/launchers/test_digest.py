"""Digests of files: one of a program that cannot be read now is none."""

import errno

import pytest

from launchers.software.digest import file_digest
from tests.support.descriptors import none_left


def test_a_file_that_cannot_be_read_for_want_of_descriptors_is_not_taken_for_another_one(tmp_path):
    path = tmp_path / "program"
    path.write_bytes(b"x")
    digest = file_digest(path)
    with none_left(), pytest.raises(OSError, match="Too many open files") as caught:
        file_digest(path)
    assert caught.value.errno == errno.EMFILE
    assert file_digest(path) == digest != "unreadable"


def test_one_that_is_not_there_or_no_file_is_unreadable(tmp_path):
    assert file_digest(tmp_path / "none") == file_digest(tmp_path) == "unreadable"
