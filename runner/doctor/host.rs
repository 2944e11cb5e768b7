//! From what was seen on one host to diagnoses.

mod driver;
mod runtime;

use kubeon_modules::evidence::Evidence;

use super::{Finding, Link, Subject, table};

/// Judges one host. What the cluster says of it is added by [`super::cluster::examine`].
pub fn examine(name: &str, seen: &Evidence) -> Subject {
    let mut subject =
        Subject { name: name.to_owned(), is_host: true, unread: seen.unread.clone(), ..Subject::default() };
    let how = if seen.root { "answers, looked at as root" } else { "answers" };
    subject.fine(Link::Connection, how);
    if !seen.root {
        subject.find(Finding::new(table::NOT_ROOT, "looked at as a user without root's rights"));
    }
    subject.has_gpu = driver::examine(seen, &mut subject);
    // A node without a GPU needs none of what follows.
    if subject.has_gpu {
        runtime::repository(seen, &mut subject);
        runtime::toolkit(seen, &mut subject);
        runtime::containerd(seen, &mut subject);
        runtime::kubelet(seen, &mut subject);
    }
    subject.settle();
    subject
}

/// Returns the numbers that a version begins with, for comparing: of `1.7.24~ds1` 1, 7 and 24.
pub fn numbers(version: &str) -> Vec<u32> {
    let plain = version.trim_start_matches('v').split(|letter: char| !letter.is_ascii_digit() && letter != '.').next();
    plain.unwrap_or_default().split('.').map_while(|part| part.parse().ok()).collect()
}

/// Judges a host that could not be examined.
pub fn unexamined(name: &str, unreachable: bool, message: &str) -> Subject {
    let diagnosis = if unreachable { table::UNREACHABLE } else { table::NOT_EXAMINED };
    let mut subject = Subject { name: name.to_owned(), is_host: true, ..Subject::default() };
    subject.find(Finding::new(diagnosis, message));
    subject
}
