# shellcheck shell=bash
# Faces: the hardware and driver that a host shows, as files laid over its disk and its kernel's interfaces.

# NAME       GPUS  BOUND     MODULE        FLAVOUR      LIBRARY       NODES    WHAT
face_table() {
    cat <<'TABLE'
none         0     -         -             -            -             no       no GPU, no driver
gpu          1     nvidia    550.163.01    proprietary  550.163.01    yes      one Tesla T4, driver 550.163.01: ready
gpus         4     nvidia    550.163.01    proprietary  550.163.01    yes      four Tesla T4
open         1     nvidia    570.124.06    open         570.124.06    yes      one Tesla T4, the open kernel module
olddriver    1     nvidia    375.66        proprietary  375.66        yes      a driver older than 384.81
nouveau      1     nouveau   -             -            -             no       the GPU is bound to nouveau
nodriver     1     none      -             -            -             no       the GPU is bound to no driver
vfio         1     vfio-pci  -             -            -             no       the GPU is passed through to a guest
mismatch     1     nvidia    550.163.01    proprietary  570.124.06    yes      the library was upgraded, the module not yet
nonodes      1     nvidia    550.163.01    proprietary  550.163.01    no       a driver whose device nodes nobody made yet
xid          1     nvidia    550.163.01    proprietary  550.163.01    yes      the GPU has fallen off the bus (Xid 79)
secureboot   1     none      -             -            -             no       Secure Boot refuses the module's key
unsupported  1     none      -             -            -             no       the driver does not know this GPU any more
stale        0     -         -             -            -             yes      device nodes left by a driver that is gone
docker       0     -         -             -            -             no       a Docker node: dockerd, and containerd with CRI disabled
dockergpu    1     nvidia    550.163.01    proprietary  550.163.01    yes      the same with a GPU
TABLE
}
face_list() { face_table | awk '{ printf "%-12s", $1; for (i = 8; i <= NF; i++) printf "%s%s", $i, i < NF ? " " : "\n" }'; }
need_face() { [[ $(face_table) =~ (^|$'\n')$1\  ]] || die "unknown face \`$1\`; known: $(face_table | awk '{ printf "%s ", $1 }')"; }

# Lays a face out below DIRECTORY, which becomes a layer of the host's disk.
build_face() { # FACE DIRECTORY
    local face=$1 root=$2 name gpus bound module flavour library nodes _
    read -r name gpus bound module flavour library nodes _ < <(face_table | grep "^$face ")
    local kernel=$root/usr/lib/kubeon-lab/face number
    rm -rf "$root"
    mkdir -p "$kernel"/sys/{devices,bus/pci/{devices,drivers},module/{kernel,overlay,br_netfilter}} "$kernel/proc/driver"
    : >"$kernel/proc/modules"
    : >"$kernel/proc/devices"
    : >"$kernel/nodes"
    face_pci "$kernel" 0000:00:00.0 0x8086 0x1237 0x060000 none
    face_pci "$kernel" 0000:00:03.0 0x1af4 0x1041 0x020000 virtio-pci
    for number in $(seq 1 "$gpus"); do
        face_pci "$kernel" "$(gpu_address "$number")" 0x10de 0x1eb8 0x030200 "$bound"
    done
    if [ "$bound" = nouveau ]; then
        face_module "$kernel" nouveau 2424832 0
        face_module "$kernel" drm 614400 1
    fi
    [ "$bound" = vfio-pci ] && face_module "$kernel" vfio_pci 16384 0
    [ "$module" = - ] || face_driver "$kernel" "$module" "$flavour" "$gpus"
    [ "$library" = - ] || face_library "$root" "$library" "$module" "$gpus"
    if [ "$nodes" = yes ]; then
        printf '%s\n' '/dev/nvidiactl 666 195 255' '/dev/nvidia-modeset 666 195 254' '/dev/nvidia-uvm 666 508 0' '/dev/nvidia-uvm-tools 666 508 1' \
            '/dev/nvidia-caps/nvidia-cap1 400 236 1' '/dev/nvidia-caps/nvidia-cap2 444 236 2' >"$kernel/nodes"
        for number in $(seq 1 "${gpus/#0/1}"); do
            echo "/dev/nvidia$((number - 1)) 666 195 $((number - 1))" >>"$kernel/nodes"
        done
    fi
    face_log "$root" "$name"
    [ "${name#docker}" = "$name" ] || face_docker "$root"
}

