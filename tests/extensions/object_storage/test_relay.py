"""Results that pods write into a bucket by signed URLs: a real S3 server, on loopback."""

from __future__ import annotations

import http.client
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import obstore
import pytest
from obstore.exceptions import GenericError

from tests.extensions.object_storage.buckets import KEY, Bucket, credentials, storage_server
from volbench.errors import ArchiveError, AuthError, InputError, TransferError, TransportError
from volbench.execute.agent import files
from volbench.execute.agent.agent_error import AgentError
from volbench.extensions.kubernetes.manifests import UPLOAD_VARIABLE
from volbench.extensions.kubernetes.pod_placement import PodPlacement
from volbench.extensions.object_storage.relay import Relay
from volbench.extras import install_command


@pytest.fixture(scope="module", name="endpoint")
def _endpoint() -> Iterator[str]:
    with storage_server() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _environment(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in credentials(endpoint).items():
        monkeypatch.setenv(name, value)


@pytest.fixture(name="bucket")
def _bucket(endpoint: str) -> Iterator[Bucket]:
    bucket = Bucket(endpoint, f"bucket-{uuid4().hex}")
    yield bucket
    bucket.client.close()


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """Return a work folder with a log of several chunks, an empty file and a control folder."""
    folder = tmp_path / "work" / "run"
    (folder / "gate").mkdir(parents=True)
    (folder / ".fio").mkdir()
    (folder / ".fio" / "control").write_text("stays there")
    (folder / "series_lat.1.log").write_text("".join(f"{n}, {n * n}, 0\n" for n in range(20_000)))
    (folder / "gate" / "empty").touch()
    return folder


def keys(bucket: Bucket) -> list[str]:
    """Return the keys in the bucket, of which there may be none."""
    found = bucket.client.list_objects_v2(Bucket=bucket.name)
    return [entry["Key"] for entry in found.get("Contents", ())]


def test_a_folder_arrives_as_its_parts(bucket: Bucket, folder: Path) -> None:
    """The lines of the object are the parts that the agent would send; nothing stays behind."""
    relay = Relay(f"s3://{bucket.name}/some/prefix/")
    put: dict[str, Any] = files.put_folder(str(folder), relay.url("campaign/pod-0"))
    assert keys(bucket) == ["some/prefix/campaign/pod-0"]
    with relay.opened("campaign/pod-0", **put) as content:
        parts = [json.loads(line) for line in content]
    assert parts == [*files.fetch_folder(str(folder), {})]
    assert sum("data" in part for part in parts) > 1
    relay.remove("campaign/pod-0")
    relay.remove("campaign/pod-0")  # another time, which is no error
    assert keys(bucket) == []
    assert [*folder.parent.iterdir()] == [folder]


def test_an_object_that_was_changed_is_not_read(bucket: Bucket, folder: Path) -> None:
    """Whoever else writes to the bucket makes no results; nor does a pod that lies about a size."""
    relay = Relay(f"s3://{bucket.name}")
    put: dict[str, Any] = files.put_folder(str(folder), relay.url("pod-0"))
    size, digest = put["size"], put["sha256"]
    for told, sha256 in ((size - 1, digest), (size, "0" * 64)):
        with (
            pytest.raises(TransferError, match="not the one that was written"),
            relay.opened("pod-0", size=told, sha256=sha256),
        ):
            pass
    relay.remove("pod-0")
    with (
        pytest.raises(TransportError, match="cannot be reached") as caught,
        relay.opened("pod-0", size=size, sha256=digest),
    ):
        pass
    assert "Signature" not in str(caught.value)


def test_a_full_disk_of_the_controller_is_named(
    bucket: Bucket, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no failure of the bucket: the API server would bring what fills the disk, too."""
    relay = Relay(f"s3://{bucket.name}")
    put: dict[str, Any] = files.put_folder(str(folder), relay.url("pod-0"))
    full = Path("/dev/full").open("w+b", buffering=0)  # noqa: SIM115 - closed by what is tested
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)
    with (
        pytest.raises(ArchiveError, match="No space left"),
        relay.opened("pod-0", **put),
    ):
        pass


def test_what_a_pod_cannot_write_is_said_without_its_url(bucket: Bucket, folder: Path) -> None:
    """Whoever has the URL can write: no message and no traceback shows it."""
    url = Relay(f"s3://{bucket.name}").url("pod-0")
    host = url.partition("//")[2].partition("/")[0]
    missing = url.replace(bucket.name, "no-such-bucket")
    for place, words in (
        (missing, f"{host} answers 404"),
        (url.replace(host, "127.0.0.1:9"), "no answer from 127.0.0.1:9: .*refused"),
    ):
        with pytest.raises(AgentError, match=words) as caught:
            files.put_folder(str(folder), place)
        error: BaseException | None = caught.value
        assert error is not None
        assert "Signature" not in str(error)
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None
    assert [*folder.parent.iterdir()] == [folder]
    assert keys(bucket) == []


def test_a_bucket_is_tried_before_a_campaign(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a signed URL, as pods use it; then it is as before."""
    Relay(f"s3://{bucket.name}/prefix").check()
    assert keys(bucket) == []
    with pytest.raises(InputError, match="bucket of s3://no-such-bucket/x does not exist"):
        Relay("s3://no-such-bucket/x").check()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(TransportError, match=r"s3://b cannot be reached: .*refused") as caught:
        Relay("s3://b").check()
    assert KEY not in str(caught.value)


def test_a_refused_check_is_a_denial(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint names the three rights that are needed."""
    relay = Relay(f"s3://{bucket.name}")
    refused = AgentError("denied", "x answers 403 Forbidden")
    monkeypatch.setattr(
        "volbench.extensions.object_storage.relay.put_folder", Mock(side_effect=refused)
    )
    with pytest.raises(AuthError, match="denied") as caught:
        relay.check()
    assert "s3:DeleteObject" in caught.value.hint


def test_missing_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are none, they are looked for at the address of the machine's role."""
    relay = Relay("s3://bucket")
    words = "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 1ms"
    monkeypatch.setattr(obstore, "sign", Mock(side_effect=GenericError(words)))
    with pytest.raises(AuthError, match="there are no credentials for s3://bucket"):
        relay.url("x")


@pytest.mark.parametrize(
    "address", ["gs://bucket/prefix", "s3://", "bucket", "s3://KEY:secret@bucket/prefix"]
)
def test_only_buckets_that_speak_s3_are_taken(address: str) -> None:
    """Other storage signs in other ways; credentials in an address are repeated by nobody."""
    with pytest.raises(InputError, match="cannot be collected through") as caught:
        Relay(address)
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_without_the_package_its_installation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra: most campaigns have few pods."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(InputError, match="package obstore is missing") as caught:
        Relay("s3://bucket")
    assert caught.value.hint == install_command("bucket")


def test_many_pods_are_told_of_a_bucket(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, bucket: Bucket
) -> None:
    """It costs nothing to know; few pods need none. A controller has a bucket for its upload."""
    place = f"s3://{bucket.name}/nightly"
    placement = PodPlacement(Mock(), Mock(), 60.0)
    assert placement.way_of_results(199) == placement.way_of_results(200) == ""
    said = capsys.readouterr().err
    assert "results of 200 pods go through the API server; to spare it: --results-bucket" in said
    monkeypatch.setenv(UPLOAD_VARIABLE, place)
    assert placement.way_of_results(199) == ""
    assert placement.way_of_results(200) == place
    assert capsys.readouterr().err == ""
    monkeypatch.setenv(UPLOAD_VARIABLE, "gs://bucket")
    assert placement.way_of_results(200) == ""
    assert "API server; results cannot be collected through gs://bucket" in capsys.readouterr().err
    asked = PodPlacement(Mock(), Mock(), 60.0, "s3://no-such-bucket/x")
    with pytest.raises(InputError, match="does not exist"):
        asked.way_of_results(2)


def test_a_small_image_without_tls_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Python may have been stripped; a bucket without TLS is still in reach."""
    monkeypatch.delattr(http.client, "HTTPSConnection")
    with pytest.raises(AgentError, match="lacks the module ssl, which bucket"):
        files.put_folder(str(folder), "https://bucket.example/x?X-Amz-Signature=1")
