use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::decode::Arguments;
use crate::fnmatch::fnmatch;
use crate::host::Map;
use crate::host::Put as _;
use crate::inode::{Names, describe};
use crate::pattern::{Flags, Pattern};
use crate::shared::yes;
use crate::{Algorithm, Error, ErrorKind, FileKind, Host, Mode, Module, Plan, Stat, paths};

/// List the files of directories by name, age, size or content.
///
/// ```yaml
/// - find:
///     paths: /var/log
///     patterns: "*.log"
///     age: 2w
///     size: 1m
///   register: old
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The directories to look in.
    #[serde(alias = "name", alias = "path")]
    paths: Vec<String>,
    /// The names to list, as a shell's patterns or, with `use_regex`, as regular expressions. All when absent.
    #[serde(default, alias = "pattern")]
    patterns: Vec<String>,
    /// The names to leave out, written as `patterns` are.
    #[serde(default, alias = "exclude")]
    excludes: Vec<String>,
    /// `patterns` and `excludes` are regular expressions, matched from a name's beginning.
    #[serde(default)]
    use_regex: bool,
    /// Only files with a line that begins with what this regular expression matches.
    contains: Option<String>,
    /// Look for `contains` anywhere in the whole file.
    #[serde(default)]
    read_whole_file: bool,
    /// What to list.
    #[serde(default)]
    file_type: FileType,
    /// Only what is this old: `30s`, `5m`, `2h`, `3d`, `1w`; with a minus sign, what is younger.
    age: Option<String>,
    /// Which time tells the age.
    #[serde(default)]
    age_stamp: AgeStamp,
    /// Only files this large: `100`, `10k`, `5m`, `1g`, `1t`; with a minus sign, what is smaller.
    size: Option<String>,
    /// Only what has these permission bits.
    mode: Option<Mode>,
    /// The bits are exactly `mode`; otherwise they contain it.
    #[serde(default = "yes")]
    exact_mode: bool,
    /// Look in directories below too.
    #[serde(default)]
    recurse: bool,
    /// How many levels to look at with `recurse`; all when absent.
    depth: Option<i64>,
    /// List names that begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// Look in directories that links lead to.
    #[serde(default)]
    follow: bool,
    /// Return each file's checksum.
    #[serde(default)]
    get_checksum: bool,
    /// The checksum's algorithm; `sha1` when absent.
    #[serde(default, alias = "checksum", alias = "checksum_algo")]
    checksum_algorithm: Algorithm,
    /// Stop after this many.
    limit: Option<usize>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum FileType {
    Any,
    Directory,
    #[default]
    File,
    Link,
}

#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum AgeStamp {
    Atime,
    Ctime,
    #[default]
    Mtime,
}

/// At least, or at most where it was written with a minus sign.
struct Bound {
    least: bool,
    value: f64,
}

impl Bound {
    /// Reads a number with a unit; `units` are letters and what they stand for.
    fn read(text: &str, what: &str, units: &[(char, f64)]) -> Result<Bound, Error> {
        let wrong = || {
            let letters: Vec<String> = units.iter().map(|(letter, _)| format!("`{letter}`")).collect();
            bad(format!("`{what}: {text}` is no number with one of {} behind it", letters.join(", ")))
        };
        let trimmed = text.trim().to_ascii_lowercase();
        let digits = trimmed.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let number: f64 = digits.parse().map_err(|_| wrong())?;
        let unit = match trimmed[digits.len()..].chars().next() {
            None => 1.0,
            Some(letter) => units.iter().find(|(other, _)| *other == letter).ok_or_else(wrong)?.1,
        };
        Ok(Bound { least: !digits.starts_with('-'), value: number.abs() * unit })
    }

    fn holds(&self, value: f64) -> bool {
        if self.least { value >= self.value } else { value <= self.value }
    }
}

/// A pattern for names.
enum Name {
    Shell(String),
    Regex(Pattern),
}

