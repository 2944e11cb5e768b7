//! What the doctor makes of what it sees and of what it is told: every file below `tests/doctor/`.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::program::Project;
use kubeon_modules::evidence::Evidence;
use kubeon_run::doctor::{Finding, Subject, cluster, host, table, text};
use serde::Deserialize;
use serde_json::Value;

/// One case: a change to what is in order, or a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    /// A merge patch of the healthy host.
    #[serde(default)]
    change: Value,
    /// A merge patch of the healthy cluster.
    #[serde(default)]
    cluster: Value,
    /// What somebody has pasted.
    text: Option<String>,
    /// Public reports of it, as `owner/repository#number`; each is named by a diagnosis that comes out.
    #[serde(default)]
    reports: Vec<String>,
    /// Every diagnosis that must come out, and no other.
    found: BTreeSet<String>,
    /// The first broken link.
    first: Option<String>,
}

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Changes a document: a mapping changes some keys, of a list those that are numbers; null takes an entry away.
fn merge(document: &mut Value, change: &Value) {
    let Value::Object(changes) = change else {
        *document = change.clone();
        return;
    };
    if let Value::Array(items) = document
        && changes.keys().all(|key| key.parse::<usize>().is_ok())
    {
        for (key, value) in changes {
            let at: usize = key.parse().expect("a number");
            items.resize(items.len().max(at + 1), Value::Null);
            merge(&mut items[at], value);
        }
        items.retain(|item| !item.is_null());
        return;
    }
    if !document.is_object() {
        *document = Value::Object(Default::default());
    }
    let entries = document.as_object_mut().expect("an object");
    for (key, value) in changes {
        merge(entries.entry(key.clone()).or_insert(Value::Null), value);
    }
    entries.retain(|key, value| !value.is_null() || !REMOVED.iter().any(|removed| key.starts_with(removed)));
}

/// Entries of mappings that are lists of names: what is null there is not there.
const REMOVED: [&str; 3] = ["nvidia", "libnvidia", "feature."];

fn ids(findings: &[Finding]) -> BTreeSet<String> {
    findings.iter().map(|finding| finding.diagnosis.id.to_owned()).collect()
}

fn changed<T: for<'de> Deserialize<'de>>(healthy: &str, change: &Value) -> T {
    let mut evidence: Value = read(healthy);
    if !change.is_null() {
        merge(&mut evidence, change);
    }
    serde_json::from_value(evidence).expect("what the module returns")
}

