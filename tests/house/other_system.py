"""Run volbench as on a system that is not Linux: python other_system.py ARGUMENTS.

Other libraries are imported first. Then the names that only Linux has leave the standard library,
and nothing below /proc and /sys can be seen.
"""

import importlib
import os
import select
import signal
import sys
import time
from typing import Any

LIBRARIES = (
    *("click", "jinja2", "matplotlib.pyplot", "pandas", "pyarrow.parquet", "pydantic"),
    *("concurrent.futures.process", "shutil", "subprocess", "tempfile"),
    "urllib.request",
)
# As the documentation of Python 3.14 says
LINUX_ONLY: dict[Any, tuple[str, ...]] = {
    os: (
        *("O_DIRECT", "O_NOATIME", "O_PATH", "O_TMPFILE", "copy_file_range", "eventfd"),
        *("fdatasync", "getresuid", "getxattr", "listxattr", "memfd_create", "pidfd_open"),
        *("posix_fadvise", "posix_fallocate", "sched_getaffinity", "sched_setaffinity"),
        *("setns", "setresuid", "setxattr", "splice", "unshare"),
    ),
    select: ("epoll",),
    signal: ("pidfd_send_signal", "sigtimedwait"),
    time: ("CLOCK_BOOTTIME",),
}
HIDDEN = ("/proc", "/sys")
_USER = 501  # the first user of macOS


def is_hidden(path: object) -> bool:
    """Return whether another system has no such path."""
    return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(HIDDEN)


def hide() -> None:
    """Take away what only Linux has."""
    for module, names in LINUX_ONLY.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    stat = os.stat

    def seen(path: Any, *arguments: Any, **options: Any) -> os.stat_result:  # noqa: ANN401 - os.stat
        if is_hidden(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return stat(path, *arguments, **options)

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and is_hidden(arguments[0]):
            raise FileNotFoundError(2, "No such file or directory", arguments[0])

    os.geteuid = lambda: _USER
    os.stat = seen
    sys.addaudithook(refuse)
    sys.platform = "darwin"


if __name__ == "__main__":
    for library in LIBRARIES:
        importlib.import_module(library)
    hide()
    main = importlib.import_module("volbench.cli.main").main
    sys.exit(main(sys.argv[1:]))
