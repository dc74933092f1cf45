"""Tokens: made once, kept as digests, taken away; and the token that a service makes at each start."""

import errno
import os
import stat
import threading

import pytest

from autotune.client import read_start_token, start_token_file
from autotune.errors import AutotuneError, CannotRunHereError, StorageError
from autotune.execution.user_folder import user_folder
from autotune.service.models.budgets import Budget
from autotune.service.scopes import Scope
from autotune.service.tokens import Grant, TokenBook, start_token


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


def test_a_token_has_its_budget_with_a_prefix_of_its_own(path):
    token = TokenBook(path).add("bob@cluster", budget=Budget(studies=3, trials=20, time_s=60.0))
    budget = TokenBook(path).grant(token).budget
    assert budget == Budget(studies=3, trials=20, time_s=60.0, prefix="bob-cluster-")


@pytest.mark.parametrize("name", ["bob-cluster", "bob", "bob-cluster-x"])
def test_no_two_budgets_count_the_same_studies(path, name):
    book = TokenBook(path)
    book.add("bob@cluster", budget=Budget())
    with pytest.raises(AutotuneError, match="those of the token 'bob@cluster' begin with 'bob-cluster-'"):
        book.add(name, budget=Budget())
    book.add(name)
    book.add("bobby", budget=Budget())


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
    [
        "",
        "{",
        "[]",
        '{"ada": 1}',
        '{"ada": {}}',
        '{"ada": {"sha256": 5, "made": "x"}}',
        '{"ada": {"sha256": "x", "made": "2026-01-01", "scope": "all"}}',
        '{"ada": {"sha256": "x", "made": "2026-01-01", "scope": "operate", "budget": {"studies": -1}}}',
    ],
)
def test_a_broken_file_is_said_and_lets_nobody_in(path, text):
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(StorageError, match="tokens cannot be read from"):
        TokenBook(path).grant("x")


def test_a_file_that_others_could_have_written_lets_nobody_in(path):
    token = TokenBook(path).add("eve")
    path.chmod(0o666)
    with pytest.raises(StorageError, match="not a file that only this user can read and write"):
        TokenBook(path).grant(token)


def test_a_folder_that_others_can_write_lets_nobody_in_and_takes_no_token(path):
    token = TokenBook(path).add("eve")
    for mode in (0o777, 0o1777, 0o770):
        path.parent.chmod(mode)
        with pytest.raises(StorageError, match="others can write to the folder"):
            TokenBook(path).grant(token)
        with pytest.raises(StorageError, match="others can write to the folder"):
            TokenBook(path).add("bob")


def test_a_link_or_another_users_folder_lets_nobody_in(path, tmp_path, monkeypatch):
    token = TokenBook(path).add("eve")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="tokens cannot be read from"):
        TokenBook(path).grant(token)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(StorageError, match="belongs to another user: name one of yours with --folder"):
        TokenBook(path).grant(token)


def test_a_full_disk_is_said_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"the token cannot be kept in .*: No space left on device"):
        TokenBook(tmp_path / "tokens.json").add("ada")
    assert [path.name for path in tmp_path.iterdir()] == ["tokens.json.lock"]


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """Keep start tokens in a folder of the test."""
    folder = tmp_path / "mine"
    monkeypatch.setenv("AUTOTUNE_USER_FOLDER", str(folder))
    return folder


def test_the_token_of_a_start_is_for_this_user_only_and_ends_with_the_service(own_folder):
    with start_token("127.0.0.1", 8642) as token:
        (file,) = own_folder.iterdir()
        assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(own_folder.stat().st_mode)) == (0o600, 0o700)
        assert file.read_text() == f"Authorization: Bearer {token}\n"  # what curl -H @FILE sends
        assert read_start_token("127.0.0.1", 8642) == token
        assert read_start_token("127.0.0.2", 8642) is None
    assert list(own_folder.iterdir()) == []
    assert read_start_token("127.0.0.1", 8642) is None
    with start_token("127.0.0.1", 8642) as other:
        assert other != token


def test_a_token_that_others_could_read_or_have_written_is_not_sent(own_folder, tmp_path):
    with start_token("127.0.0.1", 1):
        (file,) = own_folder.iterdir()
        file.chmod(0o640)
        assert read_start_token("127.0.0.1", 1) is None
        file.chmod(0o600)
        own_folder.chmod(0o711)
        assert read_start_token("127.0.0.1", 1) is None
        own_folder.chmod(0o700)
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
        assert read_start_token("127.0.0.1", 1) is None


def test_a_folder_that_others_may_enter_gets_no_token(own_folder):
    own_folder.mkdir(mode=0o755)
    with pytest.raises(CannotRunHereError, match="others may enter"), start_token("127.0.0.1", 1):
        pytest.fail("others could read it")
    assert list(own_folder.iterdir()) == []


def test_start_tokens_are_in_this_users_folder():
    assert start_token_file("127.0.0.1", 1).parent == user_folder()
