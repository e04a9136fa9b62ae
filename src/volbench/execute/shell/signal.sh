# Send a signal to a detached program: CONTROL SIGNAL. KILL also goes to all its descendants.
control=$1 signal=$2
if [ "$signal" != KILL ]; then
    pid=$(cat "$control/pid" 2>/dev/null) || exit 0
    tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxF "VOLBENCH_CONTROL=$control" && kill "-$signal" "$pid"
    exit 0
fi
for entry in /proc/[0-9]*; do
    tr '\0' '\n' <"$entry/environ" 2>/dev/null | grep -qxF "VOLBENCH_CONTROL=$control" || continue
    # Spare the parent shell, which records the exit status.
    case $(tr '\0' ' ' <"$entry/cmdline" 2>/dev/null) in "sh -c "*) continue ;; esac
    kill -KILL "${entry#/proc/}" 2>/dev/null
done
exit 0
