//! YAML as playbooks are written: one parser that keeps every place, under YAML 1.1's rules for plain words.

mod mapping;
mod margin;
mod node;
mod scalar;

use std::collections::HashMap;
use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use mapping::Mapping;
use margin::{Margin, OUTDENTED, QUOTED, TAB};
pub use node::{Kind, Node};

use crate::source::{Diagnostic, FileId, Place};

/// How deep nodes may be nested.
const DEPTH_LIMIT: usize = 200;
/// How many nodes aliases may stand for in one file: more is a bomb.
const ALIAS_NODE_LIMIT: usize = 200_000;

/// What a file holds.
#[derive(Debug)]
pub struct Parsed {
    pub documents: Vec<Node>,
    /// Keys given twice and the like.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a file.
///
/// # Errors
/// When it can't be read, is not UTF-8, or is not YAML.
pub fn read(path: &Path) -> Result<Parsed, Diagnostic> {
    let bytes = std::fs::read(path)
        .map_err(|error| Diagnostic::error(Place::default(), format!("read `{}`: {error}", path.display())))?;
    read_bytes(path, bytes)
}

/// Reads what a file holds.
///
/// # Errors
/// When it is not UTF-8, or is not YAML.
pub fn read_bytes(path: &Path, bytes: Vec<u8>) -> Result<Parsed, Diagnostic> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let before = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let place = FileId::register(path, text).at(before.matches('\n').count() + 1, column);
        let problem = Diagnostic::error(place, format!("read `{}`: byte {at} is not UTF-8", path.display()));
        problem.width(1).help("YAML is text: save the file as UTF-8, if it is one of yours")
    })?;
    parse(FileId::register(path, text))
}

/// Parses the text of a registered file.
///
/// # Errors
/// The first place at which it is not YAML.
pub fn parse(file: FileId) -> Result<Parsed, Diagnostic> {
    parse_as(file, &file.source().text)
}

/// Parses a text that is in no file, such as what a host returned; its places are nowhere.
///
/// # Errors
/// The first place at which it is not YAML.
pub fn parse_data(text: &str) -> Result<Parsed, Diagnostic> {
    parse_as(FileId::NOWHERE, text)
}

/// Parses a text whose places are told as those of `file`, which may show another text: a vaulted file shows none.
///
/// # Errors
/// The first place at which it is not YAML.
pub fn parse_as(file: FileId, text: &str) -> Result<Parsed, Diagnostic> {
    // A byte order mark is no content.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut margin = Margin::default();
    loop {
        let shifted = margin.shifted(text);
        let mut builder = Builder::new();
        let mut again = false;
        for event in Parser::new_from_str(&shifted) {
            match event {
                Ok((event, span)) => builder.take(event, margin.place(file, span.start))?,
                Err(error) if OUTDENTED.contains(&error.info()) && margin.widen(text, error.marker().line()) => {
                    again = true;
                    break;
                }
                Err(error) if error.info() == TAB && margin.widen_line(text, error.marker().line()) => {
                    again = true;
                    break;
                }
                Err(error) if error.info() == QUOTED && margin.widen_quoted(text, *error.marker()) => {
                    again = true;
                    break;
                }
                Err(error) => {
                    let place = margin.place(file, *error.marker());
                    return Err(explain(Diagnostic::error(place, error.info()), file, text));
                }
            }
        }
        if !again {
            return Ok(Parsed { documents: builder.documents, warnings: builder.warnings });
        }
    }
}

const UNQUOTED: &str = "a value that starts with `{{` must be quoted: \"{{ … }}\"";

/// Adds what to do to the errors that people meet most.
fn explain(error: Diagnostic, file: FileId, text: &str) -> Diagnostic {
    let line_at = |number: u32| text.lines().nth(number.saturating_sub(1) as usize).unwrap_or("");
    // The parser stops at the tab, or at the end of the line before it.
    for number in [error.place.line, error.place.line + 1] {
        let blanks = line_at(number).chars().take_while(|c| *c == ' ').count();
        if line_at(number).chars().nth(blanks) == Some('\t') && error.message.contains("tab") {
            let place = file.at(number as usize, blanks + 1);
            return Diagnostic { place, width: 1, ..error }.help("YAML is indented with blanks, never with tabs");
        }
    }
    let line = line_at(error.place.line);
    let value = line.split_once(": ").map_or(line, |(_, value)| value).trim_start();
    if value.starts_with("{{") {
        return error.help(UNQUOTED);
    }
    let first = line_at(error.place.line).chars().nth(error.place.column.saturating_sub(1) as usize);
    if let Some(first @ ('%' | '@' | '`')) = first.filter(|_| error.message.contains("unexpected character")) {
        return error.help(format!("a value that starts with `{first}` must be quoted"));
    }
    if error.message.contains("unknown anchor") {
        return error.help("a value that starts with `*` repeats what `&` names elsewhere: quote it when it is a text");
    }
    if error.message.contains("trailing content after") {
        return error.help("quote the whole value, or no part of it");
    }
    if let Some(help) = misplaced(text, error.place.line, error.place.column) {
        return error.help(help);
    }
    if value.contains(": ") && !value.starts_with(['"', '\'']) {
        return error.help("a value that holds `: ` must be quoted");
    }
    error
}

/// Returns what is wrong with a line that is indented otherwise than the one it should continue.
fn misplaced(text: &str, line: u32, column: u32) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let (this, before) = (text.lines().nth(line as usize - 1)?, text.lines().take(line as usize - 1));
    let blanks = this.len() - this.trim_start_matches(' ').len();
    if blanks + 1 != column as usize || this.trim_start().starts_with('-') {
        return None;
    }
    let above = before.filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')).last()?;
    let at = indent(above);
    (at != blanks && above.contains(':')).then(|| {
        format!("this line is indented by {blanks} blanks, and the key above it stands behind {at}: keys of one mapping stand below one another")
    })
}

