"""POSIX shell scripts that run on remote hosts.

They require coreutils or busybox. Each is a single line without backslashes, so that it survives
csh and fish as login shells. Arguments are passed as positional parameters, never interpolated.
"""

from __future__ import annotations

MISSING = 127
NO_SUDO = 126
REFUSED = 97
DAMAGED = 98
EXISTS = 3

_FIND = (
    'find() { case $1 in */*) [ -f "$1" ] && [ -x "$1" ] && echo "$1"; return;; esac; '
    'IFS=:; for d in $PATH; do case $d in /*) [ -f "$d/$1" ] && [ -x "$d/$1" ] && '
    'echo "$d/$1" && return;; esac; done; return 1; }; '
)
_SUDO = 'root() { if [ "$s" ] && [ "$(id -u)" != 0 ]; then sudo -n -- "$@"; else "$@"; fi; }; '

# Print the seconds since 1970. busybox has no %N, but adjtimex(8): microseconds, or nanoseconds if
# the bit STA_NANO (8192) of its status is set (adjtimex(2)). Without either: whole seconds.
NOW = (
    "now() { t=$(date +%s.%N); case $t in *[!0-9.]*|*.) t=$(adjtimex 2>/dev/null | awk '"
    "/status:/ { n = int($2 / 8192) % 2 ? 9 : 6 } /tv_sec:/ { s = $2 } "
    '/tv_usec:/ { print s "." sprintf("%0" n "d", $2) }\'); esac; echo "${t:-$(date +%s)}"; }'
)

# Run a program: timeout in s, timeout signal, sudo or empty, input or empty, program
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

_WRITE_LOOP = (
    't=.$1.tmp; c=$2; shift 2; while [ "$c" -gt 0 ]; do c=$((c - 1)); case $1 in */) '
    f'mkdir -p -- "$1" || exit {REFUSED}; shift 3; continue;; esac; '
    f'mkdir -p -- "${{1%/*}}" || exit {REFUSED}; '
    'e=$(printf %s "$2" | dd of="$1$t" bs=65536 conv=fsync 2>&1) || '
    f'{{ rm -f -- "$1$t"; echo "$e" >&2; exit {REFUSED}; }}; '
    f'if [ "$(sha256sum <"$1$t")" != "$3  -" ]; then rm -f -- "$1$t"; exit {DAMAGED}; fi; '
    f'mv -f -- "$1$t" "$1" || {{ rm -f -- "$1$t"; exit {REFUSED}; }}; shift 3; done'
)
# Write files atomically: random suffix, number of files, then path, text and SHA-256 of each.
# Folders end in a slash.
WRITE_ALL = f"{_WRITE_LOOP}; exit 0"

# Write files and run a program: the arguments of `WRITE_ALL`, then those of `RUN`
WRITE_AND_RUN = f"{_WRITE_LOOP}; {RUN}"

# Run a program in a temporary folder: its parent, number of files, their texts, and the arguments
# of `RUN`
RUN_ON_FILES = (
    'b=$1 c=$2; shift 2; new() { mkdir -p -- "$b" && d=$(mktemp -d "$b/check.XXXXXX"); }; '
    f'new 2>/dev/null || new || exit {REFUSED}; d=$(cd -- "$d" && pwd -P) || exit {REFUSED}; '
    'end() { rm -rf -- "$d"; case $b in .volbench | */.volbench) rmdir -- "$o/$b";; esac; }; '
    f"o=$PWD; case $b in /*) o=;; esac; trap 'end 2>/dev/null' EXIT; "
    f"trap 'exit {REFUSED}' HUP INT PIPE TERM; "
    'cd -- "$d"; i=0; while [ "$i" -lt "$c" ]; do printf %s "$1" >"$i" || '
    f"exit {REFUSED}; shift; i=$((i + 1)); done; {RUN}"
)

