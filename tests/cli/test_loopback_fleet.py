"""Campaigns on a fleet, in one process: what hosts keep, and what is told about them."""

import base64
import json
import shlex
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest import mock

import pytest

import volbench
from tests.command_line import call
from tests.loopback_fleet import LoopbackFleet, loopback_fleet
from tests.planned import a_folder, planned_campaign, planned_run
from tests.real import ROOT
from tests.waiting import until
from volbench.engine.hosts.device_lock import release_locks, reserve_host
from volbench.errors import HostKeyError, RefusedError
from volbench.execute import connect
from volbench.execute.agent.gate import GO, WOKE
from volbench.execute.channels import OnEnd, OnOutput, SubprocessChannel, SubprocessStream
from volbench.execute.client import AgentClient, Request
from volbench.execute.local import LocalExecutor
from volbench.execute.protocol import Executor
from volbench.model.campaign.host import Host
from volbench.model.campaign.planned_run import Campaign

pytestmark = pytest.mark.slow

EVENTS = ("--format", "events")
MAX_OF_RUN = 6
"""Requests of a run that are waited for: files, volumes, write-back, blocks, launch, clock."""
MAX_OF_CAMPAIGN = 14
"""The same of a campaign: survey, volumes, check of the jobs, locks, folders, files, their removal,
and before folders are made and removed a change that a frozen filesystem would hold. Two more than
on an idle machine, where no answer comes so late that it is asked for again."""


@pytest.fixture(name="fleet")
def _fleet(tmp_path: Path) -> Iterator[LoopbackFleet]:
    with loopback_fleet(tmp_path, "vm0", "vm1") as fleet:
        yield fleet


def other_campaign(folder: Path) -> Campaign:
    """Return a plan of another user in a folder."""
    run = planned_run(a_folder(folder), host="local")
    return planned_campaign(run, seed=7, hosts=(Host(name="local", address="192.0.2.1"),))


@pytest.mark.smoke
def test_campaign_on_two_hosts(fleet: LoopbackFleet) -> None:
    """Results are plain JSON, events and logs name their host, and the hosts are as before."""
    beside = fleet.folder / "beside"  # on the same filesystem
    beside.mkdir()
    other = other_campaign(beside)
    reserve_host(LocalExecutor(), other)
    out = fleet.folder / "out"
    try:
        start = ("run", fleet.profile(), "--inventory", fleet.inventory, "-o", out)
        done = call(*start, *EVENTS, "--forks", "1")
    finally:
        release_locks(LocalExecutor(), other)
    assert done.returncode == 0, done.stderr
    (note,) = (line for line in done.stderr.splitlines() if "is also used by" in line)
    first, *more = fleet.names
    assert f"the disk of {fleet.data(first)} on {first} and {len(more)} more" in note
    for name in fleet.names:
        run = out / "runs" / f"001-a-r1-{name}"
        assert json.loads((run / "fio.json").read_bytes())["jobs"]
        assert "prerun" in (run / "prerun.txt").read_text()
        assert not fleet.work(name).exists()
        assert list(fleet.data(name).iterdir()) == []
        log = (out / "hosts" / f"{name}.log").read_text()
        assert "runs to do here: 1" in log
        assert f"001-a-r1-{name} finished" in log
        assert all(other not in log for other in fleet.names if other != name)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [line["event"] for line in lines if line["event"] != "notice"]
    assert (kinds[0], kinds[-2:]) == ("campaign-started", ["campaign-ended", "results"])
    assert {line["host"] for line in lines if line["event"] == "run-ended"} == set(fleet.names)
    assert [row["host"] for row in lines[-1]["runs"]] == list(fleet.names)
    with mock.patch.object(connect, "open_ssh", side_effect=AssertionError("a host was contacted")):
        again = call("resume", out)
    assert again.returncode == 0, again.stderr
    assert "nothing to resume" in again.stderr
    assert all(name in again.stdout for name in fleet.names)


