//! Threads that work on hosts, for as long as a batch goes through a play. Those that have nothing to do sleep: hosts answer
//! thousands of times a second, and threads that look for work in the meantime would take the processor from them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

type Job = Box<dyn FnOnce() + Send>;

pub(super) struct Crew {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
}

/// Where jobs wait for a thread.
#[derive(Default)]
struct Board {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    /// No more come.
    closed: bool,
}

impl Crew {
    pub fn new(size: usize) -> Crew {
        let board = Arc::new(Board::default());
        let thread = |number| {
            let board = board.clone();
            thread::Builder::new()
                .name(format!("host-{number}"))
                .spawn(move || board.work())
                .expect("the system gives as many threads as there are forks")
        };
        Crew { threads: (0..size).map(thread).collect(), board }
    }

    /// Does something for each item, as many at a time as there are threads; the results are in the items' order.
    pub fn each<I, T>(&self, items: Vec<I>, work: impl Fn(I) -> T + Send + Sync + 'static) -> Vec<T>
    where
        I: Send + 'static,
        T: Send + 'static,
    {
        let count = items.len();
        let (sender, done) = mpsc::channel();
        let work = Arc::new(work);
        let job = |(nth, item): (usize, I)| -> Job {
            let (work, sender) = (work.clone(), sender.clone());
            Box::new(move || {
                let result = catch_unwind(AssertUnwindSafe(|| work(item)));
                // Whoever asked has gone on only if another job panicked.
                sender.send((nth, result)).ok();
            })
        };
        self.board.jobs().waiting.extend(items.into_iter().enumerate().map(job));
        for _ in 0..count.min(self.threads.len()) {
            self.board.changed.notify_one();
        }
        drop(sender);
        let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
        for (nth, result) in done {
            results[nth] = Some(result.unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results.into_iter().flatten().collect()
    }
}

impl Board {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let mut jobs = self.jobs();
            let job = loop {
                match jobs.waiting.pop_front() {
                    Some(job) => break job,
                    None if jobs.closed => return,
                    None => jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(jobs);
            job();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.board.jobs().closed = true;
        self.board.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A job's panic has gone to whoever asked for it.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_are_in_the_items_order_and_jobs_run_side_by_side() {
        let crew = Crew::new(4);
        for _ in 0..50 {
            let barrier = Barrier::new(4);
            let results = crew.each(vec![1, 2, 3, 4], move |item| {
                barrier.wait();
                item * 10
            });
            assert_eq!(results, [10, 20, 30, 40]);
        }
        assert_eq!(crew.each((0..1000).collect(), |item| item), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_goes_to_whoever_asked() {
        let crew = Crew::new(2);
        let panic = |item| if item == 1 { panic!("item {item}") } else { item };
        let asked = catch_unwind(AssertUnwindSafe(|| crew.each(vec![0, 1, 2], panic)));
        assert_eq!(asked.expect_err("a panic").downcast_ref::<String>().map(String::as_str), Some("item 1"));
        assert_eq!(crew.each(vec![5], |item| item), [5]);
    }
}
