# Reads blocks of a volume and prints how many hold only zeros: block_reads.py without Python.
#
# Arguments: path, offset and length of the range in bytes, number of blocks.
# Prints "blocks READ ZEROS". Each block takes three processes, so fewer are read.

path=$1 first=$2 length=$3 count=$4
[ "$length" -gt 0 ] || exit 0
stride=$((length / count / 4096))
[ "$stride" -gt 0 ] || stride=1
number=0 zeros=0 read=0
while [ "$number" -lt "$count" ]; do
    at=$((first / 4096 + number * stride + stride / 3))
    number=$((number + 1))
    [ $(((at + 1) * 4096)) -le $((first + length)) ] || break
    bytes=$(dd if="$path" bs=4096 skip="$at" count=1 2>/dev/null | od -An -v -tx1 | tr -d '\n ')
    [ "${#bytes}" = 8192 ] || continue
    read=$((read + 1))
    case $bytes in *[!0]*) ;; *) zeros=$((zeros + 1)) ;; esac
done
echo "blocks $read $zeros"
