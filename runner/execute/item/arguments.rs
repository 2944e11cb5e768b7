//! What a task gives its action: arguments over the defaults of `module_defaults`, and the environment.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ItemRun;
use crate::action::{self, Failure};
use crate::playbook::Keyword;
use crate::value::{Map, Value};

impl ItemRun<'_> {
    /// Renders the action's arguments over the defaults that `module_defaults` gives.
    pub(super) fn arguments(&self) -> Result<Map, Failure> {
        let call = &self.task.action;
        if action::takes_raw(&call.name) {
            return self.with_variable_params((*call.args).clone());
        }
        let mut args = self.module_defaults(&call.name)?;
        let own = match self.templar.value(&Value::Map(call.args.clone()))? {
            Value::Map(map) => Arc::unwrap_or_clone(map),
            _ => Map::new(),
        };
        args.extend(self.with_variable_params(own)?);
        Ok(without_omitted(args))
    }

    /// Puts arguments that come whole from a template, as in `debug: "{{ arguments }}"`, beneath those given by name.
    fn with_variable_params(&self, mut own: Map) -> Result<Map, Failure> {
        let Some(more) = own.remove("_variable_params") else { return Ok(own) };
        match self.templar.value(&more)? {
            Value::Map(map) => {
                for (key, value) in &*map {
                    if own.get_key(key).is_none() {
                        own.insert(key.clone(), value.clone());
                    }
                }
                Ok(own)
            }
            Value::Omit | Value::Null => Ok(own),
            other => Err(Failure::message(format!("arguments must be a mapping, and `{other}` is {}", other.kind()))),
        }
    }

    fn module_defaults(&self, name: &str) -> Result<Map, Failure> {
        let mut defaults = Map::new();
        let parents: Vec<_> = self.task.parents().collect();
        let settings = parents.iter().rev().filter_map(|parent| parent.keywords.get(Keyword::ModuleDefaults));
        for setting in settings.chain(self.task.keywords.get(Keyword::ModuleDefaults)) {
            let lists = match &setting.value {
                Value::List(items) => items.to_vec(),
                one => vec![one.clone()],
            };
            for list in lists {
                for (key, value) in list.as_map().map(|map| (**map).clone()).unwrap_or_default() {
                    let key = key.to_string();
                    let is_meant = match &self.task.action.foreign {
                        Some(_) => key == self.task.action.written,
                        None => action::canonical(&key) == Some(name),
                    };
                    if is_meant && let Value::Map(map) = self.templar.value(&value)? {
                        defaults.extend((*map).clone());
                    }
                }
            }
        }
        Ok(defaults)
    }

    /// Returns the task's environment, outermost first.
    pub(super) fn environment(&self) -> Result<BTreeMap<String, String>, Failure> {
        let gathers = matches!(&*self.task.action.name, "gather_facts" | "setup");
        let mut environment = BTreeMap::new();
        let parents: Vec<_> = self.task.parents().collect();
        let settings = parents.iter().rev().filter_map(|parent| parent.keywords.get(Keyword::Environment));
        for setting in settings.chain(self.task.keywords.get(Keyword::Environment)) {
            let lists = match &setting.value {
                Value::Str(_) => match self.templar.value(&setting.value)? {
                    Value::List(items) => items.to_vec(),
                    one => vec![one],
                },
                Value::List(items) => items.to_vec(),
                one => vec![one.clone()],
            };
            for list in lists {
                let list = if list.as_map().is_some() { list } else { self.templar.value(&list)? };
                for (key, value) in list.as_map().map(|map| (**map).clone()).unwrap_or_default() {
                    match self.templar.value(&value) {
                        Ok(Value::Omit) => {}
                        Ok(value) => {
                            environment.insert(self.templar.text(&key)?, value.to_string());
                        }
                        // Facts about the environment can't be there before they are gathered.
                        Err(error) if gathers && error.undefined.is_some() && error.message.contains("env") => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Ok(environment)
    }
}

/// Leaves out what `omit` stands for.
fn without_omitted(map: Map) -> Map {
    map.into_iter().filter(|(_, value)| !matches!(value, Value::Omit)).collect()
}
