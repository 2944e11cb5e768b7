# shellcheck shell=bash
# One host: its disk in layers, its network, its boot and its ends.

host_dir() { echo "$LAB/hosts/$1"; }
host_ip() { cat "$(host_dir "$1")/ip"; }
host_id() { echo "kubeon$(slot)-$1"; }
host_veth() { echo "kubeon$(slot)-$(cat "$(host_dir "$1")/number")"; }
host_init() { local pid _; read -r pid _ <"$(host_dir "$1")/init" && echo "$pid"; }
# True while the host runs. Its init changes when it reboots by itself, so it is looked up anew then.
running() { alive "$(host_dir "$1")/init" || host_find_init "$1"; }
need_host() { [ -d "$(host_dir "$1")" ] || die "no host \`$1\` in $LAB; there are: $(host_names | tr '\n' ' ')"; }

# Writes what a host is born with: address, identity and keys, as the layer right over the image.
host_make() { # NAME FACE VARIANT
    local name=$1 face=$2 variant=$3 folder seed image number=2 ip user home
    folder=$(host_dir "$name")
    while grep -qsx "$number" "$LAB"/hosts/*/number; do number=$((number + 1)); done
    [ "$number" -le 254 ] || die 'a lab holds 253 hosts'
    mkdir -p "$folder"/{upper,work,root,containerd}
    echo "$number" >"$folder/number"
    ip=10.213.$(slot).$number
    echo "$ip" >"$folder/ip"
    echo "$face" >"$folder/face"
    echo "$variant" >"$folder/variant"
    variant_layers "$variant" >"$folder/layers"
    image=$(image_dir "$(variant_suite "$variant")")
    build_face "$face" "$folder/layer"

    seed=$folder/seed
    mkdir -p "$seed"/etc/ssh
    install -D -m 755 "$HERE/lib/kernel" "$seed/usr/lib/kubeon-lab/kernel"
    echo "$name" >"$seed/etc/hostname"
    echo '# This host has no resolver.' >"$seed/etc/resolv.conf"
    printf '127.0.0.1 localhost\n127.0.1.1 %s\n%s repo.lab\n' "$name" "$(gateway)" >"$seed/etc/hosts"
    printf '%s %s' "$LAB" "$name" | md5sum | cut -c1-32 >"$seed/etc/machine-id"
    ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$seed/etc/ssh/ssh_host_ed25519_key"
    sed -i "/^$ip /d" "$LAB/keys/known_hosts"
    echo "$ip $(cut -d' ' -f1,2 "$seed/etc/ssh/ssh_host_ed25519_key.pub")" >>"$LAB/keys/known_hosts"
    install -D -m 644 "$(repo_dir)/debian.gpg" "$seed/usr/share/keyrings/lab-archive-keyring.gpg"
    mkdir -p "$seed/etc/apt/sources.list.d"
    echo "deb [signed-by=/usr/share/keyrings/lab-archive-keyring.gpg] http://$(gateway)/debian /" >"$seed/etc/apt/sources.list.d/lab.list"
    # On cgroup v1 nothing tells a host's systemd that a login's last process has gone: it would wait 2 minutes to reboot.
    mkdir -p "$seed/etc/systemd/system/user@.service.d"
    printf '[Service]\nTimeoutStopSec=1s\n' >"$seed/etc/systemd/system/user@.service.d/lab.conf"
    for user in root admin operator; do
        home=/home/$user
        [ "$user" != root ] || home=/root
        install -d -m 700 "$seed$home" "$seed$home/.ssh"
        cat "$LAB"/keys/id_*.pub >"$seed$home/.ssh/authorized_keys"
        chmod 600 "$seed$home/.ssh/authorized_keys"
        chown -R "$(awk -F: -v user="$user" '$1 == user { print $3 ":" $4 }' "$image/etc/passwd")" "$seed$home"
    done
}

host_boot() { # NAME
    local name=$1 folder id netns veth root
    need_root
    folder=$(host_dir "$name")
    running "$name" && return
    id=$(host_id "$name") netns=$(host_id "$name") veth=$(host_veth "$name")
    host_clean "$name"
    mount -t overlay "$id" -o "lowerdir=$folder/seed:$folder/layer:$(cat "$folder/layers"),upperdir=$folder/upper,workdir=$folder/work" "$folder/root"

    ip netns add "$netns"
    ip link add "$veth" type veth peer name eth0 netns "$netns"
    ip link set "$veth" master "$(lab_bridge)" up
    ip -n "$netns" addr add "$(host_ip "$name")/24" dev eth0
    ip -n "$netns" link set lo up
    ip -n "$netns" link set eth0 up
    ip -n "$netns" route add default via "$(gateway)"

    alone host_cgroups "$name"
    local unified=0 cgroups=()
    [ ! -e /sys/fs/cgroup/cgroup.controllers ] || unified=1
    for root in $(cgroup_roots); do cgroups+=("$root/kubeon-lab/$(slot)/$name"); done
    touch "$folder/power"
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=$unified SYSTEMD_SECCOMP=0 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network \
        setsid "$HERE/lib/keeper" "$folder" "${cgroups[@]}" -- \
        systemd-nspawn --quiet --boot --register=no --keep-unit --console=pipe \
        --directory="$folder/root" --machine="$id" --hostname="$name" --network-namespace-path="/run/netns/$netns" \
        --capability=all --resolv-conf=off --timezone=off --link-journal=no \
        --bind="$folder/containerd:/var/lib/containerd" \
        SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 </dev/null >"$folder/console" 2>&1 &
    disown
    within "$BOOT_TIMEOUT_S" host_find_init "$name" || die "$name: systemd-nspawn did not start: $(tail -3 "$folder/console")"
    { within "$BOOT_TIMEOUT_S" host_answers "$name" && host_settles "$name"; } || die "$name: not up after $BOOT_TIMEOUT_S s; see $folder/console"
    [ ! -s "$folder/delay" ] || host_delay "$name" "$(cat "$folder/delay")"
}
# Makes the folders of a host's cgroups.
host_cgroups() { # NAME
    local root variable
    for root in $(cgroup_roots); do
        mkdir -p "$root/kubeon-lab/$(slot)/$1"
        if [ "$root" = /sys/fs/cgroup ]; then
            for variable in "$root" "$root/kubeon-lab" "$root/kubeon-lab/$(slot)"; do
                sed 's/[a-z_]*/+&/g' "$root/cgroup.controllers" >"$variable/cgroup.subtree_control"
            done
        fi
        if [ "${root##*/}" = cpuset ]; then
            for variable in cpuset.cpus cpuset.mems; do
                cat "$root/$variable" >"$root/kubeon-lab/$variable"
                cat "$root/$variable" >"$root/kubeon-lab/$(slot)/$variable"
                cat "$root/$variable" >"$root/kubeon-lab/$(slot)/$1/$variable"
            done
        fi
    done
}
host_find_init() { # NAME
    local folder pid
    folder=$(host_dir "$1")
    alive "$folder/nspawn" || return 1
    read -r pid _ <"$folder/nspawn"
    for pid in $(pgrep -P "$pid"); do
        # The first process of the new pid namespace is the host's init.
        if grep -qsE '^NSpid:(\s[0-9]+)+\s1$' "/proc/$pid/status"; then
            remember "$pid" "$folder/init"
            return
        fi
    done
    return 1
}
host_answers() { # NAME
    local banner
    (exec 3<>"/dev/tcp/$(host_ip "$1")/22" && read -r -t 2 -u 3 banner && [[ $banner = SSH-* ]]) 2>/dev/null
}
host_settles() { # NAME
    local state
    state=$(host_exec "$1" timeout "$BOOT_TIMEOUT_S" systemctl is-system-running --wait || true)
    [ "$state" = running ] || [ "$state" = degraded ]
}

