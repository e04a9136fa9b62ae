"""Every other verb, called as a user calls it."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.command_line import COMMAND, Volbench, call
from tests.fio.plain import FIO

PROFILES = {"aks-disk", "block-size-sweep", "dd-bias", "iodepth-sweep", "multi-file", "oltp"}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small finished campaign."""
    root = tmp_path_factory.mktemp("small")
    (root / "data").mkdir()
    (root / "p.yaml").write_text(
        "name: small\nsample: 0\njobs:\n  a: {rw: write, size: 1m, ioengine: psync}\n"
    )
    done = call("run", root / "p.yaml", "--on", root / "data", "--output", root / "out")
    assert done.returncode == 0, done.stderr
    return root / "out"


def test_every_bundled_profile_is_listed(volbench: Volbench) -> None:
    """`profile list` names each of them."""
    done = volbench("profile", "list")
    assert done.returncode == 0
    assert all(name in done.stdout for name in PROFILES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["multi-file", "oltp"])
def test_shown_rendered_and_checked(name: str, tmp_path: Path, volbench: Volbench) -> None:
    """Each bundled profile can be shown, rendered for plain fio, and is good."""
    assert volbench("profile", "show", name).returncode == 0
    assert volbench("profile", "check", name).returncode == 0
    into = tmp_path / "jobs"
    done = volbench("profile", "render", name, "--output", into)
    assert done.returncode == 0, done.stderr
    written = sorted(into.iterdir())
    assert [str(path) for path in written] == sorted(done.stdout.split())
    job_files = [path for path in written if path.suffix == ".fio"]
    assert subprocess.run([*FIO, "--parse-only", *job_files], check=False).returncode == 0


def test_schema_is_json(volbench: Volbench) -> None:
    """`profile schema` prints a JSON Schema that knows fio's options."""
    done = volbench("profile", "schema")
    schema = json.loads(done.stdout)
    assert "iodepth" in schema["$defs"]["options"]["properties"]


def with_path(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call volbench in a process that finds programs in other folders."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=os.environ | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_profile_is_found_without_fio(tmp_path: Path, scratch: Path) -> None:
    """Without fio the shipped table checks a profile, and a run says how to get fio."""
    nothing = str(tmp_path / "nothing")
    checked = with_path(nothing, "profile", "check", "quick")
    assert checked.returncode == 0, checked.stderr
    ran = with_path(nothing, "run", "quick", "--on", str(scratch), "--output", str(tmp_path / "o"))
    assert ran.returncode == 5
    assert "apt-get install fio" in ran.stderr


@pytest.mark.slow
def test_old_fio_is_refused_with_both_versions(tmp_path: Path, scratch: Path) -> None:
    """A fio older than 3.18 can't be used for runs; the message names both versions."""
    folder = tmp_path / "bin"
    folder.mkdir()
    fake = folder / "fio"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo fio-3.1; exit; }\nexec /usr/bin/fio "$@"\n'
    )
    fake.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    ran = with_path(path, "run", "quick", "--on", str(scratch), "--output", str(tmp_path / "o"))
    assert ran.returncode == 5
    assert "3.1" in ran.stderr
    assert "3.18" in ran.stderr


@pytest.mark.slow
def test_export_to_a_closed_pipe_is_quiet(campaign: Path) -> None:
    """`volbench export DIR | head -1` ends without a traceback."""
    shell = ["bash", "-o", "pipefail", "-c", '"$@" | head -c 1', "-"]
    command = [*shell, *COMMAND, "export", str(campaign)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "c"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", ["show nowhere", "profile list", "help findings"])
def test_a_closed_pipe_ends_a_command_as_sigpipe_does(arguments: str) -> None:
    """`volbench ... 2>&1 | head` has the exit status of other tools, whatever is printed."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, *arguments.split()], stdout=write, stderr=write, check=False)
    os.close(write)
    assert done.returncode == 128 + signal.SIGPIPE


@pytest.mark.slow
def test_chart_on_standard_output(campaign: Path) -> None:
    """`plot --output -` writes the picture and nothing else to standard output."""
    done = subprocess.run(
        [*COMMAND, "plot", "iops", str(campaign), "--format", "png", "--output", "-"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"\x89PNG")


def test_hosts_shows_machine_and_volume(scratch: Path, volbench: Volbench) -> None:
    """`hosts` names kernel, fio and the filesystem of a folder."""
    done = volbench("hosts", scratch)
    assert done.returncode == 0, done.stderr
    assert os.uname().release in done.stdout
    assert "fio-" in done.stdout
    assert "filesystem" in done.stdout


def test_hosts_shows_what_a_file_holds(tmp_path: Path, volbench: Volbench) -> None:
    """`hosts --cold` says in a line that a sparse file was never written, and in JSON how much."""
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(8 << 20)
    reported = volbench("hosts", "--cold", sparse)
    assert reported.returncode == 0, reported.stderr
    (line,) = reported.stdout.splitlines()
    assert line.startswith(f"{sparse}: ")
    assert "sampled blocks hold only zeros: never written" in line
    records = json.loads(volbench("hosts", "--cold", "--json", sparse, tmp_path).stdout)
    assert records["host"]["kernel"] == os.uname().release
    first, second = records["volumes"]
    assert first["cold"]["zero_share"] == 1
    assert first["cold"]["cold"] is False
    assert second["cold"] is None
    assert "directory" in second["cold_reason"]
    assert "cold" not in json.loads(volbench("hosts", "--json", sparse).stdout)["volumes"][0]
