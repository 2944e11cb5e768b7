//! `template`: renders a file here and lets the module `copy` put it in place.

use md5::Digest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::transfer::{Parcel, decrypted, read};
use super::variables::find;
use super::{Failure, text};
use crate::execute::{ItemRun, truth};
use crate::template::{FileOptions, about_file};
use crate::value::{Map, Value};

/// Render a file with a host's variables and keep it there.
///
/// Beside these arguments it takes those of `copy`: `owner`, `group`, `mode`, `backup`, `validate`, `force`, `follow`.
///
/// ```yaml
/// - template:
///     src: motd.j2
///     dest: /etc/motd
///     mode: "0644"
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The template, looked for in `templates/` of the role and beside the playbook.
    #[serde(rename = "src")]
    _src: String,
    /// The file on the host. Also as `path`.
    #[serde(rename = "dest", alias = "path")]
    _dest: String,
    /// How a statement begins; `{%` when absent.
    #[serde(rename = "block_start_string")]
    _block_start_string: Option<serde_json::Value>,
    /// How a statement ends; `%}` when absent.
    #[serde(rename = "block_end_string")]
    _block_end_string: Option<serde_json::Value>,
    /// How an expression begins; `{{` when absent.
    #[serde(rename = "variable_start_string")]
    _variable_start_string: Option<serde_json::Value>,
    /// How an expression ends; `}}` when absent.
    #[serde(rename = "variable_end_string")]
    _variable_end_string: Option<serde_json::Value>,
    /// How a comment begins; `{#` when absent.
    #[serde(rename = "comment_start_string")]
    _comment_start_string: Option<serde_json::Value>,
    /// How a comment ends; `#}` when absent.
    #[serde(rename = "comment_end_string")]
    _comment_end_string: Option<serde_json::Value>,
    /// Whether the newline after a statement goes; it does when absent.
    #[serde(rename = "trim_blocks")]
    _trim_blocks: Option<serde_json::Value>,
    /// Whether blanks before a statement go; they stay when absent.
    #[serde(rename = "lstrip_blocks")]
    _lstrip_blocks: Option<serde_json::Value>,
    /// What ends lines: `\n`, `\r` or `\r\n`.
    #[serde(rename = "newline_sequence")]
    _newline_sequence: Option<serde_json::Value>,
    /// Only `utf-8`.
    #[serde(rename = "output_encoding")]
    _output_encoding: Option<serde_json::Value>,
}

/// The arguments that say how to render; the rest goes on to `copy`.
const OWN: &[&str] = &[
    "block_start_string",
    "block_end_string",
    "variable_start_string",
    "variable_end_string",
    "comment_start_string",
    "comment_end_string",
    "trim_blocks",
    "lstrip_blocks",
    "newline_sequence",
    "output_encoding",
];

pub(super) fn template(run: &ItemRun<'_>, _: Args, args: &Map) -> Result<Map, Failure> {
    let name = text(args, "src").unwrap_or_default();
    let path = find(run, &name, "templates")?;
    let source = String::from_utf8(decrypted(run, &path, read(&path)?)?)
        .map_err(|_| Failure::message(format!("template `{}` is not UTF-8", path.display())))?;
    let word = |key: &str| text(args, key);
    let newline = word("newline_sequence").map(|text| match text.as_str() {
        "\\r\\n" | "\r\n" => "\r\n".to_owned(),
        "\\r" | "\r" => "\r".to_owned(),
        _ => "\n".to_owned(),
    });
    if word("output_encoding").is_some_and(|encoding| !encoding.eq_ignore_ascii_case("utf-8")) {
        return Err(Failure::message("`output_encoding` other than utf-8 is not supported"));
    }
    let usual = FileOptions::default();
    let options = FileOptions {
        trim_blocks: args.get("trim_blocks").is_none_or(truth),
        lstrip_blocks: args.get("lstrip_blocks").is_some_and(truth),
        newline_sequence: newline.unwrap_or(usual.newline_sequence),
        block_start: word("block_start_string").unwrap_or(usual.block_start),
        block_end: word("block_end_string").unwrap_or(usual.block_end),
        variable_start: word("variable_start_string").unwrap_or(usual.variable_start),
        variable_end: word("variable_end_string").unwrap_or(usual.variable_end),
        comment_start: word("comment_start_string").unwrap_or(usual.comment_start),
        comment_end: word("comment_end_string").unwrap_or(usual.comment_end),
        ..FileOptions::default()
    };
    let dest = args.get("dest").cloned().unwrap_or(Value::Null);
    let names = about_file(&run.templar, &name, &path)?;
    let templar = run.templar.with(names.into_iter().chain([("template_destpath".to_owned(), dest)]));
    let rendered = templar.file(&source, &path, options)?;
    let mut parcel = Parcel::default();
    let mut copy = args.clone();
    for key in OWN.iter().chain(&["src"]) {
        copy.remove(key);
    }
    let rendered = rendered.into_bytes();
    let md5sum: String = md5::Md5::digest(&rendered).iter().map(|byte| format!("{byte:02x}")).collect();
    copy.insert("content", parcel.content(rendered));
    copy.insert("_original_basename", path.file_name().unwrap_or_default().to_string_lossy().trim_end_matches(".j2"));
    let mut result = parcel.send(run, "copy", &copy)?;
    result.insert("md5sum", md5sum);
    result.insert("src", path.display().to_string());
    Ok(result)
}
