//! What the tests of the whole program share.

#![allow(dead_code, reason = "each test program uses its own part of this; `expect` can't say so")]

#[cfg(feature = "labs")]
pub mod gpu;
#[cfg(feature = "labs")]
pub mod lab;
pub mod program;
pub mod secrets;
pub mod sshd;
pub mod terminal;
