"""Server that speaks S3, and its address and credentials in the environment."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

KEY, SECRET = "AKIAKNOWNKEY", "a/secret+that-is-printed-nowhere"


@contextmanager
def storage_server() -> Iterator[str]:
    """Serve S3 on loopback inside the block, and yield its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def credentials(endpoint: str) -> dict[str, str]:
    """Return the environment in which object storage is found."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


class Bucket:
    """A bucket of the server.

    Args:
        endpoint: of the server.
        name: of the bucket, which is created.
    """

    def __init__(self, endpoint: str, name: str) -> None:
        self.name = name
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )
        self.client.create_bucket(Bucket=name)

    def put(self, folder: Path, prefix: str) -> str:
        """Upload a folder, and return its address."""
        for path in (path for path in folder.rglob("*") if path.is_file()):
            self.client.upload_file(
                str(path), self.name, f"{prefix}/{path.relative_to(folder).as_posix()}"
            )
        return f"s3://{self.name}/{prefix}"

    def names(self) -> list[str]:
        """Return the keys in the bucket."""
        return [own["Key"] for own in self.client.list_objects_v2(Bucket=self.name)["Contents"]]
