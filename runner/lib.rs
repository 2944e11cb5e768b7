//! What runs **here**: reading what users wrote, planning, executing, connecting, reporting.

pub mod connection;
pub mod source;
pub mod template;
pub mod value;
pub mod yaml;
