# Hold a benchmark until the common start: sh gate.sh [PROGRAM ARGUMENT...]
# Writes "ready", waits for "go" with the start time in this machine's clock, sleeps until then and
# records the wake-up time. A start that was postponed or revoked meanwhile is followed. A start time
# in the past counts as missed unless the word "late" follows it.
# fio runs this script after its setup; any other program is started by it.
clock=+%s.%N
case $(date $clock) in *[!0-9.]* | *.) clock=+%s ;; esac # a date without nanoseconds
now() {
    date $clock
}
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
    elif [ "$late" = late ] || [ -e gate/woke ]; then
        break
    else
        : >gate/missed
        patience=$((patience - 1))
        [ "$patience" -gt 0 ] || exit 1
        sleep 0.2
    fi
done
# Each program that runs between the instant and the benchmark delays it where cores are busy, so
# only the clock is read. Of several jobs that pass, the first creates the file.
set -C
{ now >gate/woke; } 2>/dev/null
[ $# -eq 0 ] || exec "$@"
