"""A boot storm of real virtual machines: watched, recorded, replayed, and written as a profile.

Debian guests boot at two staggers from overlays on one base image, on a simulated volume that is
limited as a fast hard disk is. `volbench watch` starts and records them. Then the recording is
replayed on the same volume, and a profile is made from it, both with their fidelity.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from guests import make_guests, missing_programs, usable_accelerator
from measured import VOLBENCH, Figure, conditions, print_figures

from volbench.extensions.lab.scenario import load_scenario
from volbench.extensions.lab.server import serve

# Limits as of a stripe of two 15k disks: some 180 requests a second and 100 MB/s each
SCENARIO = """
name: fast-disk
description: A volume as fast as a stripe of two hard disks of 15,000 revolutions a minute.
size: 3g
service:
  read: {latency: 2ms, stream: 100MB/s}
  write: {latency: 2ms, stream: 100MB/s}
limits:
  iops: 360
  bandwidth: 200MB/s
"""


def volbench(*words: str | Path) -> str:
    """Run volbench as a user does, and return what it printed."""
    done = subprocess.run(  # noqa: S603 - this Python, and words from here
        [*VOLBENCH, *map(str, words)], check=False, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise RuntimeError(f"volbench {words[0]} exited with {done.returncode}\n{done.stdout}")
    return done.stdout


@contextmanager
def mounted(device: str, place: Path) -> Iterator[Path]:
    """Mount a new ext4 on a device, which holds nothing else."""
    place.mkdir()
    options = ("-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard")
    subprocess.run(["mkfs.ext4", *options, device], check=True)  # noqa: S603, S607 - our own device
    subprocess.run(["mount", "-o", "noatime", device, place], check=True)  # noqa: S603, S607
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)  # noqa: S603, S607


def storm(chosen: argparse.Namespace, disks: Path, folder: Path, accelerator: str) -> Path:
    """Boot the guests at each stagger, watched, and return the campaign."""
    guests = make_guests(chosen.guests, disks, folder, accelerator=accelerator)
    subprocess.run(["sync"], check=True)  # noqa: S607 - found on PATH
    campaign: Path = chosen.output / "storm"
    words = ["--start", f"{guests.boot} {{n}}", "--until", f"{guests.is_up} {{n}}"]
    words += ["--stop", f"{guests.stop} {{n}}", "--count", str(chosen.count), "--for", "15m"]
    words += ["--every", chosen.every, "--trace", "-o", str(campaign)]
    print(volbench("watch", disks, *words))
    for path in disks.glob("*.qcow2"):
        path.unlink()
    return campaign


def replayed(trace: Path, disks: Path, folder: Path) -> list[Figure]:
    """Replay a trace, and run a profile made from it, and return the fidelity of both."""
    profile = folder / "from-trace.yaml"
    volbench("profile", "from-trace", trace, "-o", profile)
    volbench("replay", trace, "--on", disks, "-o", folder / "replay")
    volbench("run", profile, "--on", disks, "-o", folder / "profile")
    figures = []
    for name in ("replay", "profile"):
        text = volbench("fidelity", folder / name, "--trace", trace, "--json")
        rows = [row for row in json.loads(text) if row["difference"] is not None]
        figures += [figure(f"{name}: {row['measure']}", row) for row in rows]
    return figures


def figure(name: str, row: Mapping[str, Any]) -> Figure:
    """Return a line of a fidelity table as a figure: how far the replay is off."""
    unit, scale = ("ms", 1000) if row["measure"].startswith("lag") else ("%", 100)
    limit = None if row["limit"] is None else row["limit"] * scale
    return Figure(name, abs(row["difference"]) * scale, unit, limit, row["reason"])


def main() -> int:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("guests", type=Path, help="what scripts/guests made")
    parser.add_argument("--output", type=Path, required=True, help="new folder for the campaigns")
    parser.add_argument("--count", type=int, default=2, help="guests, 2 to 8 (default: 2)")
    parser.add_argument("--every", default="10s,40s", help="staggers (default: 10s,40s)")
    chosen = parser.parse_args()
    if missing := missing_programs():
        parser.error(f"not installed: {', '.join(missing)}")
    chosen.output.mkdir()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        accelerator = usable_accelerator(chosen.guests, folder)
        print(f"{conditions()}; {chosen.count} guests by {accelerator}")
        scenario = load_scenario(SCENARIO, path="storm.py")
        volume = stack.enter_context(serve(scenario, folder / "lab", device=True))
        disks = stack.enter_context(mounted(volume.device, folder / "disk"))
        campaign = storm(chosen, disks, folder, accelerator)
        figures = replayed(campaign / "trace.parquet", disks, chosen.output)
    return print_figures(figures)


if __name__ == "__main__":
    sys.exit(main())
