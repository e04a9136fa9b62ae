"""Machine type and disks of this machine by the metadata service of its cloud.

Sources: "Use the Instance Metadata Service" (AWS, IMDSv2), "Azure Instance Metadata Service", and
"About VM metadata" (Google Cloud). Nothing else is contacted, no proxy, and no other address that
an answer names.
"""

import errno
import http.client
import json
import os
import re
import socket
import threading
import time
from urllib.parse import urlsplit

from volbench.execute.agent.agent_error import AgentError

TIMEOUT_S = 1.0  # of each request; the service is on the same physical machine
_MAX_BYTES = 1 << 20  # A description of a machine with all of its disks has some 20 KB
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LUN = re.compile(r"[0-9]{1,3}")
_AZURE_LINKS = ("/dev/disk/azure/scsi1/lun{}", "/dev/disk/azure/data/by-lun/{}")


def cloud_machine(endpoint: str) -> "dict[str, object]":
    """Return what the metadata service says of this machine; empty if it is of no known cloud.

    ``provider`` (aws, azure or gcp), ``machine``: its type, and ``disks``: of each ``device``, its
    kernel name, ``type`` as the provider names it, ``size_gib``, ``iops`` and ``bytes_per_s``; 0
    for unknown.

    Args:
        endpoint: address of the service, such as ``http://169.254.169.254``.
    """
    try:
        return _of_aws(endpoint) or _of_azure(endpoint) or _of_gcp(endpoint) or {}
    except (OSError, http.client.HTTPException) as error:
        reason = "no metadata service answers at {}: {}".format(endpoint, error)
        raise AgentError("missing", reason) from error


def _of_aws(endpoint: str) -> "dict[str, object] | None":
    path, header = "/latest/api/token", "X-aws-ec2-metadata-token"
    token = _ask(endpoint, path, {header + "-ttl-seconds": "60"}, method="PUT")
    if not token or not token.isprintable():
        return None
    machine = _ask(endpoint, "/latest/meta-data/instance-type", {header: token})
    return {"provider": "aws", "machine": _name(machine), "disks": []}


def _of_azure(endpoint: str) -> "dict[str, object] | None":
    path = "/metadata/instance/compute?api-version=2021-02-01&format=json"
    compute = _parsed(_ask(endpoint, path, {"Metadata": "true"}))
    if not _name(compute.get("vmSize")):
        return None
    disks = []
    for disk in _entries(_mapping(compute.get("storageProfile")).get("dataDisks")):
        lun, is_ultra = str(disk.get("lun")), disk.get("isUltraDisk") == "true"
        links = [link.format(lun) for link in _AZURE_LINKS if _LUN.fullmatch(lun)]
        kind = _name(_mapping(disk.get("managedDisk")).get("storageAccountType"))
        disks.append(
            {
                "device": _device(links),
                "type": "UltraSSD_LRS" if is_ultra else kind,
                "size_gib": _number(disk.get("diskSizeGB")),
                "iops": _number(disk.get("opsPerSecondThrottle")) if is_ultra else 0,
                "bytes_per_s": _number(disk.get("bytesPerSecondThrottle")) if is_ultra else 0,
            }
        )
    return {"provider": "azure", "machine": _name(compute.get("vmSize")), "disks": disks}


def _of_gcp(endpoint: str) -> "dict[str, object] | None":
    path = "/computeMetadata/v1/instance/?recursive=true"
    instance = _parsed(_ask(endpoint, path, {"Metadata-Flavor": "Google"}))
    machine = _name(str(instance.get("machineType")).rpartition("/")[2])
    if not machine or "machineType" not in instance:
        return None
    disks = []
    for disk in _entries(instance.get("disks")):
        name = _name(disk.get("deviceName"))
        links = ["/dev/disk/by-id/google-" + name] if name else []
        kind = {"type": _name(disk.get("type")), "size_gib": 0, "iops": 0, "bytes_per_s": 0}
        disks.append(dict(kind, device=_device(links)))
    return {"provider": "gcp", "machine": machine, "disks": disks}


def _ask(endpoint: str, path: str, headers: "dict[str, str]", *, method: str = "GET") -> str:
    """Return an answer; empty for any status but 200, so that redirections are not followed."""
    address = urlsplit(endpoint)
    connection = http.client.HTTPConnection(
        address.hostname or "", address.port or 80, timeout=TIMEOUT_S
    )
    connection.connect()
    # The timeout of a socket is that of each read: an answer in drops would never end.
    end = threading.Timer(TIMEOUT_S, connection.sock.shutdown, [socket.SHUT_RDWR])
    due_s = time.monotonic() + TIMEOUT_S
    end.start()
    try:
        connection.request(method, path, headers=headers)
        with connection.getresponse() as answer:
            content = answer.read(_MAX_BYTES + 1)
        if time.monotonic() >= due_s:  # what was read may be a part
            raise OSError(errno.ETIMEDOUT, "no whole answer within a second")
        is_whole = answer.status == http.client.OK and len(content) <= _MAX_BYTES
        return content.decode("utf-8", "replace").strip() if is_whole else ""
    finally:
        end.cancel()
        connection.close()


def _parsed(text: str) -> "dict[str, object]":
    try:
        return _mapping(json.loads(text))
    except ValueError:  # another web server
        return {}


def _mapping(value: object) -> "dict[str, object]":
    return value if isinstance(value, dict) else {}


def _entries(value: object) -> "list[dict[str, object]]":
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _name(value: object) -> str:
    return value if isinstance(value, str) and _NAME.fullmatch(value) else ""


def _number(value: object) -> int:
    text = str(value)
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else 0


def _device(links: "list[str]") -> str:
    """Return the kernel name of the first link that exists; empty for none."""
    found = (os.path.realpath(path) for path in links if os.path.exists(path))
    return os.path.basename(next(found, ""))
