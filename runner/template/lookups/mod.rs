//! Lookups: what templates read from files, the environment, commands and other variables on this machine.

mod files;
mod lists;
mod passwords;
pub(super) mod tables;
mod url;
mod variables;

use std::path::{Path, PathBuf};

use super::ast::{Argument, Expr, Node, Parsed, Statement};
use super::call::{Arguments, Call, Lookup, find as find_callable};
use super::error::TemplateError;
use super::live::{Live, Result};
use super::{Templar, place};
use crate::source::nearest;
use crate::value::{Str, Value};

const TABLES: &[&[Lookup]] =
    &[files::LOOKUPS, lists::LOOKUPS, passwords::LOOKUPS, tables::LOOKUPS, url::LOOKUPS, variables::LOOKUPS];

pub(super) fn names() -> Vec<&'static str> {
    TABLES.iter().copied().flatten().map(|lookup| lookup.name).collect()
}

pub(super) fn find(name: &str) -> Option<&'static Lookup> {
    // These two were ansible-core's own before they moved.
    let moved = name.strip_prefix("community.general.").filter(|name| ["cartesian", "flattened"].contains(name));
    find_callable(TABLES, moved.unwrap_or(name))
}

/// What is made of a lookup's list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Texts joined by commas, a single other value as it is: `lookup`.
    Joined,
    /// The list: `query`.
    List,
}

/// `lookup(name, *terms, **options)`.
pub(super) fn call(call: &mut Call<'_>, answer: Answer) -> Result<Live> {
    let mut terms = std::mem::take(&mut call.rest);
    if terms.is_empty() {
        return Err(call.fault("takes the lookup's name and its terms"));
    }
    let name = terms.remove(0).text()?;
    let Some(lookup) = find(&name) else { return Err(unknown(&name)) };
    if !call.evaluator.context.templar.inner.variables.may_look_up(lookup.name) {
        return Err(call.fault(format!("the lookup `{name}` waits for the turn of its task")));
    }
    let mut answer = answer;
    let mut errors = "strict".to_owned();
    let mut named = Vec::new();
    for (option, value) in std::mem::take(&mut call.named) {
        match &*option {
            "wantlist" if value.truthy()? => answer = Answer::List,
            "wantlist" => answer = Answer::Joined,
            "errors" => errors = value.text()?,
            _ => named.push((option, value)),
        }
    }
    let arguments = Arguments { positional: terms, named };
    let found = match Call::run(lookup, call.evaluator, Live::NULL, arguments) {
        Ok(found) => found,
        Err(_) if errors == "ignore" || errors == "warn" => {
            return Ok(if answer == Answer::List { Vec::<Live>::new().into() } else { Live::NULL });
        }
        Err(error) => return Err(error),
    };
    if answer == Answer::List {
        return Ok(found.into());
    }
    match &found[..] {
        [single] => Ok(single.clone()),
        texts if !texts.is_empty() && texts.iter().all(Live::is_text) => {
            Ok(texts.iter().map(Live::text).collect::<Result<Vec<_>>>()?.join(",").into())
        }
        _ => Ok(found.into()),
    }
}

/// Splits `name=value name=value`, where values may be quoted.
pub(super) fn settings(call: &Call<'_>, text: &str) -> Result<Vec<(String, String)>> {
    let words = shell_words::split(text).map_err(|error| call.fault(format!("`{text}`: {error}")))?;
    let pairs = words.iter().map(|word| {
        let pair = word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        pair.ok_or_else(|| call.fault(format!("`{word}` is no `name=value`")))
    });
    pairs.collect()
}

