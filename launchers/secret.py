"""Secrets among the variables of a job: the program gets them, but nothing stored or shown contains them."""

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

MASK = "***"
"""Replaces a secret. As a variable's value in a study file it means: take the value from the caller's environment."""

ENVIRONMENT = "environment"
"""The key of the tables, in a study file and in a stored job, that hold environment variables."""

# "TOKENS" and "TOKENIZER" are no secrets, nor is a `_KEY` by which data are sorted or grouped.
_SECRET = re.compile(
    r"SECRET|TOKEN(?!S|IZ)|PASSW|CREDENTIAL|JWT|API_?KEY|(?<!SORT)(?<!GROUP)(?<!ORDER)(?<!JOIN)(?<!PARTITION)(?<!SHARD)_KEY$",
    re.IGNORECASE,
)
# Matches the opening brace of a placeholder; two braces stand for a literal one.
_PLACEHOLDER = re.compile(r"\{\{|(\{)")
# Keys of a stored job that the launcher writes and no user's variable can fill; they stay as they are.
_LAUNCHER_KEYS = frozenset({"name", "folder", "copies", "mpi", "flavour", "resources", "parts"})
# A shorter value would match unrelated texts.
_SHORTEST_SECRET = 6


def is_secret(name: str) -> bool:
    """Whether a variable's name is that of a secret."""
    return _SECRET.search(name) is not None


def placeholder_variables(templates: Mapping[str, object]) -> frozenset[str]:
    """Return the variables that a parameter fills in: these are not secrets, whatever their names."""
    return frozenset(
        name
        for name, text in templates.items()
        if isinstance(text, str) and any(part[1] for part in _PLACEHOLDER.finditer(text))
    )


def mask_secrets(variables: Mapping[str, str], public: Collection[str] = ()) -> dict[str, str]:
    """Return the variables with secret values masked; those named in `public` are not secrets."""
    return {name: MASK if is_secret(name) and name not in public else value for name, value in variables.items()}


def fill_masked(variables: Mapping[str, str], caller: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with masked secrets taken from `caller`, without those that it does not have."""
    known = {name: caller.get(name) if is_masked(name, value) else value for name, value in variables.items()}
    return {name: value for name, value in known.items() if value is not None}


def is_masked(name: str, value: object) -> bool:
    """Whether the value of a variable must be taken from the caller's environment."""
    return value == MASK and is_secret(name)


def mask_tables(study: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of a study file, JSON-able, with the secrets in its tables of variables masked."""
    return {
        key: _mask_table(inner)
        if key == ENVIRONMENT and isinstance(inner, Mapping)
        else _map_tables(inner, mask_tables)
        for key, inner in study.items()
    }


def _mask_table(table: Mapping[str, Any]) -> dict[str, Any]:
    public = placeholder_variables(table) | {name for name, value in table.items() if not isinstance(value, str)}
    return mask_secrets(table, public)


def _map_tables(value: object, change: Callable[[Mapping[str, Any]], object]) -> object:
    """Return a JSON value with `change` applied to its tables."""
    if isinstance(value, Mapping):
        return change(value)
    return [_map_tables(inner, change) for inner in value] if isinstance(value, list | tuple) else value


def find_masked_variables(study: Mapping[str, Any]) -> set[str]:
    """Return the variables of a study file whose values must be taken from the caller's environment."""
    names: set[str] = set()

    def look(table: Mapping[str, Any]) -> None:
        for key, inner in table.items():
            if key == ENVIRONMENT and isinstance(inner, Mapping):
                names.update(name for name, text in inner.items() if is_masked(name, text))
            else:
                _map_tables(inner, look)

    look(study)
    return names


def without_secrets(job: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """Return a stored job, JSON-able, with a mask in place of every secret variable's value in any text."""
    secrets = {text for name, text in variables.items() if is_secret(name) and len(text) >= _SHORTEST_SECRET}
    # Longest first, since one may contain another.
    return _mask_job(job, sorted(secrets, key=len, reverse=True)) if secrets else dict(job)


def _mask_job(job: Mapping[str, Any], secrets: list[str]) -> dict[str, Any]:
    hidden = {key: inner if key in _LAUNCHER_KEYS else _mask_text(inner, secrets) for key, inner in job.items()}
    return hidden | ({"parts": [_mask_job(part, secrets) for part in job["parts"]]} if "parts" in job else {})


def _mask_text(value: object, secrets: list[str]) -> object:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, Mapping):
        return {key: _mask_text(inner, secrets) for key, inner in value.items()}
    return [_mask_text(inner, secrets) for inner in value] if isinstance(value, list | tuple) else value


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, such as a job's variables, which include secrets.

    Raises:
        OSError: The file cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        # An existing file keeps its mode unless it is changed.
        os.fchmod(descriptor, 0o600)
        file.write(text)
