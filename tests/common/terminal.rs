//! The program on a terminal of its own, with somebody who types.

use std::io::Write;
use std::process::{Command, Stdio};

use super::program::{Project, until};

impl Project {
    /// Runs the program on a terminal. Each answer is typed when its question has been asked; one that begins with `*`
    /// waits, without it, until the terminal hides what is typed. Returns the exit status, and what was shown, without
    /// what moves the cursor or colours.
    pub fn converse(&self, arguments: &str, answers: &[(&str, &str)]) -> (i32, String) {
        let program = env!("CARGO_BIN_EXE_kubeon-run");
        self.converse_with(&format!("{program} -i hosts {arguments}; echo \"status $?.\""), answers)
    }

    /// As [`Project::converse`] for a shell's line, which ends by saying `status N.`
    pub fn converse_with(&self, line: &str, answers: &[(&str, &str)]) -> (i32, String) {
        self.write("typescript", "");
        let mut child = self.on_terminal(line).stdin(Stdio::piped()).spawn().expect("`script` of util-linux");
        let mut typing = child.stdin.take().expect("its input");
        let mut from = 0;
        for (question, answer) in answers {
            until(question, || match plain(&self.read("typescript"))[from..].find(question) {
                Some(at) => {
                    from += at + question.len();
                    true
                }
                None => false,
            });
            if answer.starts_with('*') {
                until("a terminal that hides", || self.hides());
            }
            typing.write_all(format!("{}\n", answer.trim_start_matches('*')).as_bytes()).expect("somebody reads");
        }
        let mut code = None;
        until("the end", || {
            code = status(&self.read("typescript"));
            code.is_some()
        });
        drop(typing);
        child.wait().expect("an end");
        (code.expect("it has ended"), plain(&self.read("typescript")))
    }

    /// Returns whether the terminal does not show what is typed.
    fn hides(&self) -> bool {
        let output = Command::new("stty").args(["-a", "-F", self.read("tty").trim()]).output().expect("`stty`");
        String::from_utf8_lossy(&output.stdout).contains(" -echo ")
    }

    /// Returns `script`, which runs a shell's line on a terminal and writes what it shows to `typescript`.
    pub fn on_terminal(&self, line: &str) -> Command {
        let mut command = Command::new("script");
        for (name, value) in self.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))) {
            command.env(name, value);
        }
        command
            .env("TERM", "xterm")
            .current_dir(self.folder.path())
            .args(["-q", "-f", "-e", "-c", &format!("tty > tty; stty rows 24 cols 100; {line}"), "typescript"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }
}

/// Returns text without what moves the cursor or colours.
pub fn plain(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        shown.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |end| end + 1);
        rest = &rest[end..];
    }
    shown.push_str(rest);
    shown.replace("\r\n", "\n").replace('\r', "\n")
}

/// Returns the status that a shell's line said at its end.
fn status(typescript: &str) -> Option<i32> {
    let (_, last) = typescript.rsplit_once("status ")?;
    last.split_once('.')?.0.parse().ok()
}
