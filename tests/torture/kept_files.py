"""Random options of fio on a user's file, and loop devices attached anew: nothing else is lost."""

import hashlib
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.command_line import call
from tests.engine.conftest import HERE, Disks, refusal
from tests.engine.conftest import call as succeed
from volbench.engine.guard.run_guard import RESERVE_BYTES
from volbench.engine.guard.volume_targets import find_volume
from volbench.errors import InputError
from volbench.fio.jobs.option_table import shipped_table
from volbench.model.profile.fio_options import Option, OptionKind
from volbench.model.profile.option_policy import DISPLACING, OWN, PLAIN_ENGINES, RISKY, check_option

_MIB = 1 << 20
_SLACK_BYTES = 4 * _MIB  # Metadata of the filesystem, and what is deleted but not yet freed.
_ENDS = {0, 2, 3, 5, 9}  # Finished, bad input, refused, rejected by fio, or failed.
_NUMBERS = (0, 1, 2, 3, 7, 64, 512, 4096)
_SIZES = ("4k", "64k", "1m", "1m", "2m", "50%", "100%", "3m", "4m")
_LARGE = ("512", "5m", "64m", "170m", "1g", "1%", "90%")
_ENGINES = ("psync", "psync", "libaio", "io_uring", "mmap", "falloc", "sync", "pvsync2", "posixaio")
_RANGES = {"offset", "filesize", "offset_increment", "fallocate", "io_size", "bs", "numjobs"}
_PATTERNS = ("read", "write", "randread", "randwrite", "randrw", "trim", "randtrim", "trimwrite")
_NAMES = {"ioengine", "rw", "runtime", "size", "filename", "read_iolog", "wait_for"}
_SLOW = {
    "thinktime",
    "startdelay",
    "ramp_time",
    "io_submit_mode",
    "verify_async",
}  # Up to for ever.


def kept_file(chance: random.Random, folder: Path) -> int:
    """Measure a user's file, or a new one, with random options beside files that must stay."""
    disks = Disks(folder)
    try:
        device = disks.attach(disks.image(chance.choice((120, 200)) * _MIB))  # 100 MiB free, or 170
        disks.format(device)
        point = disks.mount(device)
        mine, twin, beside = (point / name for name in ("mine", "twin", "beside"))
        for path in (mine, beside):
            path.write_bytes(os.urandom(4 * _MIB))
        twin.hardlink_to(mine)
        before, content = mine.stat(), _digest(beside)
        target = chance.choice((mine, mine, point, point / "new"))
        text = f"name: p\nsample: 0\njobs:\n  j:\n{_options(chance)}"
        (folder / "p.yaml").write_text(text)
        named = ("--allow-destroy", mine) if target == mine else ()
        with _least_free(point) as free:
            done = call("run", folder / "p.yaml", "--on", target, *named, "-o", folder / "out")
        told = f"{text}\n{done.stderr}"
        assert done.returncode in _ENDS, told
        assert "Traceback" not in done.stderr, told
        after = mine.stat()
        assert (after.st_ino, after.st_size, after.st_nlink) == (
            before.st_ino,
            before.st_size,
            2,
        ), told
        assert twin.stat().st_ino == before.st_ino, told
        assert _digest(beside) == content, told
        assert min(free) > RESERVE_BYTES - _SLACK_BYTES, told
        kept = {"mine", "twin", "beside", "lost+found"}
        assert {path.name for path in point.iterdir()} <= kept, told
    finally:
        disks.close()
    return 6


def attached_anew(chance: random.Random, folder: Path) -> int:
    """Attach images under other names and offsets: what is mounted or moved gets no yes."""
    disks = Disks(folder)
    try:
        mounted, free = disks.image(), disks.image(64 * _MIB)
        device = disks.attach(mounted)
        disks.format(device)
        disks.mount(device)
        link = folder / "link"
        link.hardlink_to(mounted)
        if chance.random() < 0.5:
            mounted.unlink()
        offset, half = chance.choice((0, 32 * _MIB)), ("--sizelimit", str(32 * _MIB))
        second = disks.attach(chance.choice((link, link, free)), "--offset", "0")
        is_mounted = "link" in Path(f"/sys/block/{Path(second).name}/loop/backing_file").read_text()
        told = refusal(HERE, second)
        assert bool(told) is is_mounted, told or f"{second} is not refused"
        assert refusal(HERE, str(link), files=[str(link)])
        succeed("losetup", "-d", second)
        disks.attach_at(second, free, *half, "--offset", str(offset))
        planned = find_volume(HERE, role="data", target=second)
        succeed("losetup", "-d", second)
        later = chance.choice((0, 32 * _MIB))
        disks.attach_at(second, free, *half, "--offset", str(later))
        told = refusal(HERE, planned)
        assert bool(told) is (offset != later), told
    finally:
        disks.close()
    return 3


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def _least_free(point: Path) -> Iterator[list[int]]:
    free, is_over = [1 << 60], threading.Event()

    def look() -> None:
        while not is_over.wait(0.005):
            status = os.statvfs(point)
            free.append(status.f_bavail * status.f_frsize)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield free
    finally:
        is_over.set()
        thread.join()


def _options(chance: random.Random) -> str:
    """Return options of a job, one a line: a pattern, a second of time, and some of fio's table."""
    table = shipped_table()
    engine = chance.choice((*_ENGINES, *[chance.choice(table.engines)] * 3))
    chosen = {"rw": chance.choice(_PATTERNS), "runtime": "1s", "size": chance.choice(_SIZES)}
    options = [
        option
        for option in sorted(table.options.values(), key=lambda option: option.name)
        if option.name not in (OWN.keys() | RISKY.keys() | _NAMES | _SLOW)
        and (option.name not in DISPLACING or chance.random() < 0.1)
        and (not option.engines or engine in option.engines)
    ]
    likely = [option for option in options if option.name in _RANGES and chance.random() < 0.3]
    for option in (*likely, *chance.sample(options, 6)):
        with suppress(InputError):
            value = _value(chance, option)
            check_option(table, option.name, value)
            chosen[option.name] = value
    if engine in PLAIN_ENGINES:
        chosen["ioengine"] = engine
    return "".join(f"    {name}: '{value}'\n" for name, value in chosen.items())


def _value(chance: random.Random, option: Option) -> str:
    if option.choices:
        return chance.choice(option.choices)
    if option.kind in {OptionKind.FLAG, OptionKind.BOOLEAN}:
        return chance.choice(("0", "1", "1"))
    if option.kind is OptionKind.SIZE:
        return chance.choice((*_SIZES, *_LARGE))
    if option.kind is OptionKind.SIZE_RANGE:
        return chance.choice(("4k-16k", "512-1m"))
    return str(chance.choice(_NUMBERS))
