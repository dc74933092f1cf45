"""Which protocols UCX chooses, to recognise configurations that make it choose the same ones.

Some variables act through that choice alone. With UCX_PROTO_INFO=y each run prints it, and `ucx_info -e` predicts it. A
configuration that differs from a measured one only in these variables needs no run if UCX would choose the same
protocols for the messages of the benchmark. UCX lists protocols since 1.16, earlier with UCX_PROTO_ENABLE=y; without a
list every configuration is run.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from spaces import Configuration
from spaces.ucx.values import size_bytes

CHOICE_ONLY = frozenset(
    {
        "UCX_BCOPY_THRESH",
        "UCX_MAX_EAGER_RAILS",
        "UCX_MAX_RNDV_RAILS",
        "UCX_RNDV_SCHEME",
        "UCX_RNDV_THRESH",
        "UCX_ZCOPY_THRESH",
    }
)
"""Variables that change which protocol is chosen, and nothing else."""

INFO = "UCX_PROTO_INFO"
"""The variable that makes UCX print its choice."""

PROTOCOLS = "protocols"
"""The detail of a measurement with the protocols of its run, as `choices` returns them."""

Span = tuple[int, int]
"""A range of message sizes in bytes: from, to."""

_ROW = re.compile(r"(?:# |\[[^|]*\] +)\| +(\S[^|]*?) +\| +(\S[^|]*?) +\|(?: +(\S[^|]*?) +\|)?")
_RANGE = re.compile(r"(\w+)(?:\.\.(\w+))?")
_TAGGED = "tagged message"  # the messages of the benchmarks, in ucx_info's list
# Some pairs of processes use error handling (e), where UCX leaves out transports that do not notice a dead peer.
_FEATURES = ("t", "te")

Ask = Callable[[str, Mapping[str, str]], str]
"""Returns the output of `ucx_info -e -u FEATURES` with these variables; empty if it failed."""


def choices(text: str, spans: Sequence[Span]) -> list[str]:
    """Return a line for each protocol that UCX lists for tagged messages of these sizes; none without a list."""
    found = {
        f"{kind}, {max(low, first):.0f} to {min(high, last):.0f} bytes: {protocol}"
        for kind, low, high, protocol in _list_protocols(text)
        for first, last in spans
        if low <= last and first <= high
    }
    return sorted(found)


class Protocols:
    """Predicts which protocols UCX would choose; asks once for each configuration."""

    def __init__(self, ask: Ask, spans: Sequence[Span], unset: Mapping[str, str] | None = None) -> None:
        """Look at messages of the sizes `spans`; `unset` are values that the benchmark gives to unset variables."""
        self._spans = tuple(spans)
        self._unset = dict(unset or {})
        self._text = cache(lambda features, variables: ask(features, dict(variables)))

    def alike(self, one: Configuration, measured: Configuration, details: Mapping[str, Any]) -> bool:
        """Whether a configuration is the same in effect as a `measured` one, whose run had these details.

        The prediction of `ucx_info` is used only if it is right for the measured run.
        """
        names = {name for name in (*one, *measured) if one.get(name) != measured.get(name)}
        seen = details.get(PROTOCOLS)
        if not names <= CHOICE_ONLY or not seen:
            return False
        return any(
            self._predict_choices(features, measured) == seen and self._predict_choices(features, one) == seen
            for features in _FEATURES
        )

    def _predict_choices(self, features: str, configuration: Configuration) -> list[str]:
        variables = {name: str(value) for name, value in configuration.items() if name.startswith("UCX_")}
        return choices(self._text(features, frozenset((self._unset | variables).items())), self._spans)


def _list_protocols(text: str) -> Iterator[tuple[str, float, float, str]]:
    kind = ""
    for span, words, devices in (match.groups() for match in map(_ROW.match, text.splitlines()) if match):
        sizes = _RANGE.fullmatch(span)
        if sizes is None:
            kind = words
            continue
        low, high = size_bytes(sizes[1]), size_bytes(sizes[2] or sizes[1])
        if low is not None and high is not None and kind.startswith(_TAGGED):
            yield kind, low, high, f"{words} on {devices}"
