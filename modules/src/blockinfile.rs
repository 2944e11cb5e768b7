use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::pattern::{Flags, Pattern, Regexp};
use crate::rewrite::{Edited, lines_of};
use crate::shared::{Edit, Owner, State};
use crate::{Error, ErrorKind, Host, Module, Plan};

/// Keep a block of lines in a text file, between two lines that mark it.
///
/// ```yaml
/// - blockinfile:
///     path: /etc/hosts
///     block: |
///       10.0.0.1 control-1
///       10.0.0.2 gpu-1
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file.
    #[serde(alias = "dest", alias = "destfile", alias = "name")]
    path: String,
    /// The lines; an empty block is removed.
    #[serde(default, alias = "content")]
    block: String,
    /// Whether the block must be there.
    #[serde(default)]
    state: State,
    /// The line that marks the block; `{mark}` in it stands for `marker_begin` or `marker_end`.
    #[serde(default = "marker")]
    marker: String,
    /// What stands for `{mark}` above the block.
    #[serde(default = "begin")]
    marker_begin: String,
    /// What stands for `{mark}` below the block.
    #[serde(default = "end")]
    marker_end: String,
    /// Put a new block after the last line in which this is found: a regular expression or `EOF`.
    insertafter: Option<Regexp>,
    /// Put a new block before the last line in which this is found: a regular expression or `BOF`.
    insertbefore: Option<Regexp>,
    /// Have an empty line above the block.
    #[serde(default)]
    prepend_newline: bool,
    /// Have an empty line below the block.
    #[serde(default)]
    append_newline: bool,
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

fn marker() -> String {
    "# {mark} ANSIBLE MANAGED BLOCK".to_owned()
}

fn begin() -> String {
    "BEGIN".to_owned()
}

fn end() -> String {
    "END".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.insertafter.is_some() && self.insertbefore.is_some() {
            return Err(bad("give `insertafter` or `insertbefore`, not both"));
        }
        if !self.marker.contains("{mark}") || self.marker_begin == self.marker_end {
            return Err(bad("`marker` must contain `{mark}`, which tells the line above the block from the one below"));
        }
        if [&self.marker, &self.marker_begin, &self.marker_end].iter().any(|text| text.contains('\n')) {
            return Err(bad("a marker is one line"));
        }
        let wanted = self.owner.wanted(host)?;
        let edited = Edited::read(host, &self.path)?;
        let rewrite = self.edit.rewrite(&wanted);
        let old = match (&edited.bytes, self.state) {
            (Some(old), _) => old.as_slice(),
            (None, _) if !self.create => return Err(edited.missing()),
            (None, State::Absent) => {
                return Ok(Plan::default().with("msg", format!("File {} not present", edited.path)));
            }
            (None, State::Present) => &[],
        };
        if edited.written {
            return edited.plan(host, old.to_vec(), "", &rewrite);
        }
        let block = self.lines();
        let said = match (&edited.bytes, block.is_empty()) {
            (None, _) => "File created",
            (Some(_), true) => "Block removed",
            (Some(_), false) => "Block inserted",
        };
        edited.plan(host, self.edit(old, block)?, said, &rewrite)
    }
}

impl Args {
    fn mark(&self, with: &str) -> Vec<u8> {
        format!("{}\n", self.marker.replace("{mark}", with)).into_bytes()
    }

    /// Returns the block with its markers; nothing when it is to go.
    fn lines(&self) -> Vec<Vec<u8>> {
        if self.state == State::Absent || self.block.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![self.mark(&self.marker_begin)];
        lines.extend(lines_of(self.block.as_bytes()));
        if let Some(last) = lines.last_mut().filter(|last| !last.ends_with(b"\n")) {
            last.push(b'\n');
        }
        lines.push(self.mark(&self.marker_end));
        lines
    }

    fn edit(&self, old: &[u8], block: Vec<Vec<u8>>) -> Result<Vec<u8>, Error> {
        let mut lines = lines_of(old);
        let (above, below) = (self.mark(&self.marker_begin), self.mark(&self.marker_end));
        let start = lines.iter().rposition(|line| *line == above);
        // A last line that no newline ends is a marker all the same.
        let end = lines.iter().rposition(|line| {
            *line == below || (!line.ends_with(b"\n") && below.starts_with(line) && line.len() + 1 == below.len())
        });
        let mut at = match (start, end) {
            (Some(start), Some(end)) => {
                let (first, last) = (start.min(end), start.max(end));
                lines.drain(first..=last);
                first
            }
            (None, _) | (_, None) if block.is_empty() => return Ok(old.to_vec()),
            (None, _) | (_, None) => self.place(old, &lines)?,
        };
        if let Some(before) = at.checked_sub(1).and_then(|at| lines.get_mut(at)).filter(|line| !line.ends_with(b"\n")) {
            before.push(b'\n');
        }
        let present = self.state == State::Present;
        if self.prepend_newline && present && at > 0 && lines[at - 1] != b"\n" {
            lines.insert(at, b"\n".to_vec());
            at += 1;
        }
        let after = at + block.len();
        lines.splice(at..at, block);
        if self.append_newline && present && lines.get(after).is_some_and(|line| line != b"\n") {
            lines.insert(after, b"\n".to_vec());
        }
        Ok(lines.concat())
    }

    /// Returns before which line a new block goes.
    fn place(&self, old: &[u8], lines: &[Vec<u8>]) -> Result<usize, Error> {
        let (pattern, after) = match (self.insertafter.as_deref(), self.insertbefore.as_deref()) {
            (None, None) | (Some("EOF"), _) => return Ok(lines.len()),
            (None, Some("BOF")) => return Ok(0),
            (Some(pattern), _) => (pattern, true),
            (None, Some(pattern)) => (pattern, false),
        };
        let pattern = Pattern::new(pattern, Flags::default())?;
        let mut found = None;
        if pattern.multi_line {
            // A pattern for many lines is looked for in the whole text.
            if let Some((start, end)) = pattern.find(old, 0)?.map(|found| found.whole()) {
                let upto = if after { end } else { start };
                found = Some(old[..upto].iter().filter(|&&byte| byte == b'\n').count());
            }
        } else {
            for (at, line) in lines.iter().enumerate() {
                if pattern.is_match(line)? {
                    found = Some(at);
                }
            }
        }
        Ok(found.map_or(lines.len(), |at| (at + usize::from(after)).min(lines.len())))
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}
