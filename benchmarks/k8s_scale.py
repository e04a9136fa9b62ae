"""Measure what a campaign on many volumes of a Kubernetes cluster costs its controller.

The API server is simulated, in a process of its own: it answers over TLS after a round trip, keeps
objects, starts the pods of a StatefulSet on its nodes little by little, and passes the streams of
their execs to simulated hosts (`fleet_clients.py`). The controller is the real one. Needs root, for
mounts of its own.

    python benchmarks/k8s_scale.py [PODS [NODES]]
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import random
import re
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, unquote_plus, urlsplit

from fleet_clients import Simulator
from measured import Figure, print_figures

MAX_MB = 500
MAX_CORES = 0.5
MAX_CALLS = 10
PATIENCE_S = 1500
ROUND_TRIP_S = 0.02
PODS_PER_S = 20  # A large cluster starts some tens of pods a second.
PROFILE = """
name: scale
jobs:
  a: {rw: randread, bs: 4k, size: 2m, runtime: 20s, time_based: 1, ioengine: psync, rate_iops: 200}
"""
_PATH = re.compile(r"/apis?/(?:[^/]+/)?v1/(?:namespaces/[^/]+/)?([a-z]+)(?:/([^/]+))?(?:/(\w+))?$")
_BOOTSTRAP = re.compile(r"buffer\.read\((\d+)\)")
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
_STDIN, _STDOUT = 0, 1


def host_name(number: int) -> str:
    """Return the name of a simulated host; all are of one length."""
    return f"sim-{number:04d}"


class WebSocket:
    """Output of a program in a pod, as messages of a web socket."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Write to standard output."""
        for start in range(0, len(data), 32768):
            part = bytes([_STDOUT]) + data[start : start + 32768]
            size = len(part)
            head = bytes([size]) if size < 126 else struct.pack("!BH", 126, size)
            self._writer.write(b"\x82" + head + part)

    def close(self) -> None:
        """End the connection."""
        self._writer.close()


