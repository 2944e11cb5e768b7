use crate::host::Put as _;
use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::pattern::{Flags, Found, Pattern, Regexp, Template};
use crate::rewrite::{Edited, bare, lines_of};
use crate::shared::{Edit, Owner, State};
use crate::{Done, Error, ErrorKind, Host, Module, Plan, host::Map};

/// Keep a line in a text file, or keep lines out of it.
///
/// ```yaml
/// - lineinfile:
///     path: /etc/default/grub
///     regexp: ^GRUB_TIMEOUT=
///     line: GRUB_TIMEOUT=1
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file.
    #[serde(alias = "dest", alias = "destfile", alias = "name")]
    path: String,
    /// The line, without the newline that ends it.
    #[serde(alias = "value")]
    line: Option<String>,
    /// The last line in which this regular expression is found is replaced; for `absent`, each of them goes.
    #[serde(alias = "regex")]
    regexp: Option<Regexp>,
    /// As `regexp`, a plain text.
    search_string: Option<String>,
    /// Whether the line must be there.
    #[serde(default)]
    state: State,
    /// Replace `\1` and `\g<name>` in `line` by what `regexp` matched; without a match nothing is changed.
    #[serde(default)]
    backrefs: bool,
    /// Put a new line after the last line in which this is found: a regular expression, `EOF` or `BOF`.
    insertafter: Option<Regexp>,
    /// Put a new line before the last line in which this is found: a regular expression or `BOF`.
    insertbefore: Option<Regexp>,
    /// The first line that is found counts, not the last.
    #[serde(default)]
    firstmatch: bool,
    /// Make the file, and its folders, where there is none.
    #[serde(default)]
    create: bool,
    #[serde(rename = "+edit")]
    #[schemars(flatten)]
    edit: Edit,
    #[serde(rename = "+owner")]
    #[schemars(flatten)]
    owner: Owner,
}

/// Which lines the task is about.
enum Sought<'a> {
    Pattern(Pattern),
    Part(&'a [u8]),
    Whole(&'a [u8]),
}

impl Sought<'_> {
    /// Whether this is such a line, and what a pattern matched in it.
    fn find(&self, line: &[u8]) -> Result<Option<Option<Found>>, Error> {
        let holds = match self {
            Sought::Pattern(pattern) => return Ok(pattern.find(line, 0)?.map(Some)),
            Sought::Part(part) => part.is_empty() || line.windows(part.len()).any(|window| window == *part),
            Sought::Whole(whole) => bare(line) == *whole,
        };
        Ok(holds.then_some(None))
    }
}

/// Where a new line goes.
enum Place {
    Start,
    End,
    After(Pattern),
    Before(Pattern),
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.agree()?;
        let wanted = self.owner.wanted(host)?;
        let edited = Edited::read(host, &self.path)?;
        let rewrite = self.edit.rewrite(&wanted);
        let mut lines = match (&edited.bytes, self.state) {
            (Some(bytes), _) => lines_of(bytes),
            (None, State::Absent) => return Ok(Plan::default().with("msg", "file not present")),
            (None, State::Present) if self.create => Vec::new(),
            (None, State::Present) => return Err(edited.missing()),
        };
        if edited.written {
            return edited.plan(host, lines.concat(), "", &rewrite);
        }
        match self.state {
            State::Absent => {
                let count = lines.len();
                let sought = self.sought()?;
                let mut kept = Vec::new();
                for line in lines {
                    if sought.find(&line)?.is_none() {
                        kept.push(line);
                    }
                }
                let found = count - kept.len();
                let plan = edited.plan(host, kept.concat(), &format!("{found} line(s) removed"), &rewrite)?;
                Ok(plan.with("found", found))
            }
            State::Present => {
                let said = self.put(&mut lines)?;
                edited.plan(host, lines.concat(), said, &rewrite)
            }
        }
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        let backup = done.iter().rev().find_map(|done| done.backup.as_deref());
        result.put("backup", backup.unwrap_or_default());
        Ok(())
    }
}

