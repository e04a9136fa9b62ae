"""HTTP server of a running campaign's metrics, for Prometheus, and its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from volbench.cli.additions import Addition
from volbench.cli.options import ListenersOf, option_group
from volbench.errors import InputError
from volbench.extras import install_command

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from volbench.model.campaign.event import Listener
    from volbench.store.layout import Layout


@dataclass(frozen=True)
class ServedMetrics(Addition):
    """Where metrics of a campaign are served while it runs."""

    metrics_port: int | None  # to listen on; 0 for any free one, None for no server
    metrics_address: str  # of this machine

    def kept(self) -> dict[str, Any]:
        """Return port and address."""
        return asdict(self)

    def again(self, kept: Mapping[str, Any]) -> ServedMetrics:
        """Return the metrics with port and address of a campaign in the background."""
        return replace(self, **kept)

    @contextmanager
    def served(self) -> Iterator[ListenersOf]:
        """Serve metrics inside the block, none of them yet.

        Yields:
            A function that adds the metrics of a campaign, and returns the listeners that they
            need; none without a server.
        """
        if self.metrics_port is None:
            yield lambda _layout: []
            return
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError as error:
            raise InputError(
                "--metrics-port needs prometheus_client, which is not installed",
                hint=f"install it: {install_command('metrics')}",
            ) from error
        registry, address = CollectorRegistry(), self.metrics_address
        try:
            server, thread = start_http_server(self.metrics_port, address, registry)
        except OSError as error:
            raise InputError(
                f"metrics cannot be served on {address}, port {self.metrics_port}:"
                f" {error.strerror}",
                hint="choose another --metrics-port, or an address of this machine",
            ) from error
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{server.server_port}/metrics"
        try:
            yield lambda layout: [_registered(layout, registry, url)]
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _registered(layout: Layout, registry: CollectorRegistry, url: str) -> Listener:
    """Add a campaign to what is served."""
    from volbench.extensions.monitoring.live_metrics import LiveMetrics
    from volbench.store.archive import read_campaign

    hosts = read_campaign(layout.root)[1].provenance.hosts
    metrics = LiveMetrics(layout, {facts.host: facts.cpus for facts in hosts})
    registry.register(metrics)
    click.echo(f"metrics: {url}", err=True)
    return metrics


METRICS = option_group(
    "metrics",
    ServedMetrics,
    click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help="Serve progress and device samples to Prometheus on this port while it runs; 0 for "
        "any free one. Needs the extra volbench[metrics].",
    ),
    click.option(
        "--metrics-address",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="Address of this machine to serve them on; there is no authentication.",
    ),
    heading="Metrics",
)
