"""Real virtual machines: Debian guests whose disks are overlays on one base image.

Guests run on KVM where it can run them, else they are emulated, which takes some ten times as long.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("qemu-system-x86_64", "qemu-img")
ACCELERATORS = {"kvm": ("-accel", "kvm", "-cpu", "host"), "tcg": ("-accel", "tcg", "-cpu", "max")}
_TRIED_S = 20.0  # A guest on KVM tells after 3 s that it is up
_BOOT = """#!/bin/sh
# Boot guest $1 from a new overlay; it writes to up-$1 when its services are started.
set -e
cd {folder}
rm -f "up-$1" {disks}/"guest-$1.qcow2"
qemu-img create -q -f qcow2 -b base.qcow2 -F qcow2 {disks}/"guest-$1.qcow2"
exec qemu-system-x86_64 {accelerator} -m {memory} -nodefaults -display none -daemonize \\
    -pidfile "pid-$1" -serial "file:console-$1" -serial "file:up-$1" \\
    -drive file={disks}/"guest-$1.qcow2,if=virtio,cache=none,aio=native" \\
    -kernel {guests}/kernel -initrd {guests}/initrd -append 'root=/dev/vda rw console=ttyS0 quiet'
"""
_IS_UP = '#!/bin/sh\nexec grep -qs up {folder}/"up-$1"\n'
_STOP = """#!/bin/sh
pid=$(cat {folder}/"pid-$1") && kill "$pid" && while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
"""


@dataclass(frozen=True)
class Guests:
    """Commands for the guests of a storm.

    Attributes:
        boot: path of a program that starts guest N, its argument, and returns.
        is_up: exits with 0 once guest N is up.
        stop: kills guest N and returns when it is gone.
    """

    boot: Path
    is_up: Path
    stop: Path


def missing_programs() -> list[str]:
    """Return what is not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def make_guests(
    guests: Path, disks: Path, folder: Path, *, accelerator: str, memory_mb: int = 192
) -> Guests:
    """Copy the base image to a volume, and write the programs that boot guests from it.

    Args:
        guests: what ``scripts/guests`` made.
        disks: folder on the volume, for base image and overlays.
        folder: for the programs, consoles and process ids; it exists.
        accelerator: of `ACCELERATORS`.
        memory_mb: of each guest.
    """
    if not (disks / "base.qcow2").exists():
        shutil.copyfile(guests / "base.qcow2", disks / "base.qcow2")
    texts = {"boot": _BOOT, "is-up": _IS_UP, "stop": _STOP}
    quoted = {
        "folder": shlex.quote(str(folder.absolute())),
        "disks": shlex.quote(str(disks.absolute())),
        "guests": shlex.quote(str(guests.absolute())),
        "accelerator": shlex.join(ACCELERATORS[accelerator]),
        "memory": str(memory_mb),
    }
    paths = [folder.absolute() / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text.format(**quoted), encoding="utf-8")
        path.chmod(0o755)
    return Guests(*paths)


def usable_accelerator(guests: Path, folder: Path) -> str:
    """Return ``kvm`` where a guest boots on it, else ``tcg``.

    A machine that is itself virtual may offer /dev/kvm and stop a guest in its first instructions.
    """
    if not Path("/dev/kvm").exists():
        return "tcg"
    own = make_guests(guests, folder, folder, accelerator="kvm")
    try:
        done = subprocess.run([own.boot, "0"], check=False, capture_output=True, timeout=_TRIED_S)  # noqa: S603 - written above
        end = time.monotonic() + (0 if done.returncode else _TRIED_S)
        while time.monotonic() < end:
            if subprocess.run([own.is_up, "0"], check=False).returncode == 0:  # noqa: S603 - written above
                return "kvm"
            time.sleep(0.2)
    finally:
        subprocess.run([own.stop, "0"], check=False, capture_output=True)  # noqa: S603 - written above
        (folder / "base.qcow2").unlink()
    return "tcg"
