//! `kubeon-run console`: one module after another, typed as lines, on hosts that a pattern chooses.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use super::Problem;
use super::args::{AdhocArguments, ConsoleArguments};
use super::run_args::RunArguments;
use super::{run, settings};
use crate::inventory::{self, Inventory};
use crate::source::{Severity, nearest};
use crate::{action, doc, report};

/// Commands beside the names of modules, and what they do.
const COMMANDS: &[(&str, &str)] = &[
    ("become yes|no", "work as another user"),
    ("become_method NAME", "how to become that user"),
    ("become_user NAME", "which user to become"),
    ("cd [PATTERN]", "choose hosts; all of them without a pattern"),
    ("check yes|no", "change nothing: say what would change"),
    ("diff yes|no", "show differences in files"),
    ("exit", "leave; so does the end of the input"),
    ("forks NUMBER", "how many hosts are worked on at once; also as serial"),
    ("help [NAME]", "show this, or a module's page"),
    ("list [groups]", "show the chosen hosts, or all groups"),
    ("remote_user NAME", "connect as this user"),
    ("shell LINE", "run a line in a shell; so does `! LINE`, and any line that begins with no other word"),
    ("timeout SECONDS", "seconds after which a task fails; 0 for none"),
    ("verbosity NUMBER", "say more"),
];

const HOST_LIST: &str = "all";

/// What holds from line to line.
struct Console {
    args: RunArguments,
    playbook_dir: Option<PathBuf>,
    task_timeout: Option<u64>,
    pattern: String,
}

/// What follows a line.
enum Next {
    Line,
    End,
}

/// Reads lines until there are none, and does what they say.
pub fn console(args: ConsoleArguments) -> Result<u8, Problem> {
    let ConsoleArguments { task_timeout, playbook_dir, run: mut args } = args;
    run::no_playbook(&args)?;
    let pattern = match &args.playbooks[..] {
        [] => HOST_LIST.to_owned(),
        [pattern] => pattern.to_string_lossy().into_owned(),
        [_, second, ..] => {
            let message = format!("`{}`: one pattern chooses the hosts, as in `web:db`", second.display());
            return Err(Problem::usage(message));
        }
    };
    args.playbooks.clear();
    let mut console = Console { args, playbook_dir, task_timeout, pattern };
    // What is wrong with the settings and the inventory ends it; a line that is wrong does not.
    let watched = std::io::stdin().is_terminal();
    console.pattern = plain_pattern(&console)?;
    console.hosts(&console.pattern)?;
    if watched {
        report::say("Lines run modules on the chosen hosts. `help` lists the commands.");
    }
    let mut lines = std::io::stdin().lock().lines();
    loop {
        if watched {
            console.prompt()?;
        }
        let Some(line) = lines.next() else { break };
        let line = line.map_err(|error| Problem::new(format!("read a line: {error}")))?;
        match console.line(line.trim()) {
            Ok(Next::Line) => {}
            Ok(Next::End) => return Ok(0),
            Err(Problem { message, .. }) => report::complain(&message),
        }
    }
    if watched {
        report::say("");
    }
    Ok(0)
}

/// Returns the pattern, with the variables of the command line where it is a template.
fn plain_pattern(console: &Console) -> Result<String, Problem> {
    if !crate::value::may_be_template(&console.pattern) {
        return Ok(console.pattern.clone());
    }
    let vars = settings::gather(&console.args)?.run.extra_vars;
    let templar = crate::template::Templar::new(
        std::sync::Arc::new(crate::vars::Fixed(vars)),
        std::sync::Arc::new(crate::template::Folders::default()),
    );
    let text = crate::value::Str::template(console.pattern.as_str(), crate::source::Place::default());
    templar.text(&crate::value::Value::Str(text)).map_err(|error| Problem::new(error.message))
}

