"""Load beside a watch of this process: it begins when the watch records, and then ends the watch.

A watch for a fixed time would miss the load on a busy machine, where starting it takes seconds.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tests.waiting import PATIENCE_S, until

LONGEST = ("--for", "10m")
"""Options of such a watch, which Ctrl-C ends."""
_END = "\n.\n"


@contextmanager
def loaded(
    into: Path, load: Callable[[], None], *, before: int = 2, after: int = 2, logs: int = 1
) -> Iterator[None]:
    """Call a load once each log of a watch has samples, and press Ctrl-C some samples later."""
    has_ended, errors = Event(), []

    def counts() -> list[int]:
        return [log.read_text().count(_END) for log in into.glob("runs/*/device.log")]

    def have(count: int) -> bool:
        return has_ended.is_set() or (len(counts()) == logs and min(counts()) >= count)

    def follow() -> None:
        try:
            until(lambda: have(before))
            load()
            seen = max(counts(), default=0)
            until(lambda: have(seen + after))
        except (OSError, AssertionError) as error:
            errors.append(error)
        if not has_ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    thread = Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join(PATIENCE_S)
    assert not errors
