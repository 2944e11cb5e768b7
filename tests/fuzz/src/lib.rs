//! The targets: everything that reads a text which somebody else wrote, as a function over bytes that must come back
//! whatever they are. `tests/fuzz/run` has them fed by libFuzzer; `tests/replay.rs` with what is kept.

mod arguments;
#[path = "../../../modules/tests/fake/mod.rs"]
mod fake;
mod hosts;
mod inventory;
mod playbooks;
mod templates;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// One reader under test.
pub struct Target {
    pub name: &'static str,
    /// What it must hold beside coming back; `assert!` says when it does not.
    pub run: fn(&[u8]),
    /// The longest input that is made up.
    pub longest: usize,
    /// Fragments that are repeated, to see that time grows with their number and not with its square.
    pub grow: &'static [Growing],
}

/// An input of any length: what it starts with, what is repeated, and what ends it.
pub struct Growing {
    pub head: &'static str,
    /// `{n}` in it stands for the count.
    pub each: &'static str,
    pub tail: &'static str,
}

const fn growing(head: &'static str, each: &'static str, tail: &'static str) -> Growing {
    Growing { head, each, tail }
}

/// Every target, by what it reads.
const TARGETS: &[&[Target]] =
    &[inventory::TARGETS, playbooks::TARGETS, templates::TARGETS, arguments::TARGETS, hosts::TARGETS];

/// Returns every target.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().flat_map(|some| some.iter())
}

/// Returns the target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
}

/// The folder that inputs are written to where a reader takes a file's name.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    parent.join(format!("kubeon-fuzz-{}", std::process::id()))
});

/// Makes sure that nothing an input names is found: the working folder is empty, and so is what is known of the user.
pub fn prepare() {
    let empty = FOLDER.join("empty");
    std::fs::create_dir_all(&empty).expect("a folder in memory");
    std::env::set_current_dir(&empty).expect("a folder just made");
}

/// Runs a target over one input, and lets go of what it left in memory.
pub fn run(target: &Target, input: &[u8]) {
    let before = kubeon_run::source::count();
    (target.run)(input);
    kubeon_run::source::forget(before);
}

/// Removes what [`prepare`] and the targets wrote.
pub fn clean() {
    std::fs::remove_dir_all(&*FOLDER).ok();
}

/// Writes an input to a file, for a reader that takes a file's name.
fn file(name: &str, input: &[u8]) -> PathBuf {
    let path = FOLDER.join(name);
    std::fs::create_dir_all(&*FOLDER).expect("a folder in memory");
    std::fs::write(&path, input).expect("a file in memory");
    path
}

/// Puts a file on a host, as a change would.
fn put(host: &mut fake::Fake, path: &str, text: &str) {
    host.files.insert(path.to_owned(), fake::Node::Text(text.to_owned()));
}
