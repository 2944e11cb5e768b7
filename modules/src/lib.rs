//! What kubeon-run executes **on a host**: typed modules that plan changes, the one place that applies them, and
//! the wire over which a runner asks for both. Nothing here prints, and nothing here knows of SSH.

mod accounts;
mod algorithm;
mod apply;
mod ask;
mod attributes;
mod background;
mod chattr;
pub mod chunks;
mod clock;
#[cfg(feature = "cluster")]
mod cluster;
mod decode;
mod dpkg;
mod error;
mod facts;
mod fnmatch;
mod host;
mod ini;
mod inode;
mod invocation;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod machine;
mod mode;
mod module;
mod order;
mod owners;
mod passed;
mod paths;
mod pattern;
mod repository_key;
mod rewrite;
mod rpm;
mod run;
mod serve;
mod shared;
mod table;
mod transfer;
pub mod wire;

pub use algorithm::Algorithm;
pub use apply::{Again, Change, Content, Done, Exec, Expect, Write};
pub use decode::{Argument, Arguments, DecodeError, Given, Row, Step, arguments, decode};
pub use error::{Error, ErrorKind};
#[cfg(feature = "cluster")]
pub use gpu_cluster_facts::evidence as cluster_evidence;
pub use gpu_facts::evidence;
pub use host::{FileKind, Host, KubeAnswer, KubeRequest, Map, Output, Probe, Stat};
#[cfg(feature = "kubernetes")]
pub use kubernetes::{ApiServer, Streamed};
pub use machine::{Machine, Service};
pub use mode::Mode;
pub use module::{Diff, Module, Plan};
pub use run::{Settings, run};
pub use serve::serve;
pub use table::{Decoded, Spec, spec_of};
pub use transfer::Transfer;

table::modules! {
    alternatives
    apt
    apt_key
    apt_repo
    apt_repository
    assemble
    async_status
    authorized_key
    blockinfile
    command
    containerd_runtime
    copy
    cron
    deb822_repository
    debconf
    dnf
    dpkg_selections
    file
    find
    firewalld
    get_url
    getent
    git
    #[cfg(feature = "cluster")]
    gpu_cluster_facts
    gpu_facts
    group
    #[cfg(feature = "cluster")]
    helm
    #[cfg(feature = "cluster")]
    helm_repository
    hostname
    ini_file
    iptables
    #[cfg(feature = "cluster")]
    k8s
    #[cfg(feature = "cluster")]
    k8s_apply
    #[cfg(feature = "cluster")]
    k8s_drain
    #[cfg(feature = "cluster")]
    k8s_info
    #[cfg(feature = "cluster")]
    k8s_label
    kernel_blacklist
    known_hosts
    lineinfile
    locale_gen
    modprobe
    mount
    nvidia_detect
    package
    package_facts
    pam_limits
    ping
    pip
    raw
    reboot
    replace
    rpm_key
    rpm_pin
    rpm_repo
    script
    seboolean
    sefcontext
    selinux
    seport
    service
    service_facts
    setup
    shell
    slurp
    stat
    synchronize
    sysctl
    systemd
    systemd_service
    tempfile
    timezone
    ufw
    unarchive
    uri
    user
    wait_for
    yum_repository
}
