# Functions of a kept shell. It reads commands from standard input and answers in lines:
#   ID o BASE64   part of the standard output of a request
#   ID e BASE64   part of its standard error
#   ID x STATUS   its end
#   ID c TIME     the clock
# Lines are shorter than PIPE_BUF, so that concurrent writers do not mix them.
exec 2>/dev/null
LC_ALL=C PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL PATH
frame() { # ID KIND: standard input as lines
    base64 -w 2800 | while read -r line || [ "$line" ]; do printf '%s\n' "$1 $2 $line" || exit; done
}
request() { # ID SCRIPT ARGUMENT...: run a script; to be called in the background
    id=$1 script=$2
    shift 2
    {
        status=$({ { { (eval "$script") 3>&- 4>&- 5>&-; echo "$?" >&3; } 2>&1 1>&4 | frame "$id" e >&5; } 4>&1 | frame "$id" o >&5; } 3>&1)
    } 5>&1
    printf '%s\n' "$id x $status"
}
look() { # SCRIPT ARGUMENT...: run one of several scripts of a request
    script=$1
    shift
    (eval "$script") 2>&1
    printf '\n%s %s\n' "$m" "$?"
}
