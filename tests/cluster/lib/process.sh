# shellcheck shell=bash
# Starting, finding and ending the lab's own processes: each by its pid and the
# moment it began, so that another process that got the same pid is never hit.

: "${state:?}"

# How long a process may take to end, in tenths of a second: by itself, and after SIGKILL.
# An API server that has watchers would take a minute by itself.
polite_limit=30 kill_limit=100

# Prints the moment a process began, in ticks since boot; fails if there is none.
began() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    # The name, in parentheses, may hold anything: count fields after it.
    read -ra stat <<<"${stat##*) }"
    [[ ${stat[0]} != Z ]] && printf '%s\n' "${stat[19]}"
}

# process_start NAME COMMAND...: starts a process that outlives this command.
process_start() {
    local name=$1 pid
    shift
    process_pid "$name" >/dev/null && return
    mkdir -p "$state/run" "$state/logs"
    setsid "$@" >>"$state/logs/$name.log" 2>&1 </dev/null 8>&- 9>&- &
    pid=$!
    printf '%s %s\n' "$pid" "$(began "$pid" || echo 0)" >"$state/run/$name"
}

# Prints the pid of a process of the lab that runs; fails if it doesn't.
process_pid() {
    local pid since
    read -r pid since 2>/dev/null <"$state/run/$1" || return 1
    [[ $(began "$pid") == "$since" ]] && printf '%s\n' "$pid"
}

# Ends a process of the lab, politely at first; done when it is gone.
process_end() {
    local pid tenths
    pid=$(process_pid "$1") || {
        rm -f "$state/run/$1"
        return 0
    }
    : >"$state/run/.$1"
    kill -TERM "$pid" 2>/dev/null || true
    for ((tenths = 0; tenths < polite_limit + kill_limit; tenths++)); do
        process_pid "$1" >/dev/null || break
        ((tenths != polite_limit)) || kill -KILL "$pid" 2>/dev/null || true
        sleep 0.1
    done
    process_pid "$1" >/dev/null && die "process $pid (\`$1\`) does not end"
    rm -f "$state/run/$1" "$state/run/.$1"
}

# await SECONDS WHAT COMMAND...: runs a command until it succeeds, for so long at most.
await() {
    local limit=$1 what=$2 end
    shift 2
    end=$((SECONDS + limit))
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || die "$what did not come within $limit s; logs are in \`$state/logs\`"
        all_alive || die "gave up waiting for $what"
        sleep 0.2
    done
}

# Tells whether each process that was started still runs, but for those that are being ended; prints the last words of
# one that doesn't.
all_alive() {
    local file name
    for file in "$state/run"/*; do
        name=${file##*/}
        [[ -e $file && ! -e $state/run/.$name ]] || continue
        process_pid "$name" >/dev/null && continue
        say "error: \`$name\` has ended; the end of \`$state/logs/$name.log\`:"
        tail -n 5 "$state/logs/$name.log" >&2
        return 1
    done
}
