"""Why jobs wait, where a scheduler says that in an answer of its own."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from launchers.batch.commands import Answer
from launchers.batch_systems.base import Scheduler, Seen
from launchers.job import JobState

# The first ones in the queue tell what the others wait for.
_ASKED = 50


def with_reasons(
    scheduler: Scheduler, ask: Callable[[list[str]], Answer], states: Mapping[str, Seen] | None, mine: list[str]
) -> Mapping[str, Seen] | None:
    """Return the states of jobs with why those of `mine` wait that are queued, as far as the scheduler says it."""
    question = scheduler.reasons
    if question is None or states is None:
        return states
    queued = [number for number in mine if number in states and states[number].state is JobState.QUEUED]
    if not queued:
        return states
    reasons = question.read(ask(question.command(queued[:_ASKED])).stdout)
    return {**states, **{number: _because(states[number], reasons[number]) for number in queued if number in reasons}}


def _because(seen: Seen, reason: str) -> Seen:
    return replace(seen, message=f"{seen.message}: {reason}" if seen.message else reason)
