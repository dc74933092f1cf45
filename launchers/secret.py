"""Secrets among the variables of a job: the program gets them, but nothing stored or shown contains them."""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MASK = "***"
"""Replaces a secret. As a variable's value in a study file it means: take the value from the caller's environment."""

ENVIRONMENT = "environment"
"""The key of the tables, in a study file and in a stored job, that hold environment variables."""

_SPACE = "space"

# Names of secrets, by words that `_` separates: those that Sentry and gitleaks look for, and those of known programs.
_SECRET = re.compile(
    r"SECRET|PASSW|PASSPHRASE|PASSCODE|CREDENTIAL|(?:^|_)CREDS|JWT|WEBHOOK|CONN(?:ECTION)?_?STR|AUTHORIZATION"
    r"|(?:API|ACCESS|PRIVATE|AUTH|MASTER)_?KEY|TOKEN\d*$|_(?:KEY|PWD|PASS|PAT)$|(?:SSH|DB|ROOT|BIND)P(?:ASS|WD?)$"
    r"|(?:^|_)(?:O?AUTH|DSN|COOKIE|BEARER)$",
    re.IGNORECASE,
)
# Names that only look like those: of files, of folders, of keys to sort or draw by, of passes of a program, of tokens
# of a text.
_PUBLIC = re.compile(
    r"(?:^|_)(?:FILE|PATH|DIR|FOLDER"
    r"|(?:SORT|GROUP|ORDER|JOIN|PARTITION|SHARD|PRIMARY|FOREIGN|PUBLIC|CACHE|INDEX|HASH|P?RNG|RANDOM|VOCAB|ENCODER)_KEY"
    r"|(?:OLD|INIT|TARGET|APPTAINER|SINGULARITY)_PWD"
    r"|(?:FIRST|SECOND|LAST|ONE|TWO|SINGLE|MULTI|MAX|NUM|N|WARM_?UP|FORWARD|BACKWARD|RENDER|OPT|COMPILER)_PASS"
    r"|(?:BOS|EOS|PAD|UNK|SEP|CLS|MASK|START|STOP|END|MAX|NUM|N|PER|IMAGE|VIDEO|AUDIO|DRAFT)_TOKEN)$",
    re.IGNORECASE,
)
# Separates the words of an option (`--api-key`) and of a key (`db.password`, `accessKey`).
_WORD_BREAK = re.compile(r"[-.]|(?<=[a-z])(?=[A-Z])")
# Match a password in a URL, unless a parameter fills it in: between the user's name and the host, or in the query.
_URL_USER = re.compile(r"(?<=://)([^\s/?#:@]*:)(?!\{[^{}@]*\}@[^\s/@]*(?:[\s/]|$))([^\s/]+)(?=@)")
_URL_QUERY = re.compile(r"([?&]([\w.-]+)=)(?!\{[^{}]*\}(?:[\s&#\"']|$))([^\s&#\"']+)")
# Match a token in the place of a user's name.
_URL_TOKEN = re.compile(r"(?<=https://)(?!\{[^{}@]*\}@)[^\s/?#:@]+(?=@[^\s/@])")
# Matches a word that gives a value to a name: `--token=x`, `API_KEY=x`, `++model.api_key=x`, `Authorization: x`.
_ASSIGNMENT = re.compile(r"([-+]{0,2}([A-Za-z][\w.-]*)(?:=|:\s+))(.+)", re.DOTALL)
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)")
# Values that no secret has.
_PLAIN_VALUE = re.compile(r"[-+]?[\d.]{1,5}|true|false|yes|no|on|off|none", re.IGNORECASE)
# Matches the opening brace of a placeholder; two braces stand for a literal one.
_PLACEHOLDER = re.compile(r"\{\{|(\{)")
# Keys of a stored job that the launcher writes and no user's variable can fill; they stay as they are.
_LAUNCHER_KEYS = frozenset({"name", "folder", "copies", "mpi", "flavour", "resources", "parts"})
# A shorter value would match unrelated texts.
_SHORTEST_SECRET = 6


def is_secret(name: str, value: str = "") -> bool:
    """Whether a variable is a secret: by its name, or by a password in a URL in its value."""
    words = _WORD_BREAK.sub("_", name)
    return (_SECRET.search(words) is not None and _PUBLIC.search(words) is None) or mask_urls(value) != value


