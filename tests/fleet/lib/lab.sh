# shellcheck shell=bash
# The lab as a whole: up, down, and what it tells of itself.

DEFAULT_HOSTS=(gpu1:gpu gpu2:gpu plain1:none nouveau1:nouveau)
host_names() { ls -1 "$LAB/hosts" 2>/dev/null || true; }

lab_up() {
    need_root
    local wanted=() count=
    while [ $# -gt 0 ]; do
        case $1 in
            -n) count=${2:?-n wants a number}; shift 2 ;;
            -*) die "unknown option \`$1\`" ;;
            *) wanted+=("$1"); shift ;;
        esac
    done
    if [ -n "$count" ]; then
        local number
        for number in $(seq 1 "$count"); do wanted+=("$(printf 'node%03d:none' "$number")"); done
    fi
    [ ${#wanted[@]} -gt 0 ] || wanted=("${DEFAULT_HOSTS[@]}")
    lab_add "${wanted[@]}"
}

lab_add() { # NAME:FACE…
    need_root
    local entry name face variant new=() variants=() started
    for entry; do
        parse_host "$entry"
        [[ $name =~ ^[a-z][a-z0-9-]{0,30}$ ]] || die "\`$name\` is no host name"
        need_face "$face"
        need_variant "$variant"
        variants+=("$variant")
    done
    build_all "${variants[@]}"
    started=$EPOCHREALTIME
    lock "$LAB/.lock"
    lab_keys
    lab_network
    serve_repo
    room_for_watches
    for entry; do
        parse_host "$entry"
        [ -d "$(host_dir "$name")" ] || host_make "$name" "$face" "$variant"
        new+=("$name")
    done
    unlock
    boot_all "${new[@]}"
    lab_status
    say "${#new[@]} hosts up in $(elapsed "$started") s"
}
parse_host() { # NAME[:FACE][@VARIANT], into name, face and variant
    variant=bookworm
    [ "${1%@*}" = "$1" ] || variant=${1##*@}
    set -- "${1%@*}"
    name=${1%%:*} face=none
    [ "$name" = "$1" ] || face=${1#*:}
}
elapsed() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'; }

# All hosts share this machine's kernel, whose usual 128 inotify instances a user are few for many systemds and
# containerds.
room_for_watches() {
    local limit=/proc/sys/fs/inotify/max_user_instances
    [ "$(cat $limit)" -ge 8192 ] || echo 8192 >$limit
}

boot_all() { # NAME…: all at once
    local name pids=() failed=0 pid
    for name; do host_boot "$name" & pids+=($!); done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    [ $failed = 0 ] || die 'not every host came up'
}

# Keys for every way to log in; the hosts' own keys are known before they boot.
lab_keys() {
    local keys=$LAB/keys
    [ -e "$keys/done" ] && return
    rm -rf "$keys"
    mkdir -p -m 700 "$keys"
    ssh-keygen -q -t ed25519 -N '' -C lab -f "$keys/id_ed25519"
    ssh-keygen -q -t ed25519 -N lab-passphrase -C lab-locked -f "$keys/id_locked"
    ssh-keygen -q -t rsa -b 3072 -N '' -C lab-rsa -f "$keys/id_rsa"
    echo "$OPERATOR_PASSWORD" >"$keys/operator_password"
    echo lab-passphrase >"$keys/locked_passphrase"
    : >"$keys/known_hosts"
    touch "$keys/done"
}

lab_network() {
    local bridge
    bridge=$(lab_bridge)
    ip link show "$bridge" >/dev/null 2>&1 && return
    # An address of its own: else the bridge takes a host's, and losing that host cuts the others off for a while.
    ip link add "$bridge" address "$(printf '02:6b:75:62:00:%02x' "$(slot)")" type bridge
    ip addr add "$(gateway)/24" dev "$bridge"
    ip link set "$bridge" up
}

lab_down() { # [NAME…]
    need_root
    local name names
    [ -d "$LAB" ] || { say "no lab in $LAB"; return; }
    lock "$LAB/.lock"
    if [ $# -gt 0 ]; then names=$*; else names=$(host_names); fi
    for name in $names; do
        need_host "$name"
        host_down "$name" &
    done
    wait
    unlock
    [ $# -eq 0 ] || return 0
    stop_repo
    ip link del "$(lab_bridge)" 2>/dev/null || true
    alone lab_forget_cgroups
    [ ! -d "$LAB/hosts" ] || rmdir "$LAB/hosts" 2>/dev/null || die "hosts are left in $LAB"
    alone rm -f "$SLOTS/$(slot)"
    rm -rf "${LAB:?}"/{slot,keys,www,repo.pid,.lock}
    rmdir "$LAB" 2>/dev/null || true
}
lab_forget_cgroups() {
    local root
    for root in $(cgroup_roots); do
        rmdir "$root/kubeon-lab/$(slot)" "$root/kubeon-lab" 2>/dev/null || true
    done
}
host_down() { # NAME
    host_kill "$1"
    sed -i "/^$(host_ip "$1") /d" "$LAB/keys/known_hosts"
    mountpoint -q "$(host_dir "$1")/root" || rm -rf --one-file-system "$(host_dir "$1")"
}

host_state() { # NAME
    local folder
    folder=$(host_dir "$1")
    if ! running "$1"; then echo off
    elif [ -e "$folder/frozen" ]; then echo frozen
    elif [ -e "$folder/cut" ]; then echo cut
    else echo up; fi
}

lab_status() {
    local name
    for name in $(host_names); do
        printf '%-12s %-10s %-15s %-15s %s\n' "$name" "$(cat "$(host_dir "$name")/face")" "$(cat "$(host_dir "$name")/variant")" "$(host_ip "$name")" "$(host_state "$name")"
    done
}

lab_env() {
    [ -d "$LAB/keys" ] || die "no lab in $LAB; start one with \`fleet up\`"
    printf '%s\n' "LAB=$LAB" "LAB_KEY=$LAB/keys/id_ed25519" "LAB_LOCKED_KEY=$LAB/keys/id_locked" "LAB_LOCKED_PASSPHRASE=$(cat "$LAB/keys/locked_passphrase")" \
        "LAB_KNOWN_HOSTS=$LAB/keys/known_hosts" "LAB_OPERATOR_PASSWORD=$OPERATOR_PASSWORD" "LAB_GATEWAY=$(gateway)" \
        "LAB_REPO=$(repo_url)" "LAB_REPO_FINGERPRINT=$(cat "$(repo_dir)/fingerprint")"
}

lab_inventory() {
    local name face
    [ -n "$(host_names)" ] || die "no hosts in $LAB; start some with \`fleet up\`"
    printf 'all:\n  vars:\n'
    printf '    ansible_user: root\n    ansible_ssh_private_key_file: %s\n' "$LAB/keys/id_ed25519"
    printf "    ansible_ssh_common_args: '-o UserKnownHostsFile=%s -o StrictHostKeyChecking=yes'\n" "$LAB/keys/known_hosts"
    printf '  hosts:\n'
    for name in $(host_names); do
        printf '    %s:\n      ansible_host: %s\n' "$name" "$(host_ip "$name")"
    done
    printf '  children:\n'
    for face in $(cat "$LAB"/hosts/*/face | sort -u); do
        printf '    face_%s:\n      hosts:\n' "$face"
        for name in $(host_names); do
            [ "$(cat "$(host_dir "$name")/face")" != "$face" ] || printf '        %s:\n' "$name"
        done
    done
}
