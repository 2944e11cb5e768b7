# shellcheck shell=bash
# What goes wrong with a host on demand: silence, stillness, distance.

freezer() { # NAME STATE(0|1)
    local cgroup
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        echo "$2" >"/sys/fs/cgroup/kubeon-lab/$(slot)/$1/cgroup.freeze"
    else
        cgroup=/sys/fs/cgroup/freezer/kubeon-lab/$(slot)/$1
        if [ "$2" = 1 ]; then echo FROZEN; else echo THAWED; fi >"$cgroup/freezer.state"
    fi
}
host_freeze() { need_root; freezer "$1" 1; touch "$(host_dir "$1")/frozen"; }
host_thaw() { need_root; freezer "$1" 0 2>/dev/null || true; rm -f "$(host_dir "$1")/frozen"; }

# The bridge drops the host's packets while links and neighbours look well, so that a sender sees silence, no error.
host_cut() { # NAME
    need_root
    local mac
    mac=$(ip -n "$(host_id "$1")" -br link show eth0 | awk '{ print $3 }')
    ip neigh replace "$(host_ip "$1")" lladdr "$mac" dev "$(lab_bridge)" nud permanent
    bridge link set dev "$(host_port "$1")" state 0
    touch "$(host_dir "$1")/cut"
}
host_uncut() { # NAME
    need_root
    bridge link set dev "$(host_port "$1")" state 3
    ip neigh del "$(host_ip "$1")" dev "$(lab_bridge)" 2>/dev/null || true
    rm -f "$(host_dir "$1")/cut"
}

# Lets every packet of a host wait, half the time in each direction, as if it were far away.
host_delay() { # NAME MILLISECONDS
    local name=$1 ms=$2 folder veth netns
    need_root
    [[ $ms =~ ^[0-9]+$ ]] || die "\`$ms\` is no number of milliseconds"
    folder=$(host_dir "$name") veth=$(host_veth "$name") netns=$(host_id "$name")-link
    running "$name" || die "$name is not running"
    host_undelay "$name"
    [ "$ms" -gt 0 ] || { rm -f "$folder/delay"; return 0; }
    cached "$(delay_dir)" build_delay
    # The link gets a namespace of its own, where this machine answers to no address.
    ip netns add "$netns"
    ip link set "$veth" netns "$netns"
    ip link add "${veth}p" type veth peer name port netns "$netns"
    ip link set "${veth}p" master "$(lab_bridge)" up
    ip -n "$netns" link set "$veth" up
    ip -n "$netns" link set port up
    setsid ip netns exec "$netns" "$(delay_dir)/delay" "$veth" port $((ms * 500)) </dev/null >"$folder/delay.log" 2>&1 &
    remember $! "$folder/delayer"
    disown
    echo "$ms" >"$folder/delay"
    within 5 host_answers "$name" || die "$name: no way through: $(cat "$folder/delay.log")"
}
host_undelay() { # NAME
    local folder veth netns pid _
    folder=$(host_dir "$1") veth=$(host_veth "$1") netns=$(host_id "$1")-link
    if alive "$folder/delayer"; then
        read -r pid _ <"$folder/delayer"
        kill "$pid" 2>/dev/null || true
    fi
    rm -f "$folder/delayer"
    [ -e "/run/netns/$netns" ] || return 0
    ip -n "$netns" link set "$veth" netns "$$" 2>/dev/null || true
    ip link set "$veth" master "$(lab_bridge)" up 2>/dev/null || true
    ip link del "${veth}p" 2>/dev/null || true
    ip netns del "$netns"
}
delay_dir() { echo "$CACHE/delay-$(digest <"$HERE/lib/delay.c")"; }
build_delay() { gcc -O2 -o "$1/delay" "$HERE/lib/delay.c"; }
# The bridge's end of the host's link.
host_port() { if [ -s "$(host_dir "$1")/delayer" ]; then echo "$(host_veth "$1")p"; else host_veth "$1"; fi; }
