"""Datasets are found on this machine and in a storage that speaks S3: a real server on loopback."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.store.test_sql_query import summary
from volbench.errors import InputError, TransportError
from volbench.store.dataset_parts import local_parts, remote_parts
from volbench.store.sql_query import View, run_query


@pytest.fixture(scope="module", name="endpoint")
def _endpoint() -> Iterator[str]:
    """Return the address of a server that speaks S3."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture(name="bucket")
def _bucket(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a bucket that holds a dataset of two campaigns below a prefix."""
    for name, value in (("ID", "me"), ("KEY", "secret")):
        monkeypatch.setenv(f"AWS_{'ACCESS_KEY' if name == 'ID' else 'SECRET_ACCESS'}_{name}", value)
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    name = f"bucket-{abs(hash(str(tmp_path))) % 10**9}"
    client.create_bucket(Bucket=name)
    for own, iops in (("one", 1.0), ("two", 2.0)):
        file = summary(tmp_path, own, iops=iops, zone=own)
        client.upload_file(file, name, f"team/set/summary/{own}.parquet")
    client.put_object(Bucket=name, Key="team/set/README", Body=b"not a table")
    client.upload_file(file, name, "secret/summary/other.parquet")
    client.close()
    return name


def test_a_bucket_is_read(bucket: str, endpoint: str) -> None:
    """A query over a prefix has the rows of all its files, labels included."""
    parts = remote_parts(f"s3://{bucket}/team/set", endpoint=endpoint)
    answer = run_query(
        "select iops, label_zone from summary order by iops",
        lambda name: View(files=list(parts.files.get(name, []))),
        filesystem=parts.filesystem,
    )
    assert answer.to_pylist() == [
        {"iops": 1.0, "label_zone": "one"},
        {"iops": 2.0, "label_zone": "two"},
    ]


def test_the_rest_of_the_bucket_is_out_of_reach(bucket: str, endpoint: str) -> None:
    """Credentials may open more than was named; SQL gets no further."""
    parts = remote_parts(f"s3://{bucket}/team/set", endpoint=endpoint)
    with pytest.raises(InputError, match="Cannot access file"):
        run_query(
            f"from read_parquet('volbench://{bucket}/secret/summary/other.parquet')",
            lambda _: View(),
            filesystem=parts.filesystem,
        )


def test_nothing_there_is_reported(bucket: str, endpoint: str) -> None:
    """A prefix without a dataset, and a bucket that does not exist."""
    with pytest.raises(InputError, match="nothing at") as caught:
        remote_parts(f"s3://{bucket}/empty", endpoint=endpoint)
    assert "--format dataset" in caught.value.hint
    with pytest.raises(TransportError, match="cannot be read"):
        remote_parts("s3://no-such-bucket-here/x", endpoint=endpoint)


@pytest.mark.parametrize(
    ("address", "endpoint"),
    [("s3://b/x", "minio:9000"), ("gs://b/x", "http://127.0.0.1:1"), ("sftp://b/x", "")],
)
def test_an_address_that_means_nothing_is_refused(address: str, endpoint: str) -> None:
    """The message names what was given, and the hint how to write it."""
    with pytest.raises(InputError, match=r"b/x") as caught:
        remote_parts(address, endpoint=endpoint)
    assert "use a URL such as" in caught.value.hint


def test_a_folder_is_a_dataset_by_its_frames(tmp_path: Path) -> None:
    """Folders named after frames count, whatever else lies there does not."""
    file = summary(tmp_path / "summary", "one", iops=1.0)
    summary(tmp_path / "other", "one", iops=1.0)
    assert local_parts(tmp_path).files == {"summary": [file]}
    assert local_parts(tmp_path / "other").files == {}