impl Console {
    fn inventory(&self) -> Result<(Inventory, Option<String>), Problem> {
        let settings = settings::gather(&self.args)?;
        let folders = [self.playbook_dir.clone().unwrap_or_default()];
        let reading = &settings.run.inventory_reading;
        let (inventory, problems) = inventory::read(&settings.inventory, &folders, reading, &settings.load.vault);
        let (errors, _): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| problem.severity == Severity::Error);
        if !errors.is_empty() {
            report::show_diagnostics(&errors);
            return Err(Problem::new("the inventory has mistakes"));
        }
        Ok((inventory, settings.run.limit))
    }

    /// Returns the hosts that a pattern chooses.
    fn hosts(&self, pattern: &str) -> Result<Vec<String>, Problem> {
        let (inventory, limit) = self.inventory()?;
        let hosts = inventory.select(pattern, limit.as_deref()).map_err(Problem::new)?;
        Ok(hosts.iter().map(ToString::to_string).collect())
    }

    fn prompt(&self) -> Result<(), Problem> {
        let settings = settings::gather(&self.args)?;
        let user = settings.run.connect.remote_user.or_else(|| std::env::var("USER").ok()).unwrap_or_default();
        let count = self.hosts(&self.pattern).map_or(0, |hosts| hosts.len());
        let mark = if self.args.reach.become_ { '#' } else { '$' };
        let mut out = std::io::stdout().lock();
        let shown = write!(out, "{user}@{} ({count})[f:{}]{mark} ", self.pattern, settings.run.forks);
        shown.and_then(|()| out.flush()).map_err(|error| Problem::new(format!("write to the terminal: {error}")))
    }

    /// Does what a line says.
    fn line(&mut self, line: &str) -> Result<Next, Problem> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(Next::Line);
        }
        if let Some(shell) = line.strip_prefix('!') {
            return self.module("shell", shell.trim());
        }
        if let Some(topic) = line.strip_prefix('?') {
            return help(topic.trim());
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "exit" | "EOF" => return Ok(Next::End),
            "help" => return help(rest),
            "list" => self.list(rest)?,
            "cd" => self.choose(rest)?,
            "become" => self.args.reach.become_ = switch(word, rest)?,
            "check" => self.args.check = switch(word, rest)?,
            "diff" => self.args.diff = switch(word, rest)?,
            "become_method" => self.args.reach.become_method = Some(given(word, rest)?),
            "become_user" => self.args.reach.become_user = Some(given(word, rest)?),
            "remote_user" => self.args.reach.user = Some(given(word, rest)?),
            "forks" | "serial" => match number(word, rest)? {
                0 => return Err(Problem::usage("`forks` is 0: no host could be worked on")),
                forks => self.args.reach.forks = Some(forks),
            },
            "verbosity" => self.args.verbose = u8::try_from(number(word, rest)?).unwrap_or(u8::MAX),
            "timeout" => self.task_timeout = Some(number(word, rest)? as u64).filter(|seconds| *seconds > 0),
            // Every module is known by its whole name here.
            "collections" => {}
            _ if action::canonical(word).is_some() => return self.module(word, rest),
            _ => return self.module("shell", line),
        }
        Ok(Next::Line)
    }

    fn list(&self, what: &str) -> Result<(), Problem> {
        let mut names: Vec<String> = match what {
            "" => self.hosts(&self.pattern)?,
            "groups" => self.inventory()?.0.group_list().iter().map(ToString::to_string).collect(),
            other => return Err(Problem::usage(format!("`list {other}`: there are `list` and `list groups`"))),
        };
        if what == "groups" {
            names.sort();
        }
        report::say(&names.join("\n"));
        Ok(())
    }

    fn choose(&mut self, pattern: &str) -> Result<(), Problem> {
        let pattern = if matches!(pattern, "" | "/" | "*") { HOST_LIST } else { pattern };
        if pattern != HOST_LIST && self.hosts(pattern)?.is_empty() {
            return Err(Problem::new(format!("no host matches `{pattern}`: `list groups` shows the groups")));
        }
        self.pattern = pattern.to_owned();
        Ok(())
    }

    /// Runs a module on the chosen hosts. How that ends on a host is told, and ends nothing here.
    fn module(&self, name: &str, arguments: &str) -> Result<Next, Problem> {
        let mut run = self.args.clone();
        run.playbooks = vec![self.pattern.clone().into()];
        run::adhoc(AdhocArguments {
            module_name: name.to_owned(),
            module_args: arguments.to_owned(),
            background: None,
            poll: None,
            one_line: false,
            task_timeout: self.task_timeout,
            playbook_dir: self.playbook_dir.clone(),
            run,
        })?;
        Ok(Next::Line)
    }
}

fn help(topic: &str) -> Result<Next, Problem> {
    if topic.is_empty() {
        let lines: Vec<String> = COMMANDS.iter().map(|(command, does)| format!("{command:<20} {does}")).collect();
        report::say(&lines.join("\n"));
        report::say(
            "MODULE [ARGUMENTS]   run a module, as in `copy content=x dest=/tmp/x`; `kubeon-run doc` lists them",
        );
        return Ok(Next::Line);
    }
    let named = |command: &&(&str, &str)| command.0.split(' ').next() == Some(topic);
    if let Some((command, does)) = COMMANDS.iter().find(named) {
        report::say(&format!("{command}: {does}"));
    } else if let Some(page) = doc::page(topic) {
        report::say(page.trim_end());
    } else {
        let meant = nearest(topic, action::names()).map(|meant| format!("; did you mean `{meant}`?"));
        return Err(Problem::new(format!("no command and no module `{topic}`{}", meant.unwrap_or_default())));
    }
    Ok(Next::Line)
}

fn given(word: &str, rest: &str) -> Result<String, Problem> {
    match rest {
        "" => Err(Problem::usage(format!("`{word}` needs a name"))),
        name => Ok(name.to_owned()),
    }
}

fn switch(word: &str, rest: &str) -> Result<bool, Problem> {
    match rest.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err(Problem::usage(format!("`{word}` is yes or no, as in `{word} yes`"))),
    }
}

fn number(word: &str, rest: &str) -> Result<usize, Problem> {
    rest.parse().map_err(|_| Problem::usage(format!("`{word}` needs a number, as in `{word} 5`")))
}