WHICH = f'{_FIND}find "$1"'
READ = f'[ -f "$1" ] && [ -r "$1" ] || exit {REFUSED}; cat -- "$1"; exit $?'
# Print the names in a directory, each terminated by a slash
LIST = (
    'cd -- "$1" 2>/dev/null && [ -r . ] || exit 0; for f in * .*; do case $f in .|..) continue;; '
    'esac; if [ -e "$f" ] || [ -L "$f" ]; then printf "%s/" "$f"; fi; done; exit 0'
)

REAL = (
    'readlink -m -- "$1" 2>/dev/null && exit 0; t=; case $1 in /*) p=$1;; *) p=$PWD/$1;; esac; '
    'while :; do r=$(readlink -f -- "$p" 2>/dev/null); [ "$r" ] && break; '
    't=/${p##*/}$t; p=${p%/*}; [ "$p" ] || { r=; break; }; done; echo "$r$t"'
)
# Print the stat result of a path: path, follow or empty. busybox prints no birth time.
STAT = 'stat ${2:+-L} -c "%f %d %t %T %i %s %u %.9W" -- "$1"; exit $?'

# Print the SHA-256 of the first and last MiB of a device: path, size, sudo or empty
EDGES = (
    f"{_SUDO}"
    's=$3; root true || exit 97; [ -b "$1" ] || exit 97; '
    'e=$(($2 / 512)); n=2048; [ "$e" -ge "$n" ] || n=$e; '
    '{ root dd if="$1" bs=512 count="$n" 2>/dev/null; '
    'root dd if="$1" bs=512 count="$n" skip="$((e - n))" 2>/dev/null; } | sha256sum; exit $?'
)

# Create a directory with mode 0700: path, sudo (if only root may write there) or empty
PRIVATE = (
    'if [ -e "$1" ] || [ -L "$1" ]; then exit 3; fi; '
    'if [ "$2" ] && ! mkdir -m 700 -- "$1" 2>/dev/null; then '
    'sudo -n -- mkdir -m 700 -- "$1" && sudo -n -- chown -h "$(id -u)" -- "$1" || exit 97; exit 0; '
    'fi; if [ -z "$2" ]; then mkdir -m 700 -- "$1" || exit 97; fi; exit 0'
)

FREE = 'stat -f -c "%a %S" -- "$1"; exit $?'
# Remove a file: path, sudo (for files owned by root) or empty
REMOVE = (
    'if [ "$2" ] && ! rm -f -- "$1" 2>/dev/null; then sudo -n -- rm -f -- "$1"; exit $?; fi; '
    'rm -f -- "$1"; exit $?'
)

# Remove files and empty directories: sudo or empty, then path and device:inode of each
REMOVE_SAME = (
    "s=$1; shift; while [ $# -gt 0 ]; do "
    'if [ "$(stat -c %d:%i -- "$1" 2>/dev/null)" = "$2" ]; then '
    'if [ -d "$1" ] && [ ! -L "$1" ]; then '
    'rmdir -- "$1" 2>/dev/null || { [ "$s" ] && sudo -n -- rmdir -- "$1" 2>/dev/null; }; '
    'else e=$(rm -f -- "$1" 2>&1) || { [ "$s" ] && e=$(sudo -n -- rm -f -- "$1" 2>&1); } || '
    f'{{ echo "$e" >&2; exit {REFUSED}; }}; fi; fi; '
    'if [ -e "$1" ] || [ -L "$1" ]; then echo kept; else echo gone; fi; shift 2; done; exit 0'
)

# Remove a subdirectory: base, subdirectory, sudo (for files owned by root) or empty. The base is
# removed too if it is volbench's own and empty.
REMOVE_TREE = (
    'b=$(cd -- "$1" && pwd -P) || exit 0; case "$2/" in */../*) r=1;; "$b"/?*) r=;; *) r=1;; esac; '
    'if [ "$r" ]; then echo "not below $b" >&2; exit 97; fi; '
    'if [ "$3" ] && ! rm -rf -- "$2" 2>/dev/null; then sudo -n -- rm -rf -- "$2" || exit $?; fi; '
    'rm -rf -- "$2" || exit $?; case $b in */.volbench) rmdir -- "$b" 2>/dev/null;; esac; exit 0'
)

