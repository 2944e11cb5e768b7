//! `validate_argument_spec`: a role's arguments against the options of its `meta/argument_specs.yml`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Failure;
use crate::execute::ItemRun;
use crate::value::{Map, Value};

/// Check variables against a specification of options.
///
/// A role with `meta/argument_specs.yml` is checked so by itself.
///
/// ```yaml
/// - validate_argument_spec:
///     argument_spec:
///       port: {type: int, required: true}
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Names of options and what they must be: `type`, `required`, `choices`, `elements`, `options`.
    #[serde(rename = "argument_spec")]
    _argument_spec: serde_json::Value,
    /// Values that count before the variables of the same names.
    #[serde(default, rename = "provided_arguments")]
    _provided_arguments: serde_json::Value,
    /// What is checked, for the result.
    #[serde(default, rename = "validate_args_context")]
    _validate_args_context: serde_json::Value,
}

pub(super) fn validate(run: &ItemRun<'_>, _: Args, args: &Map) -> Result<Map, Failure> {
    let Some(Value::Map(spec)) = args.get("argument_spec") else {
        return Err(Failure::message("`argument_spec` must be a mapping of option names to what they must be"));
    };
    let mut given = Map::new();
    for name in spec.keys() {
        let name = name.to_string();
        if let Some(value) = run.templar.variable(&name) {
            given.insert(name, run.templar.value(&value)?);
        }
    }
    if let Some(Value::Map(provided)) = args.get("provided_arguments") {
        given.extend((**provided).clone());
    }
    let mut errors = Vec::new();
    check(spec, &given, &[], &mut errors);
    let mut result = Map::new();
    result.insert("changed", false);
    result.insert(
        "validate_args_context",
        args.get("validate_args_context").cloned().unwrap_or_else(|| Value::map(Map::new())),
    );
    if errors.is_empty() {
        result.insert("msg", "The arg spec validation passed");
        return Ok(result);
    }
    result.insert("failed", true);
    result.insert("msg", format!("Validation of arguments failed:\n{}", errors.join("\n")));
    result.insert("argument_spec_data", Value::Map(spec.clone()));
    result.insert("argument_errors", Value::list(errors.into_iter().map(Value::from).collect()));
    Err(Failure::Failed(Box::new(result)))
}

/// Adds what is wrong with `given`; `context` names the options that lead to it.
fn check(spec: &Map, given: &Map, context: &[String], errors: &mut Vec<String>) {
    let given = without_aliases(spec, given);
    let found_in = match context {
        [] => String::new(),
        _ => format!(" found in {}", context.join(" -> ")),
    };
    if !context.is_empty() {
        unsupported(spec, &given, context, errors);
    }
    let flag = |option: &Value, key: &str| option.get(key).is_some_and(crate::execute::truth);
    let mut missing: Vec<String> = spec
        .iter()
        .filter(|(name, option)| flag(option, "required") && given.get_key(name).is_none())
        .map(|(name, _)| name.to_string())
        .collect();
    if !missing.is_empty() {
        missing.sort();
        errors.push(format!("missing required arguments: {}{found_in}", missing.join(", ")));
    }
    for (name, option) in spec {
        let Some(value) = given.get_key(name) else { continue };
        let no_default = option.get("default").is_none_or(|default| *default == Value::Null);
        if *value == Value::Null && !flag(option, "required") && no_default {
            continue;
        }
        let kind = option.get("type").map_or_else(|| "str".to_owned(), Value::to_string);
        let within = if context.is_empty() { String::new() } else { format!(" found in '{}'.", context.join(" -> ")) };
        match converted(value, &kind) {
            Err(why) => errors.push(format!(
                "argument '{name}' is of type {}{within} and we were unable to convert to {kind}: {why}",
                python_type(value)
            )),
            Ok(value) => {
                elements(name, option, &value, errors);
                choices(name, option, &value, &found_in, errors);
                suboptions(name, option, &value, context, errors);
            }
        }
    }
}

/// Moves what stands under an alias to the option's own name.
fn without_aliases(spec: &Map, given: &Map) -> Map {
    let mut given = given.clone();
    for (name, option) in spec {
        for alias in option.get("aliases").and_then(Value::as_list).into_iter().flat_map(|aliases| aliases.iter()) {
            if let Some(value) = given.remove_key(alias) {
                given.insert(name.clone(), value);
            }
        }
    }
    given
}

