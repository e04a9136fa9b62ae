# Copies lines of /proc to standard output at regular intervals: proc_sampler.py without Python.
#
# Arguments: seconds between samples, maximum runtime in seconds, kernel names of block devices.
# A sample is "T <UTC> <uptime>", then raw lines, then ".". SIGTERM takes one last sample and
# ends the script; it also ends with its parent.

interval=$1 life=$2 last=
shift 2
pids= turn=0
trap 'last=1' TERM

ticks() {
    # Sets $now to hundredths of a second since boot; $up is the source text.
    read -r up rest </proc/uptime
    frac=${up#*.}
    now=$((${up%.*} * 100 + 1$frac - 100))
}

hundredths() {
    # Sets $value to a number of seconds such as 0.5, in hundredths.
    case $1 in *.*) frac=${1#*.}00 ;; *) frac=00 ;; esac
    frac=${frac%"${frac#??}"}
    value=$((${1%%.*} * 100 + 1$frac - 100))
}

parent() {
    # Sets $ppid to the current parent's process id.
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
    if read -r line </proc/pressure/cpu; then
        echo "cpu-$line"
    fi
    waits
    throttling
    echo .
}

limits() {
    # Sets $limited to cpu.stat of each cgroup of this process, up to the root, with a CPU limit.
    limited=
    while IFS=: read -r id names path; do
        case $path in *[!A-Za-z0-9_./:@\\-]*) continue ;; esac
        case ,$names, in
        ,,) root=/sys/fs/cgroup/unified && [ -d "$root" ] || root=/sys/fs/cgroup ;;
        *,cpu,*) root=/sys/fs/cgroup/$names && [ -d "$root" ] || root=/sys/fs/cgroup/cpu ;;
        *) continue ;;
        esac
        path=${path%/}
        while limit "$root$path" && [ -n "$path" ]; do
            path=${path%/*}
        done
    done </proc/self/cgroup
} 2>/dev/null

limit() {
    quota=max
    read -r quota period <"$1/cpu.max" || read -r quota <"$1/cpu.cfs_quota_us"
    case $quota in max | -*) ;; *) limited="$limited $1/cpu.stat" ;; esac
}

throttling() {
    # Prints for each limit its periods, those in which it throttled, and for how many us.
    for file in $limited; do
        while read -r name count; do
            case $name in
            nr_periods) periods=$count ;;
            nr_throttled) throttled=$count ;;
            throttled_usec) us=$count ;;
            throttled_time) us=$((count / 1000)) ;;
            esac
        done <"$file" && echo "throttle $periods $throttled $us"
    done
} 2>/dev/null

only_tool() {
    # Takes tools whose directory cannot be read, as those started by sudo, if it is one tool.
    roots=0
    for pid in $hidden; do
        read -r stat <"/proc/$pid/stat" || continue
        stat=${stat##*) }
        set -- $stat
        case " $hidden " in *" $2 "*) ;; *) roots=$((roots + 1)) ;; esac
    done
    [ "$roots" != 1 ] || pids=$hidden
}

waits() {
    # Prints the number of tasks of this run's fio or dd, and their time on a CPU and waiting for
    # one. Only this run works in the current directory.
    if [ -z "$pids" ] || [ "$turn" -ge 10 ]; then
        pids= hidden= turn=0
        for path in /proc/[0-9]*/comm; do
            read -r name <"$path" || continue
            path=${path%/comm}
            case $name in
            fio | dd)
                if [ "$path/cwd" -ef . ]; then
                    pids="$pids ${path#/proc/}"
                elif [ -d "$path" ] && [ ! -e "$path/cwd" ]; then
                    hidden="$hidden ${path#/proc/}"
                fi
                ;;
            esac
        done
        [ -n "$pids" ] || only_tool
    fi
    turn=$((turn + 1))
    for pid in $pids; do
        read -r children <"/proc/$pid/task/$pid/children" || continue
        for child in $children; do
            case " $pids " in *" $child "*) ;; *) pids="$pids $child" ;; esac
        done
    done
    count=0 cpu=0 delay=0
    for pid in $pids; do
        for path in "/proc/$pid/task/"*/schedstat; do
            read -r ran waited slices <"$path" || continue
            count=$((count + 1)) cpu=$((cpu + ran)) delay=$((delay + waited))
        done
    done
    [ "$count" = 0 ] || echo "wait $count $cpu $delay"
} 2>/dev/null

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

limits
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
