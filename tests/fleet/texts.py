"""What test hosts are made of: the script that is their first process, and their files in /etc."""

from pathlib import Path

FILES = Path(__file__).with_name("files")

USER = "bench"
USER_ID = 4711
"""An ordinary user of every host, who may run anything by sudo without a password."""

NOBODY = "stranger"
"""An ordinary user who may log in, and whom sudo asks for a password."""

SSHD = "/usr/sbin/sshd"
PLACE = "/run/fleet"
"""Where a host sees its own files, whatever else is hidden."""

INIT = (FILES / "first_process.sh").read_text(encoding="utf-8")
"""Ends, and everything on the host with it, when nobody holds its standard input any more."""

SWITCH = (FILES / "switch.sh").read_text(encoding="utf-8")

SSHD_CONFIG = (FILES / "sshd_config").read_text(encoding="utf-8")

SHELLS = {
    "dash": "/usr/bin/dash",
    "bash": "/usr/bin/bash",
    "rbash": "/usr/bin/rbash",
    "ash": f"{PLACE}/ash",
    "zsh": "/usr/bin/zsh",
    "tcsh": "/usr/bin/tcsh",
    "fish": "/usr/bin/fish",
}
"""Ordinary users of every host, each named after the login shell that it has."""
_SHELL_USERS = "".join(
    f"{name}:x:4711:4711::/run/home/{USER}:{path}\n" for name, path in SHELLS.items()
)

PASSWD = f"""\
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
sshd:x:105:65534::/run/sshd:/usr/sbin/nologin
{USER}:x:4711:4711::/run/home/{USER}:/bin/sh
{NOBODY}:x:4712:4711::/run/home/{NOBODY}:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
{_SHELL_USERS}"""
SHADOW = f"""\
{"".join(f"{name}:*:19000:0:99999:7:::{chr(10)}" for name in SHELLS)}root:*:19000:0:99999:7:::
{USER}:*:19000:0:99999:7:::
{NOBODY}:*:19000:0:99999:7:::
"""
GROUP = f"root:x:0:\ndaemon:x:1:\ndisk:x:6:\n{USER}:x:4711:\nnogroup:x:65534:\n"
SUDOERS = f"root ALL=(ALL:ALL) ALL\n{USER} ALL=(ALL) NOPASSWD: ALL\n"
