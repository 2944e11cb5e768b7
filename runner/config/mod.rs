//! The configuration of this run, for whoever asks for a setting while it runs.

mod known;

use std::sync::OnceLock;

pub use known::{SETTINGS, Setting, Usual, is_set, of as setting};

pub(crate) use crate::cli::Config;

static CURRENT: OnceLock<Config> = OnceLock::new();

/// Makes this the configuration of the run.
pub(crate) fn establish(config: &Config) {
    CURRENT.set(config.clone()).ok();
}

/// Returns the configuration of this run: what the program read when it began; an empty one before that.
pub(crate) fn current() -> &'static Config {
    static NONE: OnceLock<Config> = OnceLock::new();
    CURRENT.get().unwrap_or_else(|| NONE.get_or_init(Config::default))
}
