"""Read a command that was quoted as a whole, or given to `bash -c`, as a shell would, as far as a study can do it."""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import StudyFileError

_SHELLS = {"sh", "bash", "dash", "ksh", "zsh"}
_COMMAND_OPTION = re.compile(r"-[a-z]*c")
_OPERATOR = re.compile(r"[;|&<>()]+")
# In `2>log` the number is the stream, in `prog 2 > log` an argument.
_STREAM = re.compile(r"(?<!\S)([012])(?=[<>])")
_STREAM_MARK = "\0"
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
# What only a shell does: expand variables, commands, names of files, home folders and braces, and run several lines.
_EXPANSION = re.compile(r"\S*(?:[$`*?\[\n]|(?<![^\s=:])~|\{\S*(?:,|\.\.)\S*\})\S*")
_BUILTINS = {*("cd", "module", "ml", "ulimit", "umask", "export", "unset", "set", "source", ".", "exec", "eval")}
_REMEDY = (
    "a study starts one program, without a shell: do what comes before it yourself (cd, module load, export), or write "
    "the line into a script and give that"
)


@dataclass
class ShellWords:
    """The words of a command, and the file that it reads from standard input; `notes` say what was left out."""

    words: list[str]
    input_file: str = ""
    notes: list[str] = field(default_factory=list)

    def input_words(self, option: str | None) -> list[str]:
        """Return the words that name the input file by an option of the program.

        Raises:
            StudyFileError: There is a file, but no option.
        """
        if not self.input_file:
            return []
        if option is None:
            msg = (
                f"the command reads its standard input (< {self.input_file}), which a study leaves empty: name the "
                "file by an option of the program, or write the line into a script and give that"
            )
            raise StudyFileError(msg)
        return [option, self.input_file]


def read_shell_words(words: Sequence[str]) -> ShellWords:
    """Return the words that a shell would start.

    Raises:
        StudyFileError: The command needs a shell.
    """
    if len(words) == 1 and " " in words[0].strip() and not is_file(words[0]):
        text = words[0].strip()
        if expanded := _expanded(text):
            msg = (
                f"{text!r} has {expanded!r}, which a shell would expand, and a study starts none: give the words "
                "without quotes around them all, so that your shell expands them; put single quotes around what is "
                "meant literally; or write the line into a script and give that"
            )
            raise StudyFileError(msg)
        try:
            return _parse(text)
        except ValueError:  # a quote that does not end
            return ShellWords(list(words))
    if len(words) == 3 and Path(words[0]).name in _SHELLS and _COMMAND_OPTION.fullmatch(words[1]):
        try:
            if not _needs_shell(words[2].strip()):
                return _parse(words[2])
        except (StudyFileError, ValueError):
            pass
        note = f"{words[0]} {words[1]} stays in the command as it is: only a shell understands its text"
        return ShellWords(list(words), notes=[note])
    return ShellWords(list(words))


def _needs_shell(text: str) -> bool:
    """Whether a shell would expand a part of the text, or starts it with a command of its own."""
    return bool(_expanded(text)) or text.partition(" ")[0] in _BUILTINS


def _expanded(text: str) -> str:
    """Return the first word that a shell would expand."""
    # In double quotes, a shell expands variables and commands.
    unquoted = _QUOTED.sub(lambda quoted: quoted[0] if re.match(r'".*(?<!\\)[$`]', quoted[0], re.DOTALL) else "", text)
    found = _EXPANSION.search(unquoted)
    return found[0] if found is not None else ""


def _parse(text: str) -> ShellWords:
    marked = _mark_streams(text)
    lexer = shlex.shlex(marked, posix=True, punctuation_chars=";|&<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    words, found, left = list(lexer), ShellWords([]), []
    while words:
        word = words.pop(0)
        if not _OPERATOR.fullmatch(word) or f"'{word}'" in text or f'"{word}"' in text:
            found.words.append(word)
        elif word == "<" and words:
            _take_stream(found.words)
            # An empty input is what a study gives each run.
            found.input_file = "" if (file := words.pop(0)) == os.devnull else file
        elif set(word) <= {">", "&"} and ">" in word and words:
            stream = _take_stream(found.words)
            left.append(f"{stream}{word}{'' if word.endswith('&') else ' '}{words.pop(0)}")
        elif word in {"|", "|&"} and words[:1] == ["tee"] and not any(map(_OPERATOR.fullmatch, words)):
            left += [word, *words]
            words = []
        elif word != "&" or words:
            msg = f"{text!r} has {word!r}: {_REMEDY}"
            raise StudyFileError(msg)
    if left:
        found.notes.append(left_out(" ".join(left)))
    return found


def left_out(words: str) -> str:
    """Return the note for words that would send a run's output elsewhere."""
    return f"left out, since autotune keeps what a run prints: {words}"


def _mark_streams(text: str) -> str:
    """Separate the number of a redirected stream from its operator, and mark it, outside of quotes."""
    parts, at = [], 0
    for quoted in _QUOTED.finditer(text):
        parts += [_STREAM.sub(rf"\1{_STREAM_MARK} ", text[at : quoted.start()]), quoted[0]]
        at = quoted.end()
    return "".join([*parts, _STREAM.sub(rf"\1{_STREAM_MARK} ", text[at:])])


def _take_stream(words: list[str]) -> str:
    """Take the marked number of a stream from the end of the words; empty without one."""
    return words.pop().removesuffix(_STREAM_MARK) if words and words[-1].endswith(_STREAM_MARK) else ""


def is_file(word: str) -> bool:
    """Return whether a word is the name of a file here."""
    # A word that is by chance also the name of a file here is rare enough.
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False
