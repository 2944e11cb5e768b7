//! Runs every file of `tests/cases/MODULE/*.yml`: arguments and a faked host in, changes or an error out.

mod fake;

use std::fmt::Write as _;
use std::path::Path;

use kubeon_modules::{Change, Map, spec_of};
use serde::Deserialize;

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
    /// Keys that the result must hold, with their values; other keys may be there too.
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
    let case: Case = serde_yaml::from_str(&text).map_err(|error| format!("the case itself: {error}"))?;
    let spec = spec_of(module).ok_or("no such module")?;
    let planned = match (spec.decode)(&case.args) {
        Ok(decoded) => decoded.plan(&case.host).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match (planned, case.changes, case.error) {
        (Ok(plan), Some(expected), None) => {
            if plan.changes != expected {
                let shown = serde_yaml::to_string(&plan.changes).map_err(|error| error.to_string())?;
                return Err(format!("wants other changes:\n{shown}"));
            }
            for (key, value) in &case.result {
                if plan.result.get(key) != Some(value) {
                    return Err(format!("result `{key}` is {:?}, not {value:?}", plan.result.get(key)));
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
