"""Prometheus server that scrapes a campaign."""

import json
import random
import socket
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.real import prometheus_program
from tests.waiting import PATIENCE_S, until

CONFIG = """\
global: {scrape_interval: 500ms, scrape_timeout: 500ms}
scrape_configs:
  - job_name: benchmarks
    honor_labels: true
    static_configs: [{targets: ["127.0.0.1:PORT"]}]
"""
"""As in docs/how-to/prometheus-and-grafana.md, but faster."""


def free_port() -> int:
    """Return a port on loopback that nobody listens on and the kernel gives to no connection."""
    while True:
        port = random.randint(20000, 29999)  # noqa: S311 - below the kernel's ephemeral ports
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Prometheus:
    """A server in a folder of its own that scrapes a port."""

    def __init__(self, folder: Path, port: int) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        config.write_text(CONFIG.replace("PORT", str(port)), encoding="utf-8")
        self._process = subprocess.Popen(
            [
                prometheus_program("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self._url.removeprefix('http://')}",
                "--log.level=error",
            ]
        )
        until(self._is_ready)

    def _is_ready(self) -> bool:
        with suppress(URLError), urlopen(f"{self._url}/-/ready") as answer:  # noqa: S310 - loopback
            return bool(answer.status == 200)
        return False

    def query(self, promql: str, *, at_s: float | None = None) -> list[dict[str, object]]:
        """Return the series of an expression, now or at another moment."""
        query = urlencode({"query": promql, "time": at_s or time.time()})
        with urlopen(f"{self._url}/api/v1/query?{query}") as answer:  # noqa: S310 - loopback
            found = json.load(answer)
        return list(found["data"]["result"])

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)
