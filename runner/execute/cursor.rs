//! Where a host is in its play: a stack of blocks, each in its tasks, its rescue or its always.

use std::collections::HashSet;
use std::sync::Arc;

use crate::playbook::{Block, Item, Task};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Tasks,
    Rescue,
    Always,
}

#[derive(Debug, Clone)]
struct Frame {
    block: Arc<Block>,
    section: Section,
    index: usize,
    /// A failure that goes on to the enclosing block once `always` has run.
    failed: bool,
    /// Whether a task of it ran, in a role's frame: a role that only skipped has not run.
    ran: bool,
}

impl Frame {
    fn items(&self) -> &[Item] {
        match self.section {
            Section::Tasks => &self.block.tasks,
            Section::Rescue => &self.block.rescue,
            Section::Always => &self.block.always,
        }
    }
}

/// Where in the play's text a host is: hosts with a lower one go first, so that all meet again.
pub type Position = Vec<(u8, usize)>;

/// What a failure led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// A rescue begins.
    Rescued,
    /// An always begins; the failure goes on after it.
    Pending,
    /// Nothing is left to do for the host.
    Out,
}

#[derive(Debug, Clone, Default)]
pub struct Cursor {
    stack: Vec<Frame>,
    /// Identities of the roles that have run.
    done_roles: HashSet<String>,
    /// Whether the host failed, and has at most an `always` left to run.
    failing: bool,
}

impl Cursor {
    /// Begins a section of the play, given as one block. Roles done before stay done.
    pub fn begin(&mut self, section: Arc<Block>) {
        self.stack = vec![Frame { block: section, section: Section::Tasks, index: 0, failed: false, ran: false }];
    }

    /// Returns the host's next task and where it is; `None` when the section has ended for it. A pending failure that
    /// ends with it shows in [`Cursor::is_failing`].
    pub fn peek(&mut self, selected: &dyn Fn(&Task) -> bool) -> Option<(Arc<Task>, Position)> {
        loop {
            let frame = self.stack.last_mut()?;
            match frame.items().get(frame.index).cloned() {
                Some(Item::Task(task)) if selected(&task) => {
                    let position = self.stack.iter().map(|frame| (frame.section as u8, frame.index)).collect();
                    return Some((task, position));
                }
                Some(Item::Task(_)) => frame.index += 1,
                Some(Item::Block(block)) => {
                    let role = block.role_entry.as_ref();
                    if role.is_some_and(|role| !role.allow_duplicates && self.done_roles.contains(&role.identity)) {
                        frame.index += 1;
                    } else {
                        self.enter(block);
                    }
                }
                None => self.end_section(),
            }
        }
    }

    /// Puts a block's tasks in the place of the current task: an include's result. What comes next waits for hosts
    /// that are in it.
    pub fn enter(&mut self, block: Arc<Block>) {
        self.stack.push(Frame { block, section: Section::Tasks, index: 0, failed: false, ran: false });
    }

