"""Digests of files; a file that cannot be read at the moment has none."""

import errno

import pytest

from launchers.software.digest import file_digest
from tests.support.descriptors import none_left


def test_digest_raises_when_descriptors_are_exhausted(tmp_path):
    path = tmp_path / "program"
    path.write_bytes(b"x")
    digest = file_digest(path)
    with none_left(), pytest.raises(OSError, match="Too many open files") as caught:
        file_digest(path)
    assert caught.value.errno == errno.EMFILE
    assert file_digest(path) == digest != "unreadable"


def test_missing_file_is_unreadable(tmp_path):
    assert file_digest(tmp_path / "none") == file_digest(tmp_path) == "unreadable"
