"""Machine type and disks of this machine by the metadata service of its cloud.

Sources: "Use the Instance Metadata Service" (AWS, IMDSv2), "Azure Instance Metadata Service", and
"About VM metadata" (Google Cloud). Nothing else is contacted, no proxy, and no other address that
an answer names.
"""

import errno
import json
import os
import re
import socket
import threading
import time
import typing
from urllib.parse import urlsplit

from volbench.execute.agent.agent_error import AgentError

TIMEOUT_S = 1.0  # of each request; the service is on the same physical machine
_MAX_BYTES = 1 << 20  # A description of a machine with all of its disks has some 20 KB
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LUN = re.compile(r"[0-9]{1,3}")
_AZURE_LINKS = ("/dev/disk/azure/scsi1/lun{}", "/dev/disk/azure/data/by-lun/{}")


class CloudDisk(typing.NamedTuple):
    """A disk as the metadata service describes it; 0 for unknown numbers."""

    device: str  # its kernel name
    type: str  # as the provider names it
    size_gib: int = 0
    iops: int = 0
    bytes_per_s: int = 0


class CloudMachine(typing.NamedTuple):
    """A machine as the metadata service describes it; empty if it is of no known cloud."""

    provider: str = ""  # aws, azure or gcp
    machine: str = ""  # its type
    disks: "tuple[CloudDisk, ...]" = ()


def cloud_machine(endpoint: str) -> CloudMachine:
    """Ask the metadata service about this machine."""
    import http.client  # noqa: PLC0415 - a sixth of the agent's start, and rarely needed

    try:
        return _of_aws(endpoint) or _of_azure(endpoint) or _of_gcp(endpoint) or CloudMachine()
    except (OSError, http.client.HTTPException) as error:
        reason = "no metadata service answers at {}: {}".format(endpoint, error)
        raise AgentError("missing", reason) from error


def _of_aws(endpoint: str) -> "CloudMachine | None":
    path, header = "/latest/api/token", "X-aws-ec2-metadata-token"
    token = _ask(endpoint, path, {header + "-ttl-seconds": "60"}, method="PUT")
    if not token or not token.isprintable():
        return None
    machine = _ask(endpoint, "/latest/meta-data/instance-type", {header: token})
    return CloudMachine("aws", _valid_name(machine))


def _of_azure(endpoint: str) -> "CloudMachine | None":
    path = "/metadata/instance/compute?api-version=2021-02-01&format=json"
    compute = _parsed_json(_ask(endpoint, path, {"Metadata": "true"}))
    if not _valid_name(compute.get("vmSize")):
        return None
    disks = []
    for disk in _mappings_in(_mapping(compute.get("storageProfile")).get("dataDisks")):
        lun, is_ultra = str(disk.get("lun")), disk.get("isUltraDisk") == "true"
        links = [link.format(lun) for link in _AZURE_LINKS if _LUN.fullmatch(lun)]
        kind = _valid_name(_mapping(disk.get("managedDisk")).get("storageAccountType"))
        disks.append(
            CloudDisk(
                _device(links),
                "UltraSSD_LRS" if is_ultra else kind,
                _count_or_zero(disk.get("diskSizeGB")),
                _count_or_zero(disk.get("opsPerSecondThrottle")) if is_ultra else 0,
                _count_or_zero(disk.get("bytesPerSecondThrottle")) if is_ultra else 0,
            )
        )
    return CloudMachine("azure", _valid_name(compute.get("vmSize")), tuple(disks))


def _of_gcp(endpoint: str) -> "CloudMachine | None":
    path = "/computeMetadata/v1/instance/?recursive=true"
    instance = _parsed_json(_ask(endpoint, path, {"Metadata-Flavor": "Google"}))
    machine = _valid_name(str(instance.get("machineType")).rpartition("/")[2])
    if not machine or "machineType" not in instance:
        return None
    disks = []
    for disk in _mappings_in(instance.get("disks")):
        name = _valid_name(disk.get("deviceName"))
        links = ["/dev/disk/by-id/google-" + name] if name else []
        disks.append(CloudDisk(_device(links), _valid_name(disk.get("type"))))
    return CloudMachine("gcp", machine, tuple(disks))


def _ask(endpoint: str, path: str, headers: "dict[str, str]", *, method: str = "GET") -> str:
    """Return an answer; empty for any status but 200, so that redirections are not followed."""
    import http.client  # noqa: PLC0415 - the same

    address = urlsplit(endpoint)
    wire = http.client.HTTPConnection(address.hostname or "", address.port or 80, timeout=TIMEOUT_S)
    wire.connect()
    # The timeout of a socket is that of each read: an answer in drops would never end.
    end = threading.Timer(TIMEOUT_S, wire.sock.shutdown, [socket.SHUT_RDWR])
    due_s = time.monotonic() + TIMEOUT_S
    end.start()
    try:
        wire.request(method, path, headers=headers)
        with wire.getresponse() as answer:
            content = answer.read(_MAX_BYTES + 1)
        if time.monotonic() >= due_s:  # what was read may be a part
            raise OSError(errno.ETIMEDOUT, "no whole answer within a second")
        is_whole = answer.status == http.client.OK and len(content) <= _MAX_BYTES
        return content.decode("utf-8", "replace").strip() if is_whole else ""
    finally:
        end.cancel()
        wire.close()


def _parsed_json(text: str) -> "dict[str, object]":
    try:
        return _mapping(json.loads(text))
    except ValueError:  # another web server
        return {}


def _mapping(value: object) -> "dict[str, object]":
    return value if isinstance(value, dict) else {}


def _mappings_in(value: object) -> "list[dict[str, object]]":
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _valid_name(value: object) -> str:
    return value if isinstance(value, str) and _NAME.fullmatch(value) else ""


def _count_or_zero(value: object) -> int:
    text = str(value)
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else 0


def _device(links: "list[str]") -> str:
    """Return the kernel name of the first link that exists; empty for none."""
    found = (os.path.realpath(path) for path in links if os.path.exists(path))
    return os.path.basename(next(found, ""))