fn unsupported(spec: &Map, given: &Map, context: &[String], errors: &mut Vec<String>) {
    let mut strange: Vec<String> = given
        .keys()
        .filter(|name| spec.get_key(name).is_none())
        .map(|name| format!("{}.{name}", context.join(".")))
        .collect();
    if !strange.is_empty() {
        strange.sort();
        let mut known: Vec<String> = spec.keys().map(Value::to_string).collect();
        known.sort();
        errors.push(format!("{}. Supported parameters include: {}.", strange.join(", "), known.join(", ")));
    }
}

fn elements(name: &Value, option: &Value, value: &Value, errors: &mut Vec<String>) {
    let (Some(kind), Value::List(items)) = (option.get("elements").map(Value::to_string), value) else { return };
    for item in items.iter() {
        if let Err(why) = converted(item, &kind) {
            errors.push(format!(
                "Elements value for option '{name}' is of type {} and we were unable to convert to {kind}: {why}",
                python_type(item)
            ));
        }
    }
}

fn choices(name: &Value, option: &Value, value: &Value, found_in: &str, errors: &mut Vec<String>) {
    let Some(choices) = option.get("choices").and_then(Value::as_list) else { return };
    let shown = || choices.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
    let known = |value: &Value| choices.iter().any(|choice| choice == value || choice.to_string() == value.to_string());
    match value {
        Value::List(items) => {
            let strange: Vec<String> = items.iter().filter(|item| !known(item)).map(Value::to_string).collect();
            if !strange.is_empty() {
                errors.push(format!(
                    "value of {name} must be one or more of: {}. Got no match for: {}{found_in}",
                    shown(),
                    strange.join(", ")
                ));
            }
        }
        one if !known(one) => errors.push(format!("value of {name} must be one of: {}, got: {one}{found_in}", shown())),
        _ => {}
    }
}

fn suboptions(name: &Value, option: &Value, value: &Value, context: &[String], errors: &mut Vec<String>) {
    let Some(Value::Map(spec)) = option.get("options") else { return };
    let mut inner = context.to_vec();
    inner.push(name.to_string());
    match value {
        Value::Map(map) => check(spec, map, &inner, errors),
        Value::List(items) => {
            for item in items.iter() {
                match item {
                    Value::Map(map) => check(spec, map, &inner, errors),
                    _ => errors.push(format!("value of '{name}' must be of type dict or list of dicts")),
                }
            }
        }
        _ => errors.push(format!("value of '{name}' must be of type dict or list of dicts")),
    }
}

/// Returns a value as the type of an option, or why it is none.
fn converted(value: &Value, kind: &str) -> Result<Value, String> {
    let class = || format!("<class '{}'>", python_type(value));
    let text = match value {
        Value::Str(text) => Some(text.as_str()),
        _ => None,
    };
    let keep = |right: bool, what: &str| {
        if right { Ok(value.clone()) } else { Err(format!("{} cannot be converted to {what}", class())) }
    };
    match kind {
        "bool" => match value {
            Value::Bool(_) | Value::Int(0 | 1) => Ok(value.clone()),
            Value::Str(text) => {
                let word = text.as_str().trim().to_ascii_lowercase();
                let known = ["y", "yes", "on", "1", "true", "t", "n", "no", "off", "0", "false", "f"];
                if known.contains(&word.as_str()) {
                    Ok(crate::execute::truth(value).into())
                } else {
                    Err(format!("The value '{}' is not a valid boolean.", text.as_str()))
                }
            }
            _ => Err(format!("{} cannot be converted to a bool", class())),
        },
        "int" => match (value, text.and_then(|text| text.trim().parse::<i64>().ok())) {
            (Value::Int(_) | Value::Bool(_), _) => Ok(value.clone()),
            (Value::Float(number), _) if number.fract() == 0.0 => Ok(Value::Int(*number as i64)),
            (_, Some(number)) => Ok(Value::Int(number)),
            (_, None) => Err(format!("\"{value:?}\" cannot be converted to an int")),
        },
        "float" => match (value, text.and_then(|text| text.trim().parse::<f64>().ok())) {
            (Value::Int(_) | Value::Float(_) | Value::Bool(_), _) => Ok(value.clone()),
            (_, Some(number)) => Ok(Value::Float(number)),
            (_, None) => Err(format!("{} cannot be converted to a float", class())),
        },
        "list" => match value {
            Value::List(_) => Ok(value.clone()),
            Value::Str(text) => Ok(Value::list(text.as_str().split(',').map(|part| part.trim().into()).collect())),
            Value::Int(_) | Value::Float(_) => Ok(Value::list(vec![value.to_string().into()])),
            _ => Err(format!("{} cannot be converted to a list", class())),
        },
        "dict" => match value {
            Value::Map(_) | Value::Lazy(_) => Ok(value.clone()),
            Value::Str(text) => dictionary(text.as_str()),
            _ => Err(format!("{} cannot be converted to a dict", class())),
        },
        "bytes" => keep(size(value, 'B'), "a Byte value"),
        "bits" => keep(size(value, 'b'), "a Bit value"),
        // `str`, `path`, `json`, `jsonarg`, `raw` and the like take what can be written as text.
        _ => Ok(value.clone()),
    }
}

