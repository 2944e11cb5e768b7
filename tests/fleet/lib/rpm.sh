# shellcheck shell=bash
# Hosts whose packages are rpm's, and NVIDIA's repository for them in small. Rocky Linux and openSUSE are not to be had, so
# such a host is Debian with the real dnf or zypper, a database of rpm's own and the name of the other distribution; apt and
# dpkg are gone from it.

RPM_MANAGERS=(dnf zypper)

rpm_digest() { declare -f build_rpm_image rpm_fill rpm_base rpm_build rpm_os_release rpm_into | digest; }
rpm_image_dir() { echo "$CACHE/rpm-$1-$( (image_dir bookworm; rpm_digest) | digest)"; }
rpm_repo_dir() { echo "$CACHE/rpm-repo-$( (repo_dir; rpm_image_dir dnf; declare -f build_rpm_repo rpm_toolkit_spec sign_rpm_index) | digest)"; }

# Runs a command in a folder that is the root of a system.
rpm_into() { # ROOT COMMAND…
    local root=$1
    shift
    unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && root=$1 && shift && exec chroot "$root" "$@"' - "$root" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "$@"
}

# The layer of a package manager, over Debian's image.
build_rpm_image() { # DIRECTORY MANAGER
    local manager=$2 work root packages=(rpm curl file)
    say "building a host with $manager"
    case $manager in
        dnf) packages+=(dnf createrepo-c) ;;
        zypper) packages+=(zypper) ;;
    esac
    work=$(mktemp -d "$CACHE/.rpm.XXXXXX")
    root=$work/root
    mkdir "$root" "$work/work" "$work/upper"
    mount -t overlay rpm-image -o "lowerdir=$(image_dir bookworm),upperdir=$work/upper,workdir=$work/work" "$root"
    local done=0
    # Within `||` a shell goes on after an error.
    set +e
    (set -e; rpm_fill "$root" "$manager" "${packages[@]}") >"$CACHE/rpm.log" 2>&1
    done=$?
    set -e
    umount "$root"
    if [ "$done" = 0 ]; then cp -a "$work/upper/." "$1/"; else tail -5 "$CACHE/rpm.log" >&2; fi
    rm -rf "$work"
    return "$done"
}

