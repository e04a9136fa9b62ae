# Start a detached program at most once: CONTROL FOLDER STDERR SECONDS PROGRAM ARGUMENT...
# State in CONTROL: start (created atomically by the first launch), boot, parent, pid, out, rc (written
# last, by the parent).
control=$1 folder=$2 errors=$3 longest=$4
shift 4
umask 022 # files written by root must be readable by the login user, who fetches them
if [ -e "$control/rc" ] || [ -e "$control/start" ]; then
    echo already
    exit 0
fi
if ! command -v "$1" >/dev/null 2>&1; then
    echo missing
    exit 0
fi
cd "$folder" && mkdir -p "$control" || exit 97
if ! mkdir "$control/start" 2>/dev/null; then
    echo already
    exit 0
fi
if ! cat /proc/sys/kernel/random/boot_id >"$control/boot"; then # the disk is full
    rmdir "$control/start"
    exit 97
fi
detached=$(command -v setsid || echo nohup)
VOLBENCH_CONTROL=$control LC_ALL=C TMPDIR=$folder "$detached" sh -c '
control=$1 errors=$2 longest=$3
shift 3
echo "$$" >"$control/parent"
timeout -s INT -k 30 "$longest" "$@" </dev/null >"$control/out" 2>"$errors" &
child=$!
echo "$child" >"$control/pid.new" && mv "$control/pid.new" "$control/pid" || kill "$child"
wait "$child"
status=$?
echo "$status" >"$control/rc.new" && mv "$control/rc.new" "$control/rc"
' volbench "$control" "$errors" "$longest" "$@" </dev/null >/dev/null 2>&1 &
tries=100
while [ ! -s "$control/pid" ] && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.05
done
echo started
