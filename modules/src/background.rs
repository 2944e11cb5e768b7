//! Work beside what a task waits for: the standard library's `spawn` is written out for each kind of work, this is not.

/// Does some work in a thread of its own, for which nobody waits.
pub(crate) fn background(work: impl FnOnce() + Send + 'static) {
    start(Box::new(work));
}

fn start(work: Box<dyn FnOnce() + Send>) {
    std::thread::spawn(work);
}
