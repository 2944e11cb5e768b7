//! Shows every rule what it looks at.

use super::files::FileKind;
use super::task::entry;
use super::{Check, Found, Meant, Rule, Scalar, Task, rules};
use crate::yaml::{Kind, Node};

/// How deep blocks may be nested here; deeper ones are not looked at.
const DEPTH_LIMIT: usize = 100;
/// Modules whose arguments hold objects of Kubernetes.
const APPLIERS: &[(&str, &[&str])] =
    &[("k8s", &["definition", "resource_definition"]), ("k8s_apply", &["definition", "definitions", "manifest"])];

struct Walk<'w> {
    wanted: &'w dyn Fn(&Rule) -> bool,
    found: &'w mut Found,
}

pub(super) fn document(node: &Node, kind: FileKind, wanted: &dyn Fn(&Rule) -> bool, found: &mut Found) {
    let mut walk = Walk { wanted, found };
    match kind {
        FileKind::Playbook => node.items().unwrap_or_default().iter().for_each(|play| walk.play(play)),
        FileKind::Tasks { handlers } => walk.tasks(node, handlers, &[]),
        FileKind::Manifest => walk.manifest(node),
        FileKind::Variables | FileKind::Other => walk.scalars(node, None, Meant::Unknown, None),
    }
}

impl Walk<'_> {
    fn each(&mut self, run: impl Fn(Check, &mut Found)) {
        for rule in rules::all().filter(|rule| (self.wanted)(rule)) {
            self.found.rule = rule;
            run(rule.check, self.found);
        }
    }

    fn play(&mut self, play: &Node) {
        self.each(|check, found| {
            if let Check::Play(check) = check {
                check(play, found);
            }
        });
        for (key, value) in play.entries() {
            match key.as_str() {
                Some("tasks" | "pre_tasks" | "post_tasks") => self.tasks(value, false, &[play]),
                Some("handlers") => self.tasks(value, true, &[play]),
                Some(name) => self.scalars(value, Some(name), meant_of_keyword(name), None),
                None => {}
            }
        }
    }

    fn tasks(&mut self, list: &Node, handlers: bool, parents: &[&Node]) {
        if parents.len() > DEPTH_LIMIT {
            return;
        }
        for node in list.items().unwrap_or_default() {
            if node.get("block").is_none() {
                self.task(node, handlers, parents);
                continue;
            }
            let inner: Vec<&Node> = parents.iter().copied().chain([node]).collect();
            for (key, value) in node.entries() {
                match key.as_str() {
                    Some("block" | "rescue" | "always") => self.tasks(value, handlers, &inner),
                    Some(name) => self.scalars(value, Some(name), meant_of_keyword(name), None),
                    None => {}
                }
            }
        }
    }

    fn task(&mut self, node: &Node, handlers: bool, parents: &[&Node]) {
        let task = Task::new(node, handlers, parents);
        self.each(|check, found| {
            if let Check::Task(check) = check {
                check(&task, found);
            }
        });
        let call = task.call.as_ref();
        let schema = call.and_then(|call| crate::action::schema(crate::action::canonical(&call.name)?));
        let schema = schema.map(|schema| schema.to_value()).unwrap_or_default();
        for (key, value) in node.entries() {
            let Some(name) = key.as_str() else { continue };
            let is_call = call.is_some_and(|call| call.key == key);
            if !is_call && name != "args" {
                self.scalars(value, Some(name), meant_of_keyword(name), None);
                continue;
            }
            for (key, argument) in value.entries() {
                let name = key.as_str();
                let meant = name.map_or(Meant::Unknown, |name| meant_of_argument(&schema["properties"][name], name));
                self.scalars(argument, name, meant, None);
            }
        }
        for (module, arguments) in APPLIERS {
            let Some(call) = task.calls(&[module]) else { continue };
            for object in arguments.iter().filter_map(|argument| call.arg(argument)) {
                match object.items() {
                    Some(objects) => objects.iter().for_each(|object| self.objects(object)),
                    None => self.objects(object),
                }
            }
        }
    }

    fn objects(&mut self, object: &Node) {
        self.each(|check, found| {
            if let Check::Manifest(check) = check {
                check(object, found);
            }
        });
    }

    fn manifest(&mut self, object: &Node) {
        self.objects(object);
        let texts = |node: &Node, name: &str| node.get("metadata").and_then(|metadata| metadata.get(name)).is_some();
        let data = matches!(object.get("kind").and_then(Node::as_str), Some("ConfigMap" | "Secret"));
        for (key, value) in object.entries() {
            let name = key.as_str();
            match name {
                Some("data" | "stringData") if data => self.scalars(value, name, Meant::Text, None),
                Some("metadata") if texts(object, "annotations") || texts(object, "labels") => {
                    for (key, value) in value.entries() {
                        let text = matches!(key.as_str(), Some("annotations" | "labels"));
                        self.scalars(value, key.as_str(), if text { Meant::Text } else { Meant::Unknown }, None);
                    }
                }
                _ => self.scalars(value, name, Meant::Unknown, None),
            }
        }
    }

    fn scalars(&mut self, node: &Node, key: Option<&str>, meant: Meant, siblings: Option<&[Node]>) {
        match &node.kind {
            Kind::List(items) => {
                for item in items {
                    self.scalars(item, key, meant, Some(items));
                }
            }
            Kind::Map(entries) => {
                // An environment variable of a container.
                let is_variable = entry(node, "name").is_some() && entries.len() == 2;
                for (name, value) in entries {
                    let name = name.as_str();
                    let inner = match name {
                        Some("value") if is_variable && key == Some("env") => Meant::Text,
                        Some("annotations" | "labels" | "nodeSelector" | "matchLabels")
                            if matches!(value.kind, Kind::Map(_)) =>
                        {
                            Meant::Text
                        }
                        _ => meant,
                    };
                    self.scalars(value, name, inner, None);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Str { .. } | Kind::Vault(_) => {
                let scalar = Scalar { node, key, meant, siblings };
                self.each(|check, found| {
                    if let Check::Scalar(check) = check {
                        check(&scalar, found);
                    }
                });
            }
        }
    }
}

fn meant_of_keyword(name: &str) -> Meant {
    match name {
        "environment" | "name" | "register" | "tags" | "become_user" | "remote_user" => Meant::Text,
        _ => Meant::Unknown,
    }
}

/// Returns what an argument is to be: a text alone, by the schema of its module.
fn meant_of_argument(schema: &serde_json::Value, name: &str) -> Meant {
    if name.ends_with("mode") {
        return Meant::Mode;
    }
    let kinds: Vec<&str> = match &schema["type"] {
        serde_json::Value::String(kind) => vec![kind],
        serde_json::Value::Array(kinds) => kinds.iter().filter_map(serde_json::Value::as_str).collect(),
        _ => Vec::new(),
    };
    let text = kinds.contains(&"string") && kinds.iter().all(|kind| matches!(*kind, "string" | "null"));
    if text { Meant::Text } else { Meant::Unknown }
}
