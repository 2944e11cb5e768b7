//! The generated pages and schemas under `docs/` are those of this program. `UPDATE_DOCS=1 cargo test --test docs`
//! writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kubeon_run::{action, doc};

/// What must lie under `docs/`, by path.
fn generated() -> BTreeMap<String, String> {
    let pretty = |schema| serde_json::to_string_pretty(&schema).expect("a value is JSON") + "\n";
    let mut files = BTreeMap::from([
        ("modules/README.md".to_owned(), doc::index()),
        ("schema/modules.json".to_owned(), pretty(doc::module_schemas())),
        ("schema/playbook.json".to_owned(), pretty(doc::playbook_schema())),
    ]);
    for name in action::documented() {
        files.insert(format!("modules/{name}.md"), doc::page(name).expect("what is documented has a page"));
    }
    files
}

#[test]
fn generated_pages_are_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let generated = generated();
    let mut stale = Vec::new();
    for folder in ["modules", "schema"] {
        for entry in fs::read_dir(docs.join(folder)).into_iter().flatten() {
            let name = entry.expect("a readable folder").file_name().to_string_lossy().into_owned();
            let name = format!("{folder}/{name}");
            if !generated.contains_key(&name) {
                stale.push(name);
            }
        }
    }
    let left_over = stale.len();
    stale.extend(
        generated
            .iter()
            .filter(|(name, text)| fs::read_to_string(docs.join(name)).ok().as_ref() != Some(*text))
            .map(|(name, _)| name.clone()),
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        for name in &stale[..left_over] {
            fs::remove_file(docs.join(name)).expect("a file of a folder that is ours");
        }
        for name in &stale[left_over..] {
            let path = docs.join(name);
            fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder");
            fs::write(path, &generated[name]).expect("a writable file");
        }
        return;
    }
    assert!(stale.is_empty(), "stale under docs/, write them with UPDATE_DOCS=1 cargo test --test docs: {stale:?}");
}

/// Whoever reads a page learns what each argument is for.
#[test]
fn every_page_has_a_sentence_and_an_example() {
    let schemas = doc::module_schemas();
    let mut poor = Vec::new();
    for (name, schema) in schemas.as_object().expect("by name") {
        let about = schema["description"].as_str().unwrap_or("");
        let sentence = about.lines().next().is_some_and(|line| line.ends_with('.'));
        if !sentence || !about.contains("```yaml") {
            poor.push(name.clone());
        }
    }
    assert!(poor.is_empty(), "no sentence or no example in the doc comment of Args: {poor:?}");
}
