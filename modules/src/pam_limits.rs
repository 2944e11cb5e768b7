use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::bad;
use crate::decode::Arguments;
use crate::rewrite::{Edited, Rewrite};
use crate::{Error, Host, Module, Plan};

/// Keep a limit that users' sessions get.
///
/// ```yaml
/// - pam_limits:
///     domain: "*"
///     limit_type: "-"
///     limit_item: nofile
///     value: 1048576
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Whom it is for: a user, `@group`, `*` or what else `limits.conf(5)` knows.
    domain: String,
    /// Which limit it is.
    limit_type: Type,
    /// What is limited, such as `nofile`.
    limit_item: String,
    /// How much: a number, `unlimited`, `infinity` or `-1`.
    value: String,
    /// Keep the smaller of the two numbers where the limit is there.
    #[serde(default)]
    use_min: bool,
    /// Keep the larger of the two numbers where the limit is there.
    #[serde(default)]
    use_max: bool,
    /// The file.
    #[serde(default = "usual_file")]
    dest: String,
    /// A remark at the line's end.
    #[serde(default)]
    comment: String,
    /// Keep what was there beside it, with the time in its name.
    #[serde(default)]
    backup: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Type {
    Hard,
    Soft,
    #[serde(rename = "-")]
    Both,
}

/// Source: `limits.conf(5)`.
const ITEMS: [&str; 19] = [
    "core",
    "data",
    "fsize",
    "memlock",
    "nofile",
    "rss",
    "stack",
    "cpu",
    "nproc",
    "as",
    "maxlogins",
    "maxsyslogins",
    "priority",
    "locks",
    "sigpending",
    "msgqueue",
    "nice",
    "rtprio",
    "chroot",
];

fn usual_file() -> String {
    "/etc/security/limits.conf".to_owned()
}

/// Returns a limit as a number; `None` when it is not limited.
fn number(value: &str) -> Option<i64> {
    if matches!(value, "unlimited" | "infinity" | "-1") { None } else { value.parse().ok() }
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let value = self.value.trim();
        if !ITEMS.contains(&self.limit_item.as_str()) {
            return Err(bad(format!("`limit_item: {}` is none of {}", self.limit_item, ITEMS.join(", "))));
        }
        let right = number(value).is_some() || matches!(value, "unlimited" | "infinity" | "-1");
        if !right || self.domain.contains(char::is_whitespace) || self.domain.is_empty() {
            return Err(bad("`value` is a number, `unlimited`, `infinity` or `-1`, and `domain` one word"));
        }
        if self.use_min && self.use_max {
            return Err(bad("give `use_min` or `use_max`, not both"));
        }
        let kind = match self.limit_type {
            Type::Hard => "hard",
            Type::Soft => "soft",
            Type::Both => "-",
        };
        let edited = Edited::read(host, &self.dest)?;
        let old = String::from_utf8_lossy(edited.bytes.as_deref().unwrap_or_default()).into_owned();
        let remark = if self.comment.is_empty() { String::new() } else { format!("\t#{}", self.comment) };
        let line = |value: &str| format!("{}\t{kind}\t{}\t{value}{remark}\n", self.domain, self.limit_item);
        let mut new = String::new();
        let mut found = false;
        for other in old.split_inclusive('\n') {
            let bare = other.split('#').next().unwrap_or_default();
            let words: Vec<&str> = bare.split_whitespace().collect();
            let [domain, its_kind, item, now] = words[..] else {
                new.push_str(other);
                continue;
            };
            if domain != self.domain || its_kind != kind || item != self.limit_item {
                new.push_str(other);
                continue;
            }
            let keeps = match (number(now), number(value)) {
                (Some(now), Some(value)) if self.use_min => now <= value,
                (Some(now), Some(value)) if self.use_max => now >= value,
                (Some(_), None) if self.use_min => true,
                (None, _) if self.use_max => true,
                _ => now == value,
            };
            if keeps && !found {
                new.push_str(other);
            } else if !found {
                new.push_str(&line(value));
            }
            found = true;
        }
        if !found {
            if !new.is_empty() && !new.ends_with('\n') {
                new.push('\n');
            }
            new.push_str(&line(value));
        }
        let wanted = Default::default();
        let rewrite =
            Rewrite { wanted: &wanted, backup: self.backup, validate: None, in_place: false, replace_link: false };
        let told = line(value);
        edited.plan(host, new.into_bytes(), told.trim_end(), &rewrite)
    }
}
