"""Addition to resume: the end of a killed watch, with all recorded samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volbench.cli.additions import Addition
from volbench.cli.options import option_group

if TYPE_CHECKING:
    from volbench.cli.output import TableOutput
    from volbench.model.campaign.planned_run import Campaign
    from volbench.store.layout import Layout


class EndedWatch(Addition):
    """A killed watch, which cannot be continued."""

    def concluded(self, layout: Layout, campaign: Campaign, table_output: TableOutput) -> bool:
        """Record the end of a watch that was killed, and show it."""
        if not campaign.is_watched:
            return False
        from volbench.cli.results import show_results
        from volbench.extensions.watching.killed_watch import conclude_killed
        from volbench.extensions.watching.watch_loop import check_recorded

        if not conclude_killed(layout, campaign):
            return False
        click.echo("the watch was killed: its samples until then are kept", err=True)
        show_results(layout, table_output)
        check_recorded(layout, campaign)
        return True


ENDED_WATCH = option_group("ended_watch", EndedWatch)
