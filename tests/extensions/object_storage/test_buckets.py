"""Campaigns in object storage are read in place: a real server that speaks S3, on loopback."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest

import volbench
from tests.command_line import call
from tests.extensions.object_storage.buckets import KEY, SECRET, Bucket, credentials, storage_server
from tests.labelled_campaigns import make
from volbench.errors import InputError, TransferError
from volbench.extensions.object_storage.object_storage import ObjectStorage
from volbench.model.campaign.host import Host

RECORDED = Path(__file__).parents[2] / "campaigns" / "format-1"
LOGS = (".log", ".zst")


@pytest.fixture(scope="module", name="endpoint")
def _endpoint() -> Iterator[str]:
    with storage_server() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _environment(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Set credentials, and a folder for temporary files of the test's own."""
    for name, value in credentials(endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.fixture(name="bucket")
def _bucket(endpoint: str) -> Iterator[Bucket]:
    bucket = Bucket(endpoint, f"bucket-{uuid4().hex}")
    yield bucket
    bucket.client.close()


@pytest.fixture(scope="module", name="campaign")
def _campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recorded campaign with its tables."""
    folder = tmp_path_factory.mktemp("campaigns") / "quick"
    shutil.copytree(RECORDED, folder)
    volbench.open_campaign(folder).store_tables()
    return folder


@pytest.fixture(scope="module", name="shared")
def _shared(endpoint: str) -> Iterator[Bucket]:
    """Return a bucket that no test changes."""
    bucket = Bucket(endpoint, "shared")
    yield bucket
    bucket.client.close()


@pytest.fixture(scope="module", name="address")
def _address(shared: Bucket, campaign: Path) -> str:
    """Return the address of the campaign in a bucket."""
    return shared.put(campaign, "team/quick")


@pytest.fixture(name="fetched")
def _fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the objects that are fetched from now on."""
    names: list[str] = []
    download = ObjectStorage.download

    def noting(self: ObjectStorage, sizes: dict[str, int], into: Path) -> None:
        names.extend(sizes)
        download(self, sizes, into)

    monkeypatch.setattr(ObjectStorage, "download", noting)
    return names


def opened(address: str) -> volbench.CampaignData:
    """Open the only campaign at an address."""
    (found,) = volbench.open_campaigns(address).names.values()
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "{}"),
        ("show", "--runs", "{}", "--json"),
        ("check", "{}"),
        ("export", "{}", "--frame", "series"),
        ("sql", "select job, iops from summary order by all", "{}"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_verbs_print_the_same(
    shared: Bucket, address: str, campaign: Path, arguments: tuple[str, ...]
) -> None:
    """What is printed of a folder is printed of its copy in a bucket, which stays as it was."""
    before = shared.names()
    local = call(*(argument.format(campaign) for argument in arguments))
    remote = call(*(argument.format(address) for argument in arguments))
    assert remote.stderr.replace(address, str(campaign)) == local.stderr
    assert remote.stdout == local.stdout
    assert remote.returncode == local.returncode
    assert shared.names() == before


def test_charts_of_a_bucket_are_written_locally(address: str, tmp_path: Path) -> None:
    """A bucket is never written to, so their default place is in the current folder."""
    done = call("plot", "iops", address, "--format", "svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = {path.suffix for path in (tmp_path / "quick-report").iterdir()}
    assert written == {".svg"}


def pages_of(folder: Path) -> dict[str, str]:
    """Return the pages of a site, by name, without the time at which they were made."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in folder.iterdir()}
    return {name: re.sub(r"20\d\d-\S+ \S+ UTC", "", text) for name, text in texts.items()}


@pytest.mark.slow
def test_campaigns_are_compared_ranked_and_put_on_a_site(
    bucket: Bucket, campaign: Path, tmp_path: Path
) -> None:
    """As on a disk, also where several are read."""
    again = tmp_path / "again"
    shutil.copytree(campaign, again)
    priced = make(tmp_path, (Host(name="vm1", labels={"flavor": "Standard_B2s"}),)).root
    here = {name: str(own) for name, own in (("a", campaign), ("b", again), ("c", priced))}
    there = {name: bucket.put(Path(own), Path(own).name) for name, own in here.items()}
    for arguments in (
        ("compare", "{a}", "{b}"),
        ("price", "--prices", "kamatera-azure", "--unsteady", "{c}"),
    ):
        local, remote = (call(*(own.format(**at) for own in arguments)) for at in (here, there))
        assert remote.returncode == 0, remote.stderr
        assert remote.stdout == local.stdout
    for name, at in (("local", here), ("remote", there)):
        assert call("report", at["a"], at["b"], "--site", "-o", name, cwd=tmp_path).returncode == 0
    assert pages_of(tmp_path / "remote") == pages_of(tmp_path / "local")


def test_job_files_are_read(address: str, campaign: Path) -> None:
    """The report shows them."""
    here, there = volbench.open_campaign(campaign), opened(address)
    texts = [there.job_text(run) for run in there.runs]
    assert texts == [here.job_text(run) for run in here.runs]
    assert all(texts)


def test_every_campaign_below_a_prefix_is_listed(bucket: Bucket, campaign: Path) -> None:
    """Each with its address; hidden folders and other objects are passed over."""
    for name in ("a", "deep/er/b", ".hidden"):
        bucket.put(campaign, f"results/{name}")
    bucket.client.put_object(Bucket=bucket.name, Key="results/README", Body=b"no campaign")
    opened = volbench.open_campaigns(f"s3://{bucket.name}/results/")
    addresses = [data.address for data in opened.names.values()]
    assert addresses == [f"s3://{bucket.name}/results/{name}" for name in ("a", "deep/er/b")]
    assert [*opened.names] == ["a", "b"]


def test_only_what_a_verb_needs_is_fetched(address: str, fetched: list[str]) -> None:
    """With current tables no raw file is, and of the tables only some."""
    assert call("show", address).returncode == 0
    assert "tables/summary.parquet" in fetched
    assert "tables/series.parquet" not in fetched
    assert not any(name.startswith("runs/") for name in fetched)


def test_outdated_tables_are_rebuilt_from_the_raw_files(
    bucket: Bucket, campaign: Path, fetched: list[str]
) -> None:
    """A raw file of another size than the tables were made from: the logs are needed."""
    address = bucket.put(campaign, "quick")
    key = "quick/runs/001-mix-r1/added.txt"
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=b"changed")
    assert call("show", address).stdout == call("show", campaign).stdout
    assert any(name.endswith(LOGS) for name in fetched)


def test_nothing_is_left_behind(address: str) -> None:
    """The copy goes when nobody uses the campaign any more."""
    found = opened(address)
    assert found.path.is_dir()
    folder = found.path.parent
    del found
    assert not folder.exists()


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("runs/002-write-r1/", "lacks the files of 002-write-r1"),
        ("journal.jsonl", "lacks journal.jsonl"),
        ("campaign.json", "no campaign"),
    ],
)
def test_half_a_folder_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch, missing: str, words: str
) -> None:
    """An upload that was cut off is no smaller campaign."""
    sizes = ObjectStorage.sizes
    monkeypatch.setattr(
        ObjectStorage,
        "sizes",
        lambda own: {n: size for n, size in sizes(own).items() if not n.startswith(missing)},
    )
    done = call("show", address)
    assert done.returncode in {2, 7}
    assert words in done.stderr


def test_a_file_that_is_being_written_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object of another size than was listed a moment ago."""
    sizes = ObjectStorage.sizes
    monkeypatch.setattr(
        ObjectStorage,
        "sizes",
        lambda own: {name: size + (name == "campaign.json") for name, size in sizes(own).items()},
    )
    with pytest.raises(TransferError, match="as listed"):
        opened(address)


def check_keys_after(endpoint: str, requests: str) -> None:
    """Let the server check access keys after a number of requests."""
    plain = {"Content-Type": "text/plain"}
    url = f"{endpoint}/moto-api/reset-auth"
    urlopen(Request(url, requests.encode(), plain)).close()  # noqa: S310 - loopback


def test_denied_access_is_reported(endpoint: str, address: str) -> None:
    """With the permissions that are needed, and without the credentials."""
    check_keys_after(endpoint, "0")
    try:
        done = call("show", address)
    finally:
        check_keys_after(endpoint, "inf")
    assert done.returncode == 4
    assert "denied (403)" in done.stderr
    assert "s3:ListBucket" in done.stderr
    assert SECRET not in done.stderr
    assert KEY not in done.stderr


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://no-such-bucket-here/x", "there is nothing at"),
        ("s3://AKIAKNOWNKEY:hidden-word@bucket/x", "contains credentials"),
        ("sftp://host/x", "is not an address of object storage"),
        ("s3://", "is not an address of object storage"),
    ],
)
def test_a_wrong_address_is_refused(address: str, words: str) -> None:
    """Credentials in it are not printed."""
    done = call("show", address)
    assert done.returncode == 2
    assert words in done.stderr
    assert "hidden-word" not in done.stderr


