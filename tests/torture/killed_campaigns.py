"""Controllers killed at random instants: every run once, finished bytes kept, nothing left."""

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import volbench
from tests.command_line import start
from tests.torture.processes import processes_in
from tests.waiting import until
from volbench.store.log_files import open_log

PROFILE = """\
name: killed
sample: 100ms
defaults: {ioengine: psync, size: 1m, time_based: 1, rate_iops: 200}
jobs:
"""
JOBS = ("randread", "write", "randwrite", "read", "randrw")
RUN_S = 4.0
"""About as long as a campaign takes."""


@dataclass(frozen=True)
class ShortCampaign:
    """A campaign of some seconds on this machine, in a folder of its own."""

    folder: Path  # holds everything
    out: Path  # the campaign folder

    @property
    def scratch(self) -> Path:
        """The folder that is measured."""
        return self.folder / "scratch"

    def prepare(self, chance: random.Random, *, runs: int) -> None:
        """Write a profile of a number of jobs."""
        for name in ("scratch", "tmp", "state"):
            (self.folder / name).mkdir(mode=0o700)
        jobs = "".join(
            f"  {name}: {{rw: {name}, bs: {chance.choice((4, 16))}k, "
            f"runtime: {chance.choice((100, 300, 500))}ms}}\n"
            for name in chance.sample(JOBS, runs)
        )
        (self.folder / "p.yaml").write_text(PROFILE + jobs)

    def start(self, verb: str, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start volbench as a user would."""
        more = (
            ["p.yaml", "--on", self.scratch, "--output", self.out] if verb == "run" else [self.out]
        )
        folders = {"TMPDIR": self.folder / "tmp", "XDG_STATE_HOME": self.folder / "state"}
        options = {"cwd": self.folder, "env": os.environ | {k: str(v) for k, v in folders.items()}}
        return start(verb, *more, *arguments, stderr=subprocess.STDOUT, **options)

    def call(self, verb: str, *arguments: str | Path) -> tuple[int, str]:
        """Return how volbench ended, and what it printed."""
        process = self.start(verb, *arguments)
        printed, _ = process.communicate(timeout=120)
        assert "Traceback" not in printed, printed
        return process.returncode, printed

    def states(self) -> list[str]:
        """Return the states of all runs."""
        return [str(note.state) for note in volbench.open_campaign(self.out).runs.values()]

    def finished(self) -> dict[str, dict[str, str]]:
        """Return the digests of all files of each finished run."""
        if not (self.out / "campaign.json").exists():
            return {}
        campaign = volbench.open_campaign(self.out)
        return {
            name: _digests(self.out / "runs" / name)
            for name, note in campaign.runs.items()
            if str(note.state) == "finished"
        }

    def check_complete(self) -> None:
        """Check that each run finished once."""
        assert set(self.states()) == {"finished"}, self.states()
        lines = (self.out / "journal.jsonl").read_text().splitlines()
        ends = [
            entry["run"]
            for entry in map(json.loads, lines)
            if entry.get("state") == "finished" and "run" in entry
        ]
        assert len(ends) == len(set(ends)) == len(self.states()), ends

    def check_clean(self, printed: str = "") -> None:
        """Check that no process is left, and no file but those that volbench named or stores.

        A scratch file that was made right before a kill is not recognised (see SECURITY.md): it is
        kept and named.
        """
        until(lambda: not processes_in(self.folder), patience_s=10)
        left = [path for name in ("scratch", "tmp") for path in (self.folder / name).rglob("*")]
        words = printed.split()
        unnamed = [path for path in left if not _is_named(path, words)]
        assert not unnamed, f"{unnamed} left, and not named in {printed}"
        half_written = [path for path in self.out.rglob("*") if _is_half_written(path)]
        assert not half_written, f"{half_written} left"


def _is_named(path: Path, words: list[str]) -> bool:
    return any(str(path).startswith(word.rstrip(",.;:")) for word in words if word[:1] == "/")


def _is_half_written(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".tmp")


def _digests(folder: Path) -> dict[str, str]:
    """Return the digest of the content of each file: logs are compressed when a campaign ends."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not _is_half_written(path):
            with open_log(path) as log:
                content = log.read()
            name = str(path.relative_to(folder)).removesuffix(".zst")
            found[name] = hashlib.sha256(content).hexdigest()
    return found


def check_kept(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> None:
    """Check that no file of a finished run changed."""
    for name, files in before.items():
        now = after.get(name, {})
        changed = {file for file in files.keys() | now.keys() if files.get(file) != now.get(file)}
        assert not changed, f"finished run {name} changed: {sorted(changed)}"


def controller_kill(chance: random.Random, folder: Path) -> int:
    """Kill a controller, sometimes its successors too, and resume until all is done."""
    campaign = ShortCampaign(folder, folder / "c")
    campaign.prepare(chance, runs=chance.randint(2, 4))
    kills, verb, all_printed = 0, "run", ""
    while True:
        before = campaign.finished()
        process = campaign.start(verb)
        if kills < 1 or (kills < 3 and chance.random() < 0.3):
            _wait_to_kill(chance, campaign)
            process.kill()
            kills += 1
        printed, _ = process.communicate(timeout=120)
        assert "Traceback" not in printed, printed
        check_kept(before, campaign.finished())
        all_printed += printed
        if process.returncode != -signal.SIGKILL:
            break
        if not (campaign.out / "campaign.json").exists():
            until(lambda: not processes_in(folder), patience_s=10)  # nothing was planned yet
            assert not list(campaign.scratch.iterdir())
            return kills
        verb = "resume"
    assert process.returncode == 0, printed
    campaign.check_complete()
    campaign.check_clean(all_printed)
    return kills


def _wait_to_kill(chance: random.Random, campaign: ShortCampaign) -> None:
    if chance.random() < 0.4:
        time.sleep(chance.uniform(0, RUN_S))
        return
    journal, lines = campaign.out / "journal.jsonl", chance.randint(1, 20)
    end = time.monotonic() + 2 * RUN_S
    while time.monotonic() < end:
        if journal.exists() and journal.read_bytes().count(b"\n") >= lines:
            break
        time.sleep(0.005)
    time.sleep(chance.choice((0, chance.uniform(0, 0.05), chance.uniform(0, 0.5))))
