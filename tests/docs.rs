//! The generated pages and schemas under `docs/` are those of this program; `UPDATE_DOCS=1 cargo test --test docs`
//! writes them. What pages show, generated or not, is taken by the program.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::program::Project;
use kubeon_run::{action, doc};

/// What must lie under `docs/`, by path.
fn generated() -> BTreeMap<String, String> {
    let pretty = |schema| serde_json::to_string_pretty(&schema).expect("a value is JSON") + "\n";
    let mut files = BTreeMap::from([
        ("doctor.md".to_owned(), kubeon_run::doctor::page::page()),
        ("lint.md".to_owned(), kubeon_run::lint::page::page()),
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

/// The lists of what of Ansible is there are those of this program, and of the check of ansible-core's suite.
#[test]
fn the_lists_of_what_is_compatible_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("docs/compatibility.md");
    let page = fs::read_to_string(&path).expect("a page");
    let whole = fs::read_to_string(root.join("tests/compat/whole")).expect("the list of targets");
    let whole: Vec<String> =
        whole.lines().filter(|line| !line.starts_with('#')).map(|name| format!("`{name}`")).collect();
    let suite = format!("{} targets: {}.\n", whole.len(), whole.join(", "));
    let mut current = page.clone();
    for (name, text) in doc::compatibility().into_iter().chain([("suite", suite)]) {
        let (open, close) = (format!("<!-- {name}: generated -->\n"), format!("<!-- end of {name} -->"));
        let (before, rest) = current.split_once(&open).unwrap_or_else(|| panic!("no `{open}` in the page"));
        let (_, after) = rest.split_once(&close).unwrap_or_else(|| panic!("no `{close}` in the page"));
        current = format!("{before}{open}\n{text}\n{close}{after}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, current).expect("a writable page");
        return;
    }
    assert!(page == current, "docs/compatibility.md is stale: UPDATE_DOCS=1 cargo test --test docs writes its lists");
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

/// The pages that people read, by their path from the root.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
    for folder in ["docs", "docs/modules"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
                pages.push(Path::new(folder).join(name));
            }
        }
    }
    pages.sort();
    pages
}

fn text_of(page: &Path) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).expect("a page")
}

/// The YAML that a page shows.
fn yaml_of(page: &Path) -> Vec<String> {
    let text = text_of(page);
    let blocks = text.split("\n```yaml\n").skip(1);
    blocks.map(|rest| rest.split("```").next().expect("a first part").to_owned()).collect()
}

/// The files that examples name, which belong to whoever copies the example.
const NAMED: [(&str, &str); 8] = [
    ("kubelet.yaml", "kind: KubeletConfiguration\n"),
    ("deploy.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1hZGVGb3JUaGVFeGFtcGxlT25seUFuZE5vdGhpbmdF\n"),
    ("nvidia.asc", "a key\n"),
    ("nvidia-device-plugin.yml.j2", "kind: DaemonSet\n"),
    ("nginx.conf.j2", "user www-data;\n"),
    ("files/check-disks.sh", "#!/bin/sh\n"),
    ("gpu.yml", "- hosts: all\n  tasks: []\n"),
    ("roles/gpu_node/tasks/check.yml", "- ping:\n"),
];

/// Every playbook, task and inventory that a page shows passes `kubeon-run check`; every pod is one that gets a GPU.
#[test]
fn examples_are_right() {
    let project = Project::new("node ansible_connection=local\n");
    for (name, text) in NAMED {
        project.write(name, text);
    }
    let mut playbooks = Vec::new();
    for page in pages() {
        for (number, block) in yaml_of(&page).into_iter().enumerate() {
            let first = block.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
            // Named for the page, so that a mistake tells it.
            let name = format!("{}-{number}.yml", page.display().to_string().replace(['/', '.'], "-"));
            if first.starts_with("all:") {
                project.write(&name, &block);
                told_nothing(&project, &["inventory", "--list", "-i", &name]);
            } else if first.starts_with("apiVersion:") {
                asks_for_whole_gpus(&page, &block);
            } else if first.starts_with("- hosts:") || block.contains("\n  hosts:") || first.contains("import_playbook")
            {
                project.write(&name, &block);
                playbooks.push(name);
            } else if first.starts_with("- ") {
                let tasks: String = block.lines().map(|line| format!("    {line}\n")).collect();
                project.write(&name, &format!("- hosts: all\n  tasks:\n{tasks}"));
                playbooks.push(name);
            } else {
                // A module's case, which CONTRIBUTING.md shows, says so in its first line.
                assert!(
                    page.ends_with("CONTRIBUTING.md") && first.starts_with("args:"),
                    "what is this? {page:?}: {block}"
                );
            }
        }
    }
    assert!(playbooks.len() > action::documented().len() / 2, "the examples were not found: {playbooks:?}");
    let mut arguments = vec!["check", "-i", "hosts"];
    arguments.extend(playbooks.iter().map(String::as_str));
    told_nothing(&project, &arguments);
}

