"""Metadata services on loopback that answer what AWS, Azure and Google Cloud document."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

AWS = {
    ("PUT", "/latest/api/token"): "AQAEAO==",
    ("GET", "/latest/meta-data/instance-type"): "m5.large",
}
AZURE_DISK = {
    "diskSizeGB": "256",
    "isUltraDisk": "false",
    "lun": "0",
    "managedDisk": {"storageAccountType": "Premium_LRS"},
    "bytesPerSecondThrottle": "0",
    "opsPerSecondThrottle": "0",
}
GCP_DISK = {"deviceName": "data-1", "index": 1, "type": "PERSISTENT-BALANCED"}
Answers = Mapping[tuple[str, str], str]


def azure(**changes: object) -> Answers:
    """Return the answers of Azure, for a machine with one data disk."""
    profile = {"dataDisks": [AZURE_DISK | changes]}
    compute = {"vmSize": "Standard_B2s", "storageProfile": profile}
    path = "/metadata/instance/compute?api-version=2021-02-01&format=json"
    return {("GET", path): json.dumps(compute)}


def gcp(**changes: object) -> Answers:
    """Return the answers of Google Cloud."""
    instance = {
        "machineType": "projects/1/machineTypes/n2-standard-4",
        "disks": [GCP_DISK | changes],
    }
    return {("GET", "/computeMetadata/v1/instance/?recursive=true"): json.dumps(instance)}


HEADERS = {  # without them the services answer nothing
    "/latest/api/token": "X-aws-ec2-metadata-token-ttl-seconds",
    "/latest/meta-data/instance-type": "X-aws-ec2-metadata-token",
    "/metadata/instance/compute": "Metadata",
    "/computeMetadata/v1/instance/": "Metadata-Flavor",
}


@contextmanager
def service(answers: Answers, *, drops: bool = False, moved_to: str = "") -> Iterator[str]:
    """Yield the address of a service."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = answers.get((self.command, self.path))
            header = HEADERS.get(self.path.partition("?")[0], "")
            if moved_to:
                self.send_response(302)
                self.send_header("Location", moved_to + self.path)
                self.end_headers()
                return
            self.send_response(404 if text is None or header not in self.headers else 200)
            self.end_headers()
            for part in (text or "") if drops else [text or ""]:
                self.wfile.write(part.encode())
                self.wfile.flush()
                time.sleep(0.3 if drops else 0)

        do_PUT = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # its client gave up
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
