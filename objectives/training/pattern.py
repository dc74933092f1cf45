"""Progress by a user's regular expressions, which find the step and the metrics in a line."""

import difflib
import re
from collections.abc import Iterator, Sequence

import regex

from objectives.base import Progress, ProgressReader
from objectives.patterns import NO_PATTERN, UntilSlow, find_in_lines
from objectives.toml_text import quoted
from objectives.training.lines import LINE_CHARACTERS, MOST_STEPS, finite, leading_number, states

STEP = "step"


def pattern_errors(patterns: Sequence[str], metrics: Sequence[str], kinds: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with patterns, each with the index of its pattern.

    Args:
        patterns: The patterns.
        metrics: The names of the metrics, the optimised one first.
        kinds: The names of the forms of progress lines; a pattern may be a misspelt one.
    """
    named: set[str] = set()
    for index, pattern in enumerate(patterns):
        try:
            compiled = re.compile(pattern)
        except NO_PATTERN as error:
            yield index, f"{quoted(pattern)} is not a regular expression: {error}; known forms: {', '.join(kinds)}"
            return
        if not compiled.groups:
            close = difflib.get_close_matches(pattern, kinds, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "the first is around the step"
            yield index, f"{quoted(pattern)} has no groups: {hint}; known forms: {', '.join(kinds)}"
            return
        named |= compiled.groupindex.keys()
        if compiled.groupindex and len(compiled.groupindex) < compiled.groups:
            msg = "give all groups a name or none, and write (?:...) for one that reads nothing"
            yield index, f"{quoted(pattern)} has groups with and without names: {msg}"
            return
        elif not compiled.groupindex and not 2 <= compiled.groups <= 1 + len(metrics):
            order = ", ".join([STEP, *metrics])
            rule = f"groups without names are, in this order: {order} (those at the end may be missing)"
            named_form = f"or give them names, as in (?P<{STEP}>\\d+)"
            yield index, f"{quoted(pattern)} has {compiled.groups} groups; {rule}; {named_form}"
            return
        elif not compiled.groupindex:
            named |= {STEP, *metrics[: compiled.groups - 1]}
    if STEP not in named:
        yield 0, f"no group is called {STEP!r}, so the step of a line is unknown; write (?P<{STEP}>\\d+)"
    if metrics[0] not in named:
        how = f"write (?P<{metrics[0]}>\\S+)" if metrics[0].isidentifier() else "use groups without names"
        yield 0, f"no group is called {metrics[0]!r}, the metric that is optimised: {how}"


def pattern_reader(patterns: Sequence[str], metrics: Sequence[str]) -> ProgressReader:
    """Return a reader for the live output of one run, which looks for each pattern in each line.

    A line without a step belongs to the last step that was reported; values of one step add up over its lines.
    """
    known = _StepState(metrics)
    return UntilSlow(lambda line: known.after(next(_matches(patterns, [line]))))


def progress_in(patterns: Sequence[str], metrics: Sequence[str], lines: Sequence[str]) -> Iterator[Progress | None]:
    """Yield what the reader of these patterns returns for each line; all lines are searched at once.

    Raises:
        SlowPatternError: A search took too long.
    """
    known = _StepState(metrics)
    return (known.after(matches) for matches in _matches(patterns, lines))


def _matches(patterns: Sequence[str], lines: Sequence[str]) -> Iterator[list[regex.Match[str]]]:
    """Yield the matches in each line: those of all patterns in its first state, then in the next state."""
    shown = [states(line) if len(line) <= LINE_CHARACTERS else [] for line in lines]
    every = [state for line in shown for state in line]
    by_state = zip(*(find_in_lines(pattern, every) for pattern in patterns), strict=True)
    return ([match for _ in line for match in next(by_state) if match is not None] for line in shown)


class _StepState:
    """The current step of a run and its values so far."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self._order = (STEP, *metrics)
        self._step: int | None = None
        self._known: dict[str, float] = {}

    def after(self, matches: Sequence[regex.Match[str]]) -> Progress | None:
        """Return the state after a line with these matches; None if the line adds nothing."""
        found = [self._take(match) for match in matches]
        return Progress(self._step, dict(self._known)) if any(found) and self._step is not None else None

    def _take(self, match: regex.Match[str]) -> bool:
        """Add what a match says; return False if that is nothing."""
        texts = match.groupdict() or dict(zip(self._order, match.groups(), strict=False))
        numbers = finite(
            {name: value for name, text in texts.items() if (value := leading_number(text or "")) is not None}
        )
        step = numbers.pop(STEP, None)
        if step is not None and 0 <= step < MOST_STEPS and step.is_integer():
            if int(step) != self._step:
                self._known = {}
            self._step = int(step)
        elif STEP in texts:
            return False
        self._known |= numbers
        return True