_FILE = (
    'for f do n=$(wc -c <"$f") && h=$(sha256sum <"$f") || exit 97; '
    'echo "$(printf %s "$f" | base64 -w 0) $((n)) ${h%% *}"; head -c "$((n))" "$f" || exit 97; done'
)
# Print all files of a folder in one stream: path, gzip or empty, KiB above which only "large" is
# printed, or empty; see `incoming_folder`
FILES = (
    'cd -- "$1" || exit 97; if [ "$3" ] && k=$(du -sk .) && [ "${k%%[!0-9]*}" -gt "$3" ]; then '
    'echo large; exit 0; fi; z=cat; if [ "$2" ] && command -v gzip >/dev/null; then echo gzip; '
    'z="gzip -1c"; else echo plain; fi; '
    f"{{ find . -type f -exec sh -c '{_FILE}' sh {{}} + && echo end; }} | $z; exit $?"
)

# Print the error of an exclusive open of a block device: path, sudo or empty, PERL, PYTHON, and
# text if it runs in a container. A shell cannot open with O_EXCL. Without perl and python3, the
# script refuses in a container, whose mounts and processes are only its own; on a machine it checks
# for users of the device: holders, mounts, swap, btrfs, and processes that have it open. A program
# of volbench that only holds it (descriptor 8 of ``hold.sh``) is no user: it is another client at
# its start gate.
EXCLUSIVE = (
    f"{_SUDO}"
    's=$2; [ -e "$1" ] || { echo "No such file or directory"; exit 0; }; '
    '[ -b "$1" ] || { echo "not a block device"; exit 0; }; '
    'if command -v perl >/dev/null; then root perl -MFcntl -e "$3" "$1"; exit $?; fi; '
    'if command -v python3 >/dev/null; then root python3 -c "$4" "$1"; exit $?; fi; '
    'if [ "$5" ]; then echo "a container does not see its users: the image needs perl or python3"; '
    "exit 0; fi; "
    'if [ "$(id -u)" != 0 ]; then echo "the check needs root, perl or python3"; exit 0; fi; '
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
    'case ${f##*/} in 8) ! grep -q VOLBENCH_CONTROL= "${f%/fd/*}/environ";; esac && '
    '{ p=${f#/proc/}; echo "open in process ${p%%/*}"; exit 0; }; done; exit 0'
)

# Print the error message, in Perl's variable named by character 33
PERL = "sysopen(my $f, $ARGV[0], O_RDONLY | O_EXCL) or print ${chr 33}"

# Fail with the error message on standard error
PYTHON = "import os, sys; os.close(os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL))"

# Write standard input to a file atomically: path, random suffix, SHA-256
WRITE = (
    't=$1.$2.tmp; if [ -d "$1" ]; then echo "Is a directory" >&2; exit 97; fi; '
    'e=$(dd of="$t" bs=65536 conv=fsync 2>&1) || { rm -f -- "$t"; echo "$e" >&2; exit 97; }; '
    'if [ "$(sha256sum <"$t")" != "$3  -" ]; then rm -f -- "$t"; exit 98; fi; '
    'mv -f -- "$t" "$1" || { rm -f -- "$t"; exit 97; }; exit 0'
)

# Print encoding, SHA-256 and content of a file: path, gzip or empty
FETCH = (
    '[ -f "$1" ] && [ -r "$1" ] || { [ -e "$1" ] || echo "No such file or directory" >&2; '
    'exit 97; }; h=$(sha256sum <"$1") || exit 97; '
    'if [ "$2" ] && command -v gzip >/dev/null; then echo "gzip ${h%% *}"; gzip -1c <"$1"; '
    'else echo "plain ${h%% *}"; cat -- "$1"; fi; exit $?'
)
