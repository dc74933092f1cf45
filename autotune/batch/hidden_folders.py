"""Hidden folders: those that a job script for others does not name. Without them the script stops, and says so."""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

_ABOUT = "# The folders of the host are told to its own user only. Set these, here or before the script is submitted:"
# NUL is in no path, no argument and no variable.
_MARK = re.compile(r"\0(\w+?)__")
_RUN = "\0run__"
_USED = re.compile(r"\$\{?(FOLDER_OF_\w+)")
# Of a job, what says where the measured run was, and must be found again in its texts.
_ITS_FOLDER = "folder"


class HiddenFolders:
    """Puts a variable for the folder of each path in a job: `"$FOLDER_OF_PW_X"/pw.x`.

    In the texts of the job a mark stands for the variable; `quoted` and `here_document` make shell of it.
    """

    def __init__(self, each_path: Callable[[str, Callable[[str], str]], str]) -> None:
        """Find paths by `each_path(text, put)`, which returns a text with what `put` makes of each."""
        self._each_path = each_path
        self._variables: dict[str, str] = {}
        self._entries: dict[str, list[str]] = {}

    def job(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Return a job as it is stored, with marks; what is below its own folder stays as it is."""
        own = sorted((part[_ITS_FOLDER] for part in (job, *job.get("parts", ()))), key=len, reverse=True)
        return {key: value if key == _ITS_FOLDER else self._marked(value, own) for key, value in job.items()}

    def remark(self, text: str) -> str:
        """Return a text for a comment, without folders."""
        return self._each_path(text, lambda path: f"…/{path.rstrip('/').rpartition('/')[2]}")

    def checks(self, script: str) -> list[str]:
        """Return the lines of shell that stop a script if folders that it uses are not set."""
        used = set(_USED.findall(script))
        wanted = [
            f': "${{{name}:?the folder of {", ".join(entries)}}}"'
            for name, entries in self._entries.items()
            if name in used
        ]
        return [_ABOUT, *wanted] if wanted else []

    def _marked(self, value: Any, own: list[str]) -> Any:  # noqa: ANN401  whatever JSON holds
        if isinstance(value, str):
            return self._text(value, own)
        if isinstance(value, Mapping):
            return {key: item if key == _ITS_FOLDER else self._marked(item, own) for key, item in value.items()}
        return [self._marked(item, own) for item in value] if isinstance(value, list | tuple) else value

    def _text(self, text: str, own: list[str]) -> str:
        for at, folder in enumerate(own):
            text = text.replace(folder, f"\0own{at}__")
        # A whole argument may be a path with blanks, and begin with an option: `-I/usr/include`.
        around = "'" if text.startswith("/") and re.search(r"\s", text) else " "
        text = self._each_path(f"{around}{text}{around}", self._mark)[1:-1]
        for at, folder in enumerate(own):
            text = text.replace(f"\0own{at}__", folder)
        return text

    def _mark(self, path: str) -> str:
        folder, _, entry = path.rstrip("/").rpartition("/")
        name = self._variables.get(folder)
        if name is None:
            wished = f"FOLDER_OF_{re.sub('[^A-Z0-9]+', '_', entry.upper()).strip('_')}".rstrip("_")
            same = sum(known == wished or known.startswith(f"{wished}_NO") for known in self._entries)
            name = f"{wished}_NO{same + 1}" if same else wished
            self._variables[folder], self._entries[name] = name, []
        # The shell expands the sentence, too.
        said = re.sub(r"[^\w.+-]", "_", entry)
        if said not in self._entries[name]:
            self._entries[name].append(said)
        return f"\0{name}__{path[len(folder) :]}"


def quoted(word: str, folder: str) -> str:
    """Quote a word for the shell; the `folder` of the measured run becomes the folder of the new one."""
    text, *rest = _MARK.split(word.replace(folder, _RUN))
    if not rest:
        return shlex.quote(text)
    named = (f'"${name}"' for name in rest[::2])
    between = (shlex.quote(part) if part else "" for part in (text, *rest[1::2]))
    return next(between) + "".join(f"{name}{part}" for name, part in zip(named, between, strict=True))


def in_shell(line: str) -> str:
    """Return a line of shell with the variables that its marks stand for: in single quotes, these end around them."""
    parts, quote = [], ""
    for place, part in enumerate(_MARK.split(line)):
        if place % 2:
            parts.append(f"'\"${{{part}}}\"'" if quote == "'" else f"${{{part}}}")
            continue
        parts.append(part)
        quote = _quote_after(part, quote)
    return "".join(parts)


def _quote_after(text: str, quote: str) -> str:
    """Return the quote that is open after a text of shell that began within `quote`; empty for none."""
    for sign in re.findall(r"\\.|['\"]", text, re.DOTALL):
        if sign in {"'", '"'} and quote in {"", sign}:
            quote = "" if quote else sign
        elif quote == "'" and sign == "\\'":
            quote = ""  # a backslash is none in single quotes
    return quote


def here_document(text: str, end: str) -> tuple[str, str]:
    """Return a text, and the end that begins it: in quotes where the shell is to leave the text as it is."""
    if _MARK.search(text) is None:
        return text, f"'{end}'"
    return _MARK.sub(r"${\1}", re.sub(r"([\\$`])", r"\\\1", text)), end
