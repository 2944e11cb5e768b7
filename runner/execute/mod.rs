//! Walks the plays: which host does which task when.

mod ahead;
mod cursor;
mod debugger;
mod flush;
mod handlers;
mod include;
mod including;
mod item;
mod meta;
mod play;
mod pool;
mod reach;
mod replay;
mod shard;
mod strategy;
mod tags;
mod task;
mod vars_files;
mod world;

pub use ahead::{SendAhead, Sent};
pub use debugger::may_ask;
pub use include::role_use;
pub use item::{ItemRun, module};
pub use play::{EXIT_ERROR, EXIT_INTERRUPTED, EXIT_UNREACHABLE, PlayRun, run};
pub use reach::{Reach, home_expanded, is_this_machine, truth};
pub use replay::{Done, Replay};
pub use shard::{Shard, Step};
pub use tags::{selected, tags_of};
pub use world::{ConnectOptions, Gathering, RunOptions, Strangers, World};
