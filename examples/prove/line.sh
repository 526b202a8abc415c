#!/bin/sh
# A line of its own: a network namespace for the server, joined to this machine by a veth pair whose
# server end is shaped.
#   line.sh up NAME RATE NET [RULES]  NAME: of the namespace and of this end; RATE as tc has it, or
#                                 none; NET.1 is the server, NET.2 this end; RULES: so many rules of
#                                 a firewall (nft) that each packet of the server passes, in the
#                                 thread that sends it: 0 if it is not given
#   line.sh down NAME
# 69 (EX_UNAVAILABLE) tells throng that the run is not possible here.
set -eu

unavailable() { echo "$1" >&2; exit 69; }

case ${1:-} in
  up)
    name=$2 rate=$3 net=$4 rules=${5:-0}
    [ "$(id -u)" -eq 0 ] || unavailable "network namespaces need root"
    [ "$rate" = none ] || command -v tc > /dev/null ||
      unavailable "no tc here: apt-get install iproute2"
    [ "$rules" -eq 0 ] || command -v nft > /dev/null ||
      unavailable "no nft here: apt-get install nftables"
    ip netns add "$name" || unavailable "this machine makes no network namespaces"
    ip link add "$name" type veth peer name v0 netns "$name"
    ip addr add "$net.2/24" dev "$name"
    ip link set "$name" up
    ip -n "$name" addr add "$net.1/24" dev v0
    ip -n "$name" link set lo up
    ip -n "$name" link set v0 up
    # Frames of all participants come at once: a queue of a second, so that the rate is the limit
    # and not one burst.
    [ "$rate" = none ] ||
      tc -n "$name" qdisc add dev v0 root tbf rate "$rate" burst 32kb latency 1s ||
      unavailable "no token bucket filter"
    # None of them matches anything but a protocol that nobody speaks: packets cost more, and all
    # pass.
    [ "$rules" -eq 0 ] || {
      echo "table ip price { chain out { type filter hook output priority 0;"
      yes "ip protocol 253 counter" | head -n "$rules"
      echo "}"
      echo "}"
    } | ip netns exec "$name" nft -f - || unavailable "no rules of nft"
    # WebRTC servers ignore an interface that does not carry packets yet.
    tries=0
    until ip -n "$name" link show dev v0 | grep -q "state UP"; do
      tries=$((tries + 1))
      [ "$tries" -le 50 ] || { echo "v0 of $name does not come up" >&2; exit 1; }
      sleep 0.1
    done
    ;;
  down)
    name=$2
    ! ip netns list | grep -qw "^$name" || ip netns del "$name"
    # The pair goes with the namespace, a moment later.
    ! ip link show dev "$name" > /dev/null 2>&1 || ip link del "$name" 2> /dev/null || true
    ;;
  *)
    echo "usage: line.sh up NAME RATE NET, line.sh down NAME" >&2
    exit 2
    ;;
esac
