use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::{Error, Host, Module, Plan};

/// Answer, to show that a host can be reached and can run modules.
///
/// ```yaml
/// - ping:
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What to answer.
    #[serde(default = "pong")]
    data: String,
}

fn pong() -> String {
    "pong".to_owned()
}

impl Module for Args {
    fn plan(&self, _host: &dyn Host) -> Result<Plan, Error> {
        Ok(Plan::default().with("ping", self.data.as_str()))
    }
}