/// Judges every case, each by what `examine` makes of it, and says which are judged wrong.
fn judge(file: &str, examine: impl Fn(&Case) -> Vec<Subject>) {
    let mut wrong = Vec::new();
    for case in read::<Vec<Case>>(file) {
        let subjects = examine(&case);
        let found: BTreeSet<String> = subjects.iter().flat_map(|subject| ids(&subject.findings)).collect();
        let first = subjects[0].broken().map(|link| link.name().to_owned());
        if found != case.found || case.first.is_some() && first != case.first {
            wrong.push(format!("{}: {found:?}, first {first:?}", case.about));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_a_host_shows_is_judged() {
    judge("hosts.yml", |case| vec![host::examine("gpu1", &changed("healthy-host.yml", &case.change))]);
}

#[test]
fn what_a_cluster_shows_is_judged() {
    judge("clusters.yml", |case| {
        let seen: Evidence = changed("healthy-host.yml", &case.change);
        let mut hosts = vec![(host::examine("gpu1", &seen), Some(seen))];
        let more = cluster::examine(&mut hosts, &changed("healthy-cluster.yml", &case.cluster));
        hosts.into_iter().map(|(subject, _)| subject).chain(more).collect()
    });
}

/// A node that is no host of the inventory is judged by what the cluster knows.
#[test]
fn nodes_that_are_no_hosts_are_judged_too() {
    let judged = |change: &str| {
        let change: Value = serde_yaml::from_str(change).expect("a change");
        cluster::examine(&mut [], &changed("healthy-cluster.yml", &change))
    };
    let subjects = judged("{}");
    assert_eq!((subjects.len(), subjects[0].findings.len(), subjects[0].is_host), (1, 0, false));
    let subjects = judged("{nodes: {\"0\": {taints: [{key: dedicated, value: ml, effect: NoSchedule}]}}, pods: []}");
    assert_eq!(ids(&subjects[0].findings), BTreeSet::from(["taint-not-tolerated".to_owned()]));
    assert!(
        judged(
            "{nodes: {\"0\": {labels: {nvidia.com/gpu.present: null}, capacity: {nvidia.com/gpu: null}}}, pods: []}"
        )
        .is_empty()
    );
}

#[test]
fn what_is_pasted_is_recognised() {
    let mut wrong = Vec::new();
    for case in read::<Vec<Case>>("texts.yml") {
        let found = ids(&text::explain(case.text.as_deref().expect("a text")));
        if found != case.found {
            wrong.push(format!("{}: {found:?}", case.about));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whoever adds a diagnosis shows with a case that it is found.
#[test]
fn every_diagnosis_is_found_by_a_case() {
    let mut cases = read::<Vec<Case>>("hosts.yml");
    cases.extend(read::<Vec<Case>>("clusters.yml"));
    cases.extend(read::<Vec<Case>>("texts.yml"));
    let shown: BTreeSet<String> = cases.into_iter().flat_map(|case| case.found).collect();
    let elsewhere = ["host-unreachable", "host-not-examined"];
    let poor: Vec<&str> =
        table::all().map(|one| one.id).filter(|id| !shown.contains(*id) && !elsewhere.contains(id)).collect();
    assert!(poor.is_empty(), "no case in tests/doctor finds {poor:?}");
    let mut ids = BTreeSet::new();
    assert!(table::all().all(|one| ids.insert(one.id)), "two diagnoses have one id");
}

fn reports(cases: &[Case]) -> BTreeSet<&str> {
    cases.iter().flat_map(|case| &case.reports).map(String::as_str).collect()
}

/// Whatever was reported in public, and is said to be known, is recognised by a case that names the report.
#[test]
fn every_known_report_is_recognised_by_a_case() {
    let mut cases = read::<Vec<Case>>("hosts.yml");
    cases.extend(read::<Vec<Case>>("clusters.yml"));
    cases.extend(read::<Vec<Case>>("texts.yml"));
    let shown = reports(&cases);
    let known: BTreeSet<String> = read("reports.yml");
    let missing: Vec<&String> = known.iter().filter(|report| !shown.contains(report.as_str())).collect();
    assert!(missing.is_empty(), "no case in tests/doctor names {missing:?}");
    for case in &cases {
        let named: BTreeSet<&str> =
            table::all().filter(|one| case.found.contains(one.id)).flat_map(|one| one.issues.iter().copied()).collect();
        let strange: Vec<&String> = case.reports.iter().filter(|report| !named.contains(report.as_str())).collect();
        assert!(strange.is_empty(), "{}: no diagnosis that it finds names {strange:?}", case.about);
    }
}

/// Reports of that page whose texts could not be had: nothing says what they tell, so that no case can.
const NOT_READ: [&str; 10] = ["8", "68", "126", "188", "222", "555", "1080", "1213", "1328", "1430"];

/// The list of what is known holds whatever the page on how GPUs fail lists, where that page is at hand.
#[test]
fn the_known_reports_are_those_of_the_page_on_failures() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/NVIDIA.md");
    let Ok(text) = std::fs::read_to_string(page) else { return };
    let listed = text.split("## Failures to recognise and explain").nth(1).expect("the page has the list");
    let listed = listed.split("## ").next().unwrap_or_default();
    let known: BTreeSet<String> = read("reports.yml");
    let numbers: BTreeSet<&str> = known.iter().filter_map(|report| report.split('#').nth(1)).collect();
    let words = listed.split(|letter: char| letter.is_whitespace() || letter == ',');
    let of_page =
        words.filter_map(|word| word.split_once('#')).map(|(_, number)| number.trim_end_matches(['.', ';', ')', ':']));
    let missing: Vec<&str> = of_page.filter(|number| !numbers.contains(number) && !NOT_READ.contains(number)).collect();
    assert!(missing.is_empty(), "tests/doctor/reports.yml does not hold {missing:?}");
}

/// Every message by itself leads to the diagnosis that has it.
#[test]
fn every_message_of_the_table_is_recognised() {
    let mut wrong = Vec::new();
    for one in table::all() {
        for message in one.says {
            let found = ids(&text::explain(&message.replace('*', " something ")));
            if !found.contains(one.id) {
                wrong.push(format!("`{message}` of {} leads to {found:?}", one.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_pasted_message_is_explained() {
    let project = Project::new("");
    project.write("message", "Failed to create pod sandbox: no runtime for \"nvidia\" is configured\n");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command.current_dir(project.folder.path()).arg("doctor").args(arguments).env("HOME", project.folder.path());
        project.wait(command)
    };
    let ran = run(&["--text", "message"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    for part in
        ["containerd-without-nvidia-runtime", "owner   the host's administrator", "--tags containerd", "issues/730"]
    {
        assert!(ran.stdout.contains(part), "no {part} in:\n{}", ran.stdout);
    }
    let json: Value = serde_json::from_str(&run(&["--text", "message", "--output", "json"]).stdout).expect("JSON");
    assert_eq!(json["subjects"][0]["findings"][0]["id"], "containerd-without-nvidia-runtime");
    let sarif: Value = serde_json::from_str(&run(&["--text", "message", "--output", "sarif"]).stdout).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(result["level"], "error");
    let rule = result["ruleIndex"].as_u64().expect("an index") as usize;
    assert_eq!(sarif["runs"][0]["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    project.write("message", "all is well\n");
    let ran = run(&["--text", "message"]);
    assert_eq!((ran.code, ran.stdout.contains("nothing in it is known")), (0, true), "{ran:?}");
}

/// Without an inventory this machine is looked at, whatever it is, and nothing is needed for that.
#[test]
fn this_machine_is_looked_at_without_an_inventory() {
    let project = Project::new("");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command.current_dir(project.folder.path()).arg("doctor").args(arguments).env("HOME", project.folder.path());
        command.env("ANSIBLE_CONFIG", "/dev/null").env_remove("ANSIBLE_INVENTORY").env_remove("KUBECONFIG");
        project.wait(command)
    };
    let ran = run(&["--no-cluster", "--output", "json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let subject = &report["subjects"][0];
    assert_eq!((subject["name"].as_str(), subject["kind"].as_str()), (Some("localhost"), Some("host")), "{report:#}");
    assert_eq!(subject["links"]["connection"]["state"], "fine", "{report:#}");
    assert!(!subject["findings"].as_array().expect("findings").is_empty() || subject["has_gpu"] == true, "{report:#}");
    assert_eq!(report["code"], ran.code);
}

/// The inventory says how the cluster is reached, as it does for gpu.yml; the command line says otherwise.
#[test]
fn the_cluster_is_reached_as_the_inventory_says() {
    let project = Project::new("gpu1 ansible_connection=local\n");
    let said_with = |variables: &str, arguments: &[&str]| {
        project.write("group_vars/all.yml", variables);
        let mut command = project.command(&[]);
        command = {
            let mut doctor = std::process::Command::new(command.get_program());
            doctor.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            doctor.current_dir(project.folder.path()).args(["doctor", "-i", "hosts", "--output", "json"]);
            doctor
        };
        command.args(arguments).env_remove("KUBECONFIG");
        let ran = project.wait(command);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let cluster = report["subjects"].as_array().and_then(|all| all.iter().find(|one| one["kind"] == "cluster"));
        cluster.map(|cluster| cluster["findings"][0].to_string()).unwrap_or_default()
    };
    let by_inventory = format!("folder: {}\nkubeconfig: \"{{{{ folder }}}}/usual\"\n", project.folder.path().display());
    let said = said_with(&by_inventory, &[]);
    assert!(said.contains("/usual`"), "{said}");
    let given = format!("kubeconfig={}", project.path("other").display());
    for arguments in [&["-e", given.as_str()][..], &["--kubeconfig", "other"]] {
        let said = said_with(&by_inventory, arguments);
        assert!(said.contains("other`"), "{arguments:?}: {said}");
    }
    // The control plane is asked before any kubeconfig, and is no host that is looked at.
    project.write(
        "hosts",
        &format!("gpu1 ansible_connection=local\ncp ansible_host=127.0.0.1 ansible_port={}\n", closed_port()),
    );
    let said = said_with(&format!("{by_inventory}gpu_control_plane: cp\n"), &["-l", "gpu1"]);
    assert!(said.contains("read `/etc/kubernetes/admin.conf` of `cp`"), "{said}");
    assert_eq!(said_with("gpu_control_plane: cp\n", &["--no-cluster", "-l", "gpu1"]), "");
}

/// Returns a port at which nothing listens.
fn closed_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").port()
}

/// What the standard (SARIF 2.1.0, OASIS, section 3) requires of the objects that a report is made of: their properties,
/// and those which must be there.
const SARIF: &[(&str, &[&str], &[&str])] = &[
    ("log", &["$schema", "version", "runs"], &["version", "runs"]),
    ("run", &["tool", "invocations", "results"], &["tool"]),
    ("tool", &["driver"], &["driver"]),
    ("driver", &["name", "version", "rules", "informationUri"], &["name"]),
    (
        "rule",
        &["id", "shortDescription", "fullDescription", "help", "helpUri", "defaultConfiguration", "properties"],
        &["id"],
    ),
    ("invocation", &["executionSuccessful", "exitCode"], &["executionSuccessful"]),
    ("result", &["ruleId", "ruleIndex", "level", "message", "locations", "properties"], &["message"]),
    ("message", &["text"], &["text"]),
    ("configuration", &["level"], &[]),
    ("location", &["logicalLocations", "physicalLocation"], &[]),
    ("logical", &["name", "fullyQualifiedName", "kind"], &[]),
    ("physical", &["artifactLocation"], &["artifactLocation"]),
    ("artifact", &["uri"], &[]),
];

/// Asserts that a value is an object of a sort, and returns it.
#[track_caller]
fn sort<'a>(value: &'a Value, name: &str) -> &'a Value {
    let (_, known, required) = SARIF.iter().find(|(sort, ..)| *sort == name).expect("a sort");
    let object = value.as_object().unwrap_or_else(|| panic!("{name} is {value}"));
    let strange: Vec<&String> = object.keys().filter(|key| !known.contains(&key.as_str())).collect();
    assert!(strange.is_empty(), "{name} has {strange:?}");
    assert!(required.iter().all(|key| object.contains_key(*key)), "{name} lacks one of {required:?}: {value}");
    value
}

/// Asserts that a value is an array, unique where the standard says so, and returns its items.
#[track_caller]
fn unique<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let items = value.as_array().unwrap_or_else(|| panic!("{name} is {value}"));
    for (at, item) in items.iter().enumerate() {
        assert!(!items[..at].contains(item), "{name} holds twice {item}");
    }
    items
}

#[test]
fn a_sarif_report_keeps_to_the_standard() {
    use kubeon_run::doctor::{Report, show};
    let mut hosts: Vec<Subject> = read::<Vec<Case>>("hosts.yml")
        .into_iter()
        .enumerate()
        .map(|(at, case)| host::examine(&format!("gpu {at}"), &changed("healthy-host.yml", &case.change)))
        .collect();
    hosts.push(host::unexamined("gone", true, "no route to host"));
    let report = Report { subjects: hosts, remarks: vec!["a remark".to_owned()] };
    let look = show::Look {
        color: true,
        all: true,
        playbook: "playbooks/gpu.yml".to_owned(),
        reach: vec!["-i".to_owned(), "hosts".to_owned()],
        of_text: false,
        columns: 80,
    };
    let sarif = show::sarif(&report, &look);
    let text = |value: &Value| assert!(sort(value, "message")["text"].as_str().is_some_and(|text| !text.is_empty()));
    let level =
        |value: &Value| assert!(["none", "note", "warning", "error"].contains(&value.as_str().expect("a level")));
    let uri = |value: &Value| {
        let uri = value.as_str().expect("a URI");
        let fine = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
        assert!(uri.contains("://") && uri.chars().all(fine), "no URI: {uri}");
    };
    assert_eq!(sort(&sarif, "log")["version"], "2.1.0");
    uri(&sarif["$schema"]);
    let run = sort(&unique(&sarif["runs"], "runs")[0], "run");
    let driver = sort(&sort(&run["tool"], "tool")["driver"], "driver");
    let rules = unique(&driver["rules"], "rules");
    for rule in rules {
        sort(rule, "rule");
        ["shortDescription", "fullDescription", "help"].iter().for_each(|key| text(&rule[*key]));
        level(&sort(&rule["defaultConfiguration"], "configuration")["level"]);
        rule.get("helpUri").into_iter().for_each(uri);
        assert!(rule["properties"].is_object());
    }
    for invocation in unique(&run["invocations"], "invocations") {
        assert!(sort(invocation, "invocation")["executionSuccessful"].is_boolean());
        assert!(invocation["exitCode"].is_i64());
    }
    let results = run["results"].as_array().expect("results");
    assert!(results.len() > 20, "{}", results.len());
    let mut files = 0;
    for result in results {
        text(&sort(result, "result")["message"]);
        level(&result["level"]);
        let rule = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[rule]["id"], result["ruleId"]);
        assert!(result["properties"].is_object());
        for location in unique(&result["locations"], "locations") {
            for logical in unique(&sort(location, "location")["logicalLocations"], "logicalLocations") {
                assert!(sort(logical, "logical").as_object().is_some_and(|all| all.values().all(Value::is_string)));
            }
            if let Some(physical) = location.get("physicalLocation") {
                files += 1;
                uri(&sort(&sort(physical, "physical")["artifactLocation"], "artifact")["uri"]);
            }
        }
    }
    assert!(files > 0, "no finding names a file");
}

#[test]
fn arguments_that_make_no_sense_together_are_refused() {
    let project = Project::new("");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command.arg("doctor").args(arguments);
        project.wait(command)
    };
    for arguments in [&["--text", "x", "--fix"][..], &["--check"], &["--no-cluster", "--kubeconfig", "x"]] {
        assert_eq!(run(arguments).code, 2, "{arguments:?}");
    }
    let ran = run(&["--text", "/nowhere/at/all"]);
    assert!(ran.code == 1 && ran.stderr.contains("read `/nowhere/at/all`"), "{ran:?}");
}