gpu_address() { printf '0000:%02x:00.0' $((0x3a + $1)); }
gpu_uuid() { printf 'GPU-5a1b0c2d-7e3f-4a4b-8c5d-00000000%04x' "$1"; }

# One PCI device, with the links a kernel has between devices, bus and driver.
face_pci() { # KERNEL ADDRESS VENDOR DEVICE CLASS DRIVER|none
    local kernel=$1 address=$2 vendor=$3 device=$4 class=$5 driver=$6 bus folder
    bus=pci${address%:*}
    folder=$kernel/sys/devices/$bus/$address
    mkdir -p "$folder"
    echo "$vendor" >"$folder/vendor"
    echo "$device" >"$folder/device"
    echo "$class" >"$folder/class"
    echo "$vendor" >"$folder/subsystem_vendor"
    echo 0x12a2 >"$folder/subsystem_device"
    echo 0xa1 >"$folder/revision"
    echo 0 >"$folder/numa_node"
    echo 1 >"$folder/enable"
    ln -s ../../../bus/pci "$folder/subsystem"
    ln -s "../../../devices/$bus/$address" "$kernel/sys/bus/pci/devices/$address"
    {
        [ "$driver" = none ] || echo "DRIVER=$driver"
        printf 'PCI_CLASS=%s\nPCI_ID=%s:%s\nPCI_SLOT_NAME=%s\n' "${class#0x0}" "$(hex "$vendor")" "$(hex "$device")" "$address"
    } >"$folder/uevent"
    printf 'pci:v0000%sd0000%ssv0000%ssd000012A2bc%ssc%si%s\n' "$(hex "$vendor")" "$(hex "$device")" "$(hex "$vendor")" \
        "${class:2:2}" "${class:4:2}" "${class:6:2}" >"$folder/modalias"
    if [ "$driver" != none ]; then
        mkdir -p "$kernel/sys/bus/pci/drivers/$driver"
        ln -s "../../../bus/pci/drivers/$driver" "$folder/driver"
        ln -s "../../../../devices/$bus/$address" "$kernel/sys/bus/pci/drivers/$driver/$address"
    fi
}
hex() { local digits=${1#0x}; echo "${digits^^}"; }

face_module() { # KERNEL NAME SIZE REFERENCES [VERSION]
    local folder=$1/sys/module/$2
    mkdir -p "$folder/parameters"
    echo "$4" >"$folder/refcnt"
    echo "$3" >"$folder/coresize"
    echo live >"$folder/initstate"
    [ -z "${5:-}" ] || echo "$5" >"$folder/version"
    echo "$2 $3 $4 - Live 0x0000000000000000" >>"$1/proc/modules"
}

# The loaded NVIDIA kernel module. Formats: `nvidia_frontend_open` and `nv_procfs_*` of the open kernel modules.
face_driver() { # KERNEL VERSION FLAVOUR GPUS
    local kernel=$1 version=$2 flavour=$3 gpus=$4 number folder
    face_module "$kernel" nvidia 54034432 2 "$version"
    face_module "$kernel" nvidia_modeset 1511424 1 "$version"
    face_module "$kernel" nvidia_uvm 4931584 0 "$version"
    printf '195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n236 nvidia-caps\n508 nvidia-uvm\n' | sed 's/^/ /; s/^ \([0-9]\{3\}\)/\1/' >"$kernel/proc/devices"
    mkdir -p "$kernel/proc/driver/nvidia"
    {
        if [ "$flavour" = open ]; then
            echo "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  $version  Release Build  (root@lab)  Thu Jul 11 12:00:00 UTC 2024"
        else
            echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $version  Tue Apr  8 12:41:17 UTC 2025"
        fi
        echo 'GCC version:  gcc version 12.2.0 (Debian 12.2.0-14) '
    } >"$kernel/proc/driver/nvidia/version"
    for number in $(seq 1 "$gpus"); do
        folder=$kernel/proc/driver/nvidia/gpus/$(gpu_address "$number")
        mkdir -p "$folder"
        printf 'Model: \t\t Tesla T4\nIRQ:   \t\t 7%s\nGPU UUID: \t %s\nVideo BIOS: \t 90.04.38.00.03\nBus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t %s\nDevice Minor: \t %s\nGPU Firmware: \t %s\nGPU Excluded:\t No\n' \
            "$number" "$(gpu_uuid "$number")" "$(gpu_address "$number")" $((number - 1)) "$version" >"$folder/information"
    done
    mkdir -p "$kernel/proc/driver/nvidia/capabilities/mig"
    printf 'DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n' >"$kernel/proc/driver/nvidia/capabilities/mig/config"
    printf 'DeviceFileMinor: 2\nDeviceFileMode: 292\nDeviceFileModify: 1\n' >"$kernel/proc/driver/nvidia/capabilities/mig/monitor"
}

# The driver's user space: a library that answers from /proc, one that holds no code, and a stand-in for nvidia-smi.
face_library() { # ROOT VERSION MODULE-VERSION GPUS
    local root=$1 version=$2 module=$3 gpus=$4 folder name number
    folder=$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
    mkdir -p "$folder" "$root/usr/bin"
    gcc -shared -fPIC -O1 -Wl,-soname,libnvidia-ml.so.1 -DVERSION="\"$version\"" -o "$folder/libnvidia-ml.so.$version" "$HERE/lib/nvml.c"
    echo | gcc -x c -shared -nostdlib -Wl,-soname,libcuda.so.1 -o "$folder/libcuda.so.$version" -
    for name in libnvidia-ml libcuda; do
        ln -s "$name.so.$version" "$folder/$name.so.1"
    done
    # The module files tell the toolkit's own service that a driver is installed.
    mkdir -p "$root/usr/lib/modules/$(uname -r)"
    echo 'updates/dkms/nvidia.ko:' >"$root/usr/lib/modules/$(uname -r)/modules.dep"
    {
        printf '#!/bin/sh\n# Stands in for nvidia-smi on a lab host without a GPU.\n'
        printf "version='%s' module='%s'\ngpus='" "$version" "$module"
        for number in $(seq 1 "$gpus"); do
            printf '%s, %s, %s, %s, %s, 15360 MiB\n' $((number - 1)) "$(gpu_uuid "$number")" "0000$(gpu_address "$number" | tr a-f A-F)" 'Tesla T4' "$version"
        done
        printf "'\n"
        cat <<'SMI'
if [ "$version" != "$module" ]; then
    echo 'Failed to initialize NVML: Driver/library version mismatch'
    echo "NVML library version: ${version%.*}"
    exit 18
fi
fields=
header=yes
unit=yes
for argument; do
    case $argument in
        -L | --list-gpus)
            echo "$gpus" | sed -n 's/^\([0-9]*\), \([^,]*\), [^,]*, \([^,]*\),.*/GPU \1: \3 (UUID: \2)/p'
            exit ;;
        --query-gpu=*) fields=${argument#*=} ;;
        --format=*)
            case $argument in *noheader*) header=no ;; esac
            case $argument in *nounits*) unit=no ;; esac ;;
    esac
