"""Report: everything about campaigns as one HTML page that needs no network."""

from volbench.present.report.content import (
    MultiCampaignContent,
    ReportContent,
    ReportFigure,
)
from volbench.present.report.report_page import render_report, render_reports
from volbench.present.terminal.outcome import RunStateNote

__all__ = [
    "MultiCampaignContent",
    "ReportContent",
    "ReportFigure",
    "RunStateNote",
    "render_report",
    "render_reports",
]
