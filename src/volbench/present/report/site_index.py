"""Index page of a site of reports: a row for each campaign, with a link to its page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from volbench.present.formatting import instant
from volbench.present.report.campaign_section import CampaignSection
from volbench.present.report.embedded.downloads import file_name
from volbench.present.report.outcomes import KeyNumber
from volbench.present.report.report_page import render_template


@dataclass(frozen=True)
class SiteEntry:
    """A campaign on the index page."""

    title: str  # of its page
    file: str  # name of its page
    created_utc: str  # ISO 8601
    place: str  # hosts, volumes, runs and versions in one line
    verdict: str  # its answer in a sentence
    severity: str  # ``ok``, ``warning`` or ``invalid``
    quality: str  # data quality in a few words
    numbers: Sequence[KeyNumber]  # headline figures


def site_entry(section: CampaignSection, *, taken: Collection[str] = ()) -> SiteEntry:
    """Return the entry of a campaign."""
    name = file_name(section.content.title)
    names = (
        f"{name}{suffix}.html" for suffix in ("", *(f"-{n}" for n in range(2, len(taken) + 3)))
    )
    return SiteEntry(
        title=section.content.title,
        file=next(own for own in names if own not in {*taken, "index.html"}),
        created_utc=section.content.campaign.created_utc,
        place=section.first.place,
        verdict=section.first.verdict,
        severity=section.first.badge.severity,
        quality=section.first.badge.text,
        numbers=section.key_numbers,
    )


def render_site_index(entries: Sequence[SiteEntry], *, title: str, version: str, utc: str) -> str:
    """Return the index page of a site, newest campaign first.

    Args:
        entries: at least one.
        utc: when the site was made, ISO 8601 with ``Z``.
    """
    newest = sorted(entries, key=lambda own: own.created_utc, reverse=True)
    return render_template(
        "site.html.j2",
        title=title,
        version=version,
        generated=instant(utc),
        entries=[(own, instant(own.created_utc)) for own in newest],
    )
