# Hold a block device open while a program runs: NODE FACTS SECTORS DISKSEQ BOOT PROGRAM ARGUMENT...
# FACTS is /sys/dev/block/MAJOR:MINOR. The program itself inherits the descriptor, so that nothing
# else can get the device's number before it ends. Exit status 93 and a word: it was not started.
node=$1 facts=$2 sectors=$3 diskseq=$4 boot=$5
shift 5
refuse() {
    echo "volbench-hold: $1 $2" >&2
    exit 93
}
[ -b "$node" ] || refuse node
command exec 8<"$node" || refuse node
opened=/proc/$$/fd/8
[ -b "$opened" ] && number=$(stat -L -c '%t %T' "$opened") || refuse node
number=$((0x${number% *})):$((0x${number#* }))
[ "$number" = "${facts##*/}" ] || refuse number "$number"
now=$(cat "$facts/size" 2>/dev/null)
[ "$now" = "$sectors" ] || refuse size "$now"
[ "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)" = "$boot" ] || refuse boot
[ ! -e "$facts/partition" ] || facts=$facts/..
now=$(cat "$facts/diskseq" 2>/dev/null)
[ "$now" = "$diskseq" ] || refuse diskseq "$now"
exec "$@" 8<&8 # said again for shells that close it
