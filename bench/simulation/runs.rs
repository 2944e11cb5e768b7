//! A run of the real controller over far ends, each side in processes of its own.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::weather::Weather;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// An agent's further threads, of which there are two, need little.
const AGENT_STACK_BYTES: &str = "262144";
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The processes of far ends.
pub struct Fleet {
    folder: PathBuf,
    workers: Vec<(Child, Option<ChildStdin>)>,
}

impl Fleet {
    /// Starts far ends that listen in `folder`.
    pub fn start(folder: &Path, workers: usize, weather: &Weather) -> Outcome<Fleet> {
        let mut fleet = Fleet { folder: folder.to_owned(), workers: Vec::new() };
        for number in 0..workers {
            fs::remove_file(folder.join(number.to_string())).ok();
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("far").arg(folder).arg(number.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
            for (flag, value) in [
                ("--seed", weather.seed),
                ("--delay-us", weather.delay_us),
                ("--slow-percent", weather.slow_percent),
                ("--slow-ms", weather.slow_ms),
                ("--lost-percent", weather.lost_percent),
                ("--tasks", weather.tasks),
            ] {
                command.arg(flag).arg(value.to_string());
            }
            let mut child = command.env("RUST_MIN_STACK", AGENT_STACK_BYTES).env("PATH", SYSTEM_PATH).spawn()?;
            let input = child.stdin.take();
            let mut line = String::new();
            let output = child.stdout.take();
            fleet.workers.push((child, input));
            if let Some(output) = output {
                BufReader::new(output).read_line(&mut line)?;
            }
            if line != "ready\n" {
                return Err("the far ends did not start".into());
            }
        }
        Ok(fleet)
    }

    /// Ends the far ends; returns their notes, each in its parts, and their CPU time.
    pub fn end(mut self) -> Outcome<(Vec<Vec<String>>, Duration)> {
        let mut notes = Vec::new();
        let mut cpu = Duration::ZERO;
        for (number, (mut child, input)) in self.workers.drain(..).enumerate() {
            drop(input);
            cpu += wait(&mut child, Duration::from_secs(60), &mut |_| {})?.cpu;
            let text = fs::read_to_string(self.folder.join(format!("{number}.log")))?;
            notes.extend(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()));
        }
        Ok((notes, cpu))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for (child, _) in &mut self.workers {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// What a process took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// The exit status; below 0 the signal.
    pub code: i32,
    pub wall: Duration,
    pub cpu: Duration,
    pub peak_kib: u64,
}

/// Waits for a process, with a look at it now and then; one that takes longer than `limit` is ended.
fn wait(child: &mut Child, limit: Duration, look: &mut dyn FnMut(u32)) -> Outcome<Used> {
    let started = Instant::now();
    let pid = libc::pid_t::try_from(child.id())?;
    loop {
        let mut status = 0;
        // SAFETY: all of it is plain numbers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointers are those of the two above.
        match unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) } {
            0 if started.elapsed() > limit => {
                child.kill()?;
                child.wait()?;
                return Err(format!("hangs: still at work after {} s", limit.as_secs()).into());
            }
            0 => {
                look(child.id());
                std::thread::sleep(Duration::from_millis(3));
            }
            -1 => return Err(std::io::Error::last_os_error().into()),
            _ => {
                let time = |time: libc::timeval| {
                    Duration::from_micros((time.tv_sec * 1_000_000 + time.tv_usec).unsigned_abs())
                };
                let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) };
                return Ok(Used {
                    code,
                    wall: started.elapsed(),
                    cpu: time(usage.ru_utime) + time(usage.ru_stime),
                    peak_kib: usage.ru_maxrss.unsigned_abs(),
                });
            }
        }
    }
}

/// What to run, and how.
pub struct Run<'a> {
    pub folder: &'a Path,
    pub workers: usize,
    pub forks: usize,
    pub retry: bool,
    pub limit: Duration,
}

impl Run<'_> {
    /// Runs `site.yml` over `hosts`; returns what it took, and the most threads and descriptors seen.
    pub fn go(&self) -> Outcome<(Used, u64, u64)> {
        let said = File::create(self.folder.join("said"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("controller").arg(self.folder).arg(self.workers.to_string());
        command.args(["-i", "hosts", "site.yml", "--output", "lines", "--forks"]).arg(self.forks.to_string());
        if self.retry {
            command.arg("--retry");
        }
        command.current_dir(self.folder).env_clear().env("PATH", SYSTEM_PATH).env("HOME", self.folder);
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let (mut threads, mut descriptors, mut looks) = (0, 0, 0_u32);
        let used = wait(&mut command.spawn()?, self.limit, &mut |pid| {
            looks += 1;
            if looks % 100 != 10 {
                return;
            }
            let count =
                |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, |entries| entries.count() as u64);
            threads = threads.max(count("task"));
            descriptors = descriptors.max(count("fd"));
        })?;
        Ok((used, threads, descriptors))
    }
}

/// Returns the events of the last run.
pub fn events(folder: &Path) -> Outcome<Vec<Value>> {
    let mut runs: Vec<_> = fs::read_dir(folder.join(".local/state/kubeon-run/runs"))?.collect::<Result<_, _>>()?;
    runs.sort_by_key(|entry| entry.metadata().and_then(|metadata| metadata.modified()).ok());
    let last = runs.last().ok_or("the run left no record")?;
    let text = fs::read_to_string(last.path().join("events.jsonl"))?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Writes the inventory and a playbook of `tasks` tasks, which tell the far ends who does what.
pub fn write(folder: &Path, hosts: usize, tasks: u64, strategy: &str, ignoring: bool) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    let names: String = (0..hosts).map(|number| format!("h{number:05}\n")).collect();
    fs::write(folder.join("hosts"), names)?;
    let mut text = format!("- hosts: all\n  gather_facts: false\n  strategy: {strategy}\n  tasks:\n");
    for number in 0..tasks {
        write!(text, "    - name: t{number}\n      ping: {{data: \"{{{{ inventory_hostname }}}} t{number}\"}}\n")?;
        if ignoring && number % 2 == 1 {
            text.push_str("      ignore_unreachable: true\n");
        }
    }
    fs::write(folder.join("site.yml"), text)?;
    Ok(())
}

/// Counts lines of some kind by what they tell of.
pub fn counted<'a>(notes: &'a [Vec<String>], kind: &str) -> BTreeMap<&'a str, u64> {
    let mut counts = BTreeMap::new();
    for note in notes.iter().filter(|note| note[0] == kind) {
        if let Some(what) = note.get(2) {
            *counts.entry(what.as_str()).or_default() += 1;
        }
    }
    counts
}
