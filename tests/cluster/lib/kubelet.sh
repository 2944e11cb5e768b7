# shellcheck shell=bash
# Real kubelets, on the hosts of tests/fleet: real nodes beside the stand-ins.

: "${state:?}" "${here:?}" "${cache:?}"

# How long a host's kubelet may take until its node is ready, in seconds.
kubelet_limit=90

# The name under which hosts have the image of the lab's device plugin: the
# one in NVIDIA's manifest, so that a playbook's own manifest finds it.
plugin_image=nvcr.io/nvidia/k8s-device-plugin:v0.20.0

# An image with a shell and small tools, for tests; it serves as pause image too.
shell_image=lab.kubeon.run/shell:1

kubelet_command() {
    local command=${1:-}
    shift || true
    case $command in
        join | leave)
            need_cluster
            (($#)) || die "\`kubelet $command\` needs a host"
            local host
            for host in "$@"; do
                "kubelet_$command" "$host"
            done
            ;;
        image)
            (($# == 2)) || die "usage: cluster kubelet image HOST NAME"
            on_host "$1" ctr --namespace k8s.io images tag --force "$plugin_image" "$2" >/dev/null
            ;;
        *) die "unknown command \`kubelet $command\`, expected one of join, leave, image" ;;
    esac
}

on_host() {
    "$here/../fleet/fleet" exec "$@"
}

# kubelet_join HOST[=NODE]: makes a host of tests/fleet a node of the cluster, under its own name or another.
kubelet_join() {
    local host=${1%%=*} node=${1#*=} bin file address
    bin=$(programs)
    address=$(on_host "$host" ip -4 -o addr show dev eth0 | sed 's/.* inet \([0-9.]*\)\/.*/\1/')
    [[ $address == "$(setting address | sed 's/[0-9]*$//')"* ]] ||
        die "the API server is not on the hosts' network, start it with \`cluster up --fleet\`"
    file=$(kubelet_kubeconfig "$node")
    on_host "$host" systemctl stop kubelet 2>/dev/null || true
    on_host "$host" sh -c 'cat >/usr/local/bin/.kubelet && chmod 755 /usr/local/bin/.kubelet && mv /usr/local/bin/.kubelet /usr/local/bin/kubelet' <"$bin/lab"
    tar --create --directory "$here/host" --owner 0 --group 0 . | on_host "$host" tar --extract --no-overwrite-dir --directory /
    on_host "$host" sh -c 'mkdir -p /etc/kubernetes/pki /opt/cni && { [ -e /opt/cni/bin ] || ln -s /usr/lib/cni /opt/cni/bin; }'
    on_host "$host" sh -c 'cat >/etc/kubernetes/kubelet.conf && chmod 600 /etc/kubernetes/kubelet.conf' <"$file"
    on_host "$host" sh -c 'cat >/etc/kubernetes/pki/ca.crt' <"$state/credentials/ca.crt"
    on_host "$host" sh -c 'cat >/etc/kubernetes/kubelet.env' <<<"KUBELET_ARGUMENTS=--node-ip=$address --hostname-override=$node"
    kubelet_images "$host"
    on_host "$host" systemctl daemon-reload
    on_host "$host" systemctl enable --quiet --now kubelet
    await "$kubelet_limit" "the kubelet of \`$host\`" admin wait --for condition=Ready "node/$node" --timeout 5s
}

# Puts in what no registry here gives: the pause image, a shell, and the device plugin.
kubelet_images() {
    local host=$1 archive
    archive=$state/images-$(basename "$(programs)")
    [[ -d $archive ]] || make_images "$archive"
    on_host "$host" /usr/lib/kubeon-lab/kubelet-images "$shell_image" <"$archive/shell.tar"
    on_host "$host" /usr/lib/kubeon-lab/kubelet-images <"$archive/plugin.tar"
}

make_images() {
    local bin busybox temporary tool shell=()
    bin=$(programs)
    busybox=$(static_busybox)
    shell=(--file "$busybox:/bin/busybox")
    for tool in sh awk cat date echo env false grep id ls mkdir nc printf ps rm sed sleep stat test tr true wc; do
        shell+=(--link "busybox:/bin/$tool")
    done
    temporary=$(mktemp -d "$state/.images.XXXXXX")
    "$bin/lab" image --output "$temporary/shell.tar" --name "$shell_image" "${shell[@]}" \
        --entrypoint /bin/sleep --entrypoint 2147483647
    # The environment is that of NVIDIA's image: its runtime shows all GPUs to such a container.
    "$bin/lab" image --output "$temporary/plugin.tar" --name "$plugin_image" "${shell[@]}" \
        --file "$bin/deviceplugin:/usr/bin/nvidia-device-plugin" --entrypoint /usr/bin/nvidia-device-plugin \
        --env NVIDIA_VISIBLE_DEVICES=all --env NVIDIA_DRIVER_CAPABILITIES=utility
    mv -T "$temporary" "$1"
}

# Prints the path of a busybox that needs no libraries: an installed one may be the other kind.
static_busybox() {
    local folder=$cache/busybox-static temporary
    if [[ ! -d $folder ]]; then
        temporary=$(mktemp -d "$cache/.busybox.XXXXXX")
        (
            cd "$temporary"
            apt-get download -qq busybox-static || { apt-get update -qq && apt-get download -qq busybox-static; }
            dpkg-deb --extract busybox-static_*.deb .
        ) >&2 || die "can't get Debian's package busybox-static"
        mv -T "$temporary" "$folder" 2>/dev/null || rm -rf "$temporary"
    fi
    find "$folder" -type f -name busybox
}

# Ends a host's kubelet and its pods, and deletes its node.
kubelet_leave() {
    local host=${1%%=*} node=${1#*=}
    on_host "$host" systemctl disable --quiet --now kubelet
    on_host "$host" sh -c 'crictl rmp --all --force >/dev/null 2>&1 || true'
    admin delete node "$node" --ignore-not-found >/dev/null
}
