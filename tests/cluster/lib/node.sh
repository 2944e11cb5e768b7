# shellcheck shell=bash
# The stand-in nodes: one file each, which the part `nodes` follows.

: "${state:?}"

# How long a node may take to be there or to be gone, in seconds.
node_limit=30

node_command() {
    local command=${1:-}
    shift || true
    case $command in
        add | set | remove)
            need_cluster
            (($#)) || die "\`node $command\` needs a node"
            "node_$command" "$@"
            ;;
        *) die "unknown command \`node $command\`, expected one of add, set, remove" ;;
    esac
}

# node_add NAME=IP[,KEY=VALUE]...: adds nodes, all or none, and waits until the API has them.
node_add() {
    local node names=() scratch
    for node in "$@"; do
        [[ $node == *=* ]] || die "\`$node\` is no node, expected NAME=IP[,KEY=VALUE]..."
    done
    scratch=$(mktemp -d "$state/.nodes.XXXXXX")
    for node in "$@"; do
        names+=("${node%%=*}")
        node=${node#*=}
        printf 'ip=%s\n' "${node//,/$'\n'}" >"$scratch/${names[-1]//\//_}"
    done
    nodes_accept "$scratch"
    process_pid nodes >/dev/null || return 0
    await "$node_limit" "a node of ${names[*]}" nodes_are_there "${names[@]}"
}

nodes_are_there() {
    [[ -z $(comm -23 <(printf 'node/%s\n' "$@" | sort) <(admin get nodes -o name | sort)) ]]
}

# node_set NAME KEY=VALUE...: gives keys of a node other values, and waits until it goes by them.
node_set() {
    local name=$1 pair text scratch
    shift
    [[ -f $state/nodes/$name ]] || die "no stand-in node \`$name\`"
    text=$(cat "$state/nodes/$name")
    for pair in "$@"; do
        text=$(grep -v "^${pair%%=*}\(=\|$\)" <<<"$text" || true)
    done
    for pair in "$@"; do
        [[ $pair == *= ]] || text+=$'\n'$pair
    done
    scratch=$(mktemp -d "$state/.nodes.XXXXXX")
    printf '%s\n' "$text" >"$scratch/$name"
    nodes_accept "$scratch"
    process_pid nodes >/dev/null || return 0
    await "$node_limit" "node \`$name\` as it was set" cmp -s "$state/nodes/$name" "$state/taken/$name"
}

# node_remove NAME...: deletes nodes, and waits until the API has them no longer.
node_remove() {
    local name
    for name in "$@"; do
        [[ -f $state/nodes/$name ]] || die "no stand-in node \`$name\`"
        rm "$state/nodes/$name"
    done
    for name in "$@"; do
        await "$node_limit" "the end of node \`$name\`" node_is_gone "$name"
    done
}

node_is_gone() {
    [[ -z $(admin get node "$1" --ignore-not-found -o name || echo unknown) ]]
}

# Takes the files of a folder among the nodes' files, if each describes a node.
nodes_accept() {
    if ! "$(programs)/lab" check-node "$1"/*; then
        rm -r "$1"
        exit 1
    fi
    mv "$1"/* "$state/nodes/"
    rmdir "$1"
}
