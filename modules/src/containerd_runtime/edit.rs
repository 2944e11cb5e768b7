//! Changes to the text of a configuration that leave every other byte of it alone.

use serde_json::Value;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike};

use crate::host::Map;

/// Some editors put it before the first byte; containerd 1.x reads such a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A configuration file's text, parsed.
pub(super) struct Text {
    mark: bool,
    /// As it was, for a file that holds nothing but comments.
    bare: String,
    document: DocumentMut,
}

impl Text {
    /// Parses a file.
    ///
    /// # Errors
    /// Line, column and what is wrong there.
    pub(super) fn parse(text: &str) -> Result<Text, String> {
        let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let document = bare.parse::<DocumentMut>().map_err(|error| {
            let (line, column) = place(bare, error.span().map_or(0, |span| span.start));
            let first = error.message().lines().next().unwrap_or_default().to_owned();
            format!("line {line}, column {column}: {first}")
        })?;
        Ok(Text { mark: bare.len() != text.len(), bare: bare.to_owned(), document })
    }

    pub(super) fn render(&self) -> String {
        let mut text = self.document.to_string();
        let only_comments = self.bare.parse::<DocumentMut>().is_ok_and(|old| old.is_empty());
        if only_comments && !self.document.is_empty() && !self.bare.trim().is_empty() {
            // The parser takes such comments for what follows the last table; they were written as a heading.
            let mut fresh = self.document.clone();
            fresh.set_trailing("");
            let newline = if self.bare.ends_with('\n') { "" } else { "\n" };
            text = format!("{}{newline}{fresh}", self.bare);
        }
        if self.mark { format!("{BYTE_ORDER_MARK}{text}") } else { text }
    }

    /// Returns the version that the file claims; 1 when it claims none, as the daemon takes it.
    pub(super) fn version(&self) -> i64 {
        self.document.get("version").and_then(Item::as_integer).unwrap_or(1)
    }

    pub(super) fn has_version(&self) -> bool {
        self.document.contains_key("version")
    }

    pub(super) fn set_version(&mut self, version: i64) {
        set(self.document.as_table_mut(), "version", &Value::from(version));
    }

    /// Returns the names of the plugins that the file configures.
    pub(super) fn plugins(&self) -> Vec<String> {
        let plugins = self.document.get("plugins").and_then(Item::as_table_like);
        plugins.into_iter().flat_map(|table| table.iter().map(|(key, _)| key.to_owned())).collect()
    }

    /// Returns what the file itself says, below keys such as `["plugins", "cri", "containerd"]`.
    pub(super) fn get(&self, keys: &[&str]) -> Option<&Item> {
        keys.iter().try_fold(self.document.as_item(), |item, key| item.as_table_like()?.get(key))
    }

    /// Takes the CRI plugin out of `disabled_plugins`.
    pub(super) fn enable_cri(&mut self) {
        if let Some(list) = self.document.get_mut("disabled_plugins").and_then(Item::as_array_mut) {
            list.retain(|name| !name.as_str().is_some_and(|name| name.contains("cri")));
        }
    }

    /// Makes `keys` a table that holds exactly `wanted`, `options` included.
    ///
    /// # Errors
    /// The key that is no table.
    pub(super) fn put_table(&mut self, keys: &[&str], wanted: &Map) -> Result<(), String> {
        let indent = self.indent(keys);
        let fresh = self.get(keys).is_none();
        let item = reach(self.document.as_item_mut(), keys)?;
        let table = item.as_table_like_mut().ok_or_else(|| format!("`{}` is no table", keys.join(".")))?;
        let surplus: Vec<String> =
            table.iter().map(|(key, _)| key.to_owned()).filter(|key| !wanted.contains_key(key)).collect();
        for key in surplus {
            table.remove(&key);
        }
        for (key, value) in wanted {
            if !value.is_object() {
                set(table, key, value);
            }
        }
        if fresh {
            lay_out(item, &indent);
        }
        for (key, value) in wanted {
            if let Value::Object(inner) = value {
                let keys: Vec<&str> = keys.iter().copied().chain([key.as_str()]).collect();
                self.put_table(&keys, inner)?;
            }
        }
        Ok(())
    }

