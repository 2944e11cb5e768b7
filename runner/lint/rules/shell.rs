//! What a shell makes of a text that was meant otherwise.

use crate::lint::{Call, Check, Edit, Found, Rule, Task, Weight, text};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "command-instead-of-shell",
        also: &[],
        weight: Weight::Warning,
        what: "`shell` for a line in which no shell is needed",
        why: "a value with a blank or a `;` in it becomes more words, or another command",
        fix: "use `command`",
        mends: true,
        check: Check::Task(instead_of_shell),
    },
    Rule {
        id: "risky-shell-pipe",
        also: &[],
        weight: Weight::Warning,
        what: "a pipe whose first part may fail unseen",
        why: "the status of a pipe is that of its last command: the task is ok when the first one failed",
        fix: "begin with `set -o pipefail` under `executable: /bin/bash`, or part the commands",
        mends: false,
        check: Check::Task(pipe),
    },
    Rule {
        id: "download-to-shell",
        also: &[],
        weight: Weight::Error,
        what: "a download that is run as it comes in",
        why: "whoever answers runs commands there, half a script runs when the connection breaks, and no checksum is looked at",
        fix: "`get_url` with `checksum`, look at it, then run it with `creates`",
        mends: false,
        check: Check::Task(download),
    },
    Rule {
        id: "shell-template-unquoted",
        also: &[],
        weight: Weight::Warning,
        what: "a value in a shell's line without `quote`",
        why: "a blank, a quote or a `;` in the value becomes part of the command",
        fix: "`{{ value | quote }}`, or `command`, whose words are no shell's",
        mends: false,
        check: Check::Task(template_unquoted),
    },
    Rule {
        id: "shell-variable-unquoted",
        also: &[],
        weight: Weight::Note,
        what: "a shell's variable without quotes around it",
        why: "it is split at blanks, its `*` are names of files, and an empty one is no word at all: `rm -rf $dir/x` of nothing is `/x`",
        fix: "`\"$variable\"`",
        mends: false,
        check: Check::Task(variable_unquoted),
    },
];

/// Words that only a shell has.
const BUILT_IN: &[&str] = &[
    ".", "source", "cd", "export", "set", "unset", "type", "ulimit", "umask", "alias", "eval", "exec", "trap", "wait",
    "command", "if", "for", "while", "until", "case", "[[", "function", "exit", "read", "shopt", "local", "declare",
    "builtin", "time",
];

/// Marks that mean something to a shell.
const MARKS: &str = "&|<>;$\n*?[]~`(){}#!\\";

fn shell<'t>(task: &'t Task<'_>) -> Option<&'t Call<'t>> {
    task.calls(&["shell"])
}

fn instead_of_shell(task: &Task<'_>, found: &mut Found) {
    let Some(call) = shell(task) else { return };
    let Some((line, node)) = call.line() else { return };
    let plain = text::without_templates(line.trim());
    let first = plain.split_whitespace().next().unwrap_or_default();
    // A template may hold anything: one alone is the whole line.
    let needed = plain.contains(|c: char| MARKS.contains(c))
        || BUILT_IN.contains(&first)
        || first.contains(['=', '\u{1}'])
        || call.text("executable").is_some();
    if needed {
        return;
    }
    let written = call.written();
    let message = format!("`{written}` where no shell is needed");
    let edit = match written.strip_suffix("shell") {
        Some(before) => vec![Edit::new(call.key.place, &*written, format!("{before}command"))],
        // `action: shell …`
        None => Vec::new(),
    };
    let place = if edit.is_empty() { node.place } else { call.key.place };
    found.mend(place, 0, message, edit);
}

/// Returns a line with what is in quotes, in comments or in templates made invisible; every byte keeps its place.
fn bare(line: &str) -> String {
    let mut bare = String::new();
    let mut quote: Option<char> = None;
    let (mut comment, mut escaped, mut before) = (false, false, ' ');
    for c in text::without_templates(line).chars() {
        comment &= c != '\n';
        let hidden = std::mem::take(&mut escaped) || comment;
        match (quote, c) {
            _ if hidden => bare.extend(std::iter::repeat_n('\u{1}', c.len_utf8())),
            (Some(open), c) if c == open => {
                quote = None;
                bare.push(c);
            }
            (Some(_), '\n') => bare.push(c),
            (Some(open), c) => {
                escaped = c == '\\' && open == '"';
                bare.extend(std::iter::repeat_n('\u{1}', c.len_utf8()));
            }
            (None, '\\') => {
                escaped = true;
                bare.push('\u{1}');
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                bare.push(c);
            }
            (None, '#') if before.is_whitespace() => {
                comment = true;
                bare.push('\u{1}');
            }
            (None, c) => bare.push(c),
        }
        before = c;
    }
    bare
}

