"""Write the finding of a watch as JUnit XML, which CI servers show as tests."""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from autotune.comparison.watching.finding import Finding
from autotune.comparison.watching.judgement import Quantity

_RUNS = "pairs"
# XML 1.0 allows no other control characters, not even as references.
_ALLOWED = frozenset("\t\n\r")


def junit(finding: Finding) -> str:
    """Return a suite with one test for each watched quantity, and one for whether the pairs could be run."""
    failures = {change.quantity.value: said for change, said in zip(finding.changes, finding.sentences, strict=True)}
    if finding.failed:
        failures[_RUNS] = finding.alarms[0]
    names = [_RUNS, *(quantity.value for quantity in Quantity)]
    suite = Element(
        "testsuite",
        name="autotune watch",
        tests=str(len(names)),
        failures=str(len(failures)),
        errors="0",
        skipped="0",
    )
    if finding.checks:
        suite.set("timestamp", finding.checks[-1].started[:19])
    for name in names:
        case = SubElement(suite, "testcase", classname=_clean(f"autotune.{finding.study}"), name=name)
        if name in failures:
            SubElement(case, "failure", message=_clean(failures[name]), type="change")
    SubElement(suite, "system-out").text = _clean("\n".join(finding.lines()))
    indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suite, encoding="unicode")}\n'


def _clean(text: str) -> str:
    return "".join(char if char in _ALLOWED or _is_xml(ord(char)) else "\N{REPLACEMENT CHARACTER}" for char in text)


def _is_xml(code: int) -> bool:
    return 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