    /// Sets one value, in a table that is made when it is missing.
    ///
    /// # Errors
    /// The key that is no table.
    pub(super) fn put(&mut self, keys: &[&str], key: &str, value: &Value) -> Result<(), String> {
        let indent = self.indent(keys);
        let fresh = !keys.is_empty() && self.get(keys).is_none();
        let item = reach(self.document.as_item_mut(), keys)?;
        let table = item.as_table_like_mut().ok_or_else(|| format!("`{}` is no table", keys.join(".")))?;
        set(table, key, value);
        if fresh {
            lay_out(item, &indent);
        } else if let Some(table) = item.as_table_mut() {
            table.set_implicit(false);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, keys: &[&str], key: &str) {
        let found =
            keys.iter().try_fold(self.document.as_item_mut(), |item, key| item.as_table_like_mut()?.get_mut(key));
        if let Some(table) = found.and_then(Item::as_table_like_mut) {
            table.remove(key);
        }
    }

    /// Returns the blanks before the headers of a new table's siblings, or two more than before the nearest header
    /// above it, in a file that indents.
    fn indent(&self, keys: &[&str]) -> String {
        let parent = keys.split_last().and_then(|(_, parent)| self.get(parent));
        let tables = parent.and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter);
        let sibling = tables.filter_map(|(_, item)| item.as_table()).find_map(indent_of);
        let above = || (1..keys.len()).rev().find_map(|count| indent_of(self.get(&keys[..count])?.as_table()?));
        let below = || above().filter(|indent| !indent.is_empty()).map(|indent| format!("{indent}  "));
        sibling.or_else(below).unwrap_or_default()
    }
}

/// Returns the blanks before a table's header; `None` when it has no header of its own.
fn indent_of(table: &Table) -> Option<String> {
    let prefix = table.decor().prefix()?.as_str()?;
    let last = prefix.rsplit('\n').next().unwrap_or_default();
    let blank = last.chars().all(|letter| letter == ' ' || letter == '\t');
    (blank && !table.is_implicit() && !table.is_dotted()).then(|| last.to_owned())
}

/// Returns the runtimes' folder of keys for a file of this version.
pub(super) fn containerd_keys(version: i64) -> [&'static str; 3] {
    let plugin = match version {
        ..=1 => "cri",
        2 => "io.containerd.grpc.v1.cri",
        3.. => "io.containerd.cri.v1.runtime",
    };
    ["plugins", plugin, "containerd"]
}

/// Returns a text that means the same when read from `to` instead of `from`: relative imports, and an import of the
/// file itself, follow it. A text that does not parse is returned as it is: the daemon shall say what is wrong.
pub(super) fn moved(text: &str, from: &str, to: &str) -> String {
    let Ok(mut parsed) = Text::parse(text) else { return text.to_owned() };
    let Some(imports) = parsed.document.get_mut("imports").and_then(Item::as_array_mut) else {
        return text.to_owned();
    };
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut changed = false;
    for import in imports.iter_mut() {
        let Some(path) = import.as_str().map(str::to_owned) else { continue };
        let target = match () {
            () if path == from => to.to_owned(),
            () if path.starts_with('/') => continue,
            () => format!("{folder}/{path}"),
        };
        *import = target.into();
        changed = true;
    }
    if changed { parsed.render() } else { text.to_owned() }
}

/// Walks down `keys`, making tables of their parent's own style: inline in inline, dotted in dotted.
fn reach<'a>(root: &'a mut Item, keys: &[&str]) -> Result<&'a mut Item, String> {
    let mut item = root;
    for (at, key) in keys.iter().enumerate() {
        let inline = item.is_inline_table();
        let dotted = item.as_table().is_some_and(Table::is_dotted);
        let table = item.as_table_like_mut().ok_or_else(|| format!("`{}` is no table", keys[..at].join(".")))?;
        if !table.contains_key(key) {
            let new = if inline {
                Item::Value(InlineTable::new().into())
            } else {
                let mut new = Table::new();
                new.set_dotted(dotted);
                new.set_implicit(true);
                Item::Table(new)
            };
            table.insert(key, new);
        }
        item = table.get_mut(key).ok_or_else(|| format!("`{}` is no table", keys[..=at].join(".")))?;
    }
    Ok(item)
}