impl Name {
    fn fits(&self, name: &str) -> Result<bool, Error> {
        match self {
            Name::Shell(pattern) => Ok(fnmatch(pattern, name)),
            Name::Regex(pattern) => from_start(pattern, name.as_bytes()),
        }
    }
}

fn from_start(pattern: &Pattern, text: &[u8]) -> Result<bool, Error> {
    Ok(pattern.find(text, 0)?.is_some_and(|found| found.whole().0 == 0))
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let mut search = Search::new(self, host)?;
        for path in &self.paths {
            let path = paths::expand(host, path)?;
            match host.stat(&path)? {
                Some(stat) if stat.kind == FileKind::Directory => {
                    search.look(&path, 1, &mut vec![(stat.device, stat.inode)])?;
                }
                Some(_) | None => search.skip(&path, format!("'{path}' is not a directory")),
            }
        }
        let message = match search.skipped.is_empty() {
            true => "All paths examined",
            false => "Not all paths examined, check warnings for details",
        };
        let matched = search.files.len();
        let mut plan = Plan::default()
            .with("files", search.files)
            .with("matched", matched)
            .with("examined", search.examined)
            .with("skipped_paths", search.skipped)
            .with("msg", message);
        plan.warnings = search.warnings;
        Ok(plan)
    }
}

struct Search<'a> {
    args: &'a Args,
    host: &'a dyn Host,
    patterns: Vec<Name>,
    excludes: Vec<Name>,
    contains: Option<Pattern>,
    age: Option<Bound>,
    size: Option<Bound>,
    names: Names,
    files: Vec<Value>,
    examined: u64,
    skipped: Map,
    warnings: Vec<String>,
}

