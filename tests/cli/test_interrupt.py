"""Ctrl-C where Python drops an exception, or must not have one."""

import subprocess
import sys

# A thread holds the import lock while Ctrl-C comes; the main thread waits for it in an import.
PROGRAM = """
import _imp, os, signal, sys, threading, time
from volbench.interrupts import interrupt

taken, main = threading.Event(), threading.get_ident()

def hold():
    _imp.acquire_lock()
    taken.set()
    while "importlib" not in sys._current_frames()[main].f_code.co_filename:
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    _imp.release_lock()

signal.signal(signal.SIGINT, HANDLER)
threading.Thread(target=hold).start()
taken.wait()
try:
    import xmlrpc
    time.sleep(300)
except KeyboardInterrupt:
    print("interrupted")
print("held" if _imp.lock_held() else "free")
os._exit(0)
"""


def _printed(handler: str, program: str = PROGRAM) -> list[str]:
    program = program.replace("HANDLER", handler)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.split()


def test_an_interrupt_during_an_import_leaves_no_lock() -> None:
    """Python's own handler would raise with the lock taken, and all threads would wait for it."""
    assert _printed("interrupt") == ["interrupted", "free"]
    assert _printed("signal.default_int_handler") == ["interrupted", "held"]


# Ctrl-C comes while Python closes what nobody uses any more, such as the response of an API.
FINALIZED = """
import io, os, signal, time
from volbench.interrupts import interrupt

class Response(io.RawIOBase):
    close = lambda self: os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, HANDLER)
try:
    Response()
    time.sleep(2)
    print("lost")
except KeyboardInterrupt:
    time.sleep(1)  # and does not come once more
    print("interrupted")
"""


def test_an_interrupt_within_a_finalizer_comes_again() -> None:
    """Python drops what Python's own handler raises there."""
    assert _printed("signal.default_int_handler", FINALIZED) == ["lost"]
    assert _printed("interrupt", FINALIZED) == ["interrupted"]
