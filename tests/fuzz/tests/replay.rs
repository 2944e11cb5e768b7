//! What is kept for each target: seeds, inputs that once broke it, and inputs that grow.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use kubeon_fuzz::{Growing, Target, prepare, run, targets};

/// How long one kept input may take.
const LIMIT: Duration = Duration::from_secs(20);
/// What a thread of the program has.
const STACK_BYTES: usize = 2 << 20;
/// The lengths that a growing input has: the second is [`TIMES`] the first.
const SHORT_BYTES: usize = 32 << 10;
const TIMES: usize = 4;
/// Below this no growth is measured.
const LEAST: Duration = Duration::from_millis(150);

/// Runs a target on a stack as the program's own threads have it, and returns the processor time that it took.
fn timed(target: &'static Target, input: Vec<u8>, what: &str) -> Duration {
    let (sender, receiver) = mpsc::channel();
    let thread =
        std::thread::Builder::new().name(format!("{}: {what}", target.name)).stack_size(STACK_BYTES).spawn(move || {
            let before = processor_time();
            run(target, &input);
            sender.send(processor_time() - before).ok();
        });
    match receiver.recv_timeout(LIMIT) {
        Ok(took) => took,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{}: {what} takes more than {LIMIT:?}", target.name),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            thread.expect("a thread").join().expect_err("it sent nothing");
            panic!("{}: {what} breaks it", target.name)
        }
    }
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is there to be filled.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn kept(kind: &str, target: &Target) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(target.name);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
}

#[test]
fn what_is_kept_comes_back() {
    prepare();
    let mut count = 0;
    for target in targets() {
        let seeds = kept("seeds", target);
        assert!(!seeds.is_empty(), "{} has no seed: put one into seeds/{}", target.name, target.name);
        for path in seeds.into_iter().chain(kept("crashes", target)) {
            timed(target, std::fs::read(&path).expect("a kept input"), &path.display().to_string());
            count += 1;
        }
    }
    assert!(count > 50, "{count} inputs");
}

#[test]
fn every_folder_belongs_to_a_target() {
    for kind in ["seeds", "crashes"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind);
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
            assert!(kubeon_fuzz::target(&name).is_some(), "{kind}/{name} is no target's");
        }
    }
}

/// Time grows with the length of an input: four times as long takes about four times as long, not sixteen. Each is
/// tried in a process of its own, so that one which overflows the stack does not hide the others.
#[test]
fn time_grows_with_the_length() {
    let mut wrong = String::new();
    for (target, growing) in targets().flat_map(|target| target.grow.iter().map(move |growing| (target, growing))) {
        let program = std::env::current_exe().expect("this test has a program");
        let tried = std::process::Command::new(program)
            .args(["--exact", "one_grows", "--ignored", "--nocapture"])
            .env(ASKED, format!("{} {}", target.name, growing.each.escape_debug()))
            .output()
            .expect("it starts");
        if !tried.status.success() {
            let said = String::from_utf8_lossy(&tried.stderr);
            let lines = said.lines().filter(|line| !line.is_empty() && !line.starts_with("note:")).take(4);
            let each = growing.each.escape_debug();
            wrong.extend([
                format!("{}: `{each}`: ", target.name),
                lines.collect::<Vec<_>>().join(" "),
                "\n".to_owned(),
            ]);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The target and what is repeated, for a process that tries one.
const ASKED: &str = "KUBEON_FUZZ_GROWING";

#[test]
#[ignore = "`time_grows_with_the_length` calls it for each"]
fn one_grows() {
    prepare();
    let asked = std::env::var(ASKED).expect("it is called for one");
    let (name, each) = asked.split_once(' ').expect("a target and what is repeated");
    let target = kubeon_fuzz::target(name).expect("a target");
    for growing in target.grow.iter().filter(|growing| growing.each.escape_debug().to_string() == each) {
        // Each differs, since templates that are read once are kept.
        let tried = |bytes: usize, nth: usize, which: &str| timed(target, grown(growing, bytes + 256 * nth), which);
        let first = tried(SHORT_BYTES * TIMES, 0, "the long one");
        if first < LEAST {
            continue;
        }
        // Others use the processor and its caches, too: the best of three says more than one.
        let short = (0..3).map(|nth| tried(SHORT_BYTES, nth, "the short one")).min().unwrap_or_default();
        let grows_with_the_square =
            |long: Duration| long.as_secs_f64() / short.as_secs_f64().max(1e-6) >= (TIMES * TIMES) as f64 * 0.6;
        let mut others = (1..3).map(|nth| tried(SHORT_BYTES * TIMES, nth, "the long one"));
        let so = grows_with_the_square(first) && others.all(grows_with_the_square);
        assert!(!so, "{short:?}, then {first:?}");
    }
    kubeon_fuzz::clean();
}

fn grown(growing: &Growing, length: usize) -> Vec<u8> {
    let mut text = growing.head.to_owned();
    for count in 0.. {
        if text.len() + growing.tail.len() >= length {
            break;
        }
        text.push_str(&growing.each.replace("{n}", &count.to_string()));
    }
    text.push_str(growing.tail);
    text.into_bytes()
}
