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
    /// Names that hosts notified since: which handlers they mean is told at the flush.
    names: HashMap<HostName, Vec<String>>,
}

impl Notified {
    /// Notes what a host notified.
    ///
    /// # Errors
    /// When no handler has that name and none listens to that topic.
    pub fn add(&mut self, world: &Arc<World>, play: &Arc<PlayRun>, host: &HostName, name: &str) -> Result<(), String> {
        if meant(world, play, host, name).is_empty() {
            let message = format!(
                "The requested handler '{name}' was not found in either the main handlers list nor in the listening \
                 handlers list"
            );
            if world.options.error_on_missing_handler {
                return Err(message);
            }
            world.tell(Event::Warning(message));
            return Ok(());
        }
        let names = self.names.entry(host.clone()).or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        Ok(())
    }

    /// Finds the handlers that the names mean which these hosts notified.
    pub fn resolve(&mut self, world: &Arc<World>, play: &Arc<PlayRun>, hosts: &[HostName]) {
        for host in hosts {
            for name in self.names.remove(host).unwrap_or_default() {
                let waiting = self.by_host.entry(host.clone()).or_default();
                for handler in meant(world, play, host, &name) {
                    if waiting.iter().all(|other| !Arc::ptr_eq(other, &handler)) {
                        waiting.push(handler);
                        world.tell(Event::Notified { host: host.clone(), handler: name.clone() });
                    }
                }
            }
        }
    }

    /// Returns the first handler at or after `from`, in the order of their definition, that waits for any of these
    /// hosts, with the hosts and with where to go on.
    pub fn next(
        &mut self,
        play: &PlayRun,
        hosts: &[HostName],
        from: usize,
    ) -> Option<(Arc<Task>, Vec<HostName>, usize)> {
        let handlers = play.handlers.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for (at, handler) in handlers.into_iter().enumerate().skip(from) {
            let mut notified = Vec::new();
            for host in hosts {
                let Some(waiting) = self.by_host.get_mut(host) else { continue };
                if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(other, &handler)) {
                    waiting.remove(at);
                    notified.push(host.clone());
                }
            }
            if !notified.is_empty() {
                return Some((handler, notified, at + 1));
            }
        }
        None
    }

    /// Returns whether a host has notified anything since the last flush.
    pub fn is_waited_for(&self, host: &str) -> bool {
        self.names.contains_key(host) || self.by_host.get(host).is_some_and(|waiting| !waiting.is_empty())
    }

    pub fn forget(&mut self, host: &str) {
        self.by_host.remove(host);
        self.names.remove(host);
    }
}

/// Returns whether a host may notify that name.
pub fn is_known(world: &Arc<World>, play: &Arc<PlayRun>, host: &HostName, name: &str) -> bool {
    !meant(world, play, host, name).is_empty()
}

/// Returns the handlers that a name means: the one of that name, and those that listen to it, each name once. Of the
/// lists of handlers the one read last goes first, and within a list what stands first.
fn meant(world: &Arc<World>, play: &Arc<PlayRun>, host: &HostName, name: &str) -> Vec<Arc<Task>> {
    let handlers = play.handlers.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let lists = handlers.chunk_by(|one, next| one.file == next.file);
    let ordered: Vec<&Arc<Task>> = lists.rev().flatten().collect();
    let named = ordered.iter().find(|handler| {
        let text = |value: &Value| rendered(world, play, host, handler, value);
        names(handler, &text).iter().any(|own| own == name)
    });
    let mut found: Vec<Arc<Task>> = named.into_iter().map(|handler| (*handler).clone()).collect();
    let mut seen: Vec<String> = Vec::new();
    for handler in ordered.into_iter().filter(|handler| listens(handler, name)) {
        let own = handler.name().map(|name| name.value.to_string()).unwrap_or_default();
        if own.is_empty() || !seen.contains(&own) {
            seen.push(own);
            found.push(handler.clone());
        }
    }
    found
}

/// Renders a handler's name or topic. One whose variables are not there names nothing, and that is told once.
fn rendered(world: &Arc<World>, play: &Arc<PlayRun>, host: &HostName, handler: &Task, value: &Value) -> Option<String> {
    if !value.holds_template() {
        return Some(value.to_string());
    }
    match crate::vars::templar(world, Some(play), host, Some(handler)).text(value) {
        Ok(text) => Some(text),
        Err(error) => {
            if handler.listen.is_empty() && play.first_told(&format!("{:?}", handler.place)) {
                world.tell(Event::Warning(format!(
                    "Handler '{value}' is unusable because it has no listen topics and the name could not be templated \
                     (host-specific variables are not supported in handler names). The error: {}",
                    error.message
                )));
            }
            None
        }
    }
}

/// Returns the names that a handler answers to: its own, and with its role's before it.
fn names(handler: &Task, text: &dyn Fn(&Value) -> Option<String>) -> Vec<String> {
    let Some(name) = handler.name().and_then(|name| text(&name.value)) else { return Vec::new() };
    let qualified = handler.role().map(|role| role.qualified(&name));
    qualified.into_iter().flatten().chain([name]).collect()
}

/// Topics are taken as written: templates in them mean nothing, as in Ansible.
fn listens(handler: &Task, topic: &str) -> bool {
    let answers = |value: &Value| {
        let own = value.to_string();
        own == topic || handler.role().is_some_and(|role| role.qualified(&own).iter().any(|own| own == topic))
    };
    handler.listen.iter().any(|value| match value {
        Value::List(items) => items.iter().any(answers),
        one => answers(one),
    })
}
