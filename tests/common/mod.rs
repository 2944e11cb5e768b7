//! What the tests of the whole program share.

pub mod sshd;
