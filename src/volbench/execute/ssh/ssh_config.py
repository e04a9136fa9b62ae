"""Host settings in ``~/.ssh/config``.

paramiko parses the file; this module adds Include, which paramiko lacks. Nothing in the file is
executed: ``Match exec`` is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import paramiko

from volbench.errors import InputError

_SETTING = re.compile(r"\s*([A-Za-z]+)(?:\s*=\s*|\s+)(.*?)\s*$")
_MAX_DEPTH = 16  # Maximum depth of nested Includes, as in ssh (ssh_config(5), OpenSSH 9.2)

# Stands for ``%`` in a ProxyCommand, whose placeholders paramiko would replace too early
_PERCENT = "\x01"


@dataclass(frozen=True)
class Entry:
    """Settings of one host name; None or empty if not set."""

    hostname: str
    port: int | None = None
    user: str | None = None
    identity_files: tuple[str, ...] = ()
    certificate_file: str = ""
    identities_only: bool = False
    identity_agent: str | None = None
    jump: str = ""
    proxy_command: str = ""
    alias: str = ""
    known_hosts: tuple[str, ...] | None = None
    global_known_hosts: tuple[str, ...] | None = None


class SshConfig:
    """Parsed ssh configuration.

    Args:
        path: the file, which need not exist; None for ``~/.ssh/config``.
        home: home directory, which replaces ``~``.
    """

    def __init__(self, path: Path | None = None, *, home: Path | None = None) -> None:
        self.home = Path.home() if home is None else home
        self.path = self.home / ".ssh" / "config" if path is None else path
        lines = _config_lines(self.path, self.path.parent, 0) if self.path.exists() else []
        try:
            self._parsed = paramiko.SSHConfig.from_text("\n".join(map(_protected, lines)))
        except paramiko.SSHException as error:
            raise self._refused(str(error)) from error
        self.names = frozenset(self._parsed.get_hostnames())  # and patterns

    def lookup(self, name: str) -> Entry:
        """Return the settings of a host name."""
        try:
            settings = self._parsed.lookup(name)
        except (paramiko.SSHException, KeyError, ValueError, OSError) as error:
            raise self._refused(f"{name} has invalid settings: {error}") from error
        agent = settings.get("identityagent")
        proxy = (settings.get("proxycommand") or "none").replace(_PERCENT, "%")
        return Entry(
            hostname=settings["hostname"],
            port=self._port(settings.get("port")),
            user=settings.get("user"),
            identity_files=tuple(settings.get("identityfile", ())),
            certificate_file=settings.get("certificatefile", ""),
            identities_only=settings.get("identitiesonly", "no").lower() == "yes",
            identity_agent=agent,
            jump=""
            if settings.get("proxyjump", "none").lower() == "none"
            else settings["proxyjump"],
            proxy_command="" if proxy.lower() == "none" else proxy,
            alias=settings.get("hostkeyalias", ""),
            known_hosts=_files(settings.get("userknownhostsfile")),
            global_known_hosts=_files(settings.get("globalknownhostsfile")),
        )

    def expand(self, path: str) -> Path:
        """Expand ``~`` and ``%d`` in a path of the configuration."""
        text = path.replace("%d", str(self.home))
        if text == "~" or text.startswith("~/"):
            return self.home / text[2:]
        return self.home / ".ssh" / text if not text.startswith("/") else Path(text)

    def _port(self, text: str | None) -> int | None:
        if text is None:
            return None
        if not text.isdigit() or not 0 < int(text) < 65536:
            raise self._refused(f"`Port {text}` is not a port number")
        return int(text)

    def _refused(self, reason: str) -> InputError:
        return InputError(
            f"{self.path} cannot be used: {reason}",
            hint="correct the file; `ssh -G HOST` shows how ssh parses it",
        )


def _protected(line: str) -> str:
    setting = _SETTING.match(line)
    is_proxy = setting is not None and setting[1].lower() == "proxycommand"
    return line.replace("%", _PERCENT) if is_proxy else line


def _files(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(name for name in text.split() if name.lower() != "none")


def _config_lines(path: Path, folder: Path, depth: int) -> list[str]:
    """Return the lines of a file with all Includes expanded in place."""
    lines, block = [], "Host *"
    for number, line in enumerate(_config_text(path).splitlines(), 1):
        setting = _SETTING.match(line)
        key, value = (setting[1].lower(), setting[2]) if setting else ("", "")
        location = f"{path}:{number}"
        if key == "match" and re.search(r"\bexec\b", value, re.IGNORECASE):
            raise _bad(
                location, "`Match exec` would execute a program", "use `Host` or `Match host`"
            )
        if key in {"host", "match"}:
            block = line
        if key != "include":
            lines.append(line)
            continue
        if block != "Host *":
            raise _bad(
                location,
                "`Include` inside a block is not supported",
                "move it above the first `Host`",
            )
        if depth >= _MAX_DEPTH:
            raise _bad(location, "too many nested `Include`", "remove the cycle")
        for name in _included(value, folder):
            lines += _config_lines(name, folder, depth + 1)
        lines.append(block)
    return lines


def _included(value: str, folder: Path) -> list[Path]:
    paths: list[Path] = []
    for word in value.replace('"', " ").split():
        pattern = Path(word).expanduser() if word.startswith("~") else folder / word
        names = Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
        paths += [path for path in sorted(names) if path.is_file()]
    return paths


def _config_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", hint="check its permissions"
        ) from error


def _bad(location: str, message: str, hint: str) -> InputError:
    return InputError(f"{location}: {message}", hint=hint)