def test_object_names_that_leave_the_folder_are_refused(bucket: Bucket, campaign: Path) -> None:
    """Anybody who may write to a bucket could otherwise place files on this machine."""
    address = bucket.put(campaign, "quick")
    key = "quick/runs/../../../escaped"
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=b"")
    with pytest.raises(InputError, match="not the name of a file"):
        opened(address)


def test_a_campaign_that_is_too_large_is_not_fetched(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are read all the same."""
    found = opened(address)
    assert len(found.summary())
    monkeypatch.setattr("volbench.extensions.object_storage.object_storage.MAX_BYTES", 100)
    with pytest.raises(InputError, match="would have to be fetched"):
        found.latency_map()


def test_verbs_that_write_take_folders_only(address: str) -> None:
    """A campaign is continued where it was started."""
    for verb in ("resume", "verify", "status"):
        done = call(verb, address)
        assert done.returncode == 2
        assert "there is no folder" in done.stderr


def test_an_uploaded_campaign_is_read(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its tables made current, and its plan last: a part of it is no campaign."""
    folder = tmp_path / "quick"
    shutil.copytree(RECORDED, folder)
    (folder / ".lock").touch()
    order: list[str] = []
    upload = ObjectStorage.upload

    def noting(self: ObjectStorage, own: Path, names: list[str]) -> None:
        order.extend(names)
        upload(self, own, names)

    monkeypatch.setattr(ObjectStorage, "upload", noting)
    address = f"s3://{bucket.name}/team/quick"
    assert call("upload", folder, address).returncode == 0
    assert order[-1] == "campaign.json"
    assert sorted(f"team/quick/{name}" for name in order) == sorted(bucket.names())
    assert ".lock" not in order
    assert "tables/summary.parquet" in order
    assert call("show", address).stdout == call("show", folder).stdout
    for again in (call("upload", folder, address), call("upload", "--check", address)):
        assert again.returncode == 2
        assert "there is a campaign at" in again.stderr


def test_a_bucket_is_checked_before_a_campaign(endpoint: str, bucket: Bucket) -> None:
    """Writing is tried, and leaves nothing but a folder; what prevents an upload is named."""
    bucket.client.put_object(Bucket=bucket.name, Key="team/others", Body=b"1")
    done = call("upload", "--check", f"s3://{bucket.name}/team")
    assert done.returncode == 0, done.stderr
    assert bucket.names() == ["team/", "team/others"]
    missing = call("upload", "--check", f"s3://{bucket.name}-2/team")
    assert missing.returncode == 2
    assert "its bucket does not exist" in missing.stderr
    check_keys_after(endpoint, "0")
    try:
        denied = call("upload", "--check", f"s3://{bucket.name}/team")
    finally:
        check_keys_after(endpoint, "inf")
    assert denied.returncode == 4
    assert "s3:PutObject" in denied.stderr
    assert SECRET not in denied.stderr
