"""Reports: one or several studies as a document in HTML, Markdown or JSON."""

from autotune.report.report import Report, report_of, report_of_several

__all__ = ["Report", "report_of", "report_of_several"]
