"""volbench upload: a campaign folder to object storage, where other verbs read it in place."""

from __future__ import annotations

from pathlib import Path

import click

from volbench.cli.options import CAMPAIGN, examples
from volbench.errors import InputError


@click.command(
    "upload",
    epilog=examples("volbench upload results/quick s3://bucket/results/quick"),
)
@CAMPAIGN
@click.argument("address", metavar="s3://BUCKET/PREFIX")
def command(campaign: Path, address: str) -> None:
    """Upload the campaign in DIR to object storage.

    Tables are brought up to date first, so that nothing else has to be fetched to read results. The
    plan is uploaded last: without it, a prefix is no campaign.
    """
    from volbench.api.campaign_data import open_campaign
    from volbench.object_storage.campaign_copy import PLAN
    from volbench.object_storage.object_storage import open_storage

    opened = open_campaign(campaign)
    if opened.is_running:
        raise InputError(
            f"the campaign in {campaign} is running", hint="upload it when it has ended"
        )
    opened.store_tables()
    storage = open_storage(address)
    if storage.has(PLAN):
        raise InputError(
            f"there is a campaign at {storage.address}", hint="give each campaign its own prefix"
        )
    storage.upload(campaign, [*(name for name in _files(campaign) if name != PLAN), PLAN])
    click.echo(f"uploaded: {storage.address}", err=True)


def _files(folder: Path) -> list[str]:
    """Return the names of all files below a folder, without locks and links."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".")
    )
