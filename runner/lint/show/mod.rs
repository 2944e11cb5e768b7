//! How findings are shown: to people, as JSON, as SARIF.

mod json;
mod sarif;
mod words;

pub use json::json;
pub use sarif::sarif;
pub use words::words;
