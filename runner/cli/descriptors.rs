//! How many connections this process may hold open at a time.

/// What a run without hosts opens.
const OWN: u64 = 256;
/// What a host takes at most: the system's `ssh` is spoken to through three pipes.
const A_HOST: u64 = 3;

/// Raises the limit of open descriptors to `wanted`, or as far as the system allows; returns what it is then.
pub fn raise_descriptors(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is that of the structure above.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } < 0 || limit.rlim_cur >= wanted {
        return limit.rlim_cur;
    }
    let raised = libc::rlimit { rlim_cur: wanted.min(limit.rlim_max), ..limit };
    // SAFETY: as above.
    let refused = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } < 0;
    if refused { limit.rlim_cur } else { raised.rlim_cur }
}

/// Makes room for connections to so many hosts; returns a warning where there is too little.
pub(super) fn make_room(hosts: usize) -> Option<String> {
    let allowed = raise_descriptors(OWN + A_HOST * hosts as u64);
    (allowed < OWN + hosts as u64).then(|| {
        format!(
            "the system allows {allowed} open files, too few for connections to {hosts} hosts: raise the hard limit \
             (`ulimit -Hn`), or run on fewer hosts at a time with `--limit`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_hosts_need_no_more_and_too_many_are_warned_of() {
        let before = raise_descriptors(0);
        assert_eq!(raise_descriptors(1), before);
        assert!(make_room(usize::MAX >> 8).is_some_and(|warning| warning.contains("ulimit")));
        assert!(raise_descriptors(0) >= before);
    }
}