def test_the_page_of_many_machines_runs(fleet: LoopbackFleet) -> None:
    """Its campaign is repeated and compared."""
    page = (ROOT / "docs/how-to/measure-many-machines.md").read_text(encoding="utf-8")
    for command in page.partition("```sh\n")[2].partition("```")[0].splitlines():
        done = call(*shlex.split(command)[1:], cwd=fleet.folder)
        assert done.returncode == 0, done.stderr


def test_few_requests_are_sent(fleet: LoopbackFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request that is waited for costs a round trip, so that slow links make them the cost."""
    names: list[str] = []
    ask = AgentClient.ask

    def count(client: AgentClient, request: Request[Any]) -> object:
        names.append(request.name)
        return ask(client, request)

    monkeypatch.setattr(AgentClient, "ask", count)
    profile = fleet.profile("jobs:\n  a: {rw: randread, bs: 4k}\n  b: {rw: randread, bs: 4k}\n")
    done = call(
        *("run", profile, "--inventory", fleet.inventory, "--limit", "vm0"),
        *("-o", fleet.folder / "out"),
    )
    assert done.returncode == 0, done.stderr
    asked = [name for name, _ in groupby(names)]  # a run that takes long is looked at again
    assert len(asked) <= 2 * MAX_OF_RUN + MAX_OF_CAMPAIGN, names


def test_complete_campaign_that_holds_files_is_cleaned_up(fleet: LoopbackFleet) -> None:
    """A controller that was killed right after the last run has left locks and files."""
    out = fleet.folder / "out"
    done = call("run", fleet.profile(), "--inventory", fleet.inventory, "-o", out)
    assert done.returncode == 0, done.stderr
    journal = out / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if '"released"' in line)
    assert sum('"finished"' in line for line in lines[:first]) == 2
    journal.write_text("".join(lines[:first]))
    fleet.work("vm1").mkdir()
    again = call("resume", out)
    assert again.returncode == 0, again.stderr
    assert journal.read_text().count('"released"') == 2
    assert not fleet.work("vm1").exists()


def test_copy_whose_results_were_fetched_to_the_original_fails_no_run(fleet: LoopbackFleet) -> None:
    """A copy that was made while runs went on: they did not fail, they are in another folder."""
    out, copy = fleet.folder / "out", fleet.folder / "copy"
    done = call("run", fleet.profile(), "--inventory", fleet.inventory, "-o", out)
    assert done.returncode == 0, done.stderr
    shutil.copytree(out, copy)
    journal = copy / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    ends = next(number for number, line in enumerate(lines) if '"finished"' in line)
    journal.write_text("".join(lines[:ends]))
    for status in copy.glob("runs/*/status.json"):
        status.unlink()
    again = call("resume", copy)
    assert again.returncode == 9, again.stderr
    assert "2 of 2 runs unfinished" in again.stderr
    runs = volbench.open_campaign(copy).runs
    assert [str(note.state) for note in runs.values()] == ["interrupted"] * 2
    assert all("another copy of this folder has fetched" in note.reason for note in runs.values())


class _NoWrites(SubprocessChannel):
    """Machine on which fio cannot be started."""

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> SubprocessStream:
        """Start an agent that refuses each launch."""
        stream = super().open(argv, on_output, on_end, within_s=within_s)
        send: Callable[[bytes], None] = stream.send

        def refuse(data: bytes) -> None:
            request = _request(data)
            if request.get("op") != "launch":
                send(data)
                return
            reply = {"id": request["id"], "error": ["missing", "no fio here"]}
            on_output(json.dumps(reply).encode() + b"\n")

        stream.send = refuse  # type: ignore[method-assign]  # this stream only
        return stream


def _request(data: bytes) -> dict[str, Any]:
    """Return a request; empty for what else is sent."""
    if not data.startswith(b"{"):
        return {}
    request: dict[str, Any] = json.loads(data)
    if "z" in request:
        request = json.loads(zlib.decompress(base64.b64decode(request["z"])))
    return request


class _LateReply(SubprocessChannel):
    """Machine that receives its first start and is cut off, until its run has ended.

    Args:
        folder: of the fleet.
    """

    is_cut = False

    def __init__(self, host: str, folder: Path) -> None:
        super().__init__(host)
        self._folder = folder

    def open(
        self, argv: Sequence[str], on_output: OnOutput, on_end: OnEnd, *, within_s: float
    ) -> SubprocessStream:
        """Start an agent whose answers are held up."""
        link = Event()
        link.set()

        def restore() -> None:
            try:
                until(self._has_run_alone)
            finally:
                link.set()

        def receive(data: bytes) -> None:
            link.wait()
            on_output(data)

        stream = super().open(argv, receive, on_end, within_s=within_s)
        send: Callable[[bytes], None] = stream.send

        def cut(data: bytes) -> None:
            if not self.is_cut and GO in json.dumps(_request(data)):
                self.is_cut = True
                link.clear()
                Thread(target=restore).start()
            send(data)

        stream.send = cut  # type: ignore[method-assign]  # this stream only
        return stream

    def _has_run_alone(self) -> bool:
        """Return whether its run has ended, and the others were postponed."""
        starts = [path.read_text() for path in self._folder.glob(f"*/.volbench/*/*/{GO}")]
        return len({*starts}) > 1 and any(self._folder.glob(f"{self.host}/.volbench/*/*/.*/end"))


def test_false_start_is_left_behind(tmp_path: Path) -> None:
    """The others were postponed, which could not be announced to it: its result does not count."""
    with loopback_fleet(
        tmp_path, "vm0", "vm1", channels={"vm1": _LateReply("vm1", tmp_path)}
    ) as fleet:
        out = tmp_path / "out"
        where = ("--inventory", fleet.inventory, "--policy", "best-effort", "-o", out)
        done = call("run", fleet.profile(), *where)
    assert done.returncode == 9, done.stdout + done.stderr
    folders = [out / f"runs/001-a-r1-{name}" for name in ("vm0", "vm1")]
    statuses = [json.loads((folder / "status.json").read_bytes()) for folder in folders]
    assert [status["state"] for status in statuses] == ["finished", "interrupted"]
    assert "it started before the others, which were postponed" in statuses[1]["reason"]
    woke = (folders[1] / WOKE).read_text()
    assert float(woke.split()[0]) < statuses[0]["start"]["start_s"]


def test_only_failed_hosts_are_repeated(tmp_path: Path) -> None:
    """A resume repeats them; a step is repeated on all."""
    with loopback_fleet(tmp_path, "vm0", "vm1", channels={"vm1": _NoWrites("vm1")}) as fleet:
        out, start = tmp_path / "out", ("run", fleet.profile(), "--inventory", fleet.inventory)
        done = call(*start, "-o", out, "--policy", "best-effort", *EVENTS)
        assert done.returncode == 9, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["exit_code"] == 9
        assert "vm1 failed" in (out / "hosts/vm1.log").read_text()
    with loopback_fleet(tmp_path, "vm0", "vm1"):
        done = call("resume", out, "--retry-failed")
        assert done.returncode == 0, done.stderr
        assert "no such step" in call("resume", out, "--redo-step", "2").stderr
        again = call("resume", out, "--redo-step", "1")
        assert again.returncode == 0, again.stderr
        files = [out / f"runs/001-a-r1-{name}/status.json" for name in ("vm0", "vm1")]
        starts = [json.loads(file.read_bytes())["start"]["start_s"] for file in files]
        assert starts[0] == starts[1]


class _UnknownKey(SubprocessChannel):
    """Machine whose key is not in the file that was named."""

    def open(self, *_arguments: object, **_options: object) -> SubprocessStream:
        """Refuse the connection."""
        raise HostKeyError(f"{self.host} is unknown", hint="pass --known-hosts FILE")


def test_a_host_that_is_not_needed_may_be_absent(tmp_path: Path) -> None:
    """Only the hosts whose runs are repeated must answer; an unknown key is no lost host."""
    known = tmp_path / "known hosts"
    keys = ("--known-hosts", known)
    with loopback_fleet(tmp_path, "vm0", "vm1", channels={"vm1": _NoWrites("vm1")}) as fleet:
        out, start = tmp_path / "out", ("run", fleet.profile(), "--inventory", fleet.inventory)
        done = call(*start, "-o", out, "--policy", "best-effort", *keys)
        assert done.returncode == 9, done.stderr
        assert f"volbench resume --known-hosts '{known}' {out} --retry-failed" in done.stderr
    with loopback_fleet(tmp_path, "vm0", "vm1", channels={"vm1": _UnknownKey("vm1")}):
        refused = call("resume", out, "--retry-failed", "--policy", "all")
        assert refused.returncode == 4, refused.stderr
        assert "vm1 is unknown (1 run left there)" in refused.stderr
        assert "hint: pass --known-hosts FILE" in refused.stderr
        assert "--without" not in refused.stderr
    with loopback_fleet(tmp_path, "vm0", "vm1", channels={"vm0": _UnknownKey("vm0")}):
        done = call("resume", out, "--retry-failed", "--policy", "all")
        assert done.returncode == 0, done.stderr
        assert "vm0" not in done.stderr


@pytest.mark.parametrize("option", ["--dry-run", "--yes"])
def test_refused_preflight_leaves_nothing(fleet: LoopbackFleet, option: str) -> None:
    """Neither a plan nor a job that fio rejects leaves a file or folder on a host."""
    bad = "jobs:\n  a: {rw: randread, bs: 4k, random_distribution: 'zoned:50/5'}\n"
    text = bad if option == "--yes" else "jobs:\n  a: {rw: randread, bs: 4k}\n"
    out = fleet.folder / "out"
    done = call("run", fleet.profile(text), "--inventory", fleet.inventory, "--output", out, option)
    assert done.returncode == (5 if option == "--yes" else 0), done.stderr
    assert not out.exists()
    assert [fleet.work(name).exists() for name in fleet.names] == [False, False]


def test_refused_lock_locks_no_other_host(fleet: LoopbackFleet) -> None:
    """A device that another campaign uses on one host leaves the devices of the others free."""
    freed: list[str] = []

    def reserve(executor: Executor, _campaign: Campaign) -> dict[str, list[str]]:
        if executor.host == "vm1":
            raise RefusedError("/dev/sdb on vm1 is used by another campaign")
        return {}

    engine = "volbench.engine.campaign.campaign_engine"
    with (
        mock.patch(f"{engine}.reserve_host", reserve),
        mock.patch(f"{engine}.release_locks", lambda executor, _: freed.append(executor.host)),
    ):
        done = call(
            "run", fleet.profile(), "--inventory", fleet.inventory, "-o", fleet.folder / "out"
        )
    assert done.returncode == 3, done.stderr
    assert "1 of 2 hosts cannot take part: vm1" in done.stderr
    assert sorted(freed) == ["vm0", "vm1"]
    assert [fleet.work(name).exists() for name in fleet.names] == [False, False]


def survey(fleet: LoopbackFleet) -> tuple[int, list[dict[str, Any]]]:
    """Return exit status and hosts of a survey."""
    done = call("hosts", "--inventory", fleet.inventory, "--json")
    return done.returncode, json.loads(done.stdout)


def test_probe_fails_where_a_run_would(
    fleet: LoopbackFleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A shared folder and a missing fio refuse a run, so they fail the survey too."""
    status, hosts = survey(fleet)
    assert (status, [host["problem"] for host in hosts]) == (0, ["", ""]), call(
        "hosts", "--inventory", fleet.inventory, "--wide"
    ).stdout
    fleet.data("vm1").chmod(0o1777)
    status, hosts = survey(fleet)
    assert status == 9
    assert [list(host["volume_problems"]) for host in hosts] == [[], ["data"]]
    without = tmp_path / "bin"
    without.mkdir()
    for tool in Path("/usr/bin").iterdir():
        if tool.name != "fio":
            (without / tool.name).symlink_to(tool)
    monkeypatch.setenv("PATH", f"{without}:/usr/sbin:/sbin")
    assert shutil.which("fio") is None
    status, hosts = survey(fleet)
    assert status == 9
    assert [host["problem"] for host in hosts] == [
        f"fio is not installed on {n}" for n in fleet.names
    ]
