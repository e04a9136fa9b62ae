"""Files of a folder as one object of object storage, written with a URL that a controller signed.

The URL is a permission: it is in no message. No proxy is used, and no redirect is followed.
"""

import hashlib
import http.client
import json
import os
import tempfile
import typing
from urllib.parse import urlsplit

from volbench.execute.agent import files
from volbench.execute.agent.agent_error import AgentError

_CONNECT_S = 10.0  # A host without a way to the storage falls back; it waits once.
_SILENCE_S = 60.0  # Storage that is asked too much answers within seconds.


def put_folder(path: str, url: str) -> "dict[str, object]":
    """Write all regular files below a folder as one object; return its ``size`` and ``sha256``.

    Each line of the object is a part of `files.fetch_folder` as JSON. Until it is written, the
    object is in a temporary file beside the folder.

    Args:
        path: the folder.
        url: signed, of a PUT.
    """
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(dir=os.path.dirname(path)) as body:
        for part in files.fetch_folder(path, {}):
            line = json.dumps(part).encode() + b"\n"
            digest.update(line)
            body.write(line)
        size = body.tell()
        body.seek(0)
        _put(body, size, url)
    return {"size": size, "sha256": digest.hexdigest()}


def _put(body: "typing.IO[bytes]", size: int, url: str) -> None:
    at = urlsplit(url)
    name = "{}Connection".format(at.scheme.upper())
    if not hasattr(http.client, name):  # HTTPS in a small image
        reason = "its Python lacks the module ssl, which {} needs".format(at.netloc)
        raise AgentError("failed", reason)
    connection = getattr(http.client, name)(at.netloc, timeout=_CONNECT_S)
    headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
    try:
        connection.connect()
        connection.sock.settimeout(_SILENCE_S)
        connection.request("PUT", "{}?{}".format(at.path, at.query), body=body, headers=headers)
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        reason = "no answer from {}: {}".format(at.netloc, error or type(error).__name__)
        raise AgentError("failed", reason) from None
    finally:
        connection.close()
    if answer.status != http.client.OK:
        reason = "{} answers {} {}".format(at.netloc, answer.status, answer.reason)
        raise AgentError("denied" if answer.status == http.client.FORBIDDEN else "failed", reason)
