"""Datasets are found on this machine and in a storage that speaks S3: a real server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.command_line import call
from tests.extensions.object_storage.buckets import Bucket, credentials, storage_server
from tests.extensions.object_storage.summary_files import summary
from volbench.api.many_campaigns import View
from volbench.errors import InputError
from volbench.extensions.object_storage.object_storage import open_storage
from volbench.extensions.object_storage.sql_query import Parts, local_parts, remote_parts, run_query


@pytest.fixture(scope="module", name="endpoint")
def _endpoint() -> Iterator[str]:
    with storage_server() as endpoint:
        yield endpoint


@pytest.fixture(name="bucket")
def _bucket(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """Return a bucket that holds a dataset of two campaigns below a prefix."""
    for name, value in credentials(endpoint).items():
        monkeypatch.setenv(name, value)
    bucket = Bucket(endpoint, f"bucket-{uuid4().hex}")
    for own, iops in (("one", 1.0), ("two", 2.0)):
        summary(tmp_path / "set" / "summary", own, iops=iops, zone=own)
    (tmp_path / "set" / "README").write_text("not a table")
    bucket.put(tmp_path / "set", "team/set")
    bucket.put(tmp_path / "set", "secret")
    yield bucket
    bucket.client.close()


def parts_of(address: str) -> Parts:
    """Return the files of a dataset at an address."""
    storage = open_storage(address)
    return remote_parts(storage, storage.sizes())


def test_a_bucket_is_read(bucket: Bucket) -> None:
    """A query over a prefix has the rows of all its files, labels included."""
    done = call(
        "sql",
        "select iops, label_zone from summary order by iops",
        f"s3://{bucket.name}/team/set",
        "--format",
        "csv",
    )
    assert done.stdout.splitlines() == ["iops,label_zone", "1.0,one", "2.0,two"]


def test_the_rest_of_the_bucket_is_out_of_reach(bucket: Bucket) -> None:
    """Credentials may open more than was named; SQL gets no further."""
    parts = parts_of(f"s3://{bucket.name}/team/set")
    with pytest.raises(InputError, match="Cannot access file"):
        run_query(
            f"from read_parquet('volbench://{bucket.name}/secret/summary/one.parquet')",
            lambda _: View(),
            filesystem=parts.filesystem,
        )


def test_an_empty_prefix_is_reported(bucket: Bucket) -> None:
    """A prefix without a dataset, with nothing, and a bucket that does not exist."""
    bucket.client.put_object(Bucket=bucket.name, Key="other/README", Body=b"")
    with pytest.raises(InputError, match="no dataset and no campaign") as caught:
        parts_of(f"s3://{bucket.name}/other")
    assert "--format dataset" in caught.value.hint
    for address in (f"s3://{bucket.name}/empty", "s3://no-such-bucket-here/x"):
        with pytest.raises(InputError, match="there is nothing at"):
            parts_of(address)


def test_only_one_dataset_is_read_at_a_time(bucket: Bucket) -> None:
    """DuckDB reads through one connection."""
    places = [f"s3://{bucket.name}/{prefix}" for prefix in ("team/set", "secret")]
    done = call("sql", "select count(*) from summary", *places)
    assert done.returncode == 2
    assert "only one dataset" in done.stderr


@pytest.mark.parametrize("endpoint", ["minio:9000", "ftp://minio"])
def test_an_invalid_endpoint_is_refused(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names what was given, and the hint how to write it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(InputError, match="is not a URL") as caught:
        open_storage("s3://b/x")
    assert "https://" in caught.value.hint


def test_a_folder_is_a_dataset_by_its_frames(tmp_path: Path) -> None:
    """Folders named after frames count, whatever else lies there does not."""
    file = summary(tmp_path / "summary", "one", iops=1.0)
    summary(tmp_path / "other", "one", iops=1.0)
    assert local_parts(tmp_path).files == {"summary": [file]}
    assert local_parts(tmp_path / "other").files == {}
