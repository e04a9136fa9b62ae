set -eu
echo waiting; read -r go
ip link add bridge type bridge; ip link set bridge up
ip link set uplink master bridge; ip link set uplink up
echo up
cat >/dev/null || :
