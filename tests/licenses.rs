//! Every crate that is linked in comes from cargo's own registry, under a licence that `deny.toml` allows. `cargo deny check`
//! reads the same file and looks for security advisories too, which takes a network.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Whether an SPDX expression holds with these licences: `OR` binds weaker than `AND`; `/` is an old `OR`.
fn allowed(expression: &str, licenses: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = any(&words, &mut at, licenses);
    verdict && at == words.len()
}

fn any(words: &[&str], at: &mut usize, licenses: &[String]) -> bool {
    let mut verdict = all(words, at, licenses);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= all(words, at, licenses);
    }
    verdict
}

fn all(words: &[&str], at: &mut usize, licenses: &[String]) -> bool {
    let mut verdict = one(words, at, licenses);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(words, at, licenses);
    }
    verdict
}

fn one(words: &[&str], at: &mut usize, licenses: &[String]) -> bool {
    let word = words.get(*at).copied().unwrap_or("");
    *at += 1;
    if word == "(" {
        let verdict = any(words, at, licenses);
        *at += 1;
        return verdict;
    }
    // An exception only gives more rights.
    if words.get(*at) == Some(&"WITH") {
        *at += 2;
    }
    licenses.iter().any(|license| license == word)
}

#[test]
fn expressions_are_read() {
    let mit = ["MIT".to_owned()];
    for (expression, right) in [
        ("MIT", true),
        ("MIT OR Apache-2.0", true),
        ("Apache-2.0/MIT", true),
        ("MIT AND Zlib", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
        ("Zlib AND MIT OR MIT", true),
        ("GPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(allowed(expression, &mit), right, "{expression}");
    }
}

#[test]
fn licenses_and_sources_are_allowed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let deny = std::fs::read_to_string(root.join("deny.toml")).expect("deny.toml");
    let deny: toml_edit::DocumentMut = deny.parse().expect("deny.toml is TOML");
    let list = |table: &str, key: &str| -> Vec<String> {
        let items = deny[table][key].as_array().expect("a list");
        items.iter().map(|item| item.as_str().expect("a text").to_owned()).collect()
    };
    let licenses = list("licenses", "allow");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root)
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = format!("{} {}", package["name"], package["version"]).replace('"', "");
        let license = package["license"].as_str().unwrap_or("");
        if !allowed(license, &licenses) {
            wrong.push(format!("{name}: the licence `{license}`"));
        }
        // A crate of the workspace has no source.
        if let Some(source) = package["source"].as_str()
            && !source.starts_with("registry+")
        {
            wrong.push(format!("{name}: the source `{source}`"));
        }
    }
    assert!(wrong.is_empty(), "not allowed by deny.toml:\n{}", wrong.join("\n"));
}
