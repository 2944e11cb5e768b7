//! Playbooks run whole, by the real program over local connections: each file of `tests/playbooks/` says in its first
//! comments how it is run and what it must have done.
//!
//! ```yaml
//! # run: --tags x          further arguments; several lines are several runs, one after another
//! # exit: 2                the status of the last run; 0 unless it says so
//! # log NAME: a b          the words of the file NAME that the playbook wrote
//! # sorted NAME: a b       the same, in the order of the alphabet: hosts write at the same time
//! # absent NAME            the playbook did not write NAME
//! # says: TEXT             standard output holds TEXT
//! # errs: TEXT             standard error holds TEXT
//! ```

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Case {
    runs: Vec<Vec<String>>,
    exit: i32,
    checks: Vec<Check>,
}

enum Check {
    Log { name: String, words: Vec<String>, sorted: bool },
    Absent(String),
    Says(String),
    Errs(String),
}

fn read(path: &Path) -> Case {
    let text = std::fs::read_to_string(path).expect("the case can be read");
    let mut case = Case { runs: Vec::new(), exit: 0, checks: Vec::new() };
    for line in text.lines().map_while(|line| line.strip_prefix("# ")) {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        match key.split_once(' ').unwrap_or((key, "")) {
            ("run", "") => case.runs.push(words(value)),
            ("exit", "") => case.exit = value.parse().expect("`exit` is a number"),
            ("log", name) => {
                case.checks.push(Check::Log { name: name.to_owned(), words: words(value), sorted: false });
            }
            ("sorted", name) => {
                case.checks.push(Check::Log { name: name.to_owned(), words: words(value), sorted: true });
            }
            ("absent", name) => case.checks.push(Check::Absent(name.to_owned())),
            ("says", "") => case.checks.push(Check::Says(value.to_owned())),
            ("errs", "") => case.checks.push(Check::Errs(value.to_owned())),
            _ => {}
        }
    }
    if case.runs.is_empty() {
        case.runs.push(Vec::new());
    }
    case
}

fn run(playbook: &str, arguments: &[String], out: &Path) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/playbooks");
    Command::new(env!("CARGO_BIN_EXE_kubeon-run"))
        .current_dir(folder)
        .args([playbook, "-i", "hosts"])
        .arg("-e")
        .arg(format!("out={}", out.display()))
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", out)
        .env("OUTER", "outer")
        .env("ANSIBLE_CACHE_PLUGIN", "jsonfile")
        .env("ANSIBLE_CACHE_PLUGIN_CONNECTION", out.join("facts"))
        .output()
        .expect("the program starts")
}

/// Returns what the case found wrong.
fn faults(path: &Path) -> String {
    let case = read(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let out = std::env::temp_dir().join(format!("kubeon-playbooks-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&out).expect("a temporary folder");
    let mut last = None;
    for arguments in &case.runs {
        last = Some(run(&name, arguments, &out));
    }
    let output = last.expect("a case runs at least once");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut faults = String::new();
    if output.status.code() != Some(case.exit) {
        writeln!(faults, "ended with {:?}, not {}", output.status.code(), case.exit).expect("memory");
    }
    for check in &case.checks {
        match check {
            Check::Log { name, words, sorted } => {
                let text = std::fs::read_to_string(out.join(name)).unwrap_or_default();
                let mut found: Vec<&str> = text.split_whitespace().collect();
                if *sorted {
                    found.sort_unstable();
                }
                if found != words.iter().map(String::as_str).collect::<Vec<_>>() {
                    writeln!(faults, "`{name}` holds {found:?}, not {words:?}").expect("memory");
                }
            }
            Check::Absent(name) if out.join(name).exists() => writeln!(faults, "wrote `{name}`").expect("memory"),
            Check::Absent(_) => {}
            Check::Says(text) if stdout.contains(text.as_str()) => {}
            Check::Says(text) => writeln!(faults, "stdout does not say {text:?}").expect("memory"),
            Check::Errs(text) if stderr.contains(text.as_str()) => {}
            Check::Errs(text) => writeln!(faults, "stderr does not say {text:?}").expect("memory"),
        }
    }
    std::fs::remove_dir_all(&out).expect("the folder is ours");
    if faults.is_empty() { faults } else { format!("== {name}\n{faults}-- stdout\n{stdout}\n-- stderr\n{stderr}\n") }
}

#[test]
fn playbooks_do_what_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/playbooks");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the cases' folder")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "yml"))
        .collect();
    cases.sort();
    let only = std::env::var("CASE").ok();
    let wanted = |path: &&PathBuf| only.as_ref().is_none_or(|only| path.to_string_lossy().contains(only.as_str()));
    let found: String = cases.iter().filter(wanted).map(|case| faults(case)).collect();
    assert!(found.is_empty(), "{found}");
}
