//! The same steps on many hosts, a thread each.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::thread;

use ssh2::Channel;

use crate::session::Session;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A frame, its answer, the next frame.
    Frame,
    /// All frames, then all answers.
    Pipelined,
    /// A program of its own for each step.
    Exec,
}

/// Reads the hosts' addresses, the known key of all of them and the steps, a line each, and does it. A step `k JSON` is
/// a message for the program's own agent, whose frames begin with one byte more and whose greeting comes first.
pub fn run(mode: &str, hosts: &str, key: &str, host_key: &str, steps: &str, agent: &str) -> io::Result<()> {
    let mode = match mode {
        "frame" => Mode::Frame,
        "pipelined" => Mode::Pipelined,
        "exec" => Mode::Exec,
        _ => return Err(io::Error::other(format!("no mode `{mode}`"))),
    };
    let hosts = fs::read_to_string(hosts)?;
    let host_key = unhex(fs::read_to_string(host_key)?.trim());
    let steps: Vec<Step> = fs::read_to_string(steps)?.lines().map(Step::read).collect::<io::Result<_>>()?;
    let key = Path::new(key);
    thread::scope(|scope| {
        let (host_key, steps) = (&host_key[..], &steps[..]);
        let running: Vec<_> =
            hosts.lines().map(|host| scope.spawn(move || on_host(mode, host, key, host_key, steps, agent))).collect();
        running.into_iter().try_for_each(|host| host.join().map_err(|_| io::Error::other("a thread broke off"))?)
    })
}

/// A line, and the frame that all hosts get for it.
struct Step {
    line: String,
    frame: Vec<u8>,
}

impl Step {
    /// In a frame, the content of a local file follows `p PATH FILE`'s path.
    fn read(line: &str) -> io::Result<Step> {
        let words: Vec<&str> = line.split(' ').collect();
        let body = if let ["p", path, file] = words[..] {
            let mut body = format!("p {path}\0").into_bytes();
            File::open(file)?.read_to_end(&mut body)?;
            body
        } else {
            line.strip_prefix("k ").unwrap_or(line).as_bytes().to_vec()
        };
        let mut frame = (body.len() as u32).to_be_bytes().to_vec();
        frame.extend(line.starts_with("k ").then_some(0));
        frame.extend(body);
        Ok(Step { line: line.to_owned(), frame })
    }

    fn is_own(&self) -> bool {
        self.line.starts_with("k ")
    }
}

fn on_host(mode: Mode, host: &str, key: &Path, host_key: &[u8], steps: &[Step], agent: &str) -> io::Result<()> {
    let session = Session::open(host, key, host_key)?;
    if mode == Mode::Exec {
        for step in steps {
            let line = match step.line.split_once(' ') {
                Some(("c", argv)) => argv.to_owned(),
                Some(("f", path)) => format!("stat {path}"),
                _ => return Err(io::Error::other("no program for this step")),
            };
            if session.end(&mut session.start(&line)?)? != 0 {
                return Err(io::Error::other(format!("`{line}` failed on {host}")));
            }
        }
        return Ok(());
    }
    let mut channel = session.start(agent)?;
    if steps.first().is_some_and(Step::is_own) {
        session.read(&mut channel, &mut [0; 14])?;
    }
    for step in steps {
        session.write(&mut channel, &step.frame)?;
        if mode == Mode::Frame {
            answer(&session, &mut channel, step)?;
        }
    }
    if mode == Mode::Pipelined {
        for step in steps {
            answer(&session, &mut channel, step)?;
        }
    }
    Ok(())
}

fn answer(session: &Session, channel: &mut Channel, step: &Step) -> io::Result<()> {
    let mut head = [0; 5];
    let size = if step.is_own() { 5 } else { 4 };
    session.read(channel, &mut head[..size])?;
    let mut body = vec![0; u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize];
    session.read(channel, &mut body)
}

fn unhex(text: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).filter_map(pair).collect()
}
