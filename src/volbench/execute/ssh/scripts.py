"""What is sent to a host's login shell: a script of ours and its arguments enter, one line leaves.

The scripts need a POSIX shell and the usual small tools, of coreutils or busybox. They stand on one
line and hold no backslashes, so that they pass through csh and fish, too. Every argument is quoted;
none is ever part of a script.

Each script first prints a mark, on both outputs. What came before it, such as a greeting in the
user's start-up files, is dropped. Where no mark comes, the login shell did something else.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from volbench.errors import TransportError

MISSING = 127
NO_SUDO = 126
REFUSED = 97
DAMAGED = 98

_MAX_LINE_BYTES = 120_000
"""Linux takes 131,072 bytes as one argument (MAX_ARG_STRLEN); the line is one of the shell's."""

_BEGIN = (
    "m=$1; shift; LC_ALL=C; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export LC_ALL PATH; "
    'echo "$m"; echo "$m" >&2; '
)
_FIND = (
    'find() { case $1 in */*) [ -f "$1" ] && [ -x "$1" ] && echo "$1"; return;; esac; '
    'IFS=:; for d in $PATH; do case $d in /*) [ -f "$d/$1" ] && [ -x "$d/$1" ] && '
    'echo "$d/$1" && return;; esac; done; return 1; }; '
)
_SUDO = 'root() { if [ "$s" ] && [ "$(id -u)" != 0 ]; then sudo -n -- "$@"; else "$@"; fi; }; '

RUN = (
    f"{_FIND}"
    "n=$1 k=$2 s=$3 i=$4; shift 4; "
    f'p=$(find "$1") || {{ echo "$m {MISSING}" >&2; exit {MISSING}; }}; shift; set -- "$p" "$@"; '
    'if [ "$s" ] && [ "$(id -u)" != 0 ]; then '
    f'u=$(find sudo) || {{ echo "$m {NO_SUDO}" >&2; exit {NO_SUDO}; }}; '
    'set -- "$u" -n -- "$@"; k=TERM; fi; '
    'if timeout -s "$k" 9 true 2>/dev/null; then set -- timeout -s "$k" "$n" "$@"; fi; '
    'if [ "$i" ]; then "$@"; else "$@" </dev/null; fi; exit $?'
)
"""Run a program: seconds, signal at their end, sudo or empty, input or empty, then the program."""

WHICH = f'{_FIND}find "$1"'
READ = f'[ -f "$1" ] && [ -r "$1" ] || exit {REFUSED}; cat -- "$1"; exit $?'
LIST = (
    'cd -- "$1" 2>/dev/null && [ -r . ] || exit 0; for f in * .*; do case $f in .|..) continue;; '
    'esac; if [ -e "$f" ] || [ -L "$f" ]; then printf "%s/" "$f"; fi; done; exit 0'
)
"""Print the names in a folder, each with a slash behind it: no name holds one."""

REAL = (
    'readlink -m -- "$1" 2>/dev/null && exit 0; p=$1 t=; '
    'while :; do r=$(readlink -f -- "$p" 2>/dev/null); [ "$r" ] && break; '
    't=/${p##*/}$t; p=${p%/*}; [ "$p" ] || { r=; break; }; done; echo "$r$t"'
)
STAT = 'stat -L -c "%f %d %t %T %i %s" -- "$1"; exit $?'
FREE = 'stat -f -c "%a %S" -- "$1"; exit $?'
REMOVE = 'rm -f -- "$1"; exit $?'
REMOVE_TREE = (
    'b=$(cd -- "$1" && pwd -P) || exit 0; case "$2/" in */../*) r=1;; "$b"/?*) r=;; *) r=1;; esac; '
    'if [ "$r" ]; then echo "not below $b" >&2; exit 97; fi; '
    'if [ "$3" ] && ! rm -rf -- "$2" 2>/dev/null; then sudo -n -- rm -rf -- "$2"; exit $?; fi; '
    'rm -rf -- "$2"; exit $?'
)
"""Remove a folder below another one: the upper, the lower, sudo (for what it made) or empty."""

FOLDER = 'mkdir -p -- "$1" && cd -- "$1" && pwd -P'
FILES = 'cd -- "$1" && find . -type f -print | sort; exit $?'

