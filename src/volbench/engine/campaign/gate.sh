# Hold a benchmark until the common start: sh gate.sh [PROGRAM ARGUMENT...]
# Writes "ready", waits for "go" with the start time in this machine's clock, sleeps until then and
# records the wake-up time. A start time too far in the past counts as missed.
# fio runs this script after its setup; any other program is started by it.
now() {
    found=$(date +%s.%N)
    case $found in *[!0-9.]* | *.) found=$(date +%s) ;; esac # a date without nanoseconds
    echo "$found"
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
read -r start <gate/go
[ "$start" = never ] && exit 1
left=$(awk -v start="$start" -v now="$(now)" 'BEGIN { d = start - now; print (d > 0 ? d : d < -2 ? "missed" : 0) }')
if [ "$left" = missed ] && [ ! -d gate/started ]; then
    : >gate/missed
    exit 1
fi
case $left in 0 | missed) ;; *) sleep "$left" ;; esac
if mkdir gate/started 2>/dev/null; then
    now >gate/woke.new && mv gate/woke.new gate/woke
fi
[ $# -eq 0 ] || exec "$@"
