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

# node_add NAME=IP[,KEY=VALUE]...: adds nodes, and waits until the API has them.
node_add() {
    local node name
    for node in "$@"; do
        name=${node%%=*}
        [[ $node == *=* ]] || die "\`$node\` is no node, expected NAME=IP[,KEY=VALUE]..."
        {
            printf 'ip='
            tr ',' '\n' <<<"${node#*=}"
        } | node_write "$name"
    done
    process_pid nodes >/dev/null || return 0
    for node in "$@"; do
        await "$node_limit" "node \`${node%%=*}\`" admin get node "${node%%=*}"
    done
}

# node_set NAME KEY=VALUE...: gives keys of a node other values.
node_set() {
    local name=$1 pair text
    shift
    [[ -f $state/nodes/$name ]] || die "no stand-in node \`$name\`"
    text=$(cat "$state/nodes/$name")
    for pair in "$@"; do
        text=$(grep -v "^${pair%%=*}\(=\|$\)" <<<"$text" || true)
        [[ $pair == *= ]] || text+=$'\n'$pair
    done
    node_write "$name" <<<"$text"
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

# Writes a node's file from stdin, if it describes a node.
node_write() {
    local name=$1 scratch
    [[ $name =~ ^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$ ]] || die "\`$name\` can't name a node"
    scratch=$(mktemp -d "$state/nodes/.new.XXXXXX")
    cat >"$scratch/$name"
    if ! "$(programs)/lab" check-node "$scratch/$name"; then
        rm -r "$scratch"
        exit 1
    fi
    mv "$scratch/$name" "$state/nodes/$name"
    rm -r "$scratch"
}