fn unknown(name: &str) -> TemplateError {
    let error = TemplateError::new(Default::default(), format!("no lookup named `{name}`"));
    match nearest(name, names()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// Returns the folders that a file of some sort is looked for in, the nearest first.
pub(super) fn folders(templar: &Templar, sort: &str) -> Vec<PathBuf> {
    let known = &templar.inner.folders;
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut add = |folder: PathBuf| {
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    };
    if sort == "templates"
        && let Some(folder) = &templar.inner.template_folder
    {
        add(folder.clone());
    }
    let task_folder = known.task_file.as_deref().and_then(Path::parent);
    for base in [known.role.as_deref(), task_folder, Some(&known.playbook)].into_iter().flatten() {
        add(base.join(sort));
        add(base.to_owned());
    }
    folders
}

/// Finds a file by its name in the folders where one of its sort is looked for.
pub(super) fn find_file(templar: &Templar, sort: &str, name: &str) -> Option<PathBuf> {
    let name = expanded_home(name);
    if Path::new(&name).is_absolute() {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    folders(templar, sort).into_iter().map(|folder| folder.join(&name)).find(|path| path.exists())
}

/// Says where a file was looked for.
pub(super) fn searched(templar: &Templar, sort: &str) -> String {
    let folders = folders(templar, sort);
    let shown: Vec<String> = folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
    format!("looked in {}", shown.join(", "))
}

pub(super) fn expanded_home(name: &str) -> String {
    match (name.strip_prefix('~'), std::env::var("HOME")) {
        (Some(rest), Ok(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => name.to_owned(),
    }
}

/// Finds at load time the lookups that templates name and that there are none of.
pub(super) fn check(parsed: &Parsed, text: &Str) -> std::result::Result<(), TemplateError> {
    let mut fault = None;
    let mut visit = |node: &Node| {
        let Expr::Call(callee, arguments) = &node.kind else { return };
        let (Expr::Var(function), Some(Argument::Positional(first))) = (&callee.kind, arguments.first()) else {
            return;
        };
        if !matches!(&**function, "lookup" | "query" | "q") {
            return;
        }
        if let Expr::Const(Value::Str(name)) = &first.kind
            && !crate::value::may_be_template(name.as_str())
            && find(name.as_str()).is_none()
            && fault.is_none()
        {
            fault = Some(unknown(name.as_str()).or_at(place::within(text, first.start as usize)));
        }
    };
    for statement in parsed.body.iter().chain(parsed.blocks.iter().flat_map(|(_, body)| body.iter())) {
        in_statement(statement, &mut visit);
    }
    fault.map_or(Ok(()), Err)
}

fn in_statements(statements: &[Statement], visit: &mut impl FnMut(&Node)) {
    for statement in statements {
        in_statement(statement, visit);
    }
}

fn in_statement(statement: &Statement, visit: &mut impl FnMut(&Node)) {
    match statement {
        Statement::Emit(node) | Statement::Extends(node) | Statement::Do(node) => in_node(node, visit),
        Statement::For(each) => {
            in_node(&each.over, visit);
            each.only_if.iter().for_each(|node| in_node(node, visit));
            in_statements(&each.body, visit);
            in_statements(&each.otherwise, visit);
        }
        Statement::If { test, then, otherwise } => {
            in_node(test, visit);
            in_statements(then, visit);
            in_statements(otherwise, visit);
        }
        Statement::With { assignments, body } => {
            assignments.iter().for_each(|(_, value)| in_node(value, visit));
            in_statements(body, visit);
        }
        Statement::Set { value, .. } => in_node(value, visit),
        Statement::SetBlock { filter, body, .. } => {
            filter.iter().for_each(|node| in_node(node, visit));
            in_statements(body, visit);
        }
        Statement::FilterBlock { filter, body } => {
            in_node(filter, visit);
            in_statements(body, visit);
        }
        Statement::Plain(body) => in_statements(body, visit),
        Statement::Include { name, .. } => in_node(name, visit),
        Statement::Import { file, .. } | Statement::FromImport { file, .. } => in_node(file, visit),
        Statement::Macro(declared) => in_statements(&declared.body, visit),
        Statement::CallBlock { call, body } => {
            in_node(call, visit);
            in_statements(&body.body, visit);
        }
        Statement::Raw(_) | Statement::Block(_) | Statement::Continue | Statement::Break => {}
    }
}

fn in_arguments(arguments: &[Argument], visit: &mut impl FnMut(&Node)) {
    for argument in arguments {
        match argument {
            Argument::Positional(node)
            | Argument::Named(_, node)
            | Argument::Unpacked(node)
            | Argument::UnpackedMap(node) => in_node(node, visit),
        }
    }
}

fn in_node(node: &Node, visit: &mut impl FnMut(&Node)) {
    visit(node);
    match &node.kind {
        Expr::Const(_) | Expr::Embedded(_) | Expr::Var(_) => {}
        Expr::List(items) | Expr::Tuple(items) => items.iter().for_each(|item| in_node(item, visit)),
        Expr::Map(entries) => entries.iter().for_each(|(key, value)| {
            in_node(key, visit);
            in_node(value, visit);
        }),
        Expr::Not(inner) | Expr::Negative(inner) | Expr::Attribute(inner, _) => in_node(inner, visit),
        Expr::And(sides) | Expr::Or(sides) | Expr::Binary(_, sides) | Expr::Item(sides) => {
            in_node(&sides.0, visit);
            in_node(&sides.1, visit);
        }
        Expr::Compare(first, others) => {
            in_node(first, visit);
            others.iter().for_each(|(_, node)| in_node(node, visit));
        }
        Expr::If { test, then, otherwise } => {
            in_node(test, visit);
            in_node(then, visit);
            otherwise.iter().for_each(|node| in_node(node, visit));
        }
        Expr::Slice { of, start, stop, step } => {
            in_node(of, visit);
            [start, stop, step].into_iter().flatten().for_each(|node| in_node(node, visit));
        }
        Expr::Call(callee, arguments) => {
            in_node(callee, visit);
            in_arguments(arguments, visit);
        }
        Expr::Filter(input, _, arguments) => {
            input.iter().for_each(|node| in_node(node, visit));
            in_arguments(arguments, visit);
        }
        Expr::Test(input, _, arguments) => {
            in_node(input, visit);
            in_arguments(arguments, visit);
        }
    }
}