impl Args {
    fn agree(&self) -> Result<(), Error> {
        let wrong = match self.state {
            _ if self.insertafter.is_some() && self.insertbefore.is_some() => {
                "give `insertafter` or `insertbefore`, not both"
            }
            _ if self.regexp.is_some() && self.search_string.is_some() => "give `regexp` or `search_string`, not both",
            _ if self.backrefs && self.regexp.is_none() => "`backrefs` needs `regexp`",
            State::Present if self.line.is_none() => "`state: present` needs `line`",
            State::Absent if self.line.is_none() && self.regexp.is_none() && self.search_string.is_none() => {
                "`state: absent` needs `line`, `regexp` or `search_string`"
            }
            State::Present | State::Absent => return Ok(()),
        };
        Err(Error::new(ErrorKind::Arguments, wrong))
    }

    fn sought(&self) -> Result<Sought<'_>, Error> {
        Ok(match (&self.regexp, &self.search_string) {
            (Some(regexp), _) => Sought::Pattern(Pattern::new(regexp, Flags::default())?),
            (None, Some(part)) => Sought::Part(part.as_bytes()),
            (None, None) => Sought::Whole(self.line.as_deref().unwrap_or_default().as_bytes()),
        })
    }

    fn place(&self) -> Result<Place, Error> {
        let pattern = |text: &str| Pattern::new(text, Flags::default());
        Ok(match (self.insertafter.as_deref(), self.insertbefore.as_deref()) {
            (Some("BOF"), _) | (_, Some("BOF")) => Place::Start,
            (Some("EOF"), _) | (None, None) => Place::End,
            (Some(text), _) => Place::After(pattern(text)?),
            (None, Some(text)) => Place::Before(pattern(text)?),
        })
    }

    /// Replaces or adds the line; returns what was done in words.
    fn put(&self, lines: &mut Vec<Vec<u8>>) -> Result<&'static str, Error> {
        let line = self.line.as_deref().unwrap_or_default();
        let ended = |mut line: Vec<u8>| {
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            line
        };
        let sought = self.sought()?;
        if let Some((at, found)) = self.matching(&sought, lines)? {
            let new = match (&sought, found) {
                (Sought::Pattern(pattern), Some(found)) if self.backrefs => {
                    let mut new = Vec::new();
                    Template::new(line, pattern)?.expand(&lines[at], &found, &mut new);
                    new
                }
                (_, _) => line.as_bytes().to_vec(),
            };
            lines[at] = ended(new);
            return Ok("line replaced");
        }
        let place = self.place()?;
        let mut point = None;
        let mut same = None;
        for (at, other) in lines.iter().enumerate() {
            let next = match &place {
                _ if bare(other) == line.as_bytes() => {
                    same = Some(at);
                    continue;
                }
                Place::After(pattern) if pattern.is_match(other)? => at + 1,
                Place::Before(pattern) if pattern.is_match(other)? => at,
                Place::Start | Place::End | Place::After(_) | Place::Before(_) => continue,
            };
            point = Some(next);
            if self.firstmatch {
                break;
            }
        }
        let new = ended(line.as_bytes().to_vec());
        match (same, &place, point) {
            (Some(at), _, _) => {
                lines[at] = new;
                return Ok("line replaced");
            }
            (None, _, _) if self.backrefs => {}
            (None, Place::Start, _) => lines.insert(0, new),
            (None, Place::After(_), Some(at)) if lines.get(at).is_some_and(|other| bare(other) == line.as_bytes()) => {}
            (None, Place::After(_) | Place::Before(_), Some(at)) if at < lines.len() => lines.insert(at, new),
            (None, Place::End | Place::After(_) | Place::Before(_), _) => {
                if let Some(last) = lines.last_mut().filter(|last| !last.ends_with(b"\n")) {
                    last.push(b'\n');
                }
                lines.push(new);
            }
        }
        Ok("line added")
    }

    /// Returns the line that is to be replaced: the last one in which `regexp` or `search_string` is found.
    fn matching(&self, sought: &Sought<'_>, lines: &[Vec<u8>]) -> Result<Option<(usize, Option<Found>)>, Error> {
        let mut matching = None;
        if let Sought::Whole(_) = sought {
            return Ok(None);
        }
        for (at, line) in lines.iter().enumerate() {
            if let Some(found) = sought.find(line)? {
                matching = Some((at, found));
                if self.firstmatch {
                    break;
                }
            }
        }
        Ok(matching)
    }
}
