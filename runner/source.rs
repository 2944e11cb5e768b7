//! The files that users wrote, places in them, and mistakes shown with a caret.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, RwLock};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// A place in a file that a user wrote. `Place::default()` is nowhere: the value came from the program or a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Place {
    /// Index into the registry plus one; zero is nowhere.
    file: u32,
    /// From 1.
    pub line: u32,
    /// From 1, counted in characters.
    pub column: u32,
}

/// A file as it was read.
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    pub text: Arc<str>,
}

/// Every file read in this process: places refer to them for as long as it lives.
static SOURCES: RwLock<Vec<Arc<Source>>> = RwLock::new(Vec::new());

/// A file in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId(u32);

/// Returns how many files are registered.
pub fn count() -> usize {
    SOURCES.read().unwrap_or_else(std::sync::PoisonError::into_inner).len()
}

/// Returns whether a file that was read holds this word; what was written on the command line is none.
pub fn any_holds(word: &str) -> bool {
    let sources = SOURCES.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    sources.iter().any(|source| !source.path.starts_with("--extra-vars") && holds(&source.text, word))
}

/// Returns whether a text holds this name as a word of its own.
pub fn holds(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

/// Drops the texts of the files registered after the first so many. Places in them are shown as nothing.
pub fn forget(count: usize) {
    static EMPTY: LazyLock<Arc<Source>> =
        LazyLock::new(|| Arc::new(Source { path: PathBuf::new(), text: Arc::default() }));
    let mut sources = SOURCES.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    sources.iter_mut().skip(count).for_each(|source| *source = EMPTY.clone());
}

impl FileId {
    /// No file: places in it are nowhere.
    pub const NOWHERE: FileId = FileId(0);

    /// Keeps a file's text for places in it.
    pub fn register(path: &Path, text: impl Into<Arc<str>>) -> FileId {
        let mut sources = SOURCES.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        sources.push(Arc::new(Source { path: path.to_owned(), text: text.into() }));
        FileId(sources.len() as u32)
    }

    pub fn source(self) -> Arc<Source> {
        let sources = SOURCES.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        sources[self.0 as usize - 1].clone()
    }

    /// Returns a place in this file; both numbers count from 1.
    pub fn at(self, line: usize, column: usize) -> Place {
        Place { file: self.0, line: line as u32, column: column as u32 }
    }
}

impl Place {
    /// Returns whether this is nowhere.
    pub fn is_nowhere(self) -> bool {
        self.file == 0
    }

    pub fn file(self) -> Option<FileId> {
        (self.file != 0).then_some(FileId(self.file))
    }

    /// Returns the path of the file, as it was given.
    pub fn path(self) -> Option<PathBuf> {
        self.file().map(|file| file.source().path.clone())
    }

    /// Returns this place moved by so many characters within its line.
    #[must_use]
    pub fn right(self, characters: usize) -> Place {
        Place { column: self.column + characters as u32, ..self }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            Some(path) => write!(f, "{}:{}:{}", path.display(), self.line, self.column),
            None => f.write_str("(nowhere)"),
        }
    }
}

