//! Pages and schemas of modules, made from the types that are their arguments.

mod compatibility;

use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::action;
use crate::playbook::Keyword;

pub use compatibility::compatibility;

/// Returns the list of modules and actions, each with its first sentence.
pub fn list() -> String {
    let mut text = String::new();
    for name in action::documented() {
        text.push_str(&format!("{name:<22} {}\n", first_sentence(name)));
    }
    text
}

/// Returns the list in Markdown, each name a link to its page.
pub fn index() -> String {
    let mut text = "# Modules\n\nWhat a task can call. `kubeon-run doc NAME` shows the same pages.\n\n".to_owned();
    text.push_str("| name | |\n|---|---|\n");
    for name in action::documented() {
        text.push_str(&format!("| [`{name}`]({name}.md) | {} |\n", first_sentence(name).replace('|', "\\|")));
    }
    text
}

/// Returns the list as JSON: first sentences by names.
pub fn list_json() -> Value {
    action::documented()
        .into_iter()
        .map(|name| (name.to_owned(), Value::from(first_sentence(name))))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns a page as JSON, in the shape that ansible-doc gives; `None` when there is none of that name.
pub fn page_json(name: &str) -> Option<Value> {
    let name = action::canonical(name)?;
    let schema = action::schema(name)?.to_value();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut options = Map::new();
    for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if key.starts_with('_') && key != "_raw_params" {
            continue;
        }
        let mut option = json!({
            "description": [description(property)],
            "type": type_of(property, &schema).replace('`', ""),
            "required": required.contains(&key.as_str()),
        });
        if let Some(default) = property.get("default").filter(|default| !default.is_null()) {
            option["default"] = default.clone();
        }
        options.insert(key.clone(), option);
    }
    let (about, example) = description(&schema).split_once("```yaml\n").unwrap_or((description(&schema), ""));
    let paragraphs: Vec<&str> = about.split("\n\n").map(str::trim).filter(|text| !text.is_empty()).collect();
    Some(json!({
        "doc": {
            "module": name,
            "plugin_name": name,
            "short_description": first_sentence(name),
            "description": paragraphs,
            "options": options,
        },
        "examples": example.split("```").next().unwrap_or_default(),
    }))
}

fn first_sentence(name: &str) -> String {
    let schema = action::schema(name).map(Schema::to_value).unwrap_or_default();
    description(&schema).lines().next().unwrap_or("").to_owned()
}

fn description(schema: &Value) -> &str {
    schema.get("description").and_then(Value::as_str).unwrap_or("")
}

/// Returns the page in Markdown of a module or an action; `None` when there is none of that name.
pub fn page(name: &str) -> Option<String> {
    let name = action::canonical(name)?;
    let schema = action::schema(name)?.to_value();
    let mut text = format!("# {name}\n\n{}\n\n", description(&schema).trim());
    let others: Vec<String> = action::other_names(name).map(|other| format!("`{other}`")).collect();
    if !others.is_empty() {
        text.push_str(&format!("Other names: {}.\n\n", others.join(", ")));
    }
    let arguments = arguments(&schema);
    if arguments.is_empty() {
        text.push_str("It takes no arguments.\n");
    } else {
        text.push_str(&format!("| argument | type | default | meaning |\n|---|---|---|---|\n{arguments}"));
    }
    Some(text)
}

/// The rows of a page's table.
fn arguments(schema: &Value) -> String {
    let mut rows = String::new();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if key.starts_with('_') && key != "_raw_params" {
            continue;
        }
        let shown = if key == "_raw_params" { "(free text)".to_owned() } else { format!("`{key}`") };
        let default = match property.get("default") {
            Some(Value::Null) | None if required.contains(&key.as_str()) => "**required**".to_owned(),
            Some(Value::Null) | None => String::new(),
            Some(Value::String(text)) if text.is_empty() => String::new(),
            Some(Value::String(text)) => format!("`{}`", text.escape_debug()),
            Some(Value::Array(items)) if items.is_empty() => String::new(),
            Some(value) => format!("`{value}`"),
        };
        let meaning = description(property).replace('\n', " ").replace('|', "\\|");
        let kind = type_of(property, schema).replace('|', "\\|");
        rows.push_str(&format!("| {shown} | {kind} | {default} | {meaning} |\n"));
    }
    rows
}

fn type_of(property: &Value, root: &Value) -> String {
    if let Some(reference) = property.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or("");
        if let Some(target) = root.get("$defs").and_then(|defs| defs.get(name)) {
            return type_of(target, root);
        }
    }
    if let Some(words) = property.get("enum").and_then(Value::as_array) {
        return words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(variants) = property.get(key).and_then(Value::as_array) {
            let mut kinds: Vec<String> = variants
                .iter()
                .filter(|variant| variant.get("type").and_then(Value::as_str) != Some("null"))
                .map(|variant| match variant.get("const").and_then(Value::as_str) {
                    Some(word) => format!("`{word}`"),
                    None => type_of(variant, root),
                })
                .collect();
            kinds.dedup();
            return kinds.join(", ");
        }
    }
    match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// Returns the JSON schemas of all modules and actions, by name.
pub fn module_schemas() -> Value {
    let schema = |name: &&str| Some(((*name).to_owned(), action::schema(name)?.to_value()));
    Value::Object(action::documented().iter().filter_map(schema).collect())
}

/// Returns the JSON schema of a playbook. Values may be templates, so that types are told but not forced.
pub fn playbook_schema() -> Value {
    use crate::playbook::Where;
    let keywords = |place: Where| -> Map<String, Value> {
        Keyword::ALL
            .iter()
            .filter(|keyword| keyword.places().includes(place))
            .map(|keyword| (keyword.name().to_owned(), json!({})))
            .collect()
    };
    let mut task = keywords(Where::TASK);
    for key in ["vars", "loop", "loop_control", "notify", "listen", "args", "action", "local_action"] {
        task.insert(key.to_owned(), json!({}));
    }
    for name in action::names() {
        let about =
            action::canonical(name).and_then(action::schema).map(|schema| description(&schema.to_value()).to_owned());
        for written in [name.to_owned(), format!("ansible.builtin.{name}")] {
            task.insert(written, json!({ "description": about.as_deref().unwrap_or("") }));
        }
    }
    let mut block = keywords(Where::BLOCK);
    for section in ["block", "rescue", "always"] {
        block.insert(section.to_owned(), json!({"$ref": "#/$defs/tasks"}));
    }
    block.insert("vars".to_owned(), json!({"type": "object"}));
    let mut play = keywords(Where::PLAY);
    for section in ["pre_tasks", "tasks", "post_tasks", "handlers"] {
        play.insert(section.to_owned(), json!({"$ref": "#/$defs/tasks"}));
    }
    for key in ["hosts", "vars", "vars_files", "vars_prompt", "roles"] {
        play.insert(key.to_owned(), json!({}));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kubeon-run playbook",
        "type": "array",
        "items": {"anyOf": [
            {"type": "object", "properties": play, "required": ["hosts"], "additionalProperties": false},
            {"type": "object", "required": ["import_playbook"]},
        ]},
        "$defs": {
            "tasks": {"type": ["array", "null"], "items": {"anyOf": [{"$ref": "#/$defs/task"}, {"$ref": "#/$defs/block"}]}},
            "task": {
                "type": "object",
                "properties": task,
                "patternProperties": {"^with_": {}},
                "additionalProperties": false,
            },
            "block": {"type": "object", "properties": block, "required": ["block"], "additionalProperties": false},
        },
    })
}
