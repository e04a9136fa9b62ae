"""`volbench profile check` of a matrix of 2,000 cells: CPU seconds, fio included; at most 3 s.

Use it as: .venv/bin/python benchmarks/profile_check.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CELLS = 2000
LIMIT_S = 3.0


def profile() -> str:
    """Return a profile with a matrix of 2,000 cells."""
    depths = ", ".join(str(depth) for depth in range(1, CELLS // 20 + 1))
    return (
        "name: cells\n"
        "defaults: {ioengine: libaio, direct: 1, size: 64m, runtime: 10s, time_based: 1}\n"
        "matrix:\n"
        "  rw: [read, write, randread, randwrite]\n"
        "  bs: [4k, 8k, 16k, 64k, 1m]\n"
        f"  iodepth: [{depths}]\n"
    )


def main() -> int:
    """Measure the command in a process of its own; 1 when it takes longer than it may."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.yaml"
        path.write_text(profile(), encoding="utf-8")
        before, began_s = os.times(), time.perf_counter()
        command = [sys.executable, "-m", "volbench", "profile", "check", path]
        subprocess.run(command, check=True)  # noqa: S603 - fixed by this file
        wall_s, after = time.perf_counter() - began_s, os.times()
    own_s = after.children_user - before.children_user
    system_s = after.children_system - before.children_system
    print(
        f"profile check of {CELLS:,} cells: {own_s + system_s:.2f} s of CPU, {wall_s:.2f} s; "
        f"at most {LIMIT_S:g} s"
    )
    return int(own_s + system_s > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
