// The older name of `systemd_service`; both are in use.
pub(super) use super::systemd_service::Args;
