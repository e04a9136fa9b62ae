# Print state and new output of a detached program: CONTROL OFFSET
# Line 1: done STATUS | running | lost REASON | none. Line 2: total length of output. Then the output from OFFSET.
control=$1 offset=$2
print_end() {
    [ -s "$control/rc" ] && echo "done $(cat "$control/rc")"
}
is_running() {
    pid=$(cat "$control/pid" 2>/dev/null) || return 1
    tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxF "VOLBENCH_CONTROL=$control"
}
if print_end; then :
elif [ ! -d "$control/start" ]; then echo none
elif [ "$(cat "$control/boot" 2>/dev/null)" != "$(cat /proc/sys/kernel/random/boot_id)" ]; then echo "lost reboot"
elif is_running; then echo running
elif sleep 0.2 && print_end; then :
elif is_running; then echo running
else echo "lost died"
fi
length=$(wc -c <"$control/out" 2>/dev/null) || length=0
echo $((length))
[ "$length" -le "$offset" ] || tail -c "+$((offset + 1))" "$control/out" | head -c "$((length - offset))"
