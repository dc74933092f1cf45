"""Tokens: access to the service from elsewhere. Only their digests are kept."""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from autotune.errors import AutotuneError, StorageError
from autotune.files import replace_file

TOKEN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class TokenBook:
    """The tokens of a service, in a file that only its user reads: a name, the token's SHA-256, and when it was made.

    A token has 256 random bits, so that nobody guesses it: a slow hash, which is for words that people choose, would
    make nothing safer.
    """

    def __init__(self, path: Path) -> None:
        """Use a file, which need not be there."""
        self._path = path
        self._known: Mapping[str, Mapping[str, str]] = {}
        self._read_at: tuple[int, int] | None = None

    def add(self, name: str) -> str:
        """Make a token for somebody, and return it: it cannot be read again.

        Raises:
            AutotuneError: the name is not one, or has a token.
            StorageError: the file cannot be written.
        """
        if not TOKEN_NAME.fullmatch(name):
            msg = f"a token is named with letters, digits, '.', '_', '@' and '-', 64 at most; given was {name!r}"
            raise AutotuneError(msg)
        known = dict(self.known())
        if name in known:
            msg = f"{name!r} has a token, which cannot be shown again: remove it first (autotune token {name} --remove)"
            raise AutotuneError(msg)
        token = secrets.token_urlsafe(32)
        made = datetime.now(UTC).isoformat(timespec="seconds")
        self._write(known | {name: {"sha256": _digest(token), "made": made}})
        return token

    def remove(self, name: str) -> None:
        """Forget somebody's token; a running service refuses it from the next request on.

        Raises:
            AutotuneError: nobody of that name has one.
            StorageError: the file cannot be written.
        """
        known = dict(self.known())
        if name not in known:
            msg = f"nobody called {name!r} has a token; there are: {', '.join(known) or 'none'}"
            raise AutotuneError(msg)
        del known[name]
        self._write(known)

    def known(self) -> Mapping[str, Mapping[str, str]]:
        """Return the record of each token, by name; read again when the file has changed.

        Raises:
            StorageError: the file cannot be read.
        """
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp != self._read_at:
                self._known = _parsed(self._path.read_text(encoding="utf-8"))
                self._read_at = stamp
        except FileNotFoundError:
            self._known, self._read_at = {}, None
        except (OSError, ValueError) as error:
            msg = f"tokens cannot be read from {self._path}: {error}; mend or remove the file"
            raise StorageError(msg) from error
        return self._known

    def owner(self, token: str) -> str | None:
        """Return the name that a token belongs to, or None. The time of the look-up reveals nothing of the tokens."""
        digest = _digest(token)
        # Every token is compared, also after a match.
        owners = [name for name, kept in self.known().items() if hmac.compare_digest(kept["sha256"], digest)]
        return owners[0] if owners else None

    def _write(self, known: Mapping[str, Mapping[str, str]]) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, json.dumps(known, indent=1), private=True)
        except OSError as error:
            msg = f"the token cannot be kept in {self._path}: {error.strerror or error}"
            raise StorageError(msg) from error


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _is_kept(record: object) -> bool:
    words = [record.get("sha256"), record.get("made")] if isinstance(record, dict) else [None]
    return all(isinstance(word, str) and word.isascii() for word in words)


def _parsed(text: str) -> Mapping[str, Mapping[str, str]]:
    tokens = json.loads(text)
    rows = tokens.items() if isinstance(tokens, dict) else ()
    if not isinstance(tokens, dict) or not all(_is_kept(kept) for _, kept in rows):
        msg = "it is not a list of tokens"
        raise ValueError(msg)
    return tokens
