//! Every diagnosis, as data. To add one: write it where its link's are, give it a case in `tests/doctor/`, and run
//! `UPDATE_DOCS=1 cargo test --test docs`. Where two could be meant by one line of a log, the first one is taken.

mod containerd;
mod driver;
mod kubernetes;
mod plugin;
mod repository;

pub use containerd::*;
pub use driver::*;
pub use kubernetes::*;
pub use plugin::*;
pub use repository::*;

use super::Diagnosis;

macro_rules! diagnoses {
    ($($name:ident { $($field:ident: $value:expr,)* })*) => {
        $(pub const $name: &Diagnosis = &Diagnosis { $($field: $value,)* };)*
        pub(super) const ALL: &[&Diagnosis] = &[$($name,)*];
    };
}
use diagnoses;

/// Returns every diagnosis, in the order in which a log's line is tried.
pub fn all() -> impl Iterator<Item = &'static Diagnosis> {
    [driver::ALL, repository::ALL, containerd::ALL, plugin::ALL, kubernetes::ALL].into_iter().flatten().copied()
}

/// Those that follow from others: where the reason is known they are left out.
pub const GENERAL: &[&Diagnosis] = &[
    DRIVER_BROKEN,
    REPO_BROKEN,
    NOT_OFFERED,
    RUNTIME_FAILS,
    RESTARTS,
    RESTART_TAKES_PODS,
    CONTAINERD_DOWN,
    CRI_BROKEN,
    CRI_SILENT,
    PLUGIN_NOT_READY,
    PLUGIN_INIT,
    ALLOCATABLE_NONE,
    KUBELET_DOWN,
    KUBELET_CRI,
    NODE_NOT_READY,
    POD_ADMISSION,
    POD_BEFORE_PLUGIN,
    POD_SEES_ALL,
];
