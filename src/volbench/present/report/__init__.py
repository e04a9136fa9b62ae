"""The report: everything about campaigns enters, one HTML text that needs no network leaves."""

from __future__ import annotations

from volbench.present.report.content import ReportContent, ReportFigure, SideBySide
from volbench.present.report.render import render_report, render_reports
from volbench.present.terminal.outcome import RunStateNote

__all__ = [
    "ReportContent",
    "ReportFigure",
    "RunStateNote",
    "SideBySide",
    "render_report",
    "render_reports",
]
