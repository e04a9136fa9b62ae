"""An NBD export that accepts connections and serves nothing, for runs of a virtual fio."""

import atexit
import shutil
import socket
import tempfile
from functools import cache
from threading import Thread


@cache
def silent_export() -> str:
    """Return the URI of the export, which is there until the tests end."""
    folder = tempfile.mkdtemp(prefix="export-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{folder}/socket")
    server.listen()
    Thread(target=_accept, args=(server,), daemon=True).start()
    return f"nbd+unix:///?socket={folder}/socket"


def _accept(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        connection.close()