/// Sets a value; one that is already so keeps its own spelling, and any keeps its comment.
fn set(table: &mut dyn TableLike, key: &str, value: &Value) {
    let new = toml_of(value);
    match table.get_mut(key) {
        Some(Item::Value(old)) => {
            let same = super::view::value_of(&Item::Value(old.clone())) == *value;
            if !same {
                let decor = old.decor().clone();
                *old = new;
                *old.decor_mut() = decor;
            }
        }
        Some(_) | None => {
            table.insert(key, Item::Value(new));
        }
    }
}

fn toml_of(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, broken) => broken.unwrap_or(0.0).into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(toml_of).collect()),
        Value::Object(entries) => {
            let table: InlineTable = entries.iter().map(|(key, value)| (key.as_str(), toml_of(value))).collect();
            table.into()
        }
        Value::Null => "".into(),
    }
}

/// Gives a new table a header of its own, on a new line, indented as its siblings are.
fn lay_out(item: &mut Item, indent: &str) {
    let Some(table) = item.as_table_mut().filter(|table| !table.is_dotted()) else { return };
    table.set_implicit(false);
    table.decor_mut().set_prefix(format!("\n{indent}"));
    for (mut key, _) in table.iter_mut() {
        key.leaf_decor_mut().set_prefix(format!("{indent}  "));
    }
}

/// Returns the line and the column, from 1, of a byte.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edited(before: &str, keys: &[&str]) -> String {
        let mut text = Text::parse(before).expect("it parses");
        let wanted = json!({"runtime_type": "t", "options": {"BinaryName": "/b", "SystemdCgroup": true}});
        text.put_table(keys, wanted.as_object().expect("an object")).expect("it is a table");
        text.render()
    }

    #[test]
    fn leaves_everything_else_as_it_was() {
        let before = "# top\nversion = 2\n\n[a]\n   [a.x]  # tail\n     k = 'v' # why\n\n# about b\n[b]\nc = 1\n";
        let after = edited(before, &["a", "nvidia"]);
        let added = "\n   [a.nvidia]\n     runtime_type = \"t\"\n\n     \
            [a.nvidia.options]\n       BinaryName = \"/b\"\n       SystemdCgroup = true\n";
        assert_eq!(after, before.replace("\n\n# about b", &format!("\n{added}\n# about b")));
    }

    #[test]
    fn follows_the_style_of_the_parent() {
        let dotted = edited("a.x.k = 1\n", &["a", "nvidia"]);
        assert!(dotted.contains("a.nvidia.options.BinaryName = \"/b\""), "{dotted}");
        let inline = edited("a = { x = 1 }\n", &["a", "nvidia"]);
        assert!(inline.starts_with("a = { x = 1 , nvidia = {"), "{inline}");
    }

    #[test]
    fn keeps_a_heading_of_comments_and_a_byte_order_mark() {
        assert!(edited("# managed elsewhere\n", &["a"]).starts_with("# managed elsewhere\n"));
        assert!(edited("\u{feff}version = 2\n", &["a"]).starts_with("\u{feff}version = 2\n"));
    }

    #[test]
    fn replaces_what_is_not_wanted_and_keeps_comments() {
        let before = "[a]\nruntime_type = \"old\" # kind\nruntime_root = \"/r\"\n[a.options]\nRuntime = \"/b\"\nSystemdCgroup = true\n";
        let after = edited(before, &["a"]);
        assert_eq!(after, "[a]\nruntime_type = \"t\" # kind\n[a.options]\nSystemdCgroup = true\nBinaryName = \"/b\"\n");
    }

    #[test]
    fn moves_imports_with_the_file() {
        let text = "imports = [\"conf.d/*.toml\", \"/etc/c/config.toml\", \"/x.toml\"]\n";
        let there = moved(text, "/etc/c/config.toml", "/tmp/c.toml");
        assert!(there.contains("\"/etc/c/conf.d/*.toml\"") && there.contains("\"/tmp/c.toml\""), "{there}");
        assert_eq!(moved("a = [\n", "/a", "/b"), "a = [\n");
    }

    #[test]
    fn says_where_a_file_is_wrong() {
        let place = Text::parse("version = 2\n  x = nvidia\n").err().expect("it is refused");
        assert!(place.starts_with("line 2, column 7"), "{place}");
    }
}
