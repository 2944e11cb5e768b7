# shellcheck shell=bash
# NVIDIA's apt repository in small: the real toolkit built from its Go module, packaged, signed and served.

TOOLKIT_VERSIONS=(1.18.2 1.19.1)
TOOLKIT_MODULE=github.com/NVIDIA/nvidia-container-toolkit

toolkit_dir() { echo "$CACHE/toolkit-$(echo "${TOOLKIT_VERSIONS[@]}" "$(go version)" | digest)"; }
repo_dir() { echo "$CACHE/repo-$( (toolkit_dir; declare -f build_repo build_other_repos package package_toolkit package_hello sign_index new_key) | digest)"; }
repo_url() { echo "http://$(gateway)/libnvidia-container"; }

build_toolkit() { # DIRECTORY
    local version
    for version in "${TOOLKIT_VERSIONS[@]}"; do
        say "building NVIDIA's container toolkit $version"
        mkdir -p "$1/$version"
        CGO_ENABLED=1 CGO_LDFLAGS='-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files -Wl,-z,lazy' \
            GO_VERSION_FLAG="-X $TOOLKIT_MODULE/internal/info.version=$version" \
            go_build "$TOOLKIT_MODULE@v$version" "$1/$version" \
            ./cmd/nvidia-container-runtime ./cmd/nvidia-container-runtime-hook ./cmd/nvidia-ctk ./cmd/nvidia-cdi-hook
        local module
        module=$(cd / && GOFLAGS=-mod=mod go mod download -json "$TOOLKIT_MODULE@v$version" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
        mkdir -p "$1/$version/packaging"
        cp "$module"/packaging/debian/*.post* "$module"/deployments/systemd/nvidia-cdi-refresh.* "$1/$version/packaging/"
        chmod -R u+w "$1/$version"
    done
}

# A package of files laid out below a folder.
package() { # ROOT OUTPUT NAME VERSION DEPENDS
    local root=$1 output=$2 name=$3 version=$4 depends=$5
    mkdir -p "$root/DEBIAN"
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\nSection: utils\nPriority: optional\n' "$name" "$version" "$(dpkg --print-architecture)"
        printf 'Maintainer: kubeon-run lab <lab@localhost>\n'
        [ -z "$depends" ] || printf 'Depends: %s\n' "$depends"
        printf 'Description: %s, packaged by the kubeon-run lab\n' "$name"
    } >"$root/DEBIAN/control"
    if [ -d "$root/etc" ]; then (cd "$root" && find etc -type f | sed 's,^,/,') >"$root/DEBIAN/conffiles"; fi
    dpkg-deb --root-owner-group -Zgzip -z1 --build "$root" "$output" >/dev/null
    rm -rf "$root"
}

build_repo() { # DIRECTORY
    local version stable=$1/libnvidia-container/stable/deb debian=$1/debian architecture
    architecture=$(dpkg --print-architecture)
    say 'building the apt repositories'
    mkdir -p "$stable/$architecture" "$debian"
    for version in "${TOOLKIT_VERSIONS[@]}"; do package_toolkit "$stable/$architecture" "$version"; done
    for version in 1.0 2.0; do package_hello "$debian" "$version"; done

    new_key "$1" nvidia 'NVIDIA lab stand-in <lab@localhost>'
    cp "$1/nvidia.asc" "$1/libnvidia-container/gpgkey"
    fingerprint "$1" nvidia >"$1/fingerprint"
    sign_index "$1" nvidia "$stable/$architecture"
    build_other_repos "$1" "$architecture"
    new_key "$1" debian 'Debian lab stand-in <lab@localhost>'
    sign_index "$1" debian "$debian"
    gpgconf --homedir "$1/gnupg" --kill all
}

# The same repository as people meet it on a bad day, each below /KIND/ instead of /libnvidia-container/.
build_other_repos() { # DIRECTORY ARCHITECTURE
    local root=$1 kind folder
    for kind in old expired wrongkey unsigned empty html corrupt; do
        folder=$root/$kind/stable/deb/$2
        mkdir -p "$folder"
        case $kind in
            old) cp -l "$root/libnvidia-container/stable/deb/$2"/*"${TOOLKIT_VERSIONS[0]}"*.deb "$folder/" ;;
            empty | html) ;;
            *) cp -l "$root/libnvidia-container/stable/deb/$2"/*.deb "$folder/" ;;
        esac
        cp "$root/nvidia.asc" "$root/$kind/gpgkey"
        case $kind in
            expired)
                LAB_GPG_TIME=20200101T000000! new_key "$root" expired 'NVIDIA lab stand-in, expired <lab@localhost>' 1y
                LAB_GPG_TIME=20200601T000000! sign_index "$root" expired "$folder"
                cp "$root/expired.asc" "$root/expired/gpgkey"
                ;;
            wrongkey)
                new_key "$root" wrong 'Another NVIDIA lab stand-in <lab@localhost>'
                sign_index "$root" wrong "$folder"
                ;;
            *) sign_index "$root" nvidia "$folder" ;;
        esac
        case $kind in
            unsigned) rm "$folder/InRelease" "$folder/Release.gpg" ;;
            html) echo '<!DOCTYPE html><html><body>Sign in to this network</body></html>' | tee "$folder/InRelease" "$folder/Packages" >"$root/html/gpgkey" ;;
            corrupt) echo '# changed after signing' >>"$folder/Packages" && gzip -9nkf "$folder/Packages" ;;
        esac
    done
}

package_toolkit() { # OUTPUT VERSION
    local output=$1 version=$2 built root libraries
    built=$(toolkit_dir)/$version
    root=$(mktemp -d)
    libraries=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)

    chmod 755 "$root"
    install -D -m 755 -t "$root/usr/bin" "$built"/{nvidia-container-runtime,nvidia-ctk,nvidia-cdi-hook}
    install -D -m 644 -t "$root/etc/systemd/system" "$built"/packaging/nvidia-cdi-refresh.{service,path}
    install -D -m 644 -t "$root/etc/nvidia-container-toolkit" "$built/packaging/nvidia-cdi-refresh.env"
    mkdir -p "$root/DEBIAN"
    # The real package's script, and a log by which tests see that the runtime ran.
    sed '/^ *\/usr\/bin\/nvidia-ctk .*--in-place/s,$, --set nvidia-container-runtime.debug=/var/log/nvidia-container-runtime.log,; /^#DEBHELPER#/d' \
        "$built/packaging/nvidia-container-toolkit-base.postinst" >"$root/DEBIAN/postinst"
    chmod 755 "$root/DEBIAN/postinst"
    package "$root" "$output" nvidia-container-toolkit-base "$version-1" ''

    install -D -m 755 -t "$root/usr/bin" "$built/nvidia-container-runtime-hook"
    mkdir -p "$root/DEBIAN"
    for script in postinst postrm; do
        sed '/^#DEBHELPER#/d' "$built/packaging/nvidia-container-toolkit.$script" >"$root/DEBIAN/$script"
        chmod 755 "$root/DEBIAN/$script"
    done
    package "$root" "$output" nvidia-container-toolkit "$version-1" \
        "nvidia-container-toolkit-base (= $version-1), libnvidia-container-tools (= $version-1), libnvidia-container-tools (<< 2.0.0)"

    # libnvidia-container is C and comes from no registry, so its two packages hold stand-ins.
    mkdir -p "$root/$libraries"
    echo | gcc -x c -shared -nostdlib -Wl,-soname,libnvidia-container.so.1 -o "$root/$libraries/libnvidia-container.so.$version" -
    ln -s "libnvidia-container.so.$version" "$root/$libraries/libnvidia-container.so.1"
    package "$root" "$output" libnvidia-container1 "$version-1" 'libc6, libcap2'

    mkdir -p "$root/usr/bin"
    printf '#!/bin/sh\n# Stands in for nvidia-container-cli on a lab host.\n[ "$1" = --version ] && { echo "cli-version: %s"; exit; }\necho "$(date -u +%%FT%%TZ) $*" >>/var/log/nvidia-container-cli.log\n' "$version" \
        >"$root/usr/bin/nvidia-container-cli"
    chmod 755 "$root/usr/bin/nvidia-container-cli"
    package "$root" "$output" libnvidia-container-tools "$version-1" "libnvidia-container1 (>= $version-1)"
}

# Small packages for tests of the `apt` module: two versions, a conffile, a service.
package_hello() { # OUTPUT VERSION
    local root
    root=$(mktemp -d)
    chmod 755 "$root"
    mkdir -p "$root/usr/bin" "$root/etc" "$root/lib/systemd/system"
    printf '#!/bin/sh\necho hello %s\n' "$2" >"$root/usr/bin/lab-hello"
    chmod 755 "$root/usr/bin/lab-hello"
    echo "greeting = hello $2" >"$root/etc/lab-hello.conf"
    package "$root" "$1" lab-hello "$2" ''
    mkdir -p "$root/lib/systemd/system" "$root/usr/bin" "$root/DEBIAN"
    printf '#!/bin/sh\nexec sleep infinity\n' >"$root/usr/bin/lab-daemon"
    chmod 755 "$root/usr/bin/lab-daemon"
    printf '[Unit]\nDescription=A daemon to test with\n[Service]\nExecStart=/usr/bin/lab-daemon\nExecReload=/bin/kill -HUP $MAINPID\n[Install]\nWantedBy=multi-user.target\n' \
        >"$root/lib/systemd/system/lab-daemon.service"
    printf '#!/bin/sh\nset -e\nsystemctl daemon-reload\nsystemctl enable --now lab-daemon.service\n' >"$root/DEBIAN/postinst"
    chmod 755 "$root/DEBIAN/postinst"
    package "$root" "$1" lab-daemon "$2" "lab-hello (>= $2)"
}

new_key() { # DIRECTORY NAME USER-ID [VALIDITY]
    mkdir -p -m 700 "$1/gnupg"
    lab_gpg "$1" --quick-generate-key "$3" rsa2048 sign "${4:-10y}"
    lab_gpg "$1" --armor --export "$3" >"$1/$2.asc"
    lab_gpg "$1" --export "$3" >"$1/$2.gpg"
}
fingerprint() { lab_gpg "$1" --show-keys --with-colons "$1/$2.gpg" | awk -F: '/^fpr/ { print $10; exit }'; }
lab_gpg() { # DIRECTORY ARGUMENT…
    local home=$1/gnupg
    shift
    gpg --homedir "$home" --batch --yes --quiet --pinentry-mode loopback --passphrase '' ${LAB_GPG_TIME:+--faked-system-time "$LAB_GPG_TIME"} "$@" 2>>"$CACHE/gpg.log"
}

sign_index() { # DIRECTORY KEY FOLDER
    (
        cd "$3"
        apt-ftparchive packages . >Packages
        gzip -9nk Packages
        apt-ftparchive -o "APT::FTPArchive::Release::Origin=lab-$2" release . >Release.new
        mv Release.new Release
    )
    lab_gpg "$1" --local-user "$(fingerprint "$1" "$2")" --clearsign --output "$3/InRelease" "$3/Release"
    lab_gpg "$1" --local-user "$(fingerprint "$1" "$2")" --armor --detach-sign --output "$3/Release.gpg" "$3/Release"
}

# Serves the lab's own copy, which a test may spoil, on the bridge's address.
serve_repo() {
    alive "$LAB/repo.pid" && return
    rm -rf "$LAB/www"
    mkdir -p "$LAB/www"
    cp -a "$(repo_dir)"/{libnvidia-container,debian,old,expired,wrongkey,unsigned,empty,html,corrupt} "$LAB/www/"
    # Where hosts with dnf or zypper were built, theirs lies beside it.
    [ ! -d "$(rpm_repo_dir)" ] || cp -a "$(rpm_repo_dir)/stable/rpm" "$LAB/www/libnvidia-container/stable/"
    chmod -R a+rX "$LAB/www"
    setsid "$(busybox_dir)/bin/busybox" httpd -f -p "$(gateway):80" -h "$LAB/www" </dev/null >>"$LAB/www.log" 2>&1 {lock_fd}>&- &
    remember $! "$LAB/repo.pid"
    disown
    # shellcheck disable=SC2016
    within 10 bash -c ": </dev/tcp/$(gateway)/80" 2>/dev/null || die 'the repository is not served'
}
stop_repo() {
    local pid _
    if alive "$LAB/repo.pid"; then
        read -r pid _ <"$LAB/repo.pid"
        kill "$pid" 2>/dev/null || true
    fi
    rm -f "$LAB/www.log"
}

repo_lines() {
    cat <<LINES
deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] $(repo_url)/stable/deb/\$(ARCH) /
key $(repo_url)/gpgkey
fingerprint $(cat "$(repo_dir)/fingerprint")
LINES
}
