"""What batch systems say, each text with its source: a stand-in that says anything else would agree with our mistakes.

A source is a file of the batch system's own repository, a manual page, or a real one that was asked (`seen on ...`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.launchers.fakes.options import RefusedError

_CODES = 256


@dataclass(frozen=True)
class Answer:
    """A text with names in braces, the number that its command hands to exit(3), and where both stand.

    Versions before `since` and after `until` do not say so.
    """

    text: str
    number: int
    source: str
    since: str = ""
    until: str = ""


@dataclass(frozen=True)
class Answers:
    """What a batch system says, by name; of several answers to one name each is that of other versions.

    Attributes:
        versions: those that the stand-in knows, the oldest first.
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
        """Return what is said."""
        return self.of(version)[name].text.format(**values)

    def refusal(self, name: str, version: str | None, /, **values: object) -> RefusedError:
        """Return the error of a command that says so."""
        answer = self.of(version)[name]
        return RefusedError(answer.number % _CODES, answer.text.format(**values))
