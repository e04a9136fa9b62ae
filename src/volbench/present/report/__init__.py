"""Report: what a campaign measured as one HTML page that needs no network."""

from volbench.model.campaign.planned_run import RunNote
from volbench.present.report.content import MultiCampaignContent, ReportContent, ReportFigure
from volbench.present.report.lead_charts import lead_plots, report_plots
from volbench.present.report.report_page import render_report, render_reports

__all__ = [
    "MultiCampaignContent",
    "ReportContent",
    "ReportFigure",
    "RunNote",
    "lead_plots",
    "render_report",
    "render_reports",
    "report_plots",
]