rpm_fill() { # ROOT MANAGER PACKAGE…
    local root=$1 manager=$2 file
    shift 2
    echo "deb [trusted=yes] $(mirror) bookworm main" >"$root/etc/apt/sources.list"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    for file in /etc/apt/apt.conf.d/*proxy*; do [ ! -e "$file" ] || cp "$file" "$root/etc/apt/apt.conf.d/"; done
    rpm_into "$root" apt-get update -q
    rpm_into "$root" apt-get install -y -q --no-install-recommends "$@"
    rm -rf "$root/etc/apt/sources.list" "$root/etc/resolv.conf" "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*

    # Debian keeps the database in a home, and warns of rpm.
    mkdir -p "$root/etc/rpm" "$root/etc/yum.repos.d" "$root/etc/zypp/repos.d" "$root/etc/pki/rpm-gpg" "$root/var/lib/rpm" \
        "$root/var/lib/dnf" "$root/var/lib/zypp" "$root/var/lib/YaST2"
    printf '%%_dbpath /var/lib/rpm\n' >"$root/etc/rpm/macros"
    rpm_os_release "$root" "$manager"
    rpm_base "$root"
    rm -f "$root"/usr/bin/{apt,apt-get,apt-cache,apt-mark,apt-config,dpkg,dpkg-query,dpkg-deb} "$root/etc/debian_version"
    rm -rf "$root/etc/apt" "$root/usr/lib/apt" "$root/var/lib/dpkg"
    case $manager in
        dnf) rm -rf "$root/etc/zypp" ;;
        zypper) rm -rf "$root/etc/yum.repos.d" ;;
    esac
}

rpm_os_release() { # ROOT MANAGER
    rm -f "$1/etc/os-release"
    case $2 in
        dnf)
            printf 'NAME="Rocky Linux"\nVERSION="9.6 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\nPLATFORM_ID="platform:el9"\nPRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"\n' >"$1/etc/os-release"
            echo 'Rocky Linux release 9.6 (Blue Onyx)' >"$1/etc/redhat-release"
            mkdir -p "$1/etc/dnf"
            printf '[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\nbest=True\nskip_if_unavailable=False\n' >"$1/etc/dnf/dnf.conf"
            ;;
        zypper)
            printf 'NAME="openSUSE Leap"\nVERSION="15.6"\nID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"\nPRETTY_NAME="openSUSE Leap 15.6"\n' >"$1/etc/os-release"
            ;;
    esac
}

# What other packages need of a system, as a package.
rpm_base() { # ROOT
    local version
    for version in 9.6; do
        rpm_build "$1" "$(printf 'Name: lab-base\nVersion: %s\nRelease: 1\nSummary: lab\nLicense: none\nBuildArch: noarch\nAutoReqProv: no\nProvides: /bin/sh\nProvides: system-release = %s\nProvides: system-release(releasever) = 9\n%%description\nlab\n%%files\n' "$version" "$version")"
        rpm_into "$1" rpm --install --nodeps "/root/rpmbuild/RPMS/noarch/lab-base-$version-1.noarch.rpm"
    done
    rm -rf "$1/root/rpmbuild"
}

# Builds packages out of a text, below /root/rpmbuild.
rpm_build() { # ROOT SPEC
    mkdir -p "$1/root"
    printf '%s\n' "$2" >"$1/root/lab.spec"
    rpm_into "$1" rpmbuild -bb --quiet --define '_topdir /root/rpmbuild' --define '_build_id_links none' /root/lab.spec
    rm "$1/root/lab.spec"
}

# Prints the layers of a package manager's host, as overlayfs takes them.
rpm_layers() { # MANAGER
    echo "$(rpm_image_dir "$1"):$(image_dir bookworm)"
}

build_rpm() {
    local manager
    for manager in "${RPM_MANAGERS[@]}"; do cached "$(rpm_image_dir "$manager")" build_rpm_image "$manager"; done
    cached "$(rpm_repo_dir)" build_rpm_repo
}

# The toolkit's real programs in packages as NVIDIA has them for rpm, signed by the key of the apt repository.
build_rpm_repo() { # DIRECTORY
    local version work root folder done=0
    say 'building the rpm repository'
    work=$(mktemp -d "$CACHE/.rpm.XXXXXX")
    root=$work/root
    mkdir "$root" "$work/work" "$work/upper"
    mount -t overlay rpm-repo -o "lowerdir=$(rpm_layers dnf),upperdir=$work/upper,workdir=$work/work" "$root"
    folder=$1/stable/rpm/$(uname -m)
    mkdir -p "$folder"
    set +e
    (
        set -e
        for version in "${TOOLKIT_VERSIONS[@]}"; do
            mkdir "$root/root/built"
            cp -r "$(toolkit_dir)/$version/." "$root/root/built/"
            rpm_build "$root" "$(rpm_toolkit_spec "$version")"
            rm -r "$root/root/built"
        done
        cp "$root"/root/rpmbuild/RPMS/*/*.rpm "$folder/"
        mkdir "$root/root/repo"
        cp "$folder"/*.rpm "$root/root/repo/"
        rpm_into "$root" createrepo_c --quiet /root/repo
        cp -r "$root/root/repo/repodata" "$folder/"
        sign_rpm_index "$folder"
    ) >"$CACHE/rpm.log" 2>&1
    done=$?
    set -e
    umount "$root"
    rm -rf "$work"
    [ "$done" = 0 ] || tail -5 "$CACHE/rpm.log" >&2
    return "$done"
}

sign_rpm_index() { # FOLDER
    lab_gpg "$(repo_dir)" --local-user "$(fingerprint "$(repo_dir)" nvidia)" --armor --detach-sign \
        --output "$1/repodata/repomd.xml.asc" "$1/repodata/repomd.xml"
    gpgconf --homedir "$(repo_dir)/gnupg" --kill all
}

rpm_toolkit_spec() { # VERSION
    cat <<SPEC
Name: nvidia-container-toolkit
Version: $1
Release: 1
Summary: packaged by the kubeon-run lab
License: none
AutoReqProv: no
%define debug_package %{nil}
%define __strip /bin/true
Requires: nvidia-container-toolkit-base = %{version}-%{release}
Requires: libnvidia-container-tools = %{version}-%{release}
%description
lab
%package base
Summary: lab
AutoReqProv: no
%description base
lab
%package -n libnvidia-container-tools
Summary: lab
AutoReqProv: no
Requires: libnvidia-container1 >= %{version}-%{release}
%description -n libnvidia-container-tools
lab
%package -n libnvidia-container1
Summary: lab
AutoReqProv: no
%description -n libnvidia-container1
lab
%install
install -D -m 755 -t %{buildroot}/usr/bin /root/built/nvidia-container-runtime /root/built/nvidia-ctk /root/built/nvidia-cdi-hook /root/built/nvidia-container-runtime-hook
install -D -m 644 -t %{buildroot}/etc/systemd/system /root/built/packaging/nvidia-cdi-refresh.service /root/built/packaging/nvidia-cdi-refresh.path
printf '#!/bin/sh\n[ "\$1" = --version ] && echo "cli-version: $1"\n' >%{buildroot}/usr/bin/nvidia-container-cli
chmod 755 %{buildroot}/usr/bin/nvidia-container-cli
mkdir -p %{buildroot}/usr/lib64
echo lab >%{buildroot}/usr/lib64/libnvidia-container.so.$1
%posttrans base
/usr/bin/nvidia-ctk --quiet config --config-file=/etc/nvidia-container-runtime/config.toml --in-place --set nvidia-container-runtime.debug=/var/log/nvidia-container-runtime.log
%files
/usr/bin/nvidia-container-runtime-hook
%files base
/usr/bin/nvidia-container-runtime
/usr/bin/nvidia-ctk
/usr/bin/nvidia-cdi-hook
/etc/systemd/system/nvidia-cdi-refresh.service
/etc/systemd/system/nvidia-cdi-refresh.path
%files -n libnvidia-container-tools
/usr/bin/nvidia-container-cli
%files -n libnvidia-container1
/usr/lib64/libnvidia-container.so.$1
SPEC
}