    /// Passes the task that [`Cursor::peek`] returned.
    pub fn advance(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            frame.index += 1;
        }
    }

    /// Returns what comes after the current task when nothing fails, as far as the host neither leaves nor enters a role:
    /// whether one runs again depends on what was done of it.
    pub fn ahead(&self, most: usize, selected: &dyn Fn(&Task) -> bool) -> Vec<Arc<Task>> {
        if self.failing {
            return Vec::new();
        }
        let mut there = self.clone();
        there.advance();
        there.whole(most, selected)
    }

    /// Returns the current task and what comes after it, as [`Cursor::ahead`] does.
    pub fn whole(mut self, most: usize, selected: &dyn Fn(&Task) -> bool) -> Vec<Arc<Task>> {
        let mut tasks = Vec::new();
        let roles = self.roles();
        while tasks.len() < most
            && let Some((task, _)) = self.peek(selected)
            && self.roles() == roles
        {
            tasks.push(task);
            self.advance();
        }
        tasks
    }

    fn roles(&self) -> Vec<*const Block> {
        let in_roles = self.stack.iter().filter(|frame| frame.block.role_entry.is_some());
        in_roles.map(|frame| Arc::as_ptr(&frame.block)).collect()
    }

    /// Notes that a task of the innermost role ran.
    pub fn mark_ran(&mut self) {
        if let Some(frame) = self.stack.iter_mut().rev().find(|frame| frame.block.role_entry.is_some()) {
            frame.ran = true;
        }
    }

    /// Goes where a failure of the current task leads; the task must have been passed already.
    pub fn fail(&mut self) -> AfterFailure {
        while let Some(frame) = self.stack.last_mut() {
            if frame.section == Section::Tasks && !frame.block.rescue.is_empty() {
                frame.section = Section::Rescue;
                frame.index = 0;
                return AfterFailure::Rescued;
            }
            if frame.section != Section::Always && !frame.block.always.is_empty() {
                frame.section = Section::Always;
                frame.index = 0;
                frame.failed = true;
                self.failing = true;
                return AfterFailure::Pending;
            }
            self.pop();
        }
        self.failing = true;
        AfterFailure::Out
    }

    /// Returns whether the host failed and no rescue took it up.
    pub fn is_failing(&self) -> bool {
        self.failing
    }

    pub fn clear_failure(&mut self) {
        self.failing = false;
        for frame in &mut self.stack {
            frame.failed = false;
        }
    }

    /// Ends the host's part in the section.
    pub fn end(&mut self) {
        self.stack.clear();
    }

    /// Leaves the innermost role: `meta: end_role`.
    pub fn end_role(&mut self) {
        while let Some(frame) = self.stack.last() {
            let role = frame.block.role_entry.clone();
            let ran = frame.ran;
            self.pop();
            if let Some(role) = role {
                if ran {
                    self.done_roles.insert(role.identity.clone());
                }
                return;
            }
        }
    }

    fn end_section(&mut self) {
        let Some(frame) = self.stack.last_mut() else { return };
        if frame.section != Section::Always {
            frame.section = Section::Always;
            frame.index = 0;
            return;
        }
        let failed = frame.failed;
        if let (Some(role), false, true) = (&frame.block.role_entry, failed, frame.ran) {
            self.done_roles.insert(role.identity.clone());
        }
        self.pop();
        if failed {
            // A rescue further out takes the failure up.
            self.failing = false;
            self.fail();
        }
    }

    /// Leaves the innermost block, and passes it in the one around it.
    fn pop(&mut self) {
        self.stack.pop();
        self.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::{Loader, Options};

    /// Returns the names of the tasks that a host runs, when those named `bad…` fail.
    fn run(text: &str) -> (Vec<String>, bool) {
        let folder = std::env::temp_dir().join(format!("kubeon-cursor-{}-{}", std::process::id(), text.len()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let path = folder.join("site.yml");
        std::fs::write(&path, text).expect("a writable folder");
        let mut loader = Loader::new(Options::default());
        let play = loader.playbook(&path).remove(0);
        assert_eq!(loader.take_problems(), []);
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
        let block = Block {
            place: play.place,
            parent: play.parent.clone(),
            tasks: play.tasks,
            rescue: Vec::new(),
            always: Vec::new(),
            role_entry: None,
        };
        let mut cursor = Cursor::default();
        cursor.begin(Arc::new(block));
        let mut names = Vec::new();
        while let Some((task, _)) = cursor.peek(&|_| true) {
            let name = task.name().map(|name| name.value.to_string()).unwrap_or_default();
            cursor.advance();
            if name.starts_with("bad") {
                cursor.fail();
            }
            names.push(name);
        }
        (names, cursor.is_failing())
    }

    #[test]
    fn a_rescue_takes_a_failure_up_and_always_always_runs() {
        let play = "
- hosts: all
  tasks:
    - block:
        - {name: bad one, ping: }
        - {name: never, ping: }
      rescue:
        - {name: rescue, ping: }
      always:
        - {name: always, ping: }
    - {name: after, ping: }
";
        let expected = ["bad one", "rescue", "always", "after"].map(str::to_owned).to_vec();
        assert_eq!(run(play), (expected, false));
    }

    #[test]
    fn a_failure_goes_out_through_every_always() {
        let play = "
- hosts: all
  tasks:
    - block:
        - block:
            - {name: bad, ping: }
          always:
            - {name: inner, ping: }
        - {name: never, ping: }
      always:
        - {name: outer, ping: }
    - {name: never either, ping: }
";
        assert_eq!(run(play), (["bad", "inner", "outer"].map(str::to_owned).to_vec(), true));
    }

    #[test]
    fn an_outer_rescue_takes_up_what_an_inner_always_let_pass() {
        let play = "
- hosts: all
  tasks:
    - block:
        - block:
            - {name: bad, ping: }
          always:
            - {name: inner, ping: }
      rescue:
        - {name: rescue, ping: }
    - {name: after, ping: }
";
        assert_eq!(run(play), (["bad", "inner", "rescue", "after"].map(str::to_owned).to_vec(), false));
    }
}