done
if [ -n "$fields" ]; then
    [ $header = no ] || echo "$fields" | sed 's/,/, /g'
    echo "$gpus" | while IFS= read -r line; do
        [ -n "$line" ] || continue
        echo "$line" | awk -F', ' -v fields="$fields" -v unit=$unit '{
            value["index"] = $1; value["uuid"] = value["gpu_uuid"] = $2; value["pci.bus_id"] = value["gpu_bus_id"] = $3
            value["name"] = value["gpu_name"] = $4; value["driver_version"] = $5; value["memory.total"] = $6
            if (unit == "no") sub(/ MiB/, "", value["memory.total"])
            value["count"] = NR; value["mig.mode.current"] = "[N/A]"
            n = split(fields, wanted, ",")
            for (i = 1; i <= n; i++) {
                if (!(wanted[i] in value)) { printf "Field \"%s\" is not a valid field to query.\n", wanted[i]; exit 2 }
                printf "%s%s", value[wanted[i]], i < n ? ", " : "\n"
            }
        }' || exit 2
    done
    exit
fi
printf '+---------------------------------------------------------------------------------------+\n'
printf '| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-9s |\n' "$version" "$module" 12.4
printf '+---------------------------------------------------------------------------------------+\n'
echo "$gpus" | sed -n 's/^\([0-9]*\), [^,]*, \([^,]*\), \([^,]*\),.*/|   \1  \3   \2 |/p'
SMI
    } >"$root/usr/bin/nvidia-smi"
    chmod 755 "$root/usr/bin/nvidia-smi"
}