fn dictionary(text: &str) -> Result<Value, String> {
    let refused = || Err("dictionary requested, could not parse JSON or key=value".to_owned());
    if text.starts_with('{') {
        return match serde_json::from_str(text) {
            Ok(json) => Ok(Value::from_json(json)),
            Err(_) => refused(),
        };
    }
    match crate::playbook::parse_key_values(text) {
        Ok((pairs, rest)) if rest.is_empty() && !pairs.is_empty() => {
            Ok(Value::map(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()))
        }
        Ok(_) | Err(_) => refused(),
    }
}

/// Returns whether a value is a size such as `10M`, `1.5 GB` or a number alone.
fn size(value: &Value, unit: char) -> bool {
    let text = value.to_string();
    let text = text.trim().trim_end_matches(unit).trim_end();
    let number = text.trim_end_matches(|c: char| "KMGTPEZY".contains(c.to_ascii_uppercase())).trim_end();
    text.len() - number.len() <= 2 && number.parse::<f64>().is_ok()
}

/// Returns the name of a value's type in Ansible's messages.
fn python_type(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::Omit => "NoneType",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Str(_) => "str",
        Value::List(_) => "list",
        Value::Map(_) | Value::Lazy(_) => "dict",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(spec: &str, given: &str) -> Vec<String> {
        let map = |text: &str| Map::from_json(serde_json::from_str(text).expect("JSON"));
        let mut errors = Vec::new();
        check(&map(spec), &map(given), &[], &mut errors);
        errors
    }

    #[test]
    fn says_what_is_missing_and_what_is_of_another_type() {
        let spec = r#"{"port": {"type": "int", "required": true}, "name": {"required": true}, "on": {"type": "bool"}}"#;
        assert_eq!(errors(spec, r#"{"port": "80", "name": "a", "on": "yes"}"#), [""; 0]);
        assert_eq!(errors(spec, r#"{"port": 1}"#), ["missing required arguments: name"]);
        assert_eq!(
            errors(spec, r#"{"port": null, "name": "a"}"#),
            [
                "argument 'port' is of type NoneType and we were unable to convert to int: \"None\" cannot be converted to an int"
            ]
        );
    }

    #[test]
    fn looks_into_suboptions() {
        let spec = r#"{"a": {"type": "dict", "options": {"b": {"type": "int", "required": true}}}}"#;
        assert_eq!(
            errors(spec, r#"{"a": {"c": 1}}"#),
            ["a.c. Supported parameters include: b.", "missing required arguments: b found in a"]
        );
    }

    #[test]
    fn takes_what_is_among_the_choices() {
        let spec = r#"{"a": {"choices": ["x", "y"]}}"#;
        assert_eq!(errors(spec, r#"{"a": "x"}"#), [""; 0]);
        assert_eq!(errors(spec, r#"{"a": "z"}"#), ["value of a must be one of: x, y, got: z"]);
    }
}
