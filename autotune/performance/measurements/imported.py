"""Imported measurements: the result of a reader, with sentences on what it left out."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.formatting import configuration_text
from autotune.records.measurement import Facts, Measured
from spaces import Value

FindMachine = Callable[[str, int | None], tuple[str, Facts]]
"""Returns the name and the facts of a machine, given the name in a file and the number of used nodes, if known."""

SettingKey = tuple[str, str, str, str, tuple[tuple[str, Value], ...]]
"""Program, place, workload and metric of a setting, and the facts of the installation that its source gives."""

_SHOWN = 12  # settings that a description lists
_EXAMPLES = 2


@dataclass(frozen=True)
class ImportedMeasurements:
    """The measurements of a file or a folder.

    Attributes:
        kind: The kind of the file.
        measured: The measurements.
        left_out: A sentence for each reason to leave something out, with its number of cases.
        notes: Sentences on facts that the source does not give.
    """

    kind: str
    measured: tuple[Measured, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def without_unusable(self) -> "ImportedMeasurements":
        """Leave out values of 0 or less, since models and verdicts compare values by their ratio."""
        usable, reasons = [], []
        for one in self.measured:
            if one.value is not None and one.value <= 0.0:
                reason = f"{one.setting.metric.name} is 0 or less, but values are compared by ratio"
                reasons.append((reason, configuration_text(one.configuration)))
            else:
                usable.append(one)
        return replace(self, measured=tuple(usable), left_out=(*self.left_out, *summarise_reasons(reasons)))

    @property
    def settings(self) -> Counter[SettingKey]:
        """The number of measurements in each setting, in the order of their first measurements."""
        return Counter((*one.setting.key, one.setting.built) for one in self.measured)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        named = ("program", "place", "workload", "metric", "installation")
        return {
            "kind": self.kind,
            "rows": len(self.measured),
            "values": sum(measurement.value is not None for measurement in self.measured),
            "bounds": sum(measurement.bound is not None for measurement in self.measured),
            "failures": sum(measurement.failed for measurement in self.measured),
            "settings": [dict(zip(named, (*key[:-1], dict(key[-1])), strict=True)) for key in self.settings],
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """Return a description in a few lines."""
        record = self.to_dict()
        counts = [_several(record[f"{noun}s"], noun) for noun in ("value", "bound", "failure") if record[f"{noun}s"]]
        lines = [f"{self.kind}: {_several(record['rows'], 'measurement')} ({', '.join(counts) or 'none'})"]
        settings = list(self.settings.items())
        lines += [f"  {_several(count, 'configuration')}: {_setting(key)}" for key, count in settings[:_SHOWN]]
        if len(settings) > _SHOWN:
            lines.append(f"  ... and {len(settings) - _SHOWN} more settings; --json lists them")
        lines += [f"  left out: {words}" for words in self.left_out]
        lines += [f"  {words}" for words in self.notes]
        return "\n".join(lines)


def summarise_reasons(reasons: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return a sentence for each reason, most frequent first, from pairs (reason, name of the item left out)."""
    by_reason: dict[str, list[str]] = {}
    for reason, name in reasons:
        by_reason.setdefault(reason, []).append(name)
    ordered: Sequence[tuple[str, list[str]]] = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    return tuple(f"{len(names)} x {reason}: {_some(names)}" for reason, names in ordered)


def _some(names: Sequence[str]) -> str:
    more = "" if len(names) <= _EXAMPLES else ", ..."
    return ", ".join(names[:_EXAMPLES]) + more


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _setting(key: SettingKey) -> str:
    program, place, workload, metric, built = key
    return ", ".join([f"{metric} of {program} on {place}", workload, *(f"{name} {value}" for name, value in built)])
