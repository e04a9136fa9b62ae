"""Report: what campaigns measured as one HTML page that needs no network."""

from volbench.model.campaign.planned_run import RunNote
from volbench.present.report.content import CampaignPart, Quality, ReportContent, ReportFigure
from volbench.present.report.lead_charts import report_plots
from volbench.present.report.report_page import render_report

__all__ = [
    "CampaignPart",
    "Quality",
    "ReportContent",
    "ReportFigure",
    "RunNote",
    "render_report",
    "report_plots",
]