/// Runs the program, which must end well and have nothing to complain of.
#[track_caller]
fn told_nothing(project: &Project, arguments: &[&str]) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_kubeon-run"))
        .env("ANSIBLE_CONFIG", "/dev/null")
        .current_dir(project.folder.path())
        .args(arguments)
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{arguments:?}: {told}");
}

/// Kubernetes gives a GPU only whole, and only where what is asked for is what is allowed.
fn asks_for_whole_gpus(page: &Path, manifest: &str) {
    let pod: serde_json::Value = serde_yaml::from_str(manifest).expect("YAML");
    for container in pod["spec"]["containers"].as_array().expect("containers") {
        let resources = &container["resources"];
        let gpus = &resources["limits"]["nvidia.com/gpu"];
        assert!(gpus.as_u64().is_some_and(|gpus| gpus > 0), "{page:?}: {container}");
        assert!(resources["requests"]["nvidia.com/gpu"].is_null() || resources["requests"]["nvidia.com/gpu"] == *gpus);
    }
}

/// The commands that pages show are ones that the command line takes.
#[test]
fn commands_are_taken() {
    let project = Project::new("");
    let mut found = 0;
    for page in pages() {
        for line in text_of(&page).lines().filter(|line| line.starts_with("    kubeon-run ")) {
            let line = line.split(" #").next().expect("a first part").split(['|', '>']).next().expect("a first part");
            let mut words: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
            words.push("--help".to_owned());
            // What comes before `--help` is parsed before it is heeded.
            told_nothing(&project, &words.iter().map(String::as_str).collect::<Vec<_>>());
            found += 1;
        }
    }
    assert!(found > 10, "only {found} commands were found");
}

/// The quick start's first run, as it is written there: look, do, and nothing is left to do.
#[test]
fn the_quick_start_s_first_run_holds() {
    let project = Project::new("");
    let page = text_of(Path::new("docs/quick-start.md"));
    let said: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("    ")).take(4).collect();
    assert_eq!(
        said,
        [
            "kubeon-run init hello",
            "cd hello",
            "kubeon-run site.yml -i localhost, -c local --check --diff",
            "kubeon-run site.yml -i localhost, -c local",
        ]
    );
    let run = |line: &str, folder: &Path| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command.env("HOME", project.folder.path()).env("ANSIBLE_CONFIG", "/dev/null").env_remove("XDG_STATE_HOME");
        command.current_dir(folder).args(line.split_whitespace().skip(1));
        let ran = project.wait(command);
        assert!(ran.code == 0 && ran.stderr.is_empty(), "{line}: {ran:?}");
        ran.stdout
    };
    let (hello, written) = (project.path("hello"), project.path("hello.txt"));
    run(said[0], project.folder.path());
    assert!(run(said[2], &hello).contains("+hello\n"));
    assert!(!written.exists());
    run(said[3], &hello);
    assert_eq!(fs::read_to_string(&written).expect("what was said"), "hello\n");
    assert!(run(said[3], &hello).contains("changed=0"));
    // Nothing is overwritten.
    assert_eq!(run(said[0], project.folder.path()).matches("kept ").count(), 3);
}

/// The GPU guide tells of each choice that the playbook offers.
#[test]
fn every_variable_of_the_gpu_playbook_is_documented() {
    let guide = text_of(Path::new("docs/gpu.md"));
    let defaults = text_of(Path::new("playbooks/roles/gpu/defaults/main.yml"));
    let name = |line: &str| line.split_once(':').map(|(name, _)| name.to_owned());
    let names = defaults.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase())).filter_map(name);
    let silent: Vec<String> = names.filter(|name| !guide.contains(&format!("`{name}`"))).collect();
    assert!(silent.is_empty(), "not in docs/gpu.md: {silent:?}");
}

