"""Tokens: made once, kept as digests, taken away."""

import errno
import os
import stat
import threading

import pytest

from autotune.errors import AutotuneError, StorageError
from autotune.service.scopes import Scope
from autotune.service.tokens import Grant, TokenBook


@pytest.fixture
def path(tmp_path):
    return tmp_path / "service" / "tokens.json"


def test_a_token_is_its_owners_and_nobody_elses(path):
    book = TokenBook(path)
    ada, bob = book.add("ada"), book.add("bob@cluster")
    assert (book.grant(ada).owner, book.grant(bob).owner) == ("ada", "bob@cluster")
    assert ada != bob
    assert len(ada) >= 43  # 256 bits
    for wrong in ("", ada[:-1], ada + "x", ada.swapcase(), "ada"):
        assert book.grant(wrong) is None


def test_what_is_kept_is_no_token_and_only_for_this_user(path):
    token = TokenBook(path).add("ada")
    assert token not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_running_service_notices_new_and_removed_tokens(path):
    serving, operator = TokenBook(path), TokenBook(path)
    assert not serving.known()
    token = operator.add("ada")
    assert serving.grant(token).owner == "ada"
    operator.remove("ada")
    assert serving.grant(token) is None


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


def test_a_token_expires_and_its_owner_can_have_another(path, monkeypatch):
    book = TokenBook(path)
    token = book.add("ada", Scope.LOOK, expires_s=3600.0)
    assert book.grant(token) == Grant("ada", Scope.LOOK)
    kept = book.known()["ada"]
    path.write_text(path.read_text().replace(kept.expires, kept.made))
    assert book.grant(token) is None
    assert book.grant(book.add("ada")) == Grant("ada", Scope.OPERATE)
    with pytest.raises(AutotuneError, match="more than the calendar has"):
        book.add("bob", expires_s=1e12)


def test_no_change_is_lost_whoever_makes_another_at_the_same_time(path):
    books = [TokenBook(path) for _ in range(8)]
    TokenBook(path).add("eve")
    begin = threading.Barrier(9)

    def change(book, name):
        begin.wait()
        for number in range(5):
            book.add(f"{name}-{number}")

    threads = [threading.Thread(target=change, args=[book, f"user{n}"]) for n, book in enumerate(books)]
    for thread in threads:
        thread.start()
    begin.wait()
    TokenBook(path).remove("eve")
    for thread in threads:
        thread.join()
    assert set(TokenBook(path).known()) == {f"user{n}-{number}" for n in range(8) for number in range(5)}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"ada": 1}', '{"ada": {}}', '{"ada": {"sha256": "x", "made": "2026-01-01", "scope": "all"}}'],
)
def test_a_broken_file_is_said_and_lets_nobody_in(path, text):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(StorageError, match="tokens cannot be read from"):
        TokenBook(path).grant("x")


def test_a_full_disk_is_said_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"the token cannot be kept in .*: No space left on device"):
        TokenBook(tmp_path / "tokens.json").add("ada")
    assert [path.name for path in tmp_path.iterdir()] == ["tokens.json.lock"]
