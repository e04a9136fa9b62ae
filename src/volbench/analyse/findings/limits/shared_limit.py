"""shared-limit: two volumes of a campaign are on the same disk."""

from __future__ import annotations

from collections.abc import Iterator

from volbench.analyse.findings.rule import Rule
from volbench.analyse.findings.wording import several
from volbench.analyse.frames.campaign_context import Context
from volbench.analyse.frames.run_view import RunView
from volbench.model.results.finding import Finding, Severity


def check(view: RunView, context: Context) -> Iterator[Finding]:
    """Yield a finding when a volume of another role on the same host shares its disk."""
    on_host = context.disks[view.run.host]
    shared = {
        role: view.disks & disks
        for role, disks in on_host.items()
        if role != view.run.volume.role and view.disks & disks
    }
    if not shared:
        return
    disks = sorted(set().union(*shared.values()))
    yield RULE.finding(
        view,
        f"{view.run.volume.role} and {several(sorted(shared))} are on the same disk"
        f" ({', '.join(disks)}), so they share one limit.",
        {"disks": ", ".join(disks), "roles": ", ".join([view.run.volume.role, *sorted(shared)])},
    )


RULE = Rule(
    id="shared-limit",
    title="two volumes share a disk and its limit",
    severity=Severity.WARNING,
    looks_at=(
        "The block device of each volume and its backing disks, as the kernel reports them,"
        " against those of other roles on the same host."
    ),
    why=(
        "I/O on one volume uses operations and credits of the other, so the roles are not"
        " independent measurements, and the limit may be that of the shared disk."
    ),
    advice="Put the volumes on disks of their own, or measure only one of them.",
    check=check,
)
