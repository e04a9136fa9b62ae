set -eu
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