# Runs a command in all of the host's namespaces, in its cgroup, as its root.
host_exec() { # NAME COMMAND…
    local name=$1
    shift
    need_host "$name"
    running "$name" || die "$name is not running"
    exec_in "$(host_init "$name")" "$@"
}
exec_in() { # PID COMMAND…
    local pid=$1
    shift
    # The shell is the one process of ours that the host can't see, so that it outlives what a host that goes down stops
    # and kills. nsenter would stop itself with it, and nobody would wake it.
    nsenter --no-fork --target "$pid" --mount --uts --ipc --net --pid --cgroup --root --wdns=/root -- \
        /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        /bin/sh -c '"$@"; exit $?' exec "$@"
}

# Power loss: the host's init is killed, and with it all that ran inside.
host_kill() { # NAME
    need_root
    local folder
    folder=$(host_dir "$1")
    rm -f "$folder/power"
    ! running "$1" || { host_thaw "$1"; kill -KILL "$(host_init "$1")" 2>/dev/null || true; }
    within "$STOP_TIMEOUT_S" host_gone "$1" || host_kill_supervisor "$1"
    host_clean "$1"
}
host_gone() { ! running "$1" && ! alive "$(host_dir "$1")/nspawn"; }
host_kill_supervisor() {
    local pid _
    read -r pid _ <"$(host_dir "$1")/nspawn"
    kill -KILL "$pid" 2>/dev/null || true
    within 5 host_gone "$1" || say "$1: process $pid does not end"
}

# Takes away what a host has outside its folder. Its disk stays.
host_clean() { # NAME
    local folder id root
    folder=$(host_dir "$1")
    id=$(host_id "$1")
    ip neigh del "$(host_ip "$1")" dev "$(lab_bridge)" 2>/dev/null || true
    host_undelay "$1"
    ip link del "$(host_veth "$1")" 2>/dev/null || true
    ip netns del "$id" 2>/dev/null || true
    within 5 host_unmount "$1" || say "$1: $folder/root stays mounted"
    rm -f "$folder/nspawn" "$folder/init" "$folder/frozen" "$folder/cut"
    for root in $(cgroup_roots); do
        [ ! -d "$root/kubeon-lab/$(slot)/$1" ] || find "$root/kubeon-lab/$(slot)/$1" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    done
}
host_unmount() { ! mountpoint -q "$(host_dir "$1")/root" || umount "$(host_dir "$1")/root" 2>/dev/null; }

host_reset() { # NAME
    local folder
    folder=$(host_dir "$1")
    host_kill "$1"
    rm -rf "$folder/upper" "$folder/work" "$folder/containerd"
    mkdir -p "$folder"/{upper,work,containerd}
    host_boot "$1"
}

host_face() { # NAME FACE
    need_host "$1"
    need_face "$2"
    host_kill "$1"
    build_face "$2" "$(host_dir "$1")/layer"
    echo "$2" >"$(host_dir "$1")/face"
    host_boot "$1"
}
