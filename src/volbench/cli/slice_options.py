"""What slices add to the verbs of the core: options, and hosts that are made for a campaign."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Protocol

from volbench.cli.options import Decorator, Metrics, OptionGroup, Tracing, Verb
from volbench.errors import InputError
from volbench.extension import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from volbench.cli.output import TableOutput
    from volbench.engine.campaign.prepare import CampaignRequest
    from volbench.engine.hosts.connected_host import ConnectedHost
    from volbench.model.campaign.host import Host

_SLICE = "volbench.extensions.kubernetes.pod_options"


class Placement(Protocol):
    """Hosts that are made for a new campaign."""

    @property
    def has_directories(self) -> bool:
        """Whether the volumes of the hosts are directories, not devices."""

    def hosts(
        self, request: CampaignRequest, *, yes: bool, stays: bool
    ) -> AbstractContextManager[tuple[CampaignRequest, list[ConnectedHost]]]:
        """Make hosts; yield the campaign on them, and the hosts, which are removed at the end.

        All that may be refused or asked is settled before they are made.

        Args:
            yes: whether a long campaign is agreed to.
            stays: whether the hosts stay, as the campaign goes on in the background.
        """

    def show_plan(self, request: CampaignRequest, table_output: TableOutput) -> None:
        """Print the plan of a campaign without making its hosts."""


class ProvisionedHosts(Protocol):
    """Hosts that were made for a campaign."""

    def revived(self, hosts: Sequence[Host], root: Path) -> AbstractContextManager[Sequence[Host]]:
        """Find hosts again, or make them again; they are removed at the end of the campaign."""

    def removed(
        self, hosts: Sequence[Host], root: Path, *, planned: Sequence[Host]
    ) -> AbstractContextManager[Sequence[Host]]:
        """Yield the hosts that are still there, and then remove all that were made.

        Args:
            planned: all hosts of the campaign; none to leave the made ones there.
        """


class _NoneMade:
    """Hosts where the slice is absent: machines, which nobody makes; pods are refused."""

    def revived(self, hosts: Sequence[Host], root: Path) -> AbstractContextManager[Sequence[Host]]:
        return self.removed(hosts, root, planned=())

    def removed(
        self, hosts: Sequence[Host], _root: Path, *, planned: Sequence[Host]
    ) -> AbstractContextManager[Sequence[Host]]:
        if any(host.pod for host in (*hosts, *planned)):
            raise InputError("these hosts need an extension that is not installed")
        return nullcontext(hosts)


def _from_slice(name: str, keyword: str, absent: object, verb: Verb) -> Verb:
    """Add options of the slice to a verb; without the slice, only ones that say what is missing."""
    try:
        decorator: Decorator = load(f"{_SLICE}:{name}")
    except ImportError:
        pass
    else:
        return decorator(verb)

    @wraps(verb)
    def wrapped(*arguments: object, **given: object) -> None:
        verb(*arguments, **{keyword: absent}, **given)

    return wrapped


# Add the options of hosts that are made for a new campaign, as the keyword `placement`: a
# `Placement`, or None where they are not asked for
with_placement = partial(_from_slice, "in_pods", "placement", None)

# Add the options of a resumed campaign's hosts, and of those that are removed, as the keyword
# `made`: `ProvisionedHosts`
with_revived_hosts = partial(_from_slice, "on_resume", "made", _NoneMade())
with_removed_hosts = partial(_from_slice, "on_reap", "made", _NoneMade())


def options_of_slice(reference: str, keyword: str, *, absent: object) -> Decorator:
    """Return a decorator that gives a verb the options of a slice as one keyword.

    Args:
        reference: a decorator of the slice; see `volbench.extension.load`.
        absent: value of the keyword where the slice is absent.
    """
    try:
        decorator: Decorator = load(reference)
    except ImportError:
        pass
    else:
        return decorator

    def add(verb: Verb) -> Verb:
        @wraps(verb)
        def wrapped(*arguments: object, **given: object) -> None:
            verb(*arguments, **{keyword: absent}, **given)

        return wrapped

    return OptionGroup(keyword, add)


# Adds the options of what is served to a verb, as the keyword `metrics`
WITH_METRICS = options_of_slice(
    "volbench.extensions.monitoring.metrics_server:METRICS", "metrics", absent=Metrics()
)

# Adds the options of a recording of each I/O to a verb, as the keyword `tracing`
WITH_TRACE = options_of_slice(
    "volbench.extensions.traces.trace_options:TRACE", "tracing", absent=Tracing()
)
