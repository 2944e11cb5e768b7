# shellcheck shell=bash
# The parts that take minutes to make, cached by what makes them: Debian, crictl, container images.

CRI_TOOLS=v1.34.0
IMAGE_PACKAGES=systemd,systemd-sysv,dbus,udev,libpam-systemd,openssh-server,sudo,containerd,runc,ca-certificates,iproute2,procps,kmod,netbase,iputils-ping
LAB_NEEDS=(debootstrap systemd-container iproute2 openssh-client apt-utils dpkg-dev gnupg ca-certificates gcc libc6-dev procps)
OPERATOR_PASSWORD=correct-horse

# What a host is made from, beside its face: FACE@VARIANT.
variant_table() {
    cat <<'TABLE'
bookworm        bookworm  -                                         Debian 12, containerd 1.6.20
trixie          trixie    -                                         Debian 13, containerd 1.7.24
containerd-1.7  bookworm  github.com/containerd/containerd@v1.7.35     Debian 12 with containerd 1.7.35 and its default configuration
containerd-2.1  bookworm  github.com/containerd/containerd/v2@v2.1.9   the same with 2.1.9
containerd-2.2  bookworm  github.com/containerd/containerd/v2@v2.2.9   the same with 2.2.9
containerd-2.3  bookworm  github.com/containerd/containerd/v2@v2.3.7   the same with 2.3.7
containerd-2.4  bookworm  github.com/containerd/containerd/v2@v2.4.2   the same with 2.4.2
rocky           bookworm  rpm/dnf                                   Debian 12 under the name of Rocky Linux 9: dnf and rpm, no apt
suse            bookworm  rpm/zypper                                Debian 12 under the name of openSUSE Leap 15: zypper and rpm, no apt
cri-o           bookworm  github.com/cri-o/cri-o@v1.34.0               Debian 12 with CRI-O 1.34.0; containerd does not run
TABLE
}
need_variant() { [[ $(variant_table) =~ (^|$'\n')$1\  ]] || die "unknown variant \`$1\`; known: $(variant_table | awk '{ printf "%s ", $1 }')"; }
variant_suite() { variant_table | awk -v name="$1" '$1 == name { print $2 }'; }
variant_module() { variant_table | awk -v name="$1" '$1 == name && $3 ~ /@/ { print $3 }'; }
variant_manager() { variant_table | awk -v name="$1" '$1 == name && sub("^rpm/", "", $3) { print $3 }'; }

image_dir() { # SUITE
    echo "$CACHE/image-$1-$( (echo "$IMAGE_PACKAGES $OPERATOR_PASSWORD $CRI_TOOLS"; declare -f build_image build_container_image) | digest)"
}
# The container runtime that lies over Debian's.
runtime_dir() { # MODULE@VERSION
    local name=containerd
    [[ $1 != */cri-o@* ]] || name=crio
    echo "$CACHE/$name-${1##*@v}-$(declare -f "build_$name" | digest)"
}
# The layers below a host's face, as overlayfs takes them.
variant_layers() { # VARIANT
    local module manager
    module=$(variant_module "$1")
    manager=$(variant_manager "$1")
    [ -z "$module" ] || printf '%s:' "$(runtime_dir "$module")"
    [ -z "$manager" ] || printf '%s:' "$(rpm_image_dir "$manager")"
    image_dir "$(variant_suite "$1")"
}
# Prints where usr/bin/containerd of a variant is; of `all`, a line for each.
containerd_folder() { # VARIANT
    local variant
    if [ "$1" = all ]; then
        for variant in $(variant_table | awk '$3 !~ /rpm|cri-o/ { print $1 }'); do
            (containerd_folder "$variant")
        done
        return
    fi
    need_root
    need_variant "$1"
    build_all "$1" >&2
    local layers
    layers=$(variant_layers "$1")
    echo "${layers%%:*}"
}
# A static busybox, whichever of Debian's two packages this machine has installed.
busybox_dir() { echo "$CACHE/busybox-static"; }
crictl_dir() { echo "$CACHE/crictl-$CRI_TOOLS"; }

lab_setup() {
    need_root
    local missing=() package
    for package in "${LAB_NEEDS[@]}"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        say "installing ${missing[*]}"
        apt-get update -q >/dev/null
        DEBIAN_FRONTEND=noninteractive nice apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
    fi
    command -v go >/dev/null || die "a Go toolchain is needed to build NVIDIA's container toolkit and crictl"
    build_all "${@:-bookworm}"
    say "ready in $CACHE"
}

build_all() { # VARIANT…
    local variant module
    cached "$(busybox_dir)" build_busybox
    cached "$(crictl_dir)" build_crictl
    for variant; do
        need_variant "$variant"
        cached "$(image_dir "$(variant_suite "$variant")")" build_image "$(variant_suite "$variant")"
        module=$(variant_module "$variant")
        case $module in
            '') ;;
            */cri-o@*) cached "$(runtime_dir "$module")" build_crio "$module" ;;
            *) cached "$(runtime_dir "$module")" build_containerd "$module" ;;
        esac
    done
    cached "$(toolkit_dir)" build_toolkit
    cached "$(repo_dir)" build_repo
    for variant; do [ -z "$(variant_manager "$variant")" ] || build_rpm; done
}

