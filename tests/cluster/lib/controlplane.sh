# shellcheck shell=bash
# The parts of the control plane: their arguments, their order, up and down.

: "${state:?}" "${here:?}" "${cache:?}"

parts=(etcd kube-apiserver kube-controller-manager kube-scheduler nodes)

# How long the API server may take to be ready, in seconds: 10 on an idle machine.
ready_limit=120

# What the controller manager runs: all that workloads and nodes need, nothing of clouds and storage.
controllers=(
    clusterrole-aggregation-controller cronjob-controller daemonset-controller deployment-controller
    disruption-controller endpoints-controller endpointslice-controller garbage-collector-controller
    job-controller namespace-controller node-lifecycle-controller pod-garbage-collector-controller
    replicaset-controller resourcequota-controller root-ca-certificate-publisher-controller
    serviceaccount-controller serviceaccount-token-controller statefulset-controller
    taint-eviction-controller ttl-after-finished-controller
    certificatesigningrequest-approving-controller certificatesigningrequest-signing-controller
)

cluster_up() {
    local address='' port='' nodes=()
    while (($#)); do
        [[ $1 == --*=* ]] && set -- "${1%%=*}" "${1#*=}" "${@:2}"
        if [[ $1 == --fleet ]]; then
            address=$(fleet_address)
            shift
            continue
        fi
        (($# >= 2)) || die "\`$1\` needs a value"
        case $1 in
            --address) address=$2 ;;
            --port) port=$2 ;;
            --node) nodes+=("$2") ;;
            *) die "unknown option \`$1\`, expected one of --address, --fleet, --port, --node" ;;
        esac
        shift 2
    done
    programs >/dev/null
    # One cluster starts at a time, so that no two take the same free ports.
    exec 9>>"$cache/.up.lock"
    flock --wait 600 9 || die "another \`cluster up\` has held \`$cache/.up.lock\` for ten minutes"
    if [[ -s $state/settings ]]; then
        [[ -z $address || $address == "$(setting address)" ]] ||
            die "this cluster is bound to $(setting address), end it first with \`cluster down\`"
    else
        settle "${address:-127.0.0.1}" "$port"
    fi
    local part
    for part in "${parts[@]}"; do # What has ended since, by a reboot perhaps, starts anew.
        process_pid "$part" >/dev/null || rm -f "$state/run/$part"
    done
    for part in "${parts[@]}"; do
        [[ $part != kube-controller-manager ]] || await_ready
        part_start "$part"
    done
    ((${#nodes[@]} == 0)) || node_add "${nodes[@]}"
    await 30 "the service account \`default\`" admin get serviceaccount default --namespace kube-system
    await 30 "the service account \`default\`" admin get serviceaccount default
}

# Decides a new cluster's address and ports, and makes its credentials.
settle() {
    local address=$1 port=$2 etcd
    mkdir -p "$state/nodes" "$state/taken" "$state/pods"
    chmod 755 "$state"
    port=${port:-$(free_port "$address" 6443)}
    etcd=$(free_port 127.0.0.1 2379)
    "$(programs)/lab" credentials --dir "$state/credentials" --server "https://$address:$port" \
        --names "$address,127.0.0.1,localhost,10.96.0.1,kubernetes,kubernetes.default,kubernetes.default.svc"
    cat >"$state/.settings" <<TEXT
address=$address
port=$port
etcd=$etcd
peer=$(free_port 127.0.0.1 $((etcd + 1)))
TEXT
    mv "$state/.settings" "$state/settings"
}

# Prints the address at which the hosts of tests/fleet reach this machine.
fleet_address() {
    local address
    address=$("$here/../fleet/fleet" env | sed -n 's/^LAB_GATEWAY=//p')
    [[ -n $address && $(ip -4 -o addr show) == *" $address/"* ]] || die "no hosts are up, start them with \`tests/fleet/fleet up\`"
    printf '%s\n' "$address"
}

setting() {
    sed -n "s/^$1=//p" "$state/settings"
}

# Prints the first port from $2 up on which nothing listens at address $1.
free_port() {
    local port
    for ((port = $2; port < $2 + 200; port++)); do
        (exec 7<>"/dev/tcp/$1/$port") 2>/dev/null || {
            printf '%s\n' "$port"
            return
        }
    done
    die "no free port from $2 up at $1"
}

admin() {
    "$(programs)/kubectl" --kubeconfig "$state/credentials/admin.kubeconfig" --request-timeout 10s "$@"
}

await_ready() {
    await "$ready_limit" "the API server" admin get --raw /readyz
}

part_start() {
    local bin keys=$state/credentials
    bin=$(programs)
    case ${1:-} in
        etcd)
            local client peer
            client=http://127.0.0.1:$(setting etcd) peer=http://127.0.0.1:$(setting peer)
            # A lab that loses its power is made anew: nothing needs to be synced to the disk.
            process_start etcd "$bin/etcd" --name=lab --data-dir="$state/etcd" --unsafe-no-fsync \
                --listen-client-urls="$client" --advertise-client-urls="$client" \
                --listen-peer-urls="$peer" --initial-advertise-peer-urls="$peer" \
                --initial-cluster="lab=$peer" --log-level=warn
            ;;
        kube-apiserver)
            process_start kube-apiserver "$bin/kube-apiserver" \
                --etcd-servers="http://127.0.0.1:$(setting etcd)" \
                --bind-address="$(setting address)" --secure-port="$(setting port)" \
                --endpoint-reconciler-type=none --service-cluster-ip-range=10.96.0.0/16 \
                --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
                --client-ca-file="$keys/ca.crt" \
                --tls-cert-file="$keys/apiserver.crt" --tls-private-key-file="$keys/apiserver.key" \
                --kubelet-certificate-authority= \
                --kubelet-client-certificate="$keys/kubelet-client.crt" \
                --kubelet-client-key="$keys/kubelet-client.key" \
                --kubelet-preferred-address-types=InternalIP,Hostname \
                --service-account-issuer=https://kubernetes.default.svc \
                --service-account-key-file="$keys/service-accounts.pub" \
                --service-account-signing-key-file="$keys/service-accounts.key" \
                --allow-privileged --profiling=false
            ;;
        kube-controller-manager)
            process_start kube-controller-manager "$bin/kube-controller-manager" \
                --kubeconfig="$keys/controller-manager.kubeconfig" \
                --controllers="$(
                    IFS=,
                    echo "${controllers[*]}"
                )" \
                --root-ca-file="$keys/ca.crt" \
                --service-account-private-key-file="$keys/service-accounts.key" \
                --cluster-signing-cert-file="$keys/ca.crt" --cluster-signing-key-file="$keys/ca.key" \
                --use-service-account-credentials --leader-elect=false --secure-port=0 --profiling=false
            ;;
        kube-scheduler)
            process_start kube-scheduler "$bin/kube-scheduler" --kubeconfig="$keys/scheduler.kubeconfig" \
                --leader-elect=false --secure-port=0 --profiling=false
            ;;
        nodes)
            process_start nodes "$bin/lab" nodes --kubeconfig "$keys/nodes.kubeconfig" --dir "$state/nodes" --taken "$state/taken" \
                --pods "$state/pods" --certificate "$keys/apiserver.crt" --key "$keys/apiserver.key"
            ;;
        *) die "unknown part \`${1:-}\`, expected one of ${parts[*]}" ;;
    esac
}

