"""Listener of campaigns in pods: runs whose pods have ended are recorded as lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from volbench.extensions.kubernetes.pod_settings import KIND

if TYPE_CHECKING:
    from volbench.model.campaign.host import Host
    from volbench.store.layout import Layout


@contextmanager
def noted_losses(layout: Layout, hosts: Sequence[Host]) -> Iterator[None]:
    """Record the runs that are lost with their pods when an error ends the campaign."""
    try:
        yield
    except BaseException as error:
        if any(host.kind == KIND for host in hosts):
            from volbench.extensions.kubernetes.resumed_pods import record_losses

            record_losses(hosts, layout.root, error)
        raise