class ApiServer:
    """Objects of a namespace, and the pods that its controllers and nodes would make."""

    def __init__(self, nodes: int, folder: Path) -> None:
        self._nodes = nodes
        self._folder = folder
        self._objects: dict[str, dict[str, dict[str, Any]]] = {}
        self._hosts = Simulator(ROUND_TRIP_S, host_name(0))
        self._calls: Counter[str] = Counter()
        self._streams = 0
        self._tasks = set[asyncio.Task[None]]()
        for number in range(nodes):
            info = {"systemUUID": f"machine-{number}"}
            self._put("nodes", {"metadata": {"name": f"n{number}"}, "status": {"nodeInfo": info}})
        self._put("storageclasses", {"metadata": {"name": "sim"}, "provisioner": "example.com"})

    def _put(self, kind: str, item: dict[str, Any]) -> dict[str, Any]:
        item["metadata"].setdefault("uid", f"u-{kind}-{item['metadata']['name']}")
        item["metadata"]["resourceVersion"] = str(time.monotonic_ns())
        self._objects.setdefault(kind, {})[item["metadata"]["name"]] = item
        return item

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target, _ = head.partition("\r\n")[0].split(" ")
                headers = dict(re.findall(r"(?m)^([\w-]+): (.*?)\r$", head.lower()))
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                await asyncio.sleep(ROUND_TRIP_S)
                found = _PATH.match(urlsplit(target).path)
                kind, name, part = (
                    (text or "" for text in found.groups()) if found else ("", "", "")
                )
                verb = method if name or method != "GET" else "LIST"
                self._calls[f"{'EXEC' if part else verb} {kind}"] += 1
                if part == "exec":
                    await self._exec(name, head, reader, writer)
                    return
                query = parse_qs(urlsplit(target).query)
                status, answer = self._answer(method, kind, name, query, json.loads(body or b"{}"))
                data = json.dumps(answer).encode()
                lines = (
                    f"HTTP/1.1 {status} X",
                    f"Date: {format_datetime(datetime.now(UTC), usegmt=True)}",
                    "Content-Type: application/json",
                    f"Content-Length: {len(data)}\r\n\r\n",
                )
                writer.write("\r\n".join(lines).encode() + data)
        writer.close()

    def _answer(
        self, method: str, kind: str, name: str, query: dict[str, list[str]], body: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        known = self._objects.setdefault(kind, {})
        if method == "GET" and not name:
            pairs = query.get("labelSelector", [""])[0].split(",")
            wanted = dict(pair.split("=") for pair in pairs if "=" in pair)
            labels = {key: item["metadata"].get("labels", {}) for key, item in known.items()}
            return 200, {
                "items": [i for k, i in known.items() if wanted.items() <= labels[k].items()]
            }
        if method == "POST":
            return self._create(kind, body, is_dry="dryRun" in query)
        if name not in known:
            return 404, {"message": f"{kind} {name} not found"}
        if method == "PATCH":
            known[name].setdefault("spec", {}).update(body.get("spec", {}))
            self._put(kind, known[name])
        found = known[name]
        if method == "DELETE":
            del known[name]
            for owned in ("pods", "persistentvolumeclaims") if kind == "statefulsets" else ():
                self._objects[owned] = {}
        return 200, found

    def _create(
        self, kind: str, body: dict[str, Any], *, is_dry: bool
    ) -> tuple[int, dict[str, Any]]:
        if is_dry:
            return 201, body
        if body["metadata"]["name"] in self._objects[kind]:
            return 409, {"message": "it exists"}
        if kind == "statefulsets":
            self._start(self._make_pods(body))
        return 201, self._put(kind, body)

    def _start(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _make_pods(self, owner: dict[str, Any]) -> None:
        spec = owner["spec"]
        made = []
        for number in range(spec["replicas"]):
            name = f"{owner['metadata']['name']}-{number}"
            labels = spec["template"]["metadata"]["labels"]
            claim = {"name": f"data-{name}", "labels": labels}
            volume = {"volumeName": f"pv-{number}", "storageClassName": "sim"}
            size = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
            self._put("persistentvolumeclaims", {"metadata": claim, "spec": volume, "status": size})
            csi = {"csi": {"driver": "example.com", "volumeHandle": f"disk-{number}"}}
            self._put("persistentvolumes", {"metadata": {"name": f"pv-{number}"}, "spec": csi})
            pod = {"metadata": {**deepcopy(spec["template"]["metadata"]), "name": name}}
            pod |= {"spec": deepcopy(spec["template"]["spec"]), "status": {"phase": "Pending"}}
            made.append(self._put("pods", pod))
        for number, pod in enumerate(made):
            await asyncio.sleep(random.expovariate(PODS_PER_S))
            pod["spec"]["nodeName"] = f"n{number % self._nodes}"
            ready = [{"type": "Ready", "status": "True"}]
            pod["status"] = {"phase": "Running", "conditions": ready}

    async def _exec(
        self, pod: str, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass the messages of a web socket to a simulated host."""
        key = re.findall(r"(?mi)^sec-websocket-key: (.*?)\r$", head)[0]
        accepted = base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode()).digest())  # noqa: S324 - of the protocol
        writer.write(
            b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\nSec-WebSocket-Accept: "
            + accepted
            + b"\r\n\r\n"
        )
        number = int(pod.rpartition("-")[2])
        host = asyncio.StreamReader(limit=1 << 26)
        _feed(host, host_name(number).encode())
        self._start(self._hosts.serve(host, WebSocket(writer)))
        self._streams += 1
        (size,) = _BOOTSTRAP.findall(unquote_plus(head))
        waiting, rest = bytearray(), int(size)
        while message := await _message(reader):
            if message[0] != _STDIN:
                continue
            waiting += message[1:]
            while waiting:
                size = rest or waiting.find(b"\n") + 1
                if not size or len(waiting) < size:
                    break
                _feed(host, bytes(waiting[:size]))
                del waiting[:size]
                rest = 0
        host.feed_eof()

    async def report(self) -> None:
        """Write down what was asked, again and again."""
        while True:
            found = {"calls": self._calls, "streams": self._streams}
            (self._folder / "asked").write_text(json.dumps(found))
            await asyncio.sleep(1)


def _feed(host: asyncio.StreamReader, message: bytes) -> None:
    host.feed_data(struct.pack("!I", len(message)) + message)


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Return the next message of a client; empty for the end."""
    first, size = await reader.readexactly(2)
    size &= 127
    if size == 126:
        (size,) = struct.unpack("!H", await reader.readexactly(2))
    mask = await reader.readexactly(4)
    data = await reader.readexactly(size)
    if first & 15 == 8:
        return b""
    repeated = (mask * (size // 4 + 1))[:size]
    plain = int.from_bytes(data) ^ int.from_bytes(repeated)
    return plain.to_bytes(size) or b"\xff"


async def _serve(folder: Path, nodes: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server = ApiServer(nodes, folder)
    listening = await asyncio.start_server(
        server.serve, "127.0.0.1", 0, ssl=context, backlog=2000, limit=1 << 26
    )
    port = listening.sockets[0].getsockname()[1]
    (folder / "port").write_text(str(port))
    await server.report()


def control(folder: Path, pods: int) -> None:
    """Run the campaign, in a process of its own."""
    from volbench.cli.main import main  # noqa: PLC0415 - only the child needs it
    from volbench.extensions.kubernetes import manifests, pod_executor, pod_placement  # noqa: PLC0415

    def names(_spec: object) -> list[str]:
        return [host_name(number) for number in range(pods)]

    words = [
        "run",
        str(folder / "p.yaml"),
        "--k8s",
        "--storage-class",
        "sim",
        "--claim-size",
        "1Gi",
    ]
    words += ["--replicas", str(pods), "--pod", "image=i:1"]
    os.environ["KUBECONFIG"] = str(folder / "config")
    with (
        mock.patch.object(manifests, "DATA_MOUNT", str(folder / "data")),
        mock.patch.object(pod_executor, "WORK_MOUNT", str(folder / "work")),
        mock.patch.object(pod_placement, "host_names", names),
    ):
        main([*words, "--output", str(folder / "out"), "--yes"])


def _prepare(folder: Path) -> None:
    (folder / "p.yaml").write_text(PROFILE)
    for name in ("data", "work"):
        (folder / name).mkdir()
    subprocess.run(["mount", "--bind", folder / "data", folder / "data"], check=True)  # noqa: S603, S607
    subprocess.run(  # noqa: S603
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",  # noqa: S607
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem",
         "-out", folder / "cert.pem"],
        check=True,
        capture_output=True,
    )  # fmt: skip


def _write_config(folder: Path, port: str) -> None:
    cluster = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority": str(folder / "cert.pem"),
    }
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "sim"}}],
        "current-context": "c",
    }
    (folder / "config").write_text(json.dumps(content))