part_stop() {
    [[ " ${parts[*]} " == *" ${1:-} "* ]] || die "unknown part \`${1:-}\`, expected one of ${parts[*]}"
    process_end "$1"
}

part_restart() {
    part_stop "$@"
    part_start "$1"
    await_ready
}

cluster_down() {
    local keep=${1:-} i
    [[ -z $keep || $keep == --keep ]] || die "unknown option \`$keep\`, expected --keep"
    for ((i = ${#parts[@]} - 1; i >= 0; i--)); do
        process_end "${parts[i]}"
    done
    [[ $keep == --keep ]] || rm -rf "${state:?}"/{etcd,nodes,pods,credentials,settings,run} "${state:?}"/images-*
}

cluster_status() {
    need_cluster
    local part pid kib
    for part in "${parts[@]}"; do
        if pid=$(process_pid "$part"); then
            # The proportional size: what the parts share is one program's text.
            kib=$(sed -n 's/^Pss: *\([0-9]*\) kB/\1/p' "/proc/$pid/smaps_rollup")
            printf '%-24s pid %-8s %4d MiB\n' "$part" "$pid" "$((${kib:-0} / 1024))"
        else
            printf '%-24s stopped\n' "$part"
        fi
    done
    printf 'https://%s:%s\n\n' "$(setting address)" "$(setting port)"
    admin get nodes -o custom-columns='NODE:.metadata.name,IP:.status.addresses[?(@.type=="InternalIP")].address,READY:.status.conditions[?(@.type=="Ready")].status,PRESENT:.metadata.labels.nvidia\.com/gpu\.present,CAPACITY:.status.capacity.nvidia\.com/gpu,ALLOCATABLE:.status.allocatable.nvidia\.com/gpu'
}

kubelet_kubeconfig() {
    need_cluster
    (($# == 1)) || die "\`kubelet-kubeconfig\` needs the name of a node"
    "$(programs)/lab" credentials --dir "$state/credentials" --kubelets "$1" \
        --server "https://$(setting address):$(setting port)"
    printf '%s\n' "$state/credentials/kubelet-$1.kubeconfig"
}
