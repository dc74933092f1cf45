"""The texts that batch systems print, each with its source, so that stand-ins do not agree with our own mistakes.

A source is a file of the batch system's own repository, a manual page, or a real installation (`seen on ...`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.launchers.fakes.options import RefusedError

_CODES = 256


@dataclass(frozen=True)
class Answer:
    """A text with names in braces, the number that its command passes to exit(3), and the source of both.

    Versions before `since` and after `until` print another text.
    """

    text: str
    number: int
    source: str
    since: str = ""
    until: str = ""


@dataclass(frozen=True)
class Answers:
    """The texts of a batch system by name; several texts of one name belong to different versions.

    Attributes:
        versions: The versions that the stand-in knows, the oldest first.
    """

    versions: tuple[str, ...]
    by_name: Mapping[str, Answer | tuple[Answer, ...]]

    def every(self) -> list[Answer]:
        """Return all answers, of all versions."""
        return [answer for said in self.by_name.values() for answer in (said if isinstance(said, tuple) else (said,))]

    def of(self, version: str | None) -> dict[str, Answer]:
        """Return what a version says, by name; None is the newest."""
        at = self.versions.index(version or self.versions[-1])
        known = {}
        for name, said in self.by_name.items():
            for answer in said if isinstance(said, tuple) else (said,):
                first = self.versions.index(answer.since) if answer.since else 0
                last = self.versions.index(answer.until) if answer.until else len(self.versions)
                if first <= at <= last:
                    known[name] = answer
        return known

    def text(self, name: str, version: str | None, /, **values: object) -> str:
        """Return the text of an answer."""
        return self.of(version)[name].text.format(**values)

    def refusal(self, name: str, version: str | None, /, **values: object) -> RefusedError:
        """Return the error of a command that says so."""
        answer = self.of(version)[name]
        return RefusedError(answer.number % _CODES, answer.text.format(**values))
