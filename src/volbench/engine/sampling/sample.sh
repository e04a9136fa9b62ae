# Copies lines of /proc to standard output at even intervals: what sample.py does, without Python.
#
# Arguments: seconds between samples, longest life in seconds, kernel names of block devices.
# A sample is "T <UTC> <uptime>", then raw lines, then ".". SIGTERM asks for one last sample.
# It ends by itself when its parent does.

interval=$1 life=$2 last=
shift 2
trap 'last=1' TERM

ticks() {
    # Hundredths of a second since boot, into $now; $up is the text they were read from.
    read -r up rest </proc/uptime
    frac=${up#*.}
    now=$((${up%.*} * 100 + 1$frac - 100))
}

hundredths() {
    # A number of seconds such as 0.5 as hundredths, into $value.
    case $1 in *.*) frac=${1#*.}00 ;; *) frac=00 ;; esac
    frac=${frac%"${frac#??}"}
    value=$((${1%%.*} * 100 + 1$frac - 100))
}

parent() {
    # The present parent's process id, into $ppid.
    read -r stat </proc/$$/stat
    stat=${stat##*) }
    set -- $stat
    ppid=$2
}

take() {
    ticks
    date "+T $clock $up"
    grep -shF "$@" /proc/stat /proc/diskstats /proc/meminfo /proc/vmstat /proc/pressure/io
    for name in $disks; do
        if read -r count <"/sys/class/block/$name/device/ioerr_cnt"; then
            echo "ioerr $name $count"
        fi
    done
    echo .
}

case $(date +%N) in
'' | *[!0-9]*) clock=%s ;;
*) clock=%s.%N ;;
esac
sleep 0.01 2>/dev/null && fine=1 || fine=

disks=
for name in "$@"; do
    shift
    [ -r "/sys/class/block/$name/device/ioerr_cnt" ] && disks="$disks $name"
    case $name in *!*) name=${name%%!*}/${name#*!} ;; esac
    set -- "$@" -e " $name "
done
set -- -e 'cpu ' -e 'Dirty:' -e 'Writeback:' -e 'pswpin ' -e 'pswpout ' -e 'some ' -e 'full ' "$@"

echo "volbench-samples 1 page $(getconf PAGESIZE 2>/dev/null || echo 4096)"
hundredths "$interval"
step=$value
hundredths "$life"
ticks
due=$now
end=$((now + value))
parent
begun_by=$ppid
while [ -z "$last" ] && [ "$ppid" = "$begun_by" ] && [ "$now" -lt "$end" ]; do
    take "$@"
    ticks
    due=$((due + step))
    [ "$due" -gt "$now" ] || due=$((now + step))
    left=$((due - now))
    if [ "$fine" ]; then
        frac=$((100 + left % 100))
        pause=$((left / 100)).${frac#1}
    else
        pause=$(((left + 99) / 100))
    fi
    if [ -z "$last" ]; then
        sleep "$pause" &
        wait $!
    fi
    ticks
    parent
done
[ -z "$last" ] || take "$@"
