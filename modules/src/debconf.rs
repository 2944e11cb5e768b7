use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{bad, run};
use crate::decode::Arguments;
use crate::host::Map;
use crate::{Change, Error, Exec, Host, Module, Plan};

/// Answer a question that a Debian package asks when it is installed.
///
/// ```yaml
/// - debconf:
///     name: tzdata
///     question: tzdata/Areas
///     vtype: select
///     value: Europe
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The package.
    #[serde(alias = "pkg")]
    name: String,
    /// The question; absent only looks at the answers.
    #[serde(alias = "selection", alias = "setting")]
    question: Option<String>,
    /// What kind of question it is.
    vtype: Option<Kind>,
    /// The answer.
    #[serde(alias = "answer")]
    value: Option<String>,
    /// Let the question be asked again all the same.
    #[serde(default)]
    unseen: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Boolean,
    Error,
    Multiselect,
    Note,
    Password,
    Seen,
    Select,
    String,
    Text,
    Title,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let output = run(host, &["debconf-show", "--", &self.name])?;
        let mut answers = Map::new();
        for line in output.stdout.lines() {
            if let Some((question, answer)) = line.trim_start_matches(['*', ' ']).split_once(':') {
                answers.insert(question.to_owned(), answer.trim().into());
            }
        }
        let Some(question) = &self.question else { return Ok(Plan::default().with("current", answers)) };
        let (Some(kind), Some(value)) = (self.vtype, &self.value) else {
            return Err(bad("`question` needs `vtype` and `value`"));
        };
        let value = match kind {
            Kind::Boolean => value.to_ascii_lowercase(),
            _ => value.clone(),
        };
        if [&self.name, question, &value].iter().any(|text| text.contains('\n')) {
            return Err(bad("name, question and value are one line each"));
        }
        let word = format!("{kind:?}").to_ascii_lowercase();
        let line = format!("{} {question} {word} {value}\n", self.name);
        let now = answers.get(question).and_then(|answer| answer.as_str());
        // A password is never shown: it is set once.
        let done = kind == Kind::Password && !host.applied().is_empty();
        let mut changes = Vec::new();
        if now != Some(&value) && !done {
            let mut argv = vec!["debconf-set-selections"];
            if self.unseen {
                argv.push("--unseen");
            }
            changes.push(Change::Exec(Exec { stdin: Some(line), ..Exec::new(argv) }));
        }
        Ok(Plan::from(changes).with("current", answers))
    }
}
