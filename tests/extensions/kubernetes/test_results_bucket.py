"""Results of a pod through a bucket: an agent of this machine, and a real S3 server on loopback."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.extensions.object_storage.buckets import Bucket, credentials, storage_server
from volbench.errors import AuthError, ConnectError
from volbench.execute.agent_executor import AgentExecutor
from volbench.execute.channels import SubprocessChannel
from volbench.execute.client import Request
from volbench.extensions.kubernetes import pod_executor
from volbench.extensions.kubernetes.pod_executor import PodExecutor
from volbench.extensions.object_storage.relay import Relay
from volbench.model.campaign.host import Pod

POD = Pod(
    name="c-0",
    namespace="n",
    uid="u",
    container="fio",
    node="node",
    campaign="c",
)
LIES = (b"{\n", b"[" * 100_000 + b"\n", b'{"data": "eA=="}\n', b"x" * 3_000_000)
LINES = "".join(f"{number}, {number * number}\n" for number in range(30_000))


@pytest.fixture(name="bucket")
def _bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with storage_server() as endpoint:
        for name, value in credentials(endpoint).items():
            monkeypatch.setenv(name, value)
        bucket = Bucket(endpoint, f"relayed-{uuid4().hex}")
        yield bucket
        bucket.client.close()


@pytest.fixture(name="pod")
def _pod(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[PodExecutor]:
    """Return the executor of a pod that is a process of this machine."""
    monkeypatch.setattr(pod_executor, "_relay", Relay)
    monkeypatch.setattr(pod_executor, "_said", set())
    monkeypatch.setattr(pod_executor, "PodChannel", lambda *_: SubprocessChannel("fast-0"))
    pod = PodExecutor(
        "fast-0", POD.model_copy(update={"results_bucket": f"s3://{bucket.name}/here"}), Mock()
    )
    yield pod
    pod.close()


@pytest.fixture(name="by_exec")
def _by_exec(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the folders that were fetched through the API server."""
    fetched: list[str] = []
    fetch = AgentExecutor.fetch_work_folder

    def noted(executor: AgentExecutor, path: str, folder: str) -> None:
        fetched.append(path)
        fetch(executor, path, folder)

    monkeypatch.setattr(AgentExecutor, "fetch_work_folder", noted)
    return fetched


@pytest.fixture(name="work")
def _work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "gate").mkdir(parents=True)
    (work / "series.log").write_text(LINES)
    (work / "gate" / "open").touch()
    return work


def fetched(pod: PodExecutor, work: Path) -> None:
    """Fetch a folder, and check its content."""
    into = work.parent / "into"
    into.mkdir(exist_ok=True)
    pod.fetch_work_folder(str(work), str(into))
    assert (into / "series.log").read_text() == LINES
    assert (into / "gate" / "open").exists()
    assert not [*into.glob(".*")]


def test_files_arrive_without_the_api_server(
    pod: PodExecutor, bucket: Bucket, work: Path, by_exec: list[str]
) -> None:
    """What a killed controller left under the same name is replaced, and removed."""
    put = f"here/c/c-0-{hashlib.sha256(str(work).encode()).hexdigest()[:16]}"
    bucket.client.put_object(Bucket=bucket.name, Key=put, Body=b"older")
    assert bucket.names() == [put]
    fetched(pod, work)
    fetched(pod, work)
    assert by_exec == []
    assert "Contents" not in bucket.client.list_objects_v2(Bucket=bucket.name)


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_pod_gains_nothing(
    pod: PodExecutor,
    bucket: Bucket,
    work: Path,
    by_exec: list[str],
    lie: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its object is refused; its files are asked for as those of other pods."""
    ask = pod.client.ask

    def answer(request: Request) -> object:
        if request.operation != "put_folder":
            return ask(request)
        url = str(request.arguments["url"])
        key = urlsplit(url).path.removeprefix(f"/{bucket.name}/")
        bucket.client.put_object(Bucket=bucket.name, Key=key, Body=lie)
        return {"size": len(lie), "sha256": hashlib.sha256(lie).hexdigest()}

    pod.client.ask = answer  # type: ignore[method-assign]  # of this object alone
    fetched(pod, work)
    fetched(pod, work)
    assert by_exec == [str(work)] * 2
    said = capsys.readouterr().err
    assert said.count("note: results of fast-0 go through the API server") == 1
    assert "was damaged on the way" in said


def test_what_cannot_be_removed_is_said_once(
    pod: PodExecutor,
    work: Path,
    by_exec: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The results have arrived: nothing is fetched again."""
    monkeypatch.setattr(Relay, "remove", Mock(side_effect=AuthError("access was denied (403)")))
    fetched(pod, work)
    fetched(pod, work)
    assert by_exec == []
    said = capsys.readouterr().err
    assert said.count("note: objects of this campaign remain below s3://relayed-") == 1
    assert "/here: access was denied (403)" in said


def test_a_lost_pod_is_no_reason_to_leave_the_bucket(
    pod: PodExecutor,
    work: Path,
    by_exec: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is reported as lost; when it is back, its results go through the bucket."""
    with monkeypatch.context() as lost:
        lost.setattr(pod.client, "ask", Mock(side_effect=ConnectError("gone", sent=True)))
        with pytest.raises(ConnectError, match="gone"):
            pod.fetch_work_folder(str(work), str(work.parent))
    fetched(pod, work)
    assert by_exec == []
    assert capsys.readouterr().err == ""
