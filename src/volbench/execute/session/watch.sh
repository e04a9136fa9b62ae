# Push what happens to a detached program: ID CONTROL OFFSET START_TICKS FILE...
#   ID r          it runs
#   ID l TEXT     a line of its output
#   ID p TEXT     a part of a line
#   ID f N TEXT   the first line of the Nth file has changed
#   ID h          nothing has changed
#   ID x STATE    its end: done STATUS | lost REASON | none
# START_TICKS is how long to wait for a start. Ticks are short until there is output and the first file.
id=$1 control=$2 offset=$3 patience=$4
shift 4
LC_ALL=C
quiet=0 ticks=0 opened='' printed='' began='' final=''
push() {
    quiet=0
    printf '%s\n' "$id $1" || exit
}
push_text() { # KIND TEXT
    printed=1
    text=$2
    while [ ${#text} -gt 2000 ]; do
        head=$(printf '%.2000sx' "$text") head=${head%x}
        push "p $head"
        text=${text#"$head"}
    done
    push "$1 $text"
}
is_alive() { # NAME: the process whose number is in a file; sets $pid
    pid=''
    { read -r pid <"$control/$1"; } 2>/dev/null || return 1
    tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxF "VOLBENCH_CONTROL=$control"
}
check() { # sets $final if the program has ended
    if [ -s "$control/rc" ]; then
        read -r status <"$control/rc"
        final="done $status"
        return
    fi
    if [ ! -e "$control/pid" ] && [ "$ticks" -lt "$patience" ]; then return; fi
    if [ ! -d "$control/start" ]; then
        final=none
        return
    fi
    { read -r then <"$control/boot"; } 2>/dev/null
    read -r now </proc/sys/kernel/random/boot_id
    if [ "$then" != "$now" ]; then
        final='lost reboot'
    elif [ "$began" ] && [ -d "/proc/$pid" ] && [ $((ticks % 60)) -ne 0 ]; then :
    elif is_alive pid; then
        [ "$began" ] || push r
        began=1
    else
        # Its parent writes the status, which takes seconds where cores are busy; a process that
        # starts a program has no environment for an instant.
        while [ ! -s "$control/rc" ] && ! is_alive pid && is_alive parent; do
            sleep 0.2
            push h
        done
        if [ -s "$control/rc" ]; then check; elif is_alive pid; then :; else final='lost died'; fi
    fi
}
open_output() {
    [ -r "$control/out" ] || return 1
    exec 3<"$control/out"
    opened=1
    dd bs=4096 count=$((offset / 4096)) <&3 >/dev/null 2>&1
    dd bs=1 count=$((offset % 4096)) <&3 >/dev/null 2>&1
}
take_output() {
    [ "$opened" ] || open_output || return
    while IFS= read -r line <&3; do push_text l "$line"; done
    [ -z "$line" ] || push_text p "$line"
}
take_files() {
    number=0
    for file in "$@"; do
        number=$((number + 1)) content=''
        { read -r content <"$file"; } 2>/dev/null
        eval "known=\$seen_$number"
        [ "$content" != "$known" ] || continue
        eval "seen_$number=\$content"
        push "f $number $(printf '%.1000s' "$content")"
    done
}
while :; do
    check
    take_output
    take_files "$@"
    if [ "$final" ]; then
        push "x $final"
        exit
    fi
    quiet=$((quiet + 1)) ticks=$((ticks + 1))
    if [ -z "$printed$began" ] || { [ -z "$printed" ] && [ "$ticks" -lt 20 ]; } ||
        { [ $# -gt 0 ] && [ -z "$seen_1" ] && [ "$ticks" -lt 600 ]; }; then
        [ "$quiet" -lt 10 ] || push h
        sleep 0.1
    else
        [ "$quiet" -lt 2 ] || push h
        sleep 0.5
    fi
done
