# shellcheck shell=bash
# What every part of the lab shares: its folders, its lock, its place in the machine's networks and cgroups.

LAB=$(realpath -m "${KUBEON_LAB:-/tmp/kubeon-lab}")
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/kubeon-run/lab
SLOTS=/run/kubeon-lab           # one folder a lab on this machine, so that labs side by side never clash
BOOT_TIMEOUT_S=60
STOP_TIMEOUT_S=15
LOCK_TIMEOUT_S=1800

say() { printf 'fleet: %s\n' "$*" >&2; }
die() { printf 'fleet: error: %s\n' "$*" >&2; exit 1; }

need_root() { [ "$(id -u)" -eq 0 ] || die 'the lab boots containers and makes networks: run it as root'; }

# Runs the rest of this process under a lock; a second caller waits, as long as a build may take.
lock() { # FILE
    mkdir -p "$(dirname "$1")"
    exec {lock_fd}>>"$1"
    flock -w "$LOCK_TIMEOUT_S" "$lock_fd" || die "another fleet command holds $1"
}
unlock() { exec {lock_fd}>&-; }

# Builds into a temporary folder and renames it, so that a half-built state is never taken for a whole one.
cached() { # DIRECTORY FUNCTION ARGUMENT…
    local target=$1 build=$2 temporary
    shift 2
    [ -d "$target" ] && return
    mkdir -p "$CACHE"
    lock "$CACHE/.lock"
    if [ ! -d "$target" ]; then
        temporary=$(mktemp -d "$CACHE/.building.XXXXXX")
        chmod 755 "$temporary"
        "$build" "$temporary" "$@" || { rm -rf "$temporary"; die "could not build $target"; }
        mv -T "$temporary" "$target"
    fi
    unlock
}

digest() { sha256sum | cut -c1-12; }

# Runs a function while no other lab of this machine does: they share the list of numbers, and the cgroups above theirs.
alone() { # FUNCTION ARGUMENT…
    (
        mkdir -p "$SLOTS"
        exec {machine_fd}>>"$SLOTS/.lock"
        flock -w "$LOCK_TIMEOUT_S" "$machine_fd" || die "another lab holds $SLOTS/.lock"
        "$@"
    )
}

# The lab's number on this machine, taken once: its subnet is 10.213.SLOT.0/24, its bridge kubeonSLOT.
slot() {
    [ -s "$LAB/slot" ] || alone take_slot
    cat "$LAB/slot"
}
take_slot() {
    local n owner
    [ ! -s "$LAB/slot" ] || return 0
    mkdir -p "$LAB"
    for n in $(seq 1 250); do
        owner=$(readlink "$SLOTS/$n" || true)
        if [ "$owner" != "$LAB" ]; then
            # The number of a lab whose folder has gone is free, unless its hosts still run.
            [ ! -d "$owner" ] && [ ! -e "/sys/class/net/kubeon$n" ] || continue
            rm -f "$SLOTS/$n"
            ln -sT "$LAB" "$SLOTS/$n"
        fi
        echo "$n" >"$LAB/slot"
        return
    done
    die "no free lab number below $SLOTS"
}
lab_bridge() { echo "kubeon$(slot)"; }
gateway() { echo "10.213.$(slot).1"; }

# True while the process that the file names by pid and start time lives.
alive() { # FILE
    local pid start
    [ -s "$1" ] || return 1
    read -r pid start <"$1"
    [ "$(start_of "$pid")" = "$start" ]
}
start_of() { # PID
    local stat=
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 0
    stat=${stat##*) }
    # shellcheck disable=SC2086
    set -- $stat
    [ "$1" = Z ] || echo "${20}"
}
remember() { # PID FILE
    local start
    start=$(start_of "$1")
    echo "$1 $start" >"$2"
}

# Waits until a command succeeds; false after SECONDS.
within() { # SECONDS COMMAND…
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt "$until" ] || return 1
        sleep 0.1
    done
}

# The cgroup folders of one host: one in each hierarchy on a machine that still has version 1, else a single one.
cgroup_roots() {
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        echo /sys/fs/cgroup
    else
        local root
        for root in /sys/fs/cgroup/*/; do
            [ -e "$root/cgroup.procs" ] && echo "${root%/}"
        done
    fi
}
