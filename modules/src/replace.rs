use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::pattern::{Flags, Pattern, Regexp, Template};
use crate::rewrite::Edited;
use crate::shared::{Edit, Owner};
use crate::{Error, ErrorKind, Host, Module, Plan};

/// Replace all that a regular expression matches in a text file.
///
/// ```yaml
/// - replace:
///     path: /etc/fstab
///     regexp: ^([^#].*\sswap\s.*)$
///     replace: '# \1'
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file, which must exist.
    #[serde(alias = "dest", alias = "destfile", alias = "name")]
    path: String,
    /// What is replaced; `^` and `$` match at each line.
    regexp: Regexp,
    /// What takes its place; `\1` and `\g<name>` stand for groups. Absent removes what matches.
    #[serde(default)]
    replace: String,
    /// Replace only what comes after this regular expression, in which `.` matches newlines too.
    after: Option<String>,
    /// Replace only what comes before this regular expression, in which `.` matches newlines too.
    before: Option<String>,
    #[serde(rename = "+edit")]
    #[schemars(flatten)]
    edit: Edit,
    /// How the file's text is encoded: `utf-8`, or one of which ASCII is a part.
    #[serde(default = "utf_8")]
    encoding: String,
    #[serde(rename = "+owner")]
    #[schemars(flatten)]
    owner: Owner,
}

fn utf_8() -> String {
    "utf-8".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let encoding = self.encoding.to_ascii_lowercase();
        if ["utf-16", "utf16", "utf-32", "utf32", "utf_16", "utf_32", "cp037"]
            .iter()
            .any(|bad| encoding.starts_with(bad))
        {
            return Err(bad(format!(
                "`encoding: {}` is not supported; text must be UTF-8 or contain ASCII",
                self.encoding
            )));
        }
        let wanted = self.owner.wanted(host)?;
        let edited = Edited::read(host, &self.path)?;
        let Some(old) = &edited.bytes else {
            let message = format!("`{}` does not exist", edited.path);
            return Err(Error::new(ErrorKind::Host, message).with("rc", 257));
        };
        let rewrite = self.edit.rewrite(&wanted);
        let pattern = Pattern::new(&self.regexp, Flags { multi_line: true, dot_all: false })?;
        let template = Template::new(&self.replace, &pattern)?;
        if edited.written {
            return Ok(edited.plan(host, old.clone(), "", &rewrite)?.with("rc", 0));
        }
        let Some((start, end)) = self.section(old)? else {
            let message = format!(
                "Pattern for before/after params did not match the given file: {}",
                self.section_pattern().unwrap_or_default()
            );
            return Ok(Plan::default().with("rc", 0).with("msg", message));
        };
        let (middle, count) = pattern.replace_all(&old[start..end], &template)?;
        let new = [&old[..start], &middle, &old[end..]].concat();
        Ok(edited.plan(host, new, &format!("{count} replacements made"), &rewrite)?.with("rc", 0))
    }
}

impl Args {
    fn section_pattern(&self) -> Option<String> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        match (given(&self.after), given(&self.before)) {
            (Some(after), Some(before)) => Some(format!("{after}(?P<subsection>.*?){before}")),
            (Some(after), None) => Some(format!("{after}(?P<subsection>.*)")),
            (None, Some(before)) => Some(format!("(?P<subsection>.*){before}")),
            (None, None) => None,
        }
    }

    /// Returns which part of the text is meant; `None` when `after` or `before` is not in it.
    fn section(&self, old: &[u8]) -> Result<Option<(usize, usize)>, Error> {
        let Some(text) = self.section_pattern() else { return Ok(Some((0, old.len()))) };
        let pattern = Pattern::new(&text, Flags { multi_line: false, dot_all: true })?;
        let group = pattern.group("subsection").expect("the pattern is made with this group");
        Ok(pattern.find(old, 0)?.and_then(|found| found.groups[group]))
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}
