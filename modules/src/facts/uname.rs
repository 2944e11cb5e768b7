//! What `uname(2)` says of this machine.

use std::ffi::CStr;

/// Returns what `uname(2)` calls the hardware: `x86_64`, `aarch64`.
pub(super) fn machine() -> String {
    uname(|name| &name.machine)
}

/// Returns one field of `uname(2)`.
pub(super) fn uname(field: impl Fn(&libc::utsname) -> &[libc::c_char]) -> String {
    // SAFETY: utsname is plain arrays of characters, for which zeros are a value; uname(2) fills it with texts that
    // end in a zero.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut name);
        CStr::from_ptr(field(&name).as_ptr()).to_string_lossy().into_owned()
    }
}