# The mirror that this machine itself uses, from its own apt sources.
mirror() {
    apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "bookworm" || $1 == "trixie" { print $2; exit }'
}

build_image() { # DIRECTORY SUITE
    local root=$1 suite=$2 mirror
    mirror=$(mirror)
    [ -n "$mirror" ] || die "no Debian mirror among this machine's apt sources"
    say "building Debian $suite"
    nice debootstrap --variant=minbase --include="$IMAGE_PACKAGES" "$suite" "$root" "$mirror" >"$CACHE/debootstrap.log" 2>&1 ||
        { tail -5 "$CACHE/debootstrap.log" >&2; return 1; }

    chroot "$root" useradd --create-home --shell /bin/bash admin
    chroot "$root" useradd --create-home --shell /bin/bash --no-user-group --gid operator operator
    echo "operator:$OPERATOR_PASSWORD" | chroot "$root" chpasswd
    echo 'admin ALL=(ALL:ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/admin"
    echo 'operator ALL=(ALL:ALL) ALL' >"$root/etc/sudoers.d/operator"
    chmod 440 "$root"/etc/sudoers.d/*

    # Keys and identity come with each host; nothing of the mirror stays, since hosts reach no network.
    rm -rf "$root"/etc/ssh/ssh_host_* "$root/etc/machine-id" "$root/etc/hostname" "$root/etc/resolv.conf" \
        "$root/etc/apt/sources.list" "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
    mkdir -p "$root/var/cache/apt/archives/partial" "$root/var/lib/apt/lists/partial"
    : >"$root/etc/machine-id"
    for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
        systemd-resolved.service systemd-timesyncd.service getty@tty1.service console-getty.service; do
        ln -sf /dev/null "$root/etc/systemd/system/$unit"
    done
    ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"

    mkdir -p "$root/usr/lib/kubeon-lab/face"
    cat >"$root/etc/systemd/system/kubeon-lab-kernel.service" <<'UNIT'
[Unit]
Description=The kernel interfaces of this lab host
DefaultDependencies=no
Before=sysinit.target systemd-udevd.service systemd-tmpfiles-setup-dev.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/kubeon-lab/kernel
UNIT
    mkdir -p "$root/etc/systemd/system/sysinit.target.wants"
    ln -s ../kubeon-lab-kernel.service "$root/etc/systemd/system/sysinit.target.wants/"

    install -D -m 755 "$(crictl_dir)/crictl" "$root/usr/local/bin/crictl"
    printf 'runtime-endpoint: unix:///run/containerd/containerd.sock\nimage-endpoint: unix:///run/containerd/containerd.sock\ntimeout: 20\n' >"$root/etc/crictl.yaml"
    build_container_image "$root/usr/lib/kubeon-lab/busybox.tar" repo.lab/busybox:lab
}

# Builds a program out of a Go module, without touching the module's own files.
go_build() { # MODULE@VERSION OUTPUT-DIRECTORY PACKAGE…
    local module=$1 output=$2 folder scratch
    shift 2
    scratch=$(mktemp -d)
    folder=$(cd "$scratch" && go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
    [ -d "$folder" ] || die "the Go proxy does not give $module"
    cp "$folder/go.mod" "$scratch/build.mod"
    cp "$folder/go.sum" "$scratch/build.sum"
    chmod u+w "$scratch"/build.*
    # A module as the proxy serves it lacks the folders that these lines point to.
    sed -i '/=> \.\//d' "$scratch/build.mod"
    (cd "$folder" && GOFLAGS=-buildvcs=false nice go build -mod=mod -modfile="$scratch/build.mod" -trimpath -ldflags "-s -w ${GO_VERSION_FLAG:-}" -o "$output/" "$@") \
        >"$CACHE/go.log" 2>&1 || { tail -5 "$CACHE/go.log" >&2; return 1; }
    rm -rf "$scratch"
}

build_busybox() { # DIRECTORY
    (cd "$1" && { apt-get download -q busybox-static || { apt-get update -q && apt-get download -q busybox-static; }; } &&
        dpkg-deb --fsys-tarfile busybox-static_*.deb | tar -x ./bin/busybox && rm busybox-static_*.deb) >"$CACHE/busybox.log" 2>&1 ||
        { tail -5 "$CACHE/busybox.log" >&2; return 1; }
}

build_crictl() { # DIRECTORY
    say "building crictl $CRI_TOOLS"
    CGO_ENABLED=0 go_build "sigs.k8s.io/cri-tools@$CRI_TOOLS" "$1" ./cmd/crictl
}

# A containerd as its project releases it, over Debian's programs, with the configuration it writes by itself.
build_containerd() { # DIRECTORY MODULE@VERSION
    say "building ${2##*/}"
    CGO_ENABLED=0 go_build "$2" "$1/usr/bin" ./cmd/containerd ./cmd/containerd-shim-runc-v2 ./cmd/ctr
    mkdir -p "$1/etc/containerd"
    "$1/usr/bin/containerd" config default >"$1/etc/containerd/config.toml"
}

