# Hold a benchmark until the common start: sh gate.sh [PROGRAM ARGUMENT...]
# Writes "ready", waits for "go" with the start time in this machine's clock, sleeps until then and
# records the wake-up time. A start that was postponed or revoked meanwhile is followed. A start time
# in the past counts as missed unless the word "late" follows it.
# fio runs this script after its setup; any other program is started by it.
NOW
mkdir -p gate
if mkdir gate/waiting 2>/dev/null; then
    now >gate/ready.new && mv gate/ready.new gate/ready
fi
patience=$((GATE_PATIENCE_S * 5))
while [ ! -s gate/go ]; do
    patience=$((patience - 1))
    [ "$patience" -gt 0 ] || exit 1
    sleep 0.2
done
slept=
patience=125 # a missed start may still be postponed for 25 s
while :; do
    read -r start late <gate/go || exit 1
    [ "$start" = never ] && exit 1
    [ "$start" = "$slept" ] && break
    left=$(awk -v start="$start" -v now="$(now)" 'BEGIN { d = start - now; print (d > 0 ? d : "past") }')
    if [ "$left" != past ]; then
        sleep "$left"
        slept=$start
    elif [ "$late" = late ] || [ -d gate/started ]; then
        break
    else
        : >gate/missed
        patience=$((patience - 1))
        [ "$patience" -gt 0 ] || exit 1
        sleep 0.2
    fi
done
# The time of the wake-up is noted without another program, and converted in the background: on a
# busy machine each program would delay the start.
time_of() { # UPTIME: when the machine had it, to 10 ms
    read -r before _ </proc/uptime
    time=$(now)
    read -r after _ </proc/uptime
    awk -v time="$time" -v up="$before" -v later="$after" -v at="$1" \
        'BEGIN { printf "%.6f\n", time - (up + later) / 2 + at }'
}
at=
[ ! -r /proc/uptime ] || read -r at _ </proc/uptime
{
    if mkdir gate/started 2>/dev/null; then
        if [ "$at" ]; then time_of "$at"; else now; fi >gate/woke.new
        mv gate/woke.new gate/woke
    fi
} &
[ $# -eq 0 ] || exec "$@"
