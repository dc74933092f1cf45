"""Tokens: that of the service's own user, new at each start, and those of other users, stored as digests."""

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from autotune.client import TOKEN_HEADER, is_only_ours, start_token_file
from autotune.errors import AutotuneError, CannotRunHereError, StorageError
from autotune.execution.user_folder import user_folder
from autotune.files import replace_file
from autotune.service.models.budgets import Budget
from autotune.service.scopes import Scope

TOKEN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@contextmanager
def start_token(host: str, port: int) -> Iterator[str]:
    """Make the token of this user for a service, and leave it in a file for this user's clients meanwhile.

    Raises:
        CannotRunHereError: the file cannot be written, or its folder is not this user's alone.
    """
    user_folder()
    token, path = secrets.token_urlsafe(32), start_token_file(host, port)
    try:
        replace_file(path, f"{TOKEN_HEADER}{token}\n", private=True, durable=False)
    except OSError as error:
        msg = f"the service's token cannot be kept in {path}: {error.strerror or error}"
        raise CannotRunHereError(msg) from error
    try:
        yield token
    finally:
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class KeptToken:
    """The record of a token: its SHA-256, when it was made, its scope, when it expires, and its budget, if any."""

    sha256: str
    made: str
    scope: Scope
    expires: str | None = None
    budget: Budget | None = None

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "KeptToken":
        """Read a record that `asdict` wrote.

        Raises:
            ValueError, TypeError: it is not such a record.
        """
        budget = record.get("budget")
        given = {"scope": Scope(record["scope"]), "budget": budget and Budget.model_validate(budget)}
        kept = cls(**{**record, **given})
        for moment in filter(None, (kept.made, kept.expires)):
            datetime.fromisoformat(moment).astimezone(UTC)
        if not (isinstance(kept.sha256, str) and kept.sha256.isascii()):
            msg = "a digest is text"
            raise ValueError(msg)
        return kept

    @property
    def expired(self) -> bool:
        """Whether the token has expired."""
        return self.expires is not None and datetime.fromisoformat(self.expires) <= datetime.now(UTC)


@dataclass(frozen=True)
class Grant:
    """The owner of a token, its scope, and its budget, if it has one."""

    owner: str
    scope: Scope
    budget: Budget | None = None


