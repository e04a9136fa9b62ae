# Hold a block device for one campaign: take|free|show NAME CAMPAIGN
# Prints nothing on success, else the holder of the lock. Void are locks from before a reboot, and
# those of another disk that had this device number, by the kernel's number of the attachment.
# Share a file system with other campaigns: join NAME CAMPAIGN
# Prints the other campaigns, one per line.
# End the sharing of all file systems: leave - CAMPAIGN
verb=$1 name=$2 campaign=$3
folder=/run/lock
[ -w "$folder" ] || folder=/tmp
lock=$folder/volbench-$name
boot=$(cat /proc/sys/kernel/random/boot_id)
disk=/sys/dev/block/$name
[ -e "$disk/diskseq" ] || disk=$disk/.. # of a partition
boot=$boot:$(cat "$disk/diskseq" 2>/dev/null)
holder() {
    held=
    read -r held 2>/dev/null <"$lock/holder"
    echo "$held"
}
if [ "$verb" = free ]; then
    [ "$(holder)" = "$boot $campaign" ] && rm -rf -- "$lock"
    exit 0
fi
case $verb in
show)
    found=$(holder)
    case $found in "$boot "*) echo "${found#"$boot "}" ;; esac
    exit 0
    ;;
join)
    (umask 0; mkdir -p "$lock")
    echo "$boot" >"$lock/$campaign"
    for other in "$lock"/*; do
        held=
        read -r held 2>/dev/null <"$other"
        [ "$held" != "$boot" ] || [ "$other" = "$lock/$campaign" ] || echo "${other##*/}"
    done
    exit 0
    ;;
leave)
    for lock in "$folder"/volbench-fs-*; do
        [ -e "$lock/$campaign" ] || continue
        rm -f -- "$lock/$campaign"
        rmdir -- "$lock" 2>/dev/null
    done
    exit 0
    ;;
esac
for try in 1 2 3; do
    if mkdir -m 755 "$lock" 2>/dev/null; then
        echo "$boot $campaign" >"$lock/new" && mv "$lock/new" "$lock/holder"
        exit 0
    fi
    found=$(holder)
    case $found in
    "$boot $campaign") exit 0 ;;
    "$boot "*) break ;;
    '') sleep 1 ;; # the lock is being created
    *) rm -rf -- "$lock" ;;
    esac
done
echo "${found#"$boot "}"