EXCLUSIVE = (
    f"{_SUDO}"
    's=$2; [ -e "$1" ] || { echo "No such file or directory"; exit 0; }; '
    '[ -b "$1" ] || { echo "not a block device"; exit 0; }; '
    'if command -v perl >/dev/null; then root perl -MFcntl -e "$3" "$1"; exit $?; fi; '
    'if command -v python3 >/dev/null; then root python3 -c "$4" "$1"; exit $?; fi; '
    'if [ "$(id -u)" != 0 ]; then echo "only root, perl or python3 can tell here"; exit 0; fi; '
    'set -- "$1" $(stat -L -c "%t %T" -- "$1"); d=$((0x$2)):$((0x$3)); '
    "b=$(readlink -f /sys/dev/block/$d); "
    'for h in "$b"/holders/* "$b"/*/holders/*; do [ -e "$h" ] && '
    '{ echo "held by ${h##*/}"; exit 0; }; done; '
    'while read -r x y n o; do [ "$n" = "$d" ] && '
    '{ echo "mounted"; exit 0; }; done </proc/self/mountinfo; '
    'while read -r f o; do [ "$f" -ef "$1" ] && { echo "used as swap"; exit 0; }; '
    "done </proc/swaps; for f in /sys/fs/btrfs/*/devices/*; do "
    '[ "${f##*/}" = "${b##*/}" ] && { echo "part of a btrfs"; exit 0; }; done; '
    'for f in /proc/[0-9]*/fd/*; do [ "$f" -ef "$1" ] && [ -b "$f" ] && '
    '{ p=${f#/proc/}; echo "open in process ${p%%/*}"; exit 0; }; done; exit 0'
)
"""Tell why a block device can't be had alone: path, sudo or empty, PERL, PYTHON.

A shell can't open with O_EXCL. Where neither perl nor python3 is there, what would forbid it is
looked up one by one: holders, mounts, swap, btrfs, and any process that has it open.
"""

PERL = "sysopen(my $f, $ARGV[0], O_RDONLY | O_EXCL) or print ${chr 33}"
"""Print the system's reason, which is in the variable whose name is character 33."""

PYTHON = "import os, sys; os.close(os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL))"
"""Fail with the system's reason on standard error."""

WRITE = (
    't=$1.$2.tmp; if [ -d "$1" ]; then echo "Is a directory" >&2; exit 97; fi; '
    'e=$(dd of="$t" bs=65536 conv=fsync 2>&1) || { rm -f -- "$t"; echo "$e" >&2; exit 97; }; '
    'if [ "$(sha256sum <"$t")" != "$3  -" ]; then rm -f -- "$t"; exit 98; fi; '
    'mv -f -- "$t" "$1" || { rm -f -- "$t"; exit 97; }; exit 0'
)
"""Write standard input to a file, whole or not at all: path, a word of chance, SHA-256."""

FETCH = (
    '[ -f "$1" ] && [ -r "$1" ] || { [ -e "$1" ] || echo "No such file or directory" >&2; '
    'exit 97; }; h=$(sha256sum <"$1") || exit 97; '
    'if [ "$2" ] && command -v gzip >/dev/null; then echo "gzip ${h%% *}"; gzip -1c <"$1"; '
    'else echo "plain ${h%% *}"; cat -- "$1"; fi; exit $?'
)
"""Print how a file comes, its SHA-256, and the file: path, gzip or empty."""


@dataclass(frozen=True)
class Line:
    """A line for a login shell, and the mark that its output begins with."""

    text: bytes
    mark: bytes


def line(script: str, *arguments: str) -> Line:
    """Return the line that runs a script with some arguments.

    Raises:
        TransportError: it is too long, or an argument holds a zero byte.
    """
    mark = f"volbench-{secrets.token_hex(8)}"
    words: Sequence[str] = ("sh", "-c", _BEGIN + script, "sh", mark, *arguments)
    text = f"exec {shlex.join(words)}".encode("utf-8", "surrogateescape")
    if len(text) > _MAX_LINE_BYTES:
        raise TransportError(
            f"a command of {len(text)} bytes is too long to be sent",
            hint="a name or an argument is far longer than usual",
        )
    if b"\0" in text:
        raise TransportError(
            "a command holds a zero byte and can't be sent", hint="correct the name or argument"
        )
    return Line(text, mark.encode("ascii"))
