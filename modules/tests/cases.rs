//! Runs every file of `tests/cases/MODULE/*.yml`: arguments and a faked host in, changes or an error out.

mod fake;
/// The module that CONTRIBUTING.md shows how to write.
#[path = "contributing/swap.rs"]
mod swap;

/// Where the example, and what is derived for it, look within the crate.
mod decode {
    pub use kubeon_modules::{Arguments, Given, Row};
}

use std::fmt::Write as _;
use std::path::Path;

use kubeon_modules::{Change, DecodeError, Error, Exec, Host, Map, Module, Plan, arguments, spec_of};
use serde::Deserialize;
use serde_json::Value;

/// One case. Exactly one of `changes` and `error` is what must come out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    args: Map,
    #[serde(default)]
    host: fake::Fake,
    changes: Option<Vec<Change>>,
    /// A part of the error's text.
    error: Option<String>,
    /// Keys that the result must hold, with their values; other keys may be there too. One that begins with a slash is a
    /// JSON pointer, such as `/evidence/secure_boot`.
    #[serde(default)]
    result: Map,
    /// A part of a warning that must be there.
    warning: Option<String>,
}

#[test]
fn cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut count = 0;
    let mut wrong = String::new();
    for folder in sorted(&root) {
        let module = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        for path in sorted(&folder) {
            count += 1;
            if let Err(message) = check(&module, &path) {
                writeln!(wrong, "{}: {message}\n", path.strip_prefix(&root).unwrap_or(&path).display())
                    .expect("writing to a string");
            }
        }
    }
    assert!(count > 0, "no cases in {}", root.display());
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn sorted(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the cases are there")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    paths
}

fn check(module: &str, path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let spec = spec_of(module).ok_or("no such module")?;
    judge(&text, |case| match (spec.decode)(&case.args) {
        Ok(decoded) => decoded.plan(&case.host).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    })
}

/// Says how a plan differs from what a case expects of it.
fn judge(text: &str, plan: impl Fn(&Case) -> Result<Plan, String>) -> Result<(), String> {
    let case: Case = serde_yaml::from_str(text).map_err(|error| format!("the case itself: {error}"))?;
    let planned = plan(&case);
    match (planned, case.changes, case.error) {
        (Ok(plan), Some(expected), None) => {
            if plan.changes != expected {
                let shown = serde_yaml::to_string(&plan.changes).map_err(|error| error.to_string())?;
                return Err(format!("wants other changes:\n{shown}"));
            }
            let result = Value::Object(plan.result);
            for (key, value) in &case.result {
                let found = if key.starts_with('/') { result.pointer(key) } else { result.get(key) };
                if found != Some(value) {
                    return Err(format!("result `{key}` is {found:?}, not {value:?}"));
                }
            }
            match case.warning {
                Some(part) if !plan.warnings.iter().any(|warning| warning.contains(&part)) => {
                    Err(format!("no warning holds `{part}`: {:?}", plan.warnings))
                }
                _ => Ok(()),
            }
        }
        (Err(message), None, Some(part)) if message.contains(&part) => Ok(()),
        (Err(message), _, _) => Err(format!("fails: {message}")),
        (Ok(plan), None, Some(part)) => Err(format!("should fail with `{part}`, wants {:?}", plan.changes)),
        (Ok(_), _, _) => Err("a case holds either `changes` or `error`".into()),
    }
}

/// Whoever lets `nvidia_detect` return another piece of evidence shows with a case how it comes about.
#[test]
fn all_that_is_detected_of_gpus_has_a_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/nvidia_detect");
    let texts = sorted(&folder).into_iter().map(|path| std::fs::read_to_string(path).expect("a case"));
    let cases: Vec<Case> = texts.map(|text| serde_yaml::from_str(&text).expect("a case")).collect();
    let told = |key: &str, odd: &Value| cases.iter().filter_map(|case| case.result.get(key)).any(|value| value != odd);
    let spec = spec_of("nvidia_detect").expect("the module");
    let bare = (spec.decode)(&Map::new()).expect("no argument is needed").plan(&fake::Fake::default());
    let bare = Value::Object(bare.expect("a host without a GPU").result);
    let keys = |at: &str| bare.pointer(at).and_then(Value::as_object).expect("a mapping").clone();
    let mut silent = Vec::new();
    for (key, value) in keys("").into_iter().filter(|(key, _)| !matches!(key.as_str(), "evidence" | "nvidia")) {
        silent.extend((!told(&key, &value)).then_some(key));
    }
    for (key, value) in keys("/evidence") {
        let key = format!("/evidence/{key}");
        silent.extend((!told(&key, &value)).then_some(key));
    }
    assert!(silent.is_empty(), "no case shows another value than a host without a GPU has of {silent:?}");
}

#[test]
fn the_module_that_is_shown_as_an_example_is_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../CONTRIBUTING.md")).expect("the page is there");
    let plan = |case: &Case| {
        let args: Result<swap::Args, DecodeError> = arguments(&case.args);
        args.map_err(|error| error.to_string())?.plan(&case.host).map_err(|error| error.to_string())
    };
    let mut cases = 0;
    for block in page.split("\n   ```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').expect("a block has lines");
        let text: String = text.lines().map(|line| format!("{}\n", line.strip_prefix("   ").unwrap_or(line))).collect();
        if language == "rust" {
            let compiled = include_str!("contributing/swap.rs");
            assert!(text == compiled, "tests/contributing/swap.rs is not what CONTRIBUTING.md shows");
        } else {
            cases += 1;
            judge(&text, plan).unwrap_or_else(|message| panic!("{message} of\n{text}"));
        }
    }
    assert_eq!(cases, 3);
}
