"""Options --confirm of trend and compare, with the consent that it needs, and --baseline of run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.additions import Addition, Additions
from volbench.cli.hosts import HOST_KEYS
from volbench.cli.options import (
    ALLOW_DESTROY,
    ALLOW_EXEC,
    ALLOW_SHARED_FOLDER,
    GRACE,
    YES,
    consent_options,
    flag,
    given_option,
    option_group,
    settings_options,
)
from volbench.cli.start import StartOptions
from volbench.errors import InputError

if TYPE_CHECKING:
    from volbench.engine.campaign.campaign_state import Settings
    from volbench.execute.connect import HostKeyPolicy
    from volbench.model.campaign.planned_run import Consent
    from volbench.store.layout import Layout


@dataclass(frozen=True)
class Confirmation(Addition):
    """Whether alarming workloads are measured again, and what that may do."""

    confirm: bool
    yes: bool  # skip the confirmation of a long repetition
    consent: Consent
    execution: Settings
    host_keys: HostKeyPolicy
    allow_exec: bool  # accept options that run programs or leave the run's folder

    def confirmed(self, result: Any, *asked: Any) -> Any:  # noqa: ANN401 - as it was given
        """Return a result; with --confirm, what alarms is measured again.

        Args:
            asked: as for `Addition`.
        """
        if not self.confirm:
            if bad := given_option(
                "yes", "allow_destroy", "wipe_signatures", "allow_shared_folder"
            ):
                message = f"{bad} is for measuring again"
                raise InputError(message, hint="add --confirm, or leave it out")
            return result
        start = StartOptions(
            output=None,
            consent=self.consent,
            dry_run=False,
            yes=self.yes,
            execution=self.execution,
            added=Additions({}),
            allow_exec=self.allow_exec,
        )
        return _judged_again(start, self.host_keys, result, *asked)


def _judged_again(start: StartOptions, keys: HostKeyPolicy, *asked: Any) -> Any:  # noqa: ANN401 - as asked
    from volbench.extensions.confirming.judgement import judged_again
    from volbench.extensions.confirming.repetition import repeat_campaign

    measure = partial(repeat_campaign, start=start, keys=keys, output=asked[4])
    return judged_again(*asked[:4], measure=measure)


@dataclass(frozen=True)
class Baseline(Addition):
    """Campaign with which a new one is compared when it has ended."""

    baseline: Path | None

    def __post_init__(self) -> None:
        """Refuse a baseline where nobody waits for the end, or nothing can be measured again."""
        if self.baseline is not None and (given := given_option("detach", "k8s")):
            raise InputError(
                f"--baseline waits for a campaign and measures alarms again, unlike {given}",
                hint="compare when it has ended: volbench compare BASELINE FOLDER --baseline",
            )

    def judged(self, layout: Layout, *start: Any) -> None:  # noqa: ANN401 - as there
        """Fail if a campaign is worse than its baseline, and is again when repeated once.

        Args:
            start: as for `Addition`.
        """
        if self.baseline is None:
            return
        from volbench.analyse.compare.comparison import Question
        from volbench.cli.compare import TOLERANCE, compared, fail_on_regression
        from volbench.present.tables.compare_table import comparison_table

        begun, host_keys, table_output = start
        asked = [self.baseline, layout.root], Question(tolerance=TOLERANCE), "", table_output
        again = replace(begun, dry_run=False, yes=True, added=Additions({}))
        comparison = _judged_again(again, host_keys, compared(*asked), *asked)
        if table_output.format == "table":  # beside the results, which are one document
            table_output.write(comparison_table(comparison, is_brief=table_output.is_brief))
        fail_on_regression(comparison)


BASELINE = option_group(
    "confirming",
    Baseline,
    click.option(
        "--baseline",
        type=click.Path(exists=True, path_type=Path),
        metavar="DIR",
        help="Compare with the campaign in DIR at the end; what is more than 5 % worse is measured "
        "again, and exits with 10 if it is worse again, with 11 if that could not be seen.",
    ),
)

CONFIRM = option_group(
    "confirming",
    Confirmation,
    flag("--confirm", "Measure alarms again: three repeats, into .confirmed beside the campaign."),
    YES,
    consent_options(ALLOW_DESTROY, ALLOW_SHARED_FOLDER),
    settings_options(GRACE),
    HOST_KEYS,
    ALLOW_EXEC,
    heading="Measuring again (--confirm)",
)
