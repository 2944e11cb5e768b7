//! A play's `vars_files` as each host sees them: their names may hold facts, and are told anew when facts have come.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use super::{PlayRun, World, reach};
use crate::report::{Event, HostName};
use crate::source::Severity;
use crate::value::{Map, Value};
use crate::vars;

/// What was read, for which facts.
#[derive(Debug, Default)]
pub struct VarsFiles {
    /// For every host, where no name holds a template.
    shared: RwLock<Option<Arc<Map>>>,
    by_host: RwLock<HashMap<HostName, Known>>,
}

/// What one host's files hold.
#[derive(Debug, Clone)]
struct Known {
    /// With which the files' names were told.
    facts: Arc<Map>,
    vars: Arc<Map>,
}

impl VarsFiles {
    /// Returns the variables of a host that has these facts. What is wrong about them is told, and ends the run.
    pub fn of(&self, world: &Arc<World>, run: &Arc<PlayRun>, host: &HostName, facts: &Arc<Map>) -> Option<Arc<Map>> {
        if run.play.vars_files.is_empty() {
            return None;
        }
        if let Some(known) = &*self.shared.read().unwrap_or_else(PoisonError::into_inner) {
            return Some(known.clone());
        }
        let known = self.by_host.read().unwrap_or_else(PoisonError::into_inner).get(host).cloned();
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.facts, facts)) {
            return Some(known.vars);
        }
        match self.read(world, run, host, facts) {
            Ok(read) => Some(read),
            Err(message) => {
                world.tell(Event::Error(message));
                world.note_mistake();
                run.end();
                None
            }
        }
    }

    /// Reads the files of a host.
    ///
    /// # Errors
    /// A sentence for a person when a name can't be told or a file is written wrong.
    pub fn read(
        &self,
        world: &Arc<World>,
        run: &Arc<PlayRun>,
        host: &HostName,
        facts: &Arc<Map>,
    ) -> Result<Arc<Map>, String> {
        let read = Arc::new(read(world, run, host, !facts.is_empty())?);
        if run.play.vars_files.iter().any(Value::holds_template) {
            let known = Known { facts: facts.clone(), vars: read.clone() };
            self.by_host.write().unwrap_or_else(PoisonError::into_inner).insert(host.clone(), known);
        } else {
            *self.shared.write().unwrap_or_else(PoisonError::into_inner) = Some(read.clone());
        }
        Ok(read)
    }
}

fn read(world: &Arc<World>, run: &Arc<PlayRun>, host: &HostName, has_facts: bool) -> Result<Map, String> {
    let templar = vars::templar_without_files(world, run, host);
    let mut all = Map::new();
    for entry in &run.play.vars_files {
        let (candidates, several) = match entry {
            Value::List(items) => (items.to_vec(), true),
            one => (vec![one.clone()], false),
        };
        let mut names = Vec::new();
        for candidate in &candidates {
            match templar.text(candidate) {
                Ok(name) => names.push(name),
                // Facts may still come, and the name is told again then.
                Err(error) if error.undefined.is_some() && !has_facts => {
                    names.clear();
                    break;
                }
                Err(error) => return Err(error.diagnostic().render(false)),
            }
        }
        let found = names.iter().find_map(|name| file(run, name));
        let Some(path) = found else {
            // As in Ansible a file that is not there is none; of several, none need be.
            if let (false, Some(name)) = (several, names.first())
                && run.first_told(&format!("vars_files {name}"))
            {
                world.tell(Event::Warning(format!("`vars_files`: no file `{name}`")));
            }
            continue;
        };
        let mut loader = world.loader.lock().unwrap_or_else(PoisonError::into_inner);
        let read = loader.play_variables(&path, run.play.place);
        let problems = loader.take_problems();
        drop(loader);
        vars::put_over(&mut all, &read, world.options.inventory_reading.merge);
        if let Some(error) = problems.iter().find(|problem| problem.severity == Severity::Error) {
            return Err(error.render(false));
        }
    }
    Ok(all)
}

/// Returns the file of this name: below `vars/` at the playbook, else beside it.
fn file(run: &PlayRun, name: &str) -> Option<PathBuf> {
    let given = reach::home_expanded(PathBuf::from(name));
    [run.play.folder.join("vars").join(&given), run.play.folder.join(&given)].into_iter().find(|path| path.is_file())
}
