"""HTTP server of a running campaign's metrics, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from volbench.errors import InputError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from volbench.model.campaign.event import Listener
    from volbench.store.layout import Layout


@dataclass(frozen=True)
class MetricsServer:
    """A server that listens."""

    registry: CollectorRegistry  # what it serves
    url: str  # its address


@contextmanager
def serve_metrics(port: int | None, address: str) -> Iterator[MetricsServer | None]:
    """Serve metrics inside the block, none of them yet.

    Args:
        port: to listen on; 0 for any free one, None for no server.
    """
    if port is None:
        yield None
        return
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise InputError(
            "--metrics-port needs prometheus_client, which is not installed",
            hint="pip install 'volbench[metrics]'",
        ) from error
    registry = CollectorRegistry()
    try:
        server, thread = start_http_server(port, address, registry)
    except OSError as error:
        raise InputError(
            f"metrics cannot be served on {address}, port {port}: {error.strerror}",
            hint="choose another --metrics-port, or an address of this machine",
        ) from error
    try:
        host = f"[{address}]" if ":" in address else address
        yield MetricsServer(registry, f"http://{host}:{server.server_port}/metrics")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def metrics_of(layout: Layout, server: MetricsServer | None) -> list[Listener]:
    """Return the listener that keeps a campaign's metrics for a server; none without one."""
    if server is None:
        return []
    from volbench.present.export.live_metrics import LiveMetrics
    from volbench.store.archive import read_campaign

    hosts = read_campaign(layout.root)[1].provenance.hosts
    metrics = LiveMetrics(layout, {facts.host: facts.cpus for facts in hosts})
    server.registry.register(metrics)
    click.echo(f"metrics: {server.url}", err=True)
    return [metrics]