# The kernel log, which this machine's kernel keeps for itself: a stand-in for dmesg prints the host's.
face_log() { # ROOT FACE
    local root=$1 address firmware
    address=$(gpu_address 1)
    firmware=$root/usr/lib/kubeon-lab/face/sys/firmware/efi/efivars
    mkdir -p "$root/usr/bin"
    printf '#!/bin/sh\n# Stands in for dmesg on a lab host.\nexec cat /usr/lib/kubeon-lab/face/dmesg\n' >"$root/usr/bin/dmesg"
    chmod 755 "$root/usr/bin/dmesg"
    {
        echo '[    0.000000] Linux version 6.1.0-37-amd64 (builder@lab)'
        case $2 in
            xid) echo "[  812.441021] NVRM: Xid (PCI:${address%.0}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus." ;;
            secureboot)
                echo '[    0.000000] secureboot: Secure boot enabled'
                echo '[   14.220817] Loading of module with unavailable key is rejected'
                ;;
            unsupported)
                printf '[   14.220817] %s\n' "NVRM: The NVIDIA GPU $address (PCI ID: 10de:1eb8)" 'NVRM: installed in this system is not supported by the' \
                    'NVRM: NVIDIA 535.54.03 driver release.' "nvidia: probe of $address failed with error -1"
                ;;
        esac
    } >"$root/usr/lib/kubeon-lab/face/dmesg"
    if [ "$2" = secureboot ]; then
        # Four bytes of attributes, then the value. Source: efivarfs and UEFI 2.10, 3.3.
        mkdir -p "$firmware"
        printf '\006\000\000\000\001' >"$firmware/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    fi
}

# What Docker's packages leave on a node: a daemon, and a containerd that serves no Kubernetes.
face_docker() { # ROOT
    local root=$1
    mkdir -p "$root/usr/bin" "$root/etc/containerd" "$root/etc/systemd/system/multi-user.target.wants" "$root/etc/docker"
    printf '#!/bin/sh\n[ "$1" = --version ] && { echo "Docker version 28.2.2, build 45873be"; exit; }\nexec sleep infinity\n' >"$root/usr/bin/dockerd"
    printf '#!/bin/sh\necho "Docker version 28.2.2, build e6534b4"\n' >"$root/usr/bin/docker"
    chmod 755 "$root/usr/bin/dockerd" "$root/usr/bin/docker"
    echo '{}' >"$root/etc/docker/daemon.json"
    cat >"$root/etc/systemd/system/docker.service" <<'UNIT'
[Unit]
Description=Docker Application Container Engine
After=containerd.service
[Service]
ExecStart=/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock
[Install]
WantedBy=multi-user.target
UNIT
    ln -s ../docker.service "$root/etc/systemd/system/multi-user.target.wants/docker.service"
    cat >"$root/etc/containerd/config.toml" <<'TOML'
# The shape of the file in Docker's package containerd.io.

disabled_plugins = ["cri"]

#root = "/var/lib/containerd"
#state = "/run/containerd"
#subreaper = true
#oom_score = 0

#[grpc]
#  address = "/run/containerd/containerd.sock"
#  uid = 0
#  gid = 0

#[debug]
#  address = "/run/containerd/debug.sock"
#  uid = 0
#  gid = 0
#  level = "info"
TOML
}
