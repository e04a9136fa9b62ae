"""Option --confirm of trend and compare, and the consent that a repetition needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    from pathlib import Path

    from volbench.engine.campaign.campaign_state import Settings
    from volbench.execute.connect import HostKeyPolicy
    from volbench.model.campaign.planned_run import Consent


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
            given = given_option("yes", "allow_destroy", "wipe_signatures", "allow_shared_folder")
            if given:
                message = f"{given} is for measuring again"
                raise InputError(message, hint="add --confirm, or leave it out")
            return result
        from volbench.extensions.confirming.judgement import judged_again
        from volbench.extensions.confirming.repetition import repeat_campaign

        start = StartOptions(
            output=None,
            consent=self.consent,
            dry_run=False,
            yes=self.yes,
            execution=self.execution,
            added=Additions({}),
            allow_exec=self.allow_exec,
        )

        def measure(folder: Path, jobs: set[str]) -> Path:
            keys = self.host_keys
            return repeat_campaign(folder, jobs, start=start, host_keys=keys, output=asked[3])

        return judged_again(result, *asked[:3], measure=measure)


CONFIRM = option_group(
    "confirming",
    Confirmation,
    flag(
        "--confirm",
        "Measure alarms again: three repeats, into .confirmed beside the campaign.",
    ),
    YES,
    consent_options(ALLOW_DESTROY, ALLOW_SHARED_FOLDER),
    settings_options(GRACE),
    HOST_KEYS,
    ALLOW_EXEC,
    heading="Measuring again (--confirm)",
)
