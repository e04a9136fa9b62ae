# Hold a benchmark until the common start: sh gate.sh [PROGRAM ARGUMENT...]
# Writes "ready", waits for "go" with the start time in this machine's clock, sleeps until then and
# records the wake-up time. A start that was postponed or revoked meanwhile is followed. A start time
# in the past counts as missed unless the word "late" follows it.
# fio runs this script after its setup; any other program is started by it.
NOW
mkdir -p gate
if mkdir gate/waiting 2>/dev/null; then
    # The same as below in one process. Where cores are busy, each process that has to start or end
    # between a look at the clock and the benchmark costs tens of milliseconds. Only the first of
    # several jobs does so, because of the memory. It is ready once it runs: to start it may take
    # longer than a start is announced ahead.
    if python3 -I -S -c 'import os, signal, sys, time' >/dev/null 2>&1; then
        exec python3 -I -S -c '
import os, signal, sys, time

signal.signal(signal.SIGINT, signal.SIG_DFL)
for tries in range(25): # a disk that stays full fails the run: nobody would end the wait
    try:
        with open("gate/ready.new", "w") as file:
            file.write("%.6f\n" % time.time())
        os.rename("gate/ready.new", "gate/ready")
        break
    except OSError:
        time.sleep(0.2)
else:
    os._exit(1)
patience, missed, slept = time.monotonic() + GATE_PATIENCE_S, 125, ""
while True:
    try:
        with open("gate/go") as file:
            start, *late = file.readline().split() or [""]
    except FileNotFoundError:
        start = ""
    if start == "never" or (not start and time.monotonic() > patience):
        os._exit(1)
    if start == slept != "":
        break
    left = float(start or "inf") - time.time()
    if not start:
        time.sleep(0.2)
    elif left > 0:
        time.sleep(left)
        slept = start
    elif late or os.path.exists("gate/woke"):
        break
    else:
        open("gate/missed", "w").close()
        missed -= 1
        if not missed:
            os._exit(1)
        time.sleep(0.2)
woke = time.time()
try:
    file = os.open("gate/woke", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    os.write(file, b"%.6f\n" % woke)
except OSError: # another job of this run was first, or the disk is full
    pass
if sys.argv[1:]:
    os.execvp(sys.argv[1], sys.argv[1:])
os._exit(0)
' "$@"
    fi
    tries=25
    until now >gate/ready.new && mv gate/ready.new gate/ready; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || exit 1
        sleep 0.2
    done
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
