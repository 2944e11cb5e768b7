use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::pattern::{Flags, Pattern, Regexp};
use crate::shared::{Edit, Owner, yes};
use crate::{Algorithm, Content, Error, ErrorKind, FileKind, Host, Module, Plan, paths};

/// Put a file together from the files of a directory, in the order of their names.
///
/// ```yaml
/// - assemble:
///     src: /etc/haproxy/conf.d
///     dest: /etc/haproxy/haproxy.cfg
///     remote_src: true
///     validate: haproxy -c -f %s
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The directory of fragments.
    src: Option<String>,
    /// The file that is made.
    dest: String,
    /// `src` is a directory of the host; otherwise of the machine that runs kubeon-run.
    #[serde(default)]
    remote_src: bool,
    /// The whole text; sent along for a `src` that is not on the host, not written by users.
    #[schemars(skip)]
    content: Option<Content>,
    /// What stands between two fragments.
    delimiter: Option<String>,
    /// Take only fragments in whose name this regular expression is found.
    regexp: Option<Regexp>,
    /// Leave out files whose name begins with a dot.
    #[serde(default)]
    ignore_hidden: bool,
    /// Whether fragments in a vault are decrypted before they are sent.
    #[serde(default = "yes")]
    #[expect(dead_code, reason = "acts where fragments are read, before they are sent")]
    decrypt: bool,
    #[serde(rename = "+edit")]
    #[schemars(flatten)]
    edit: Edit,
    #[serde(rename = "+owner")]
    #[schemars(flatten)]
    owner: Owner,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let dest = paths::expand(host, &self.dest)?;
        let content = match (&self.content, &self.src) {
            (Some(content), _) => content.clone(),
            (None, Some(src)) if self.remote_src => Content::Inline(self.assembled(host, &paths::expand(host, src)?)?),
            (None, Some(src)) => {
                let message =
                    format!("the fragments of `{src}` were not sent along; `remote_src: true` reads the host's");
                return Err(Error::new(ErrorKind::Arguments, message));
            }
            (None, None) => return Err(Error::new(ErrorKind::Arguments, "missing `src`")),
        };
        let wanted = self.owner.wanted(host)?;
        let rewrite = self.edit.rewrite(&wanted);
        let mut changes = Vec::new();
        rewrite.plan(host, &dest, &content, &mut changes)?;
        let mut plan = Plan::from(changes).with("dest", dest.as_str());
        if let Some(src) = &self.src {
            plan = plan.with("src", src.as_str());
        }
        if let Content::Inline(bytes) = &content {
            plan = plan.with("checksum", Algorithm::Sha1.of(bytes));
        }
        crate::attributes::describe(host, &dest, &mut plan.result)?;
        Ok(plan)
    }
}

impl Args {
    fn assembled(&self, host: &dyn Host, src: &str) -> Result<Vec<u8>, Error> {
        let Some(names) = host.list(src)? else {
            return Err(Error::new(ErrorKind::Host, format!("`{src}` is not a directory of this host")));
        };
        let pattern = self.regexp.as_deref().map(|text| Pattern::new(text, Flags::default())).transpose()?;
        let delimiter = self.delimiter.as_deref().map(unescaped);
        let mut text: Vec<u8> = Vec::new();
        let mut first = true;
        for name in names {
            let path = paths::join(src, &name);
            let taken = match &pattern {
                Some(pattern) => pattern.is_match(name.as_bytes())?,
                None => true,
            };
            let hidden = self.ignore_hidden && name.starts_with('.');
            if !taken || hidden || host.stat(&path)?.is_none_or(|stat| stat.kind != FileKind::File) {
                continue;
            }
            if !first {
                if text.last().is_some_and(|&last| last != b'\n') {
                    text.push(b'\n');
                }
                if let Some(delimiter) = &delimiter {
                    text.extend_from_slice(delimiter.as_bytes());
                    if !delimiter.ends_with('\n') {
                        text.push(b'\n');
                    }
                }
            }
            text.extend(host.read(&path)?.unwrap_or_default());
            first = false;
        }
        Ok(text)
    }
}

/// Returns a delimiter with `\n`, `\t`, `\r` and `\\` replaced.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, if letter == '\\' { letters.next() } else { None }) {
            ('\\', Some('n')) => plain.push('\n'),
            ('\\', Some('t')) => plain.push('\t'),
            ('\\', Some('r')) => plain.push('\r'),
            ('\\', Some('\\')) => plain.push('\\'),
            ('\\', Some(other)) => plain.extend(['\\', other]),
            (letter, _) => plain.push(letter),
        }
    }
    plain
}
