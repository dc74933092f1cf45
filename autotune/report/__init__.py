"""Reports: a study as one document for people: HTML, Markdown or JSON."""

from autotune.report.report import Report, report_of

__all__ = ["Report", "report_of"]