# CRI-O with what Debian has for it: its monitor, and skopeo to bring images in, as no registry is in reach.
build_crio() { # DIRECTORY MODULE@VERSION
    local root=$1 work folder file
    say "building ${2##*/}"
    CGO_ENABLED=1 go_build "$2" "$root/usr/bin" -tags 'containers_image_openpgp exclude_graphdriver_btrfs btrfs_noversion' ./cmd/crio
    work=$(mktemp -d)
    folder=$(cd "$work" && go mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
    cc -std=c99 -Os -static -o "$root/usr/bin/pinns" "$folder"/pinns/src/*.c
    (cd "$work" && apt-get download -q conmon libglib2.0-0 skopeo libgpgme11 libassuan0 libdevmapper1.02.1 libsubid4) \
        >"$CACHE/crio.log" 2>&1 || { tail -5 "$CACHE/crio.log" >&2; return 1; }
    for file in "$work"/*.deb; do dpkg-deb -x "$file" "$work/root"; done
    # `/lib` is a link on the host.
    [ ! -d "$work/root/lib" ] || cp -a "$work/root/lib" "$work/root/usr/"
    cp -a "$work/root/usr" "$root/"
    rm -rf "$work"

    mkdir -p "$root"/etc/{crio/crio.conf.d,containers,systemd/system/multi-user.target.wants}
    echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$root/etc/containers/policy.json"
    printf '[crio.runtime]\ndefault_runtime = "runc"\n\n[crio.runtime.runtimes.runc]\nruntime_path = "/usr/sbin/runc"\nruntime_root = "/run/runc"\nmonitor_path = "/usr/bin/conmon"\n' \
        >"$root/etc/crio/crio.conf.d/10-crio.conf"
    # A host's disk is an overlay already.
    printf '[crio]\nstorage_driver = "vfs"\n\n[crio.runtime]\ndisable_hostport_mapping = true\n' >"$root/etc/crio/crio.conf.d/20-lab.conf"
    cat >"$root/etc/systemd/system/crio.service" <<'UNIT'
[Unit]
Description=Container Runtime Interface for OCI (CRI-O)
[Service]
Type=notify
# A lab host may not give its containers another oom_score_adj, and CRI-O leaves that out where it is told this.
Environment=_CRIO_ROOTLESS=1
ExecStart=/usr/bin/crio
Restart=on-abnormal
[Install]
WantedBy=multi-user.target
UNIT
    ln -s ../crio.service "$root/etc/systemd/system/multi-user.target.wants/crio.service"
    ln -s /dev/null "$root/etc/systemd/system/containerd.service"
    printf 'runtime-endpoint: unix:///run/crio/crio.sock\nimage-endpoint: unix:///run/crio/crio.sock\ntimeout: 20\n' >"$root/etc/crictl.yaml"
}

# An OCI image that holds busybox, as an archive for `ctr images import`. It serves as pause image too.
build_container_image() { # FILE NAME
    local work root tool config manifest layer
    work=$(mktemp -d)
    root=$work/root
    mkdir -p "$root/bin" "$root/tmp" "$work/out/blobs/sha256"
    cp "$(busybox_dir)/bin/busybox" "$root/bin/busybox"
    for tool in sh ls cat echo sleep env true id ps stat test printf sed grep; do ln -s busybox "$root/bin/$tool"; done
    printf '#!/bin/sh\ntrap "exit 0" TERM INT\nwhile :; do sleep 3600 & wait; done\n' >"$root/pause"
    chmod 755 "$root/pause"
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -cf "$work/layer" .
    layer=$(blob "$work/layer" "$work/out")
    printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["/pause"],"Env":["PATH=/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "$(dpkg --print-architecture)" "${layer% *}" >"$work/config"
    config=$(blob "$work/config" "$work/out")
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%s}]}' \
        "${config% *}" "${config#* }" "${layer% *}" "${layer#* }" >"$work/manifest"
    manifest=$(blob "$work/manifest" "$work/out")
    printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"annotations":{"io.containerd.image.name":"%s"}}]}' \
        "${manifest% *}" "${manifest#* }" "$2" >"$work/out/index.json"
    echo '{"imageLayoutVersion":"1.0.0"}' >"$work/out/oci-layout"
    tar -C "$work/out" -cf "$1" blobs index.json oci-layout
    rm -rf "$work"
}
blob() { # FILE LAYOUT: moves the file among the blobs and prints its digest and size
    local sum size
    sum=$(sha256sum <"$1" | cut -c1-64)
    size=$(stat -c %s "$1")
    mv "$1" "$2/blobs/sha256/$sum"
    echo "$sum $size"
}