/// The files in which the GPU playbook's modules refuse something.
const REFUSING: [&str; 9] = [
    "apt_repo",
    "containerd_runtime",
    "k8s_apply",
    "k8s_label",
    "nvidia_detect",
    "repository_key",
    "rpm",
    "rpm_pin",
    "rpm_repo",
];

/// Returns the strings that a piece of Rust holds, each with where it begins, without the line ends that are escaped.
fn strings_of(code: &str) -> Vec<(usize, String)> {
    let mut strings = Vec::new();
    let mut letters = code.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' => {
                // A letter such as '"', and no lifetime.
                let rest = &code[at + 1..];
                let ends = if rest.starts_with('\\') {
                    rest[2..].find('\'').map(|end| end + 2)
                } else {
                    rest.chars().nth(1).filter(|end| *end == '\'').and(rest.find('\''))
                };
                if let Some(end) = ends {
                    while letters.next_if(|(next, _)| *next <= at + 1 + end).is_some() {}
                }
            }
            'r' if code[at + 1..].trim_start_matches('#').starts_with('"') => {
                let fence = code[at + 1..].chars().take_while(|letter| *letter == '#').count();
                let from = at + 1 + fence + 1;
                let close = format!("\"{}", "#".repeat(fence));
                let end = code[from..].find(&close).map_or(code.len(), |end| from + end);
                strings.push((at, code[from..end].to_owned()));
                while letters.next_if(|(next, _)| *next < end + close.len()).is_some() {}
            }
            '"' => {
                let mut text = String::new();
                while let Some((_, letter)) = letters.next() {
                    match letter {
                        '"' => break,
                        '\\' => match letters.next() {
                            Some((_, '\n')) => while letters.next_if(|(_, blank)| blank.is_whitespace()).is_some() {},
                            Some((_, 'n')) => text.push('\n'),
                            Some((_, other)) => text.push(other),
                            None => {}
                        },
                        other => text.push(other),
                    }
                }
                strings.push((at, text));
            }
            _ => {}
        }
    }
    strings
}

/// Returns the longest part of a message that is always the same.
fn constant_part(message: &str, open: char, close: char) -> String {
    let parts = message.split(open).flat_map(|part| {
        match part.split_once(close) {
            Some((_, rest)) => rest,
            None => part,
        }
        .split(close)
    });
    parts.map(str::trim).max_by_key(|part| part.len()).unwrap_or_default().to_owned()
}

/// Returns a constant part of each message with which a file of Rust refuses something. What it only hands on is too
/// short to be one.
fn refusals_of(code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
    let strings = strings_of(&code);
    let mut found = Vec::new();
    for sign in ["refused(", "ErrorKind::Refused", "Err(format!(", "let mut message = format!("] {
        for (at, _) in code.match_indices(sign).filter(|(at, _)| !code[..*at].ends_with("fn ")) {
            let end = code[at..].find(";\n").map_or(code.len(), |end| at + end);
            let ahead = strings.iter().find(|(place, _)| (at..end).contains(place));
            // `let message = format!(…); Err(refused(message))`
            let before = || strings.iter().rev().find(|(place, _)| *place < at && at - place < 600);
            let message = ahead.or_else(|| before().filter(|_| code[at..end].contains("message")));
            found.extend(message.map(|(_, message)| constant_part(message, '{', '}')));
        }
    }
    // A host whose GPUs can't be used is left alone, with a reason.
    let begins = [
        "Judged::new(\"broken\",",
        "Judged::new(\n            \"hardware_no_driver\",",
        "Judged::new(\"hardware_no_driver\",",
        "return broken(",
        "let state =",
        "let reason =",
    ];
    for begin in begins.iter().filter(|_| code.contains("struct Judged")) {
        for (at, _) in code.match_indices(begin) {
            let rest = &code[at + begin.len()..];
            let message = rest.trim_start().trim_start_matches("format!(").trim_start();
            let place = code.len() - message.len();
            let string = strings.iter().find(|(from, _)| *from == place);
            found.extend(string.map(|(_, reason)| constant_part(reason, '{', '}')));
        }
    }
    found.retain(|part| part.len() >= 9 && part != "the key from" && part != "; nothing was changed");
    found
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    says: String,
    row: String,
}

