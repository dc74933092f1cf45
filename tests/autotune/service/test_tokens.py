"""Tokens: made once, kept as digests, taken away."""

import errno
import os
import stat

import pytest

from autotune.errors import AutotuneError, StorageError
from autotune.service.tokens import TokenBook


@pytest.fixture
def path(tmp_path):
    return tmp_path / "service" / "tokens.json"


def test_a_token_is_its_owners_and_nobody_elses(path):
    book = TokenBook(path)
    ada, bob = book.add("ada"), book.add("bob@cluster")
    assert (book.owner(ada), book.owner(bob)) == ("ada", "bob@cluster")
    assert ada != bob
    assert len(ada) >= 43  # 256 bits
    for wrong in ("", ada[:-1], ada + "x", ada.swapcase(), "ada"):
        assert book.owner(wrong) is None


def test_what_is_kept_is_no_token_and_only_for_this_user(path):
    token = TokenBook(path).add("ada")
    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_running_service_notices_new_and_removed_tokens(path):
    serving, operator = TokenBook(path), TokenBook(path)
    assert not serving.known()
    token = operator.add("ada")
    assert serving.owner(token) == "ada"
    operator.remove("ada")
    assert serving.owner(token) is None


def test_a_token_is_not_made_twice(path):
    book = TokenBook(path)
    book.add("ada")
    with pytest.raises(AutotuneError, match="has a token, which cannot be shown again"):
        book.add("ada")
    with pytest.raises(AutotuneError, match="nobody called 'eve' has a token; there are: ada"):
        book.remove("eve")


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "../x", "a\n", "x" * 65])
def test_names_that_are_none_are_refused(path, name):
    with pytest.raises(AutotuneError, match="a token is named with"):
        TokenBook(path).add(name)
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ada": 1}', '{"ada": {}}'])
def test_a_broken_file_is_said_and_lets_nobody_in(path, text):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(StorageError, match="tokens cannot be read from"):
        TokenBook(path).owner("x")


def test_a_full_disk_is_said_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"the token cannot be kept in .*: No space left on device"):
        TokenBook(tmp_path / "tokens.json").add("ada")
    assert list(tmp_path.iterdir()) == []