/// A mistake or a warning, and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A lowercase fragment, names in backticks.
    pub message: String,
    pub place: Place,
    /// How many characters the caret covers; zero lets it cover the word there.
    pub width: usize,
    /// What to do, on a line of its own.
    pub help: Option<String>,
    /// Further places with what they say, such as where a value was defined.
    pub related: Vec<(Place, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

impl Diagnostic {
    pub fn error(place: Place, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            place,
            width: 0,
            help: None,
            related: Vec::new(),
        }
    }

    pub fn warning(place: Place, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(place, message) }
    }

    #[must_use]
    pub fn as_warning(self) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..self }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    #[must_use]
    pub fn width(mut self, characters: usize) -> Diagnostic {
        self.width = characters;
        self
    }

    #[must_use]
    pub fn related(mut self, place: Place, says: impl Into<String>) -> Diagnostic {
        self.related.push((place, says.into()));
        self
    }

    /// Returns the mistake as it is shown: message, file, line, column, the line and a caret.
    pub fn render(&self, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(self.message.as_str());
        let main = self.place.file().map(|file| (file.source(), self.place, self.width));
        let others: Vec<(Arc<Source>, Place, &str)> = self
            .related
            .iter()
            .filter_map(|(place, says)| place.file().map(|file| (file.source(), *place, says.as_str())))
            .collect();
        let paths: Vec<String> = others.iter().map(|(source, _, _)| source.path.display().to_string()).collect();
        let main_path = main.as_ref().map(|(source, _, _)| source.path.display().to_string());
        let mut group: Group<'_> = match (&main, &main_path) {
            (Some((source, place, width)), Some(path)) => title.element(
                Snippet::source(&*source.text).path(path.as_str()).annotation(AnnotationKind::Primary.span(span(
                    &source.text,
                    *place,
                    *width,
                ))),
            ),
            (None, _) | (_, None) => Group::with_title(title),
        };
        for ((source, place, says), path) in others.iter().zip(&paths) {
            group = group.element(
                Snippet::source(&*source.text)
                    .path(path.as_str())
                    .annotation(AnnotationKind::Context.span(span(&source.text, *place, 0)).label(*says)),
            );
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

/// Returns the bytes that a caret covers.
fn span(text: &str, place: Place, width: usize) -> std::ops::Range<usize> {
    let line_start: usize = text.split_inclusive('\n').take(place.line.saturating_sub(1) as usize).map(str::len).sum();
    let line = text[line_start..].lines().next().unwrap_or("");
    let skip = place.column.saturating_sub(1) as usize;
    let start = line.char_indices().nth(skip).map_or(line.len(), |(at, _)| at);
    let rest = &line[start..];
    let word = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
    let end = match width {
        0 => rest.find(word).filter(|&at| at > 0).unwrap_or(rest.chars().next().map_or(0, char::len_utf8)),
        width => rest.char_indices().nth(width).map_or(rest.len(), |(at, _)| at),
    };
    line_start + start..line_start + start + end
}

/// Returns the candidate nearest to `name`, if one is near enough to have been meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count().min(name.chars().count()) / 4)
        // Of those as near as one another, the one that begins and ends like what was written.
        .min_by_key(|(distance, candidate)| (*distance, std::cmp::Reverse(same_at_ends(name, candidate)), *candidate))
        .map(|(_, candidate)| candidate)
}

/// Returns how much two words have in common at the front, which counts twice, and at the back.
fn same_at_ends(one: &str, other: &str) -> usize {
    let front = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let back = one.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count();
    2 * front + back
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_begins_and_ends_like_what_was_written() {
        for (written, names, meant) in [
            ("taks", ["tags", "tasks"], Some("tasks")),
            ("fil", ["fail", "file"], Some("file")),
            ("strted", ["started", "restarted"], Some("started")),
            ("nothing", ["file", "copy"], None),
        ] {
            assert_eq!(nearest(written, names), meant, "{written}");
        }
    }

    #[test]
    fn shows_file_line_column_and_a_caret() {
        let file = FileId::register(Path::new("site.yml"), "- hosts: all\n  taks: []\n");
        let shown = Diagnostic::error(file.at(2, 3), "unknown key `taks`").help("did you mean `tasks`?").render(false);
        assert_eq!(
            shown,
            "error: unknown key `taks`\n --> site.yml:2:3\n  |\n2 |   taks: []\n  |   ^^^^\n  |\n  = help: did you mean `tasks`?"
        );
    }

    #[test]
    fn a_caret_covers_whole_characters() {
        let file = FileId::register(Path::new("site.yml"), "a \u{feff}b\n\u{a0}\n");
        for (line, column) in [(1, 3), (1, 9), (2, 1)] {
            let shown = Diagnostic::error(file.at(line, column), "wrong").render(false);
            assert!(shown.contains('^'), "{shown}");
        }
    }

    #[test]
    fn suggests_only_what_is_near() {
        assert_eq!(nearest("taks", ["tasks", "hosts"]), Some("tasks"));
        assert_eq!(nearest("zebra", ["tasks", "hosts"]), None);
    }
}