impl<'a> Search<'a> {
    fn new(args: &'a Args, host: &'a dyn Host) -> Result<Search<'a>, Error> {
        let names = |texts: &[String]| -> Result<Vec<Name>, Error> {
            texts
                .iter()
                .map(|text| match args.use_regex {
                    true => Pattern::new(text, Flags::default()).map(Name::Regex),
                    false => Ok(Name::Shell(text.clone())),
                })
                .collect()
        };
        const AGES: [(char, f64); 5] = [('s', 1.0), ('m', 60.0), ('h', 3600.0), ('d', 86_400.0), ('w', 604_800.0)];
        const KIB: f64 = 1024.0;
        const SIZES: [(char, f64); 5] =
            [('b', 1.0), ('k', KIB), ('m', KIB * KIB), ('g', KIB * KIB * KIB), ('t', KIB * KIB * KIB * KIB)];
        Ok(Search {
            args,
            host,
            patterns: names(&args.patterns)?,
            excludes: names(&args.excludes)?,
            contains: args.contains.as_deref().map(|text| Pattern::new(text, Flags::default())).transpose()?,
            age: args.age.as_deref().map(|text| Bound::read(text, "age", &AGES)).transpose()?,
            size: args.size.as_deref().map(|text| Bound::read(text, "size", &SIZES)).transpose()?,
            names: Names::default(),
            files: Vec::new(),
            examined: 0,
            skipped: Map::new(),
            warnings: Vec::new(),
        })
    }

    fn skip(&mut self, path: &str, why: String) {
        self.warnings.push(format!("Skipped '{path}' path due to this access issue: {why}"));
        self.skipped.insert(path.to_owned(), why.into());
    }

    fn full(&self) -> bool {
        self.args.limit.is_some_and(|limit| self.files.len() >= limit)
    }

    /// Looks at all that is in a directory. `within` are the directories on the way, so that a link to one ends there.
    fn look(&mut self, folder: &str, level: i64, within: &mut Vec<(u64, u64)>) -> Result<(), Error> {
        let names = match self.host.list(folder) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => {
                self.skip(folder, error.to_string());
                return Ok(());
            }
        };
        for name in names {
            if self.full() {
                return Ok(());
            }
            let path = paths::join(folder, &name);
            // What goes away while it is looked at is not there.
            let Some(stat) = self.host.lstat(&path)? else { continue };
            self.examined += 1;
            if (self.args.hidden || !name.starts_with('.')) && self.fits(&path, &name, &stat)? {
                self.add(&path, &stat)?;
            }
            let folder = match stat.kind {
                FileKind::Directory => Some(stat),
                FileKind::Link if self.args.follow => {
                    self.host.stat(&path)?.filter(|stat| stat.kind == FileKind::Directory)
                }
                FileKind::Link
                | FileKind::File
                | FileKind::CharacterDevice
                | FileKind::BlockDevice
                | FileKind::Fifo
                | FileKind::Socket => None,
            };
            let deeper = self.args.recurse && self.args.depth.is_none_or(|depth| level < depth);
            if let Some(stat) = folder.filter(|stat| deeper && !within.contains(&(stat.device, stat.inode))) {
                within.push((stat.device, stat.inode));
                self.look(&path, level + 1, within)?;
                within.pop();
            }
        }
        Ok(())
    }

    fn fits(&self, path: &str, name: &str, stat: &Stat) -> Result<bool, Error> {
        let wanted = match self.args.file_type {
            FileType::Any => true,
            FileType::Directory => stat.kind == FileKind::Directory,
            FileType::File => stat.kind == FileKind::File,
            FileType::Link => stat.kind == FileKind::Link,
        };
        if !wanted || !self.named(name)? {
            return Ok(false);
        }
        let stamp_s = match self.args.age_stamp {
            AgeStamp::Atime => stat.accessed_s,
            AgeStamp::Ctime => stat.changed_s,
            AgeStamp::Mtime => stat.modified_s,
        };
        let age_s = self.host.started_s() - stamp_s as f64;
        if self.age.as_ref().is_some_and(|age| !age.holds(age_s)) || !self.has_mode(stat) {
            return Ok(false);
        }
        if stat.kind != FileKind::File {
            return Ok(true);
        }
        let sized = self.size.as_ref().is_none_or(|size| size.holds(stat.size_bytes as f64));
        Ok(sized && self.holds(path)?)
    }

    fn named(&self, name: &str) -> Result<bool, Error> {
        for pattern in &self.excludes {
            if pattern.fits(name)? {
                return Ok(false);
            }
        }
        for pattern in &self.patterns {
            if pattern.fits(name)? {
                return Ok(true);
            }
        }
        Ok(self.patterns.is_empty())
    }

    fn has_mode(&self, stat: &Stat) -> bool {
        let Some(mode) = &self.args.mode else { return true };
        let bits = mode.bits(None, stat.kind, 0);
        if self.args.exact_mode { stat.mode == bits } else { stat.mode & bits == bits }
    }

    fn holds(&self, path: &str) -> Result<bool, Error> {
        let Some(pattern) = &self.contains else { return Ok(true) };
        // A file that can't be read holds nothing that could be found.
        let Ok(Some(bytes)) = self.host.read(path) else { return Ok(false) };
        if self.args.read_whole_file {
            return pattern.is_match(&bytes);
        }
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            if from_start(pattern, line)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn add(&mut self, path: &str, stat: &Stat) -> Result<(), Error> {
        let mut told = Map::new();
        told.put("path", path);
        told.extend(describe(self.host, &self.names, stat)?);
        // Ansible's `find` tells the owner's names before the bits, its `stat` behind them.
        if let Some(place) = told.keys().position(|key| key == "wusr") {
            for key in ["pw_name", "gr_name"] {
                if let Some(name) = told.shift_remove(key) {
                    told.shift_insert(place, key.to_owned(), name);
                }
            }
        }
        if self.args.get_checksum && stat.kind == FileKind::File {
            told.put("checksum", self.host.checksum(path, self.args.checksum_algorithm)?);
        }
        self.files.push(told.into());
        Ok(())
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}