/// Whoever lets a module of the GPU playbook, or the playbook itself, refuse something tells users what to do then.
#[test]
fn every_refusal_of_the_gpu_playbook_has_its_fix_in_the_guide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("tests/gpu-refusals.yml")).expect("the list of refusals");
    let known: Vec<Refusal> = serde_yaml::from_str(&text).expect("the list of refusals");
    let guide = text_of(Path::new("docs/gpu.md"));
    let without: Vec<&str> = known
        .iter()
        .filter(|one| !guide.contains(&format!("\n| {} | ", one.row)))
        .map(|one| one.row.as_str())
        .collect();
    assert!(without.is_empty(), "docs/gpu.md has no row {without:#?}");

    let mut said: Vec<(String, String)> = Vec::new();
    for module in REFUSING {
        let folder = root.join("modules/src").join(module);
        let mut files = vec![folder.with_extension("rs")];
        files.extend(fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.expect("a file").path()));
        for file in files.into_iter().filter(|file| file.is_file()) {
            let code = fs::read_to_string(&file).expect("a source file");
            said.extend(refusals_of(&code).into_iter().map(|part| (file.display().to_string(), part)));
        }
    }
    assert!(said.len() > 50, "only {} refusals are found in the modules", said.len());
    for entry in fs::read_dir(root.join("playbooks/roles/gpu/tasks")).expect("the tasks") {
        let path = entry.expect("a file").path();
        let tasks: serde_json::Value =
            serde_yaml::from_str(&fs::read_to_string(&path).expect("tasks")).expect("tasks are YAML");
        let mut names = Vec::new();
        failing_tasks(&tasks, &mut names);
        said.extend(names.into_iter().map(|name| (path.display().to_string(), name)));
    }
    let strange: Vec<_> = said.iter().filter(|(_, part)| !known.iter().any(|one| one.says == *part)).collect();
    assert!(strange.is_empty(), "not in tests/gpu-refusals.yml, with a row of docs/gpu.md: {strange:#?}");
    let gone: Vec<&str> =
        known.iter().map(|one| one.says.as_str()).filter(|says| !said.iter().any(|(_, part)| part == says)).collect();
    assert!(gone.is_empty(), "nothing says so any more: {gone:#?}");
}

/// Collects the names of tasks that fail a host for a reason of their own.
fn failing_tasks(tasks: &serde_json::Value, found: &mut Vec<String>) {
    match tasks {
        serde_json::Value::Array(items) => items.iter().for_each(|item| failing_tasks(item, found)),
        serde_json::Value::Object(fields) => {
            let message = fields.get("fail").and_then(|fail| fail["msg"].as_str());
            if message.is_some_and(|message| message != "{{ gpu_story }}") {
                found.push(fields["name"].as_str().expect("every task has a name").to_owned());
            }
            fields.values().for_each(|value| failing_tasks(value, found));
        }
        _ => {}
    }
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = text_of(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            let there = page.parent().unwrap_or(Path::new("")).join(path);
            let outside = path.is_empty() || path.contains("://") || path.contains(' ');
            if !outside && !Path::new(env!("CARGO_MANIFEST_DIR")).join(there).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
}

/// Files and folders that are named as they are, or from a folder of the sources.
#[test]
fn files_of_the_architecture_are_there() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(home.join("ARCHITECTURE.md")).expect("read");
    let names = text.split('`').skip(1).step_by(2);
    let is_path = |name: &&str| name.contains('/') && !name.starts_with('/') && !name.contains(['*', ' ']);
    let named: Vec<&str> = names.filter(is_path).collect();
    assert!(named.len() > 60, "{named:?}");
    let is_there = |name: &&str| ["", "runner", "modules/src"].iter().any(|from| home.join(from).join(name).exists());
    let gone: Vec<&str> = named.into_iter().filter(|name| !is_there(name)).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

/// `cargo run`, which the README begins with, has to know which of the programs is meant.
#[test]
fn cargo_run_runs_the_program() {
    let metadata = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let own = packages.iter().find(|package| package["name"] == "kubeon-run").expect("the package");
    assert_eq!(own["default_run"], "kubeon-run");
}
