//! Template files as they are read from disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, RwLock};

use super::error::TemplateError;
use crate::source::FileId;
use crate::value::Str;

/// A file is registered once for each of its contents, however many hosts use it.
static KNOWN: LazyLock<RwLock<HashMap<PathBuf, Str>>> = LazyLock::new(RwLock::default);

/// Returns a text with places in its file.
pub(super) fn registered(path: &Path, text: &str) -> Str {
    if let Some(known) = KNOWN.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(path)
        && known.as_str() == text
    {
        return known.clone();
    }
    let file = FileId::register(path, text);
    let text = Str::template(text, file.at(1, 1));
    KNOWN.write().unwrap_or_else(std::sync::PoisonError::into_inner).insert(path.to_owned(), text.clone());
    text
}

/// Reads a template.
pub(super) fn read(path: &Path) -> Result<Str, String> {
    let text = std::fs::read(path).map_err(|error| format!("read `{}`: {error}", path.display()))?;
    let text = String::from_utf8(text).map_err(|_| format!("`{}` is not UTF-8", path.display()))?;
    Ok(registered(path, &text))
}

/// How a template file is rendered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileOptions {
    pub block_start: String,
    pub block_end: String,
    pub variable_start: String,
    pub variable_end: String,
    pub comment_start: String,
    pub comment_end: String,
    /// Empty for none.
    pub line_statement_prefix: String,
    /// Empty for none.
    pub line_comment_prefix: String,
    pub trim_blocks: bool,
    pub lstrip_blocks: bool,
    /// Whether the newline that ends the template is rendered like any other. Either way the result ends with at least as
    /// many newlines as the template.
    pub keep_trailing_newline: bool,
    /// What ends each line of the result: `\n`, `\r` or `\r\n`.
    pub newline_sequence: String,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        let own = str::to_owned;
        FileOptions {
            block_start: own("{%"),
            block_end: own("%}"),
            variable_start: own("{{"),
            variable_end: own("}}"),
            comment_start: own("{#"),
            comment_end: own("#}"),
            line_statement_prefix: String::new(),
            line_comment_prefix: String::new(),
            trim_blocks: true,
            lstrip_blocks: false,
            keep_trailing_newline: false,
            newline_sequence: own("\n"),
        }
    }
}

const HEADER: &str = "#jinja2:";

impl FileOptions {
    pub(super) fn syntax(&self) -> Result<minijinja::syntax::SyntaxConfig, String> {
        let mut builder = minijinja::syntax::SyntaxConfig::builder();
        builder
            .block_delimiters(self.block_start.clone(), self.block_end.clone())
            .variable_delimiters(self.variable_start.clone(), self.variable_end.clone())
            .comment_delimiters(self.comment_start.clone(), self.comment_end.clone())
            .line_statement_prefix(self.line_statement_prefix.clone())
            .line_comment_prefix(self.line_comment_prefix.clone())
            .trim_blocks(self.trim_blocks)
            .lstrip_blocks(self.lstrip_blocks)
            .keep_trailing_newline(self.keep_trailing_newline);
        builder.build().map_err(|error| format!("the template's delimiters: {error}"))
    }

    /// Takes the options that a `#jinja2:` line at the top sets; returns the length of that line, its end included.
    pub(super) fn take_header(&mut self, text: &Str) -> Result<usize, TemplateError> {
        let Some(rest) = text.as_str().strip_prefix(HEADER) else { return Ok(0) };
        let line = rest.split_inclusive('\n').next().unwrap_or("");
        for setting in line.trim().split(',').filter(|setting| !setting.trim().is_empty()) {
            let fault = |message: String| TemplateError::new(text.place, format!("`#jinja2:` line: {message}"));
            let (name, value) =
                setting.split_once(':').ok_or_else(|| fault(format!("`{}` is no `name: value`", setting.trim())))?;
            let value = value.trim();
            let unquoted = value.trim_matches(['\'', '"']);
            let flag = || match unquoted {
                "True" | "true" | "yes" | "1" => Ok(true),
                "False" | "false" | "no" | "0" => Ok(false),
                other => Err(fault(format!("`{other}` is no boolean"))),
            };
            let string = || unquoted.replace("\\n", "\n").replace("\\r", "\r");
            match name.trim() {
                "block_start_string" => self.block_start = string(),
                "block_end_string" => self.block_end = string(),
                "variable_start_string" => self.variable_start = string(),
                "variable_end_string" => self.variable_end = string(),
                "comment_start_string" => self.comment_start = string(),
                "comment_end_string" => self.comment_end = string(),
                "line_statement_prefix" => self.line_statement_prefix = string(),
                "line_comment_prefix" => self.line_comment_prefix = string(),
                "newline_sequence" => self.newline_sequence = string(),
                "trim_blocks" => self.trim_blocks = flag()?,
                "lstrip_blocks" => self.lstrip_blocks = flag()?,
                "keep_trailing_newline" => self.keep_trailing_newline = flag()?,
                other => return Err(fault(format!("no setting named `{other}`"))),
            }
        }
        Ok(HEADER.len() + line.len())
    }
}
