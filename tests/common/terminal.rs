//! The program on a terminal of its own, with somebody who types.

use std::io::Write;
use std::process::{Command, Stdio};

use super::program::{Project, until};

impl Project {
    /// Runs the program on a terminal. Each answer is typed when its question has been asked. Returns the exit status,
    /// and what was shown, without what moves the cursor or colours.
    pub fn converse(&self, arguments: &str, answers: &[(&str, &str)]) -> (i32, String) {
        self.write("typescript", "");
        let program = env!("CARGO_BIN_EXE_kubeon-run");
        let mut child = self
            .on_terminal(&format!("{program} -i hosts {arguments}; echo \"code $?\""))
            .stdin(Stdio::piped())
            .spawn()
            .expect("`script` of util-linux");
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
            typing.write_all(format!("{answer}\n").as_bytes()).expect("somebody reads");
        }
        until("the end", || self.read("typescript").contains("\ncode "));
        drop(typing);
        child.wait().expect("an end");
        let text = plain(&self.read("typescript"));
        let code = text.rsplit_once("\ncode ").and_then(|(_, code)| code.split_whitespace().next()?.parse().ok());
        (code.expect("a status"), text)
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
            .args(["-q", "-f", "-e", "-c", &format!("stty rows 24 cols 100; {line}"), "typescript"])
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
