"""volbench verify: whether campaign folders are as they were recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volbench.cli.options import LOCAL_CAMPAIGNS, examples
from volbench.cli.output import TableOutput, table_options
from volbench.errors import ArchiveError

if TYPE_CHECKING:
    from volbench.ingest.verify_campaign import Difference, Verification
    from volbench.present.formatting import Row
    from volbench.present.tables.table import Table


@dataclass(frozen=True)
class _Checked:
    """Verification of a campaign folder; None where the campaign itself cannot be read."""

    path: Path
    found: Verification | None
    differences: Sequence[Difference]

    def document(self) -> dict[str, object]:
        """Return the result for JSON."""
        found = self.found
        return {
            "path": str(self.path),
            "is_intact": not self.differences,
            "files": 0 if found is None else found.files,
            "runs_without_checksums": [] if found is None else found.unrecorded,
            "signature": "unreadable" if found is None else found.signature or "valid",
            "differences": [
                {"file": found.file, "change": found.change.value, "reason": found.reason}
                for found in self.differences
            ],
        }

    def note(self) -> str:
        """Return what was verified, in a line."""
        if self.found is None:
            return f"{self.path}: cannot be read"
        state = "not as recorded" if self.differences else "as recorded"
        words = [f"{self.path}: {state}; files compared: {self.found.files}"]
        if self.found.unrecorded:
            words.append(f"runs without checksums: {len(self.found.unrecorded)}")
        words.append(f"plan and journal: {self.found.signature or 'signature valid'}")
        return "; ".join(words)


@click.command(
    "verify",
    epilog=examples("volbench verify results/quick", "volbench verify results --json"),
)
@LOCAL_CAMPAIGNS
@table_options()
def command(campaigns: Sequence[Path], *, shown: TableOutput) -> None:
    """Verify that the campaigns in DIR... are as they were recorded.

    Compares every raw file with its SHA-256 checksum, the plan and the journal with their
    signatures, and the stored tables with what the raw files give again. Exits with 7 if a file was
    changed, added, is missing or damaged.
    """
    from volbench.dataset import campaign_folders

    checked = [_verify(folder) for path in campaigns for folder in campaign_folders(path)]
    count = sum(len(campaign.differences) for campaign in checked)
    notes = "".join(f"{campaign.note()}\n" for campaign in checked)
    shown.write(_table(checked), text=None if count else lambda *_: notes)
    if count:
        raise ArchiveError(
            f"{count} {'file is' if count == 1 else 'files are'} not as recorded",
            hint="restore them from a backup; tables can be deleted, and are rebuilt",
        )


def _verify(folder: Path) -> _Checked:
    from volbench.api import CampaignData
    from volbench.errors import VolbenchError
    from volbench.ingest.verify_campaign import Change, Difference, verify_files
    from volbench.store.archive import read_campaign
    from volbench.store.journal import read_history

    layout, found = None, None
    try:
        layout, archive = read_campaign(folder)
        history = read_history(layout.journal)
        found = verify_files(layout, archive.campaign, history)
        tables = [
            Difference(f"tables/{name}.parquet", Change.CHANGED, "not what the raw files give")
            for name in CampaignData(layout, archive).changed_tables()
        ]
    except VolbenchError as error:
        place = "campaign.json" if layout is None else getattr(error, "path", "")
        reason = error.message.replace(f"{folder}/", "")
        damage = Difference(Path(place).name, Change.DAMAGED, reason)
        return _Checked(folder, found, [*(found.differences if found else ()), damage])
    return _Checked(folder, found, [*found.differences, *tables])


def _table(checked: Sequence[_Checked]) -> Table[Row]:
    from volbench.present.tables.table import IDENTITY, Column, Table

    columns: list[Column[Row]] = [
        Column("campaign", priority=2),
        Column("file", priority=IDENTITY),
        Column("change", priority=1),
        Column("reason", priority=1, is_folded=True, is_optional=True),
    ]
    return Table(
        "verify",
        columns,
        list(_rows(checked)),
        notes=[campaign.note() for campaign in checked],
        document=[campaign.document() for campaign in checked],
    )


def _rows(checked: Sequence[_Checked]) -> Iterator[Row]:
    for campaign in checked:
        for difference in campaign.differences:
            yield {
                "campaign": campaign.path.name,
                "file": difference.file,
                "change": difference.change.value,
                "reason": difference.reason,
            }
