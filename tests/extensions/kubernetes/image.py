"""Image of a container made of this machine's fio, busybox and Python, without a builder."""

import io
import json
import re
import subprocess
import sysconfig
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

NAME = "docker.io/volbench/fio:test"
_IDLE = "trap 'exit 0' TERM; while :; do sleep 60 & wait $!; done"
_LIBRARY = re.compile(r"(/\S+) \(0x")
_STDLIB = Path(sysconfig.get_path("stdlib"))
_WITHOUT = re.compile(
    r"(site-packages|dist-packages|test|tests|idlelib|tkinter|lib2to3|ensurepip|turtledemo"
    r"|pydoc_data|config-.*|__pycache__|_(ssl|hashlib|tkinter|curses|dbm|gdbm|test).*)"
)
"""Folders and modules of Python's library that no agent needs."""


def write_image(path: Path) -> None:
    """Write an image as ``docker save`` does; `NAME` is its name."""
    layer = _layer()
    digest = sha256(layer).hexdigest()
    settings = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": ["sh", "-c", _IDLE], "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    config = json.dumps(settings).encode()
    config_name = f"{sha256(config).hexdigest()}.json"
    layer_name = f"{digest}/layer.tar"
    manifest = [{"Config": config_name, "RepoTags": [NAME], "Layers": [layer_name]}]
    with tarfile.open(path, "w") as archive:
        _add(archive, layer_name, layer)
        _add(archive, config_name, config)
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _layer() -> bytes:
    python = (Path(str(sysconfig.get_config_var("BINDIR"))) / "python3").resolve()
    programs = {"fio": Path(_which("fio")), "busybox": Path(_which("busybox"))}
    files = {f"usr/bin/{name}": program for name, program in programs.items()}
    files |= {str(path).lstrip("/"): path for path in (python, *_modules())}
    for program in [path for path in files.values() if path.suffix != ".py"]:
        files |= {library.lstrip("/"): Path(library) for library in _libraries(program)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in ("tmp", "proc", "sys", "dev", "etc", "run", "volumes", "volbench"):
            _add_folder(archive, folder)
        for name, source in sorted(files.items()):
            found = archive.gettarinfo(str(source.resolve()), name)
            found.type, found.uid, found.gid, found.mtime = tarfile.REGTYPE, 0, 0, 0
            with source.open("rb") as content:
                archive.addfile(found, content)
        for applet in _output("busybox", "--list").split():
            if f"usr/bin/{applet}" not in files:
                _add_link(archive, f"bin/{applet}", "/usr/bin/busybox")
        _add_link(archive, "usr/bin/python3", str(python))
        _add(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    return buffer.getvalue()


def _modules() -> Iterator[Path]:
    for path in sorted(_STDLIB.rglob("*")):
        parts = path.relative_to(_STDLIB).parts
        if path.suffix in {".py", ".so"} and not any(map(_WITHOUT.fullmatch, parts)):
            yield path


def _libraries(program: Path) -> list[str]:
    return _LIBRARY.findall(_output("ldd", str(program)))


def _which(program: str) -> str:
    return _output("sh", "-c", f"command -v {program}").strip()


def _output(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    found = tarfile.TarInfo(name)
    found.size, found.mode = len(content), 0o644
    archive.addfile(found, io.BytesIO(content))


def _add_folder(archive: tarfile.TarFile, name: str) -> None:
    found = tarfile.TarInfo(name)
    found.type, found.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
    archive.addfile(found)


def _add_link(archive: tarfile.TarFile, name: str, target: str) -> None:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = tarfile.SYMTYPE, target
    archive.addfile(found)