def mask_urls(text: str) -> str:
    """Return a text with a mask in place of the passwords of its URLs."""
    if "://" not in text:
        return text
    text = _URL_TOKEN.sub(MASK, _URL_USER.sub(rf"\g<1>{MASK}", text))
    return _URL_QUERY.sub(lambda pair: f"{pair[1]}{MASK}" if is_secret(pair[2]) else pair[0], text)


def mask_words(words: Sequence[str], public: Collection[str] = ()) -> list[str]:
    """Return a command line with masks in place of passwords of URLs and of values of options named like secrets.

    Args:
        words: The words of the command line.
        public: Names of options and variables that are not secrets.
    """
    masked = [mask_urls(word) for word in words]
    for index, start, _ in _secret_values(words, public):
        masked[index] = f"{start}{MASK}"
    return masked


def _secret_values(words: Sequence[str], public: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Yield each word that is a value of a secret: its index, what stands before the value, the name."""
    for index, start, name, value in _named_values(words):
        if is_secret(name) and name not in public and not _PLAIN_VALUE.fullmatch(value):
            yield index, start, name


def _named_values(words: Sequence[str]) -> Iterator[tuple[int, str, str, str]]:
    """Yield each word that is a value of a name: its index, what stands before the value, the name, the value."""
    option = None
    for index, word in enumerate(words):
        if (pair := _ASSIGNMENT.fullmatch(word)) is not None:
            yield index, pair[1], pair[2], pair[3]
        elif option is not None and not word.startswith("-"):
            yield index, "", option[1], word
        option = _OPTION.fullmatch(word)


def placeholder_options(words: Sequence[object]) -> frozenset[str]:
    """Return the options named like secrets that a parameter fills in: these are not secrets."""
    texts = [word for group in words for word in (group if isinstance(group, list | tuple) else [group])]
    named = _named_values([text if isinstance(text, str) else "" for text in texts])
    return frozenset(name for _, _, name, value in named if is_secret(name) and _has_placeholder(value))


def placeholder_variables(templates: Mapping[str, object]) -> frozenset[str]:
    """Return the variables that a parameter fills in: apart from passwords in URLs, these are not secrets."""
    return frozenset(name for name, text in templates.items() if isinstance(text, str) and _has_placeholder(text))


def _has_placeholder(text: str) -> bool:
    return any(part[1] for part in _PLACEHOLDER.finditer(text))


def mask_secrets(variables: Mapping[str, str], public: Collection[str] = ()) -> dict[str, str]:
    """Return the variables with secrets masked; of those named in `public`, only passwords in URLs are secrets."""
    return {name: mask_urls(value) if name in public else _mask_value(name, value) for name, value in variables.items()}


def _mask_value(name: str, value: str) -> str:
    return MASK if is_secret(name) else mask_urls(value)


def fill_masked(variables: Mapping[str, str], caller: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with masked secrets taken from `caller`, without those that it does not have."""
    known = {name: caller.get(name) if is_masked(name, value) else value for name, value in variables.items()}
    return {name: value for name, value in known.items() if value is not None}


def is_masked(name: str, value: object) -> bool:
    """Whether the value of a variable must be taken from the caller's environment."""
    return isinstance(value, str) and MASK in value and value == _mask_value(name, value.replace(MASK, "secret"))


def mask_tables(study: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of a study file, JSON-able, with the secrets in its variables and commands masked."""
    return {
        key: _mask_table(inner)
        if key == ENVIRONMENT and isinstance(inner, Mapping)
        else mask_help(inner)
        if key == _SPACE
        else mask_inner(inner)
        for key, inner in study.items()
    }


def mask_help(space: Any) -> Any:  # noqa: ANN401  whatever JSON holds
    """Return a space, of a study file or as it is stored, with the secrets in its help texts masked."""
    if isinstance(space, Mapping):
        return {
            key: " ".join(mask_words(inner.split(" ")))
            if key == "help" and isinstance(inner, str)
            else mask_help(inner)
            for key, inner in space.items()
        }
    return [mask_help(one) for one in space] if isinstance(space, list | tuple) else space


def mask_inner(value: object) -> Any:  # noqa: ANN401  whatever JSON holds
    """Return a value of a study file, such as a command line, with its secrets masked."""
    if isinstance(value, Mapping):
        return mask_tables(value)
    if not isinstance(value, list | tuple):
        return mask_urls(value) if isinstance(value, str) else value
    words = mask_words(_words_of(value), placeholder_options(value))
    return [word if isinstance(one, str) else mask_inner(one) for word, one in zip(words, value, strict=True)]


def _words_of(values: Sequence[object]) -> list[str]:
    return [one if isinstance(one, str) else "" for one in values]


def find_secret_names(value: object) -> frozenset[str]:
    """Return the variables and options of a study file whose values are masked because of their names."""
    if isinstance(value, Mapping):
        names = [_secret_names_of(key, inner) for key, inner in value.items() if key != _SPACE]
    elif isinstance(value, list | tuple):
        found = _secret_values(_words_of(value), placeholder_options(value))
        names = [frozenset(name for _, _, name in found), *map(find_secret_names, value)]
    else:
        names = []
    return frozenset[str]().union(*names)


def _secret_names_of(key: str, value: object) -> frozenset[str]:
    if key != ENVIRONMENT or not isinstance(value, Mapping):
        return find_secret_names(value)
    # With a mask, the user says that it is a secret.
    named = {name for name, text in value.items() if isinstance(text, str) and text != MASK and is_secret(name)}
    return frozenset(named) - placeholder_variables(value)


def _mask_table(table: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: value for name, value in table.items() if isinstance(value, str)}
    return {**table, **mask_secrets(texts, placeholder_variables(texts))}


def find_masked_variables(study: Mapping[str, Any]) -> set[str]:
    """Return the variables of a study file whose values must be taken from the caller's environment."""
    tables = [table[ENVIRONMENT] for table in _tables(study) if isinstance(table.get(ENVIRONMENT), Mapping)]
    masked = {name: text for table in tables for name, text in table.items() if is_masked(name, text)}
    return masked.keys() - placeholder_variables(masked)


def _tables(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the tables of a JSON value, at any depth."""
    if isinstance(value, Mapping):
        yield value
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ():
        yield from _tables(inner)


def find_masked_words(study: Mapping[str, Any]) -> list[str]:
    """Return the words of a stored study that hold a mask in place of a secret that only the study file has.

    The caller's environment has the secrets of other variables than those that a parameter fills in.
    """
    words = list(_texts(study))
    again = _texts(mask_tables(json.loads(json.dumps(study).replace(MASK, "secret"))))
    return [word for word, masked in zip(words, again, strict=True) if MASK in word and word == masked]


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of a JSON value, at any depth; of variables, those that a parameter fills in."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key == ENVIRONMENT and isinstance(inner, Mapping):
                yield from (inner[name] for name in sorted(placeholder_variables(inner)))
            elif key != _SPACE:
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def without_secrets(
    job: Mapping[str, Any], variables: Mapping[str, str], public: Collection[str] = ()
) -> dict[str, Any]:
    """Return a stored job, JSON-able, with a mask in place of every secret in any text.

    Args:
        job: The stored job.
        variables: Its variables; the values of secret ones are masked everywhere.
        public: Names of options and variables that are not secrets, apart from passwords in URLs.
    """
    known = [text for name, value in variables.items() for text in _secrets_of("" if name in public else name, value)]
    # Longest first, since one may contain another.
    secrets = sorted({text for text in known if len(text) >= _SHORTEST_SECRET}, key=len, reverse=True)
    return _mask_job(job, secrets, public)


def _secrets_of(name: str, value: str) -> list[str]:
    if is_secret(name):
        return [value]
    queried = [pair[3] for pair in _URL_QUERY.finditer(value) if is_secret(pair[2])]
    return [pair[2] for pair in _URL_USER.finditer(value)] + queried if is_secret(name, value) else []


def _mask_job(job: Mapping[str, Any], secrets: list[str], public: Collection[str]) -> dict[str, Any]:
    hidden = {key: inner if key in _LAUNCHER_KEYS else _mask_text(inner, secrets) for key, inner in job.items()}
    return hidden | {
        "argv": mask_words(hidden["argv"], public),
        "prepare": [mask_words(step, public) for step in hidden.get("prepare", ())],
        **({"server": _mask_server(hidden["server"], public)} if hidden.get("server") else {}),
        **({"parts": [_mask_job(part, secrets, public) for part in job["parts"]]} if job.get("parts") else {}),
    }


def _mask_server(server: Mapping[str, Any], public: Collection[str]) -> dict[str, Any]:
    steps = {key: [mask_words(step, public) for step in server[key]] for key in ("warm_up", "reset")}
    return {**server, "argv": mask_words(server["argv"], public), **steps}


def _mask_text(value: object, secrets: list[str]) -> Any:  # noqa: ANN401  whatever JSON holds
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return mask_urls(value)
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
