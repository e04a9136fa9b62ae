"""What test hosts are made of: the script that is their first process, and their files in /etc."""

USER = "bench"
"""An ordinary user of every host, who may run anything by sudo without a password."""

USER_ID = 4711
"""Whose id this is."""

NOBODY = "stranger"
"""An ordinary user who may log in, and whom sudo asks for a password."""

SSHD = "/usr/sbin/sshd"
PLACE = "/run/fleet"
"""Where a host sees its own files, whatever else is hidden."""

INIT = r"""set -eu
while read -r device point kind _; do  # the devices of other tests would stay in use
    case $device,$kind,$point in
        /dev/loop*/pytest-*|*,fuse*/pytest-*) umount -l "$point" || :;;
    esac
done </proc/mounts
echo waiting; read -r go
hostname "$NAME"
ip link set lo up; ip address add "$ADDRESS" dev eth0; ip link set eth0 up
if [ -d "$FOLDER/dev" ]; then
    dev=$FOLDER/dev; mount -t tmpfs dev "$dev"; mkdir "$dev/pts" "$dev/shm"
    for one in null zero full random urandom tty ptmx; do cp -a "/dev/$one" "$dev/"; done
    ln -s /proc/self/fd "$dev/fd"; mount --bind /dev/pts "$dev/pts"
    while read -r name device; do cp -aL "$device" "$dev/$name"; done <"$FOLDER/devices"
    mount --move "$dev" /dev; mount -t tmpfs shm /dev/shm
fi
for one in passwd shadow group sudoers hosts; do mount --bind "$FOLDER/etc/$one" "/etc/$one"; done
mount --bind "$FOLDER/boot_id" /proc/sys/kernel/random/boot_id
mount --bind "$FOLDER/root" /root
mount --bind "$FOLDER/vartmp" /var/tmp
if [ -d "$FOLDER/bin" ]; then
    mount --bind "$FOLDER/sbin" /usr/sbin; mount --bind "$FOLDER/bin" /usr/bin
fi
mount --bind "$FOLDER/run" /run
mount --bind "/run/tmp" /tmp
/usr/sbin/sshd -D -e -f /run/fleet/sshd_config 2>>/run/fleet/log &
echo up
cat >/dev/null || :
"""
"""Ends, and everything on the host with it, when nobody holds its standard input any more."""

SWITCH = r"""set -eu
echo waiting; read -r go
ip link add bridge type bridge; ip link set bridge up
ip link set uplink master bridge; ip link set uplink up
echo up
cat >/dev/null || :
"""

SSHD_CONFIG = """\
HostKey /run/fleet/host_key
AuthorizedKeysFile /run/fleet/authorized_keys
TrustedUserCAKeys /run/fleet/user_ca
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups {max_startups}
UseDNS no
PrintMotd no
PrintLastLog no
LogLevel VERBOSE
"""

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
