"""The report: everything about a campaign enters, one HTML text that needs no network leaves."""

from __future__ import annotations

from volbench.present.outcome import RunStateNote
from volbench.present.report.content import ReportContent, ReportFigure
from volbench.present.report.render import render_report

__all__ = ["ReportContent", "ReportFigure", "RunStateNote", "render_report"]
