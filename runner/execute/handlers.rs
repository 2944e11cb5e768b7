//! Handlers: who was notified, and which run at a flush.

use std::collections::HashMap;
use std::sync::Arc;

use super::{PlayRun, World};
use crate::playbook::Task;
use crate::report::{Event, HostName};
use crate::value::Value;

/// Handlers that wait for a flush, by host.
#[derive(Default)]
pub struct Notified {
    by_host: HashMap<HostName, Vec<Arc<Task>>>,
}

impl Notified {
    /// Notes what a host notified.
    ///
    /// # Errors
    /// When no handler has that name and none listens to that topic.
    pub fn add(&mut self, world: &Arc<World>, play: &Arc<PlayRun>, host: &HostName, name: &str) -> Result<(), String> {
        let handlers = play.handlers.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let templar = crate::vars::templar(world, Some(play), host, None);
        let text = |value: &Value| templar.text(value).unwrap_or_else(|_| value.to_string());
        let mut found = false;
        // The last one of a name counts; every one that listens does.
        let named = handlers.iter().rev().find(|handler| names(handler, &text).iter().any(|own| own == name));
        let listening = handlers.iter().filter(|handler| listens(handler, name, &text));
        for handler in named.into_iter().chain(listening) {
            found = true;
            let waiting = self.by_host.entry(host.clone()).or_default();
            if waiting.iter().all(|other| !Arc::ptr_eq(other, handler)) {
                waiting.push(handler.clone());
                world.tell(Event::Notified { host: host.clone(), handler: name.to_owned() });
            }
        }
        if found {
            return Ok(());
        }
        Err(format!(
            "The requested handler '{name}' was not found in either the main handlers list nor in the listening handlers list"
        ))
    }

    /// Returns the next handler in the order of their definition that waits for any of these hosts, with the hosts.
    pub fn next(&mut self, play: &PlayRun, hosts: &[HostName]) -> Option<(Arc<Task>, Vec<HostName>)> {
        let handlers = play.handlers.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for handler in handlers {
            let mut notified = Vec::new();
            for host in hosts {
                let Some(waiting) = self.by_host.get_mut(host) else { continue };
                if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(other, &handler)) {
                    waiting.remove(at);
                    notified.push(host.clone());
                }
            }
            if !notified.is_empty() {
                return Some((handler, notified));
            }
        }
        None
    }

    pub fn forget(&mut self, host: &str) {
        self.by_host.remove(host);
    }
}

/// Returns the names that a handler answers to: its own, and with its role's before it.
fn names(handler: &Task, text: &dyn Fn(&Value) -> String) -> Vec<String> {
    let Some(name) = handler.name() else { return Vec::new() };
    let name = text(&name.value);
    match handler.role() {
        Some(role) => vec![format!("{} : {name}", role.name), name],
        None => vec![name],
    }
}

fn listens(handler: &Task, topic: &str, text: &dyn Fn(&Value) -> String) -> bool {
    handler.listen.iter().any(|value| match value {
        Value::List(items) => items.iter().any(|item| text(item) == topic),
        one => text(one) == topic,
    })
}
