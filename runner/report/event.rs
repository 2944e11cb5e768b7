//! What happens in a run, as reporters are told of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::source::Place;
use crate::value::Map;

pub type HostName = Arc<str>;

#[derive(Debug, Clone)]
pub enum Event {
    /// A play begins, or the next batch of its hosts.
    PlayStart {
        name: String,
        hosts: Vec<HostName>,
        place: Place,
        /// Counts the plays of the run from 0.
        ordinal: usize,
        /// How many tasks were found before the run; includes bring more.
        tasks: usize,
    },
    /// A play whose pattern names no host.
    NoHosts,
    TaskStart(Arc<TaskInfo>),
    /// A host begins a task.
    HostStart {
        host: HostName,
        task: Arc<TaskInfo>,
    },
    /// A task lives; its latest line of output.
    Alive {
        host: HostName,
        line: String,
    },
    /// One round of a loop has ended.
    Item(Outcome),
    /// A task has ended on a host.
    Result(Outcome),
    /// The record of an earlier run says how a task ended on a host; it did not run again.
    Replayed(Outcome),
    /// `until` was not so yet.
    Retry {
        host: HostName,
        task: Arc<TaskInfo>,
        left: u64,
        result: Map,
    },
    /// Tasks were included for these hosts.
    Included {
        file: String,
        hosts: Vec<HostName>,
        /// The loop's item, as its label says it.
        item: Option<String>,
    },
    /// A handler was notified.
    Notified {
        host: HostName,
        handler: String,
    },
    /// What is worth telling at `-vv`.
    Note(String),
    Warning(String),
    Deprecated(String),
    /// No host is left in the play.
    NoHostsLeft,
    /// The run can't go on.
    Error(String),
    /// Somebody is about to be asked something: what was told before is to be shown first, and that answered.
    Asking(std::sync::mpsc::SyncSender<()>),
    /// What a part of a spread run tells whoever holds the parts together.
    Part(Part),
    /// The run has ended.
    Recap(Recap),
}

/// How a part of a spread run gets on. Plays are counted from 0, and batches within a play.
#[derive(Debug, Clone)]
pub enum Part {
    Begins {
        index: usize,
        count: usize,
        /// How many hosts it has, and what tells them from others.
        hosts: usize,
        digest: String,
        /// Where the project's files lie for it.
        project: String,
    },
    /// It has come to a batch, and waits for the other parts.
    Waits { play: usize, batch: usize },
    /// It is through with a batch, of which it had so many hosts and lost so many.
    Ends { play: usize, batch: usize, hosts: usize, lost: usize },
}

/// A task as it is announced.
#[derive(Debug, Clone)]
pub struct TaskInfo {
    /// Different for each announcement.
    pub id: u64,
    /// With the role's name before it, templates rendered for the first host.
    pub name: String,
    pub action: String,
    pub place: Place,
    pub kind: TaskKind,
    /// Whether it runs in check mode.
    pub check: bool,
    /// Whether its result is kept in a variable.
    pub registers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    Task,
    Handler,
}

/// How a task, or one round of its loop, ended on a host.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub host: HostName,
    /// Where it really ran.
    pub delegated: Option<HostName>,
    pub task: Arc<TaskInfo>,
    pub status: Status,
    /// A failure that `ignore_errors` or `ignore_unreachable` let pass.
    pub ignored: bool,
    /// Whether the whole of a loop: its rounds were told one by one.
    pub is_loop: bool,
    /// The round's item, as its label says it.
    pub item: Option<String>,
    pub result: Map,
    /// Whether nothing of the result may be shown.
    pub no_log: bool,
    pub duration_s: f64,
    /// How many results of the task are shown even without `-v`, as for `debug`.
    pub verbose_always: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    Ok,
    Changed,
    Skipped,
    Failed,
    Unreachable,
}

/// Counts for each host, in the order in which hosts first did something.
#[derive(Debug, Clone, Default)]
pub struct Recap {
    pub hosts: Vec<(HostName, Counts)>,
    pub duration_s: f64,
    /// Values of `set_stats`.
    pub custom: Map,
    /// The exit status that the run ends with.
    pub code: u8,
    /// How often each host that was connected to was sent something and waited for, its login aside.
    pub round_trips: BTreeMap<HostName, u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub ok: u64,
    pub changed: u64,
    pub unreachable: u64,
    pub failed: u64,
    pub skipped: u64,
    pub rescued: u64,
    pub ignored: u64,
}