class TokenBook:
    """The tokens of a service, in a file that only its user can read.

    A token has 256 random bits and cannot be guessed, so a slow hash, as for passwords, would not make it safer.
    """

    def __init__(self, path: Path) -> None:
        """Use a file, which need not exist."""
        self._path = path
        self._known: Mapping[str, KeptToken] = {}
        self._read_at: tuple[int, int] | None = None

    def add(
        self,
        name: str,
        scope: Scope = Scope.OPERATE,
        expires_s: float | None = None,
        budget: Budget | None = None,
    ) -> str:
        """Make a token for a user, and return it: it cannot be read again.

        The prefix of its budget is the user's name.

        Raises:
            AutotuneError: the name is not valid or has a token, or the budget would count studies of another token.
            StorageError: the file cannot be written.
        """
        if not TOKEN_NAME.fullmatch(name):
            msg = f"a token is named with letters, digits, '.', '_', '@' and '-', 64 at most; given was {name!r}"
            raise AutotuneError(msg)
        now = datetime.now(UTC)
        try:
            end = None if expires_s is None else (now + timedelta(seconds=expires_s)).isoformat(timespec="seconds")
        except OverflowError:
            msg = "--expires is more than the calendar has; leave it out for a token that does not expire"
            raise AutotuneError(msg) from None
        if budget is not None:
            # Names of studies have no @.
            budget = budget.model_copy(update={"prefix": f"{name.replace('@', '-')}-"})
        with self._lock() as known:
            if name in known and not known[name].expired:
                msg = (
                    f"{name!r} has a token, which cannot be shown again: remove it first "
                    f"(autotune serve token {name} --remove)"
                )
                raise AutotuneError(msg)
            for other, theirs in known.items():
                if budget and theirs.budget and other != name and _overlap(budget.prefix, theirs.budget.prefix):
                    msg = (
                        f"studies of {name!r} would begin with {budget.prefix!r}, and those of the token {other!r} "
                        f"begin with {theirs.budget.prefix!r}, so one budget would count both: choose another name"
                    )
                    raise AutotuneError(msg)
            token = secrets.token_urlsafe(32)
            kept = KeptToken(_digest(token), now.isoformat(timespec="seconds"), scope, end, budget)
            self._write({**known, name: kept})
        return token

    def remove(self, name: str) -> None:
        """Remove a user's token; a running service refuses it from the next request on.

        Raises:
            AutotuneError: no user of that name has one.
            StorageError: the file cannot be written.
        """
        with self._lock() as known:
            if name not in known:
                msg = f"nobody called {name!r} has a token; there are: {', '.join(known) or 'none'}"
                raise AutotuneError(msg)
            self._write({owner: kept for owner, kept in known.items() if owner != name})

    def known(self) -> Mapping[str, KeptToken]:
        """Return the record of each token, by name; the file is read again when it has changed.

        Raises:
            StorageError: the file cannot be read.
        """
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp != self._read_at:
                self._known = _parse(self._read())
                self._read_at = stamp
        except FileNotFoundError:
            self._known, self._read_at = {}, None
        except (OSError, ValueError) as error:
            msg = f"tokens cannot be read from {self._path}: {error}"
            raise StorageError(msg) from error
        return self._known

    def _read(self) -> str:
        self._check_folder()
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            if not is_only_ours(os.fstat(descriptor)):
                msg = "it is not a file that only this user can read and write: look who made it, and remove it"
                raise ValueError(msg)
            return file.read()

    def _check_folder(self) -> None:
        """Refuse a folder in which others could put a file, with tokens of their own, in the place of this one.

        Raises:
            ValueError: it is such a folder.
        """
        folder = self._path.parent
        status = folder.stat()
        if status.st_uid != os.geteuid():
            msg = f"the folder {folder} belongs to another user: name one of yours with --folder"
            raise ValueError(msg)
        if status.st_mode & 0o022:
            msg = f"others can write to the folder {folder}: look what is in it, then chmod 700 it"
            raise ValueError(msg)

    def grant(self, token: str) -> Grant | None:
        """Return the owner and scope of a token, or None. The time that this takes does not depend on the tokens."""
        digest = _digest(token)
        # Every token is compared, also after a match.
        matching = [
            Grant(name, kept.scope, kept.budget)
            for name, kept in self.known().items()
            if hmac.compare_digest(kept.sha256, digest) and not kept.expired
        ]
        return matching[0] if matching else None

    @contextmanager
    def _lock(self) -> Iterator[Mapping[str, KeptToken]]:
        """Hold the lock of the file, so that no change is lost, least of all a removal."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_folder()
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            lock = os.open(self._path.with_name(f"{self._path.name}.lock"), flags, 0o600)
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._read_at = None
            yield self.known()
        finally:
            os.close(lock)

    def _write(self, known: Mapping[str, KeptToken]) -> None:
        try:
            tokens = {name: asdict(kept) for name, kept in known.items()}
            text = json.dumps(tokens, indent=1, default=Budget.model_dump)
            replace_file(self._path, text, private=True)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError | ValueError) -> StorageError:
        return StorageError(f"the token cannot be kept in {self._path}: {getattr(error, 'strerror', None) or error}")


def _overlap(prefix: str, other: str) -> bool:
    """Return whether a name can begin with both."""
    return prefix.startswith(other) or other.startswith(prefix)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _parse(text: str) -> Mapping[str, KeptToken]:
    try:
        tokens = json.loads(text)
        return {name: KeptToken.read(record) for name, record in tokens.items()}
    except (AttributeError, TypeError, KeyError, ValueError, OverflowError, RecursionError) as error:
        msg = "it is not a list of tokens: mend or remove the file"
        raise ValueError(msg) from error
