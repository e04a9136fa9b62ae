"""HTTP server of a running campaign's metrics, for Prometheus, and its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from volbench.cli.additions import Addition
from volbench.cli.options import ListenersOf, Quantity, option_group
from volbench.errors import InputError
from volbench.extras import install_command

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from volbench.model.campaign.event import Listener
    from volbench.store.layout import Layout


_LOOPBACK = "127.0.0.1"
_MAX_PORT = 65_535


class MetricsAddress(NamedTuple):
    """Where metrics are served."""

    address: str  # of this machine; empty for the loopback address
    port: int  # to listen on; 0 for any free one


@dataclass(frozen=True)
class ServedMetrics(Addition):
    """Where metrics of a campaign are served while it runs."""

    metrics: MetricsAddress | None  # None for no server

    def kept(self) -> dict[str, Any]:
        """Return address and port."""
        return {"metrics": self.metrics}

    def again(self, kept: Mapping[str, Any]) -> ServedMetrics:
        """Return the metrics with address and port of a campaign in the background."""
        metrics = kept.get("metrics")
        return self if metrics is None else ServedMetrics(MetricsAddress(*metrics))

    @contextmanager
    def served(self) -> Iterator[ListenersOf]:
        """Serve metrics inside the block, none of them yet.

        Yields:
            A function that adds the metrics of a campaign, and returns the listeners that they
            need; none without a server.
        """
        if self.metrics is None:
            yield lambda _layout: []
            return
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError as error:
            raise InputError(
                "--metrics needs prometheus_client, which is not installed",
                hint=f"install it: {install_command('metrics')}",
            ) from error
        registry, address = CollectorRegistry(), self.metrics.address or _LOOPBACK
        try:
            server, thread = start_http_server(self.metrics.port, address, registry)
        except OSError as error:
            raise InputError(
                f"metrics cannot be served on {address}, port {self.metrics.port}:"
                f" {error.strerror}",
                hint="choose another port, or an address of this machine",
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


def _parse_metrics(text: str) -> MetricsAddress:
    """Return address and port of ``[ADDRESS:]PORT``."""
    address, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise InputError(
            f"{text!r} is not a port, or an address and a port",
            hint="write it like --metrics 9400 or --metrics 10.0.0.5:9400",
        )
    return MetricsAddress(address.removeprefix("[").removesuffix("]"), int(port))


METRICS = option_group(
    "metrics",
    ServedMetrics,
    click.option(
        "--metrics",
        type=Quantity("METRICS", _parse_metrics),
        metavar="[ADDRESS:]PORT",
        help="Serve progress and device samples to Prometheus while it runs, without "
        "authentication; port 0 for any free one. Default address: 127.0.0.1. Needs the extra "
        "volbench[metrics].",
    ),
)