def _looks(process: subprocess.Popen[bytes], folder: Path) -> Iterator[dict[str, float]]:
    """Yield what the controller uses, once a second."""
    began_s = time.monotonic()
    while process.poll() is None:
        time.sleep(1)
        if time.monotonic() - began_s > PATIENCE_S:
            process.kill()
        with suppress(OSError, IndexError, KeyError):  # it has just ended
            text = Path(f"/proc/{process.pid}/status").read_text()
            status = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
            times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            path = folder / "out" / "journal.jsonl"
            journal = path.read_text() if path.exists() else ""
            yield {
                "at_s": time.monotonic() - began_s,
                "threads": int(status["Threads"]),
                "mb": int(status["VmRSS"].split()[0]) / 1e3,
                "descriptors": len([*Path(f"/proc/{process.pid}/fd").iterdir()]),
                "cpu_s": sum(map(int, times)) / os.sysconf("SC_CLK_TCK"),
                "started": journal.count('"since_utc"'),
                "ended": journal.count('"finished"'),
            }


def measure(pods: int, nodes: int, folder: Path) -> list[Figure]:
    """Return what a campaign on so many pods costs."""
    _prepare(folder)
    here = [sys.executable, str(Path(__file__).resolve())]
    server = subprocess.Popen([*here, "--serve", str(folder), str(nodes)])  # noqa: S603
    try:
        while not (folder / "port").exists():
            time.sleep(0.1)
        _write_config(folder, (folder / "port").read_text())
        with (folder / "said").open("wb") as said:
            argv = [*here, "--control", str(folder), str(pods)]
            process = subprocess.Popen(argv, stdout=said, stderr=said, cwd=folder)  # noqa: S603
            looks = list(_looks(process, folder))
        time.sleep(1.5)  # until the server has reported
        asked = json.loads((folder / "asked").read_text())
    finally:
        server.kill()
        server.wait()
    if process.returncode:
        sys.exit((folder / "said").read_text()[-3000:])
    calls = Counter(asked["calls"])
    print(f"{asked['streams']} streams; calls:", calls.most_common())
    running = [look for look in looks if look["started"] >= pods and not look["ended"]] or looks[
        -2:
    ]
    spent_s = running[-1]["at_s"] - running[0]["at_s"]
    cores = (running[-1]["cpu_s"] - running[0]["cpu_s"]) / max(spent_s, 1)
    whole = f"{looks[-1]['at_s']:.0f} s in all, {looks[-1]['cpu_s']:.0f} s of CPU"
    name = f"{pods} pods"
    return [
        Figure(
            f"{name}: API calls for each", sum(calls.values()) / pods, "", MAX_CALLS, note=whole
        ),
        Figure(f"{name}: threads", max(look["threads"] for look in looks), ""),
        Figure(f"{name}: descriptors", max(look["descriptors"] for look in looks), ""),
        Figure(
            f"{name}: memory while they run",
            max(look["mb"] for look in looks if look["ended"] < pods),
            "MB",
            MAX_MB,
            note=f"{max(look['mb'] for look in looks):.0f} MB at the end",
        ),
        Figure(f"{name}: cores while all run", cores, "", MAX_CORES, note=f"over {spent_s:.0f} s"),
    ]


def main() -> None:
    """Measure and print."""
    match sys.argv[1:]:
        case ["--serve", folder, nodes]:
            asyncio.run(_serve(Path(folder), int(nodes)))
        case ["--control", folder, pods]:
            control(Path(folder), int(pods))
        case ["--inside", pods, nodes]:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                figures = measure(int(pods), int(nodes), Path(folder))
                subprocess.run(["umount", f"{folder}/data"], check=True)  # noqa: S603, S607
            sys.exit(print_figures(figures))
        case given:
            pods, nodes = (*given, "1000", "100")[:2] if len(given) != 1 else (given[0], "100")
            argv = ["unshare", "--mount", sys.executable, __file__, "--inside", pods, nodes]
            sys.exit(subprocess.run(argv, check=False).returncode)  # noqa: S603


if __name__ == "__main__":
    main()