/// Returns where the first pipe is.
fn pipe_of(bare: &str) -> Option<usize> {
    let bytes = bare.as_bytes();
    (0..bytes.len()).find(|&at| {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        bytes[at] == b'|' && bytes.get(at + 1) != Some(&b'|') && !matches!(before, Some(b'|' | b'>'))
    })
}

fn pipe(task: &Task<'_>, found: &mut Found) {
    let Some((line, node)) = shell(task).and_then(Call::line) else { return };
    if let Some(at) = pipe_of(&bare(line)).filter(|_| !line.contains("pipefail")) {
        found.tell(text::within(node, at), 1, "a pipe without `pipefail`");
    }
}

fn download(task: &Task<'_>, found: &mut Found) {
    let Some((line, node)) = task.calls(&["shell", "raw", "command"]).and_then(|call| call.line()) else { return };
    let stages: Vec<&str> = line.split(['|', '\n', ';', '&']).map(str::trim).collect();
    let program = |stage: &str| {
        let mut words = stage
            .split_whitespace()
            .skip_while(|word| matches!(*word, "sudo" | "env" | "exec") || word.starts_with('-') || word.contains('='));
        words.next().map(|word| word.rsplit('/').next().unwrap_or(word).to_owned()).unwrap_or_default()
    };
    let fetches = |stage: &str| matches!(&*program(stage), "curl" | "wget");
    let runs = |stage: &str| {
        matches!(&*program(stage), "sh" | "bash" | "dash" | "zsh" | "ksh" | "python" | "python3" | "perl")
    };
    let piped = line.contains('|') && stages.windows(2).any(|pair| fetches(pair[0]) && runs(pair[1]));
    let substituted = ["<(curl", "<(wget", "$(curl", "$(wget", "`curl", "`wget"].iter().any(|mark| {
        line.contains(mark)
            && stages.iter().any(|stage| runs(stage) || stage.starts_with("source ") || stage.starts_with("eval "))
    });
    if piped || substituted {
        found.tell(node.place, 0, "what is downloaded is run unseen");
    }
}

fn template_unquoted(task: &Task<'_>, found: &mut Found) {
    let Some((line, node)) = shell(task).and_then(Call::line) else { return };
    let mut quote: Option<char> = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some(end) = rest.strip_prefix("{{").and_then(|inner| inner.find("}}")) {
            let inner = rest[2..2 + end].trim();
            if quote.is_none() && !inner.contains("quote") && !is_harmless(inner) {
                let place = text::within(node, line.len() - rest.len());
                found.tell(place, rest[..end + 4].chars().count(), format!("`{{{{ {inner} }}}}` without `quote`"));
                return;
            }
            rest = &rest[end + 4..];
            continue;
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
}

/// Returns whether what an expression gives can't be anything but a word.
fn is_harmless(expression: &str) -> bool {
    let filter = expression.rsplit('|').next().unwrap_or_default().trim();
    expression.contains('|')
        && ["int", "bool", "length", "count", "b64encode", "hash", "checksum", "to_uuid"]
            .iter()
            .any(|name| filter == *name || filter.starts_with(&format!("{name}(")))
}

fn variable_unquoted(task: &Task<'_>, found: &mut Found) {
    let Some((line, node)) = shell(task).and_then(Call::line) else { return };
    let bare = bare(line);
    let mut word = 0;
    for (at, c) in bare.char_indices() {
        if c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(') {
            word = at + c.len_utf8();
            continue;
        }
        let rest = &bare[at..];
        let begins = rest
            .strip_prefix('$')
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{')));
        // An assignment is not split, nor is what a number is made of.
        let assigns = bare[word..at]
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        if begins && !assigns && !is_deliberate(&bare[..at]) {
            let own = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '{' | '}');
            let name: String = rest[1..].chars().take_while(|c| own(*c)).collect();
            let message = format!("`${name}` without quotes around it");
            found.tell(text::within(node, at), name.len() + 1, message);
            return;
        }
    }
}

/// Returns whether a variable after this is split on purpose, or not at all: `for x in $list`, `case $x`, `[[ $x`, `$((`.
fn is_deliberate(text: &str) -> bool {
    let line = text.rsplit(['\n', ';']).next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let loops = words.first().is_some_and(|word| matches!(*word, "for" | "case"));
    let within = |open: &str, close: &str| text.rfind(open).is_some_and(|at| !text[at..].contains(close));
    loops || within("[[", "]]") || within("$((", "))")
}