/// A node that is still open.
struct Open {
    place: Place,
    anchor: usize,
    tag: Option<String>,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map(Mapping),
}

struct Builder {
    documents: Vec<Node>,
    warnings: Vec<Diagnostic>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    alias_nodes: usize,
}

impl Builder {
    fn new() -> Builder {
        Builder {
            documents: Vec::new(),
            warnings: Vec::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            alias_nodes: 0,
        }
    }

    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Diagnostic> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::Alias(anchor) => {
                let node = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| Diagnostic::error(place, "an alias inside the very node that it names"))?;
                self.alias_nodes += node.count();
                if self.alias_nodes > ALIAS_NODE_LIMIT {
                    let message = format!("aliases stand for more than {ALIAS_NODE_LIMIT} nodes");
                    return Err(Diagnostic::error(place, message));
                }
                self.add(node, 0)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let kind = scalar::kind(&text, style == ScalarStyle::Plain, tag.as_deref().map(tag_name).as_deref())
                    .map_err(|message| Diagnostic::error(place, message))?;
                self.add(Node { place, kind }, anchor)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(place, anchor, tag.as_deref(), Content::List(Vec::new()))?
            }
            Event::MappingStart(anchor, tag) => {
                self.begin(place, anchor, tag.as_deref(), Content::Map(Mapping::default()))?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
        }
        Ok(())
    }

    fn begin(&mut self, place: Place, anchor: usize, tag: Option<&Tag>, content: Content) -> Result<(), Diagnostic> {
        if self.open.len() == DEPTH_LIMIT {
            return Err(Diagnostic::error(place, format!("nested deeper than {DEPTH_LIMIT} levels")));
        }
        // A mapping as the first key of another: a template that is not quoted.
        if let (Some(Open { place: outer, content: Content::Map(mapping), .. }), Content::Map(_)) =
            (self.open.last(), &content)
            && mapping.expects_key()
            && (outer.line, outer.column + 1) == (place.line, place.column)
        {
            let message = "a template that is not quoted is read as a mapping";
            return Err(Diagnostic::error(*outer, message).help(UNQUOTED));
        }
        self.open.push(Open { place, anchor, tag: tag.map(tag_name), content });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Diagnostic> {
        let Open { place, anchor, tag, content } = self.open.pop().expect("every end has its start");
        let kind = match content {
            Content::List(items) => Kind::List(items),
            Content::Map(mapping) => Kind::Map(mapping.finish()?),
        };
        let mut node = Node { place, kind };
        if tag.as_deref() == Some("!unsafe") {
            node.make_unsafe();
        }
        self.add(node, anchor)
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.documents.push(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map(mapping)) => self.warnings.extend(mapping.take(node)),
        }
        Ok(())
    }
}

fn tag_name(tag: &Tag) -> String {
    if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { format!("{}{}", tag.handle, tag.suffix) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Parsed, Diagnostic> {
        parse(FileId::register(Path::new("test.yml"), text))
    }

    fn json(text: &str) -> String {
        parsed(text).expect("valid YAML").documents[0].value().to_json().to_string()
    }

    #[test]
    fn words_mean_what_yaml_1_1_says() {
        assert_eq!(json("[yes, No, on, true, y]"), r#"[true,false,true,true,"y"]"#);
        assert_eq!(
            json("[0644, 0o644, 1_000, 0x1F, 1:30, 12e3, 1.5, ~, '5', -3]"),
            r#"[420,"0o644",1000,31,90,"12e3",1.5,null,"5",-3]"#
        );
    }

    #[test]
    fn merges_and_aliases() {
        assert_eq!(json("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}"), r#"{"a":{"x":1,"y":2},"b":{"y":3,"x":1}}"#);
    }

    #[test]
    fn lines_of_quoted_texts_may_begin_anywhere() {
        let text = "a:\n  b: \"one\n\ttwo \\\n  \t three \\\" x\nfour\n\"\n  c: 'x\n y'\n  d: [\"p\n\tq\"]\nnext: 1\n";
        assert_eq!(json(text), r#"{"a":{"b":"one two three \" x four ","c":"x y","d":["p q"]},"next":1}"#);
    }

    #[test]
    fn brackets_may_close_at_the_margin() {
        let text = "a:\n  b: {\n\"c\": [1,\n2],\n    d: 'x # }',\n  } # }\n  e: [\n]\nf: {\n}\n";
        assert_eq!(json(text), r#"{"a":{"b":{"c":[1,2],"d":"x # }"},"e":[]},"f":{}}"#);
        let node = parsed(text).expect("valid YAML").documents.remove(0);
        let c = node.get("a").and_then(|a| a.get("b")).and_then(|b| b.get("c")).expect("is there");
        assert_eq!((c.place.line, c.place.column), (3, 6));
        assert!(parsed("a:\n  b: [1,\n2\nc: 3\n").is_err());
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let below = format!("*a{}, ", level - 1).repeat(9);
            text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        assert!(parsed(&text).expect_err("a bomb").message.contains("aliases"));
    }

    #[test]
    fn a_key_given_twice_is_told() {
        let parsed = parsed("a: 1\nb: 2\na: 3\n").expect("valid YAML");
        assert_eq!(parsed.warnings.len(), 1);
        assert_eq!(parsed.documents[0].value().to_json().to_string(), r#"{"b":2,"a":3}"#);
    }

    #[test]
    fn an_unquoted_template_is_explained() {
        let error = parsed("- name: x\n  value: {{ y }} z\n").expect_err("not YAML");
        assert!(error.help.is_some_and(|help| help.contains("quoted")), "{}", error.message);
    }
}
