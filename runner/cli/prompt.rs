//! Questions to the person at the terminal: passwords, `vars_prompt`, `--step`, `pause`.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::playbook::Prompt;
use crate::report::secrets;
use crate::value::{Map, Str, Value};

/// Asks for a line; `None` where nobody can answer.
pub fn line(question: &str, echo: bool) -> Option<String> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    let typed = if echo {
        let mut out = std::io::stderr();
        write!(out, "{question} ").and_then(|()| out.flush()).ok()?;
        let mut typed = String::new();
        std::io::stdin().lock().read_line(&mut typed).ok()?;
        typed
    } else {
        rpassword::prompt_password(format!("{question} ")).ok()?
    };
    Some(typed.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks for a command; `None` at the end of what is typed, and where nobody is there to type.
pub fn command(question: &str) -> Option<String> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    let mut out = std::io::stderr();
    write!(out, "{question}").and_then(|()| out.flush()).ok()?;
    let mut typed = String::new();
    let read = std::io::stdin().lock().read_line(&mut typed).ok()?;
    (read > 0).then(|| typed.trim().to_owned())
}

/// Asks for a password.
///
/// # Errors
/// A sentence for a person where nobody can answer.
pub fn password(question: &str) -> Result<String, String> {
    let typed = line(question, false).ok_or_else(|| format!("{question} nobody is there to answer: no terminal"))?;
    secrets::register(&typed);
    Ok(typed)
}

/// Asks for a password that further parts of the same invocation need, too; the same question is asked once.
///
/// # Errors
/// As [`password`].
pub fn password_once(question: &str) -> Result<String, String> {
    static TYPED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    remembered(&mut TYPED.lock().unwrap_or_else(PoisonError::into_inner), question, || password(question))
}

/// Asks for a secret that a program may answer: at the terminal, wherever standard input comes from; without one,
/// standard input's next line is the answer, as in Ansible.
///
/// # Errors
/// A sentence for a person where nobody can answer.
pub fn secret(question: &str) -> Result<String, String> {
    if std::fs::File::open("/dev/tty").is_ok() {
        let typed = rpassword::prompt_password(format!("{question} "));
        let typed = typed.map_err(|error| format!("{question} {error}"))?;
        secrets::register(&typed);
        return Ok(typed);
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line).map_err(|error| format!("{question} {error}"))?;
    let typed = line.trim_end_matches(['\r', '\n']);
    if read == 0 {
        return Err(format!("{question} nobody is there to answer: no terminal"));
    }
    secrets::register(typed);
    Ok(typed.to_owned())
}

/// As [`secret`]; the same question is asked once.
///
/// # Errors
/// As [`secret`].
pub fn secret_once(question: &str) -> Result<String, String> {
    static TYPED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    remembered(&mut TYPED.lock().unwrap_or_else(PoisonError::into_inner), question, || secret(question))
}

fn remembered(
    typed: &mut BTreeMap<String, String>,
    question: &str,
    ask: impl FnOnce() -> Result<String, String>,
) -> Result<String, String> {
    if let Some(known) = typed.get(question) {
        return Ok(known.clone());
    }
    let answer = ask()?;
    typed.insert(question.to_owned(), answer.clone());
    Ok(answer)
}

/// Asks for what `vars_prompt` names and the command line did not give. Where nobody can answer, defaults count.
///
/// # Errors
/// A sentence for a person when an answer can't be hashed as it is to be.
pub fn ask(prompts: &[Prompt], given: &Map) -> Result<Map, String> {
    let mut answers = Map::new();
    for prompt in prompts.iter().filter(|prompt| !given.contains_key(&prompt.name)) {
        let default = prompt.default.as_ref().filter(|default| !matches!(default, Value::Null));
        let typed = typed(prompt, default).filter(|typed| !typed.is_empty());
        let value = match (&prompt.encrypt, typed) {
            (Some(sort), typed) => {
                let plain = typed.or_else(|| default.map(Value::to_string)).unwrap_or_default();
                secrets::register(&plain);
                hashed(prompt, sort, &plain)?
            }
            (None, Some(typed)) => {
                if prompt.private {
                    secrets::register(&typed);
                }
                Value::Str(if prompt.unsafe_ { Str::data(typed) } else { Str::template(typed, Default::default()) })
            }
            (None, None) => default.cloned().unwrap_or_else(|| "".into()),
        };
        answers.insert(prompt.name.as_str(), value);
    }
    Ok(answers)
}

/// Returns what is typed, twice the same where that is wanted.
fn typed(prompt: &Prompt, default: Option<&Value>) -> Option<String> {
    let shown = match default {
        Some(default) => format!("{} [{default}]:", prompt.prompt),
        None => format!("{}:", prompt.prompt),
    };
    loop {
        let typed = line(&shown, !prompt.private)?;
        if !prompt.confirm || line(&format!("confirm {shown}"), !prompt.private)? == typed {
            return Some(typed);
        }
        writeln!(std::io::stderr(), "***** VALUES ENTERED DO NOT MATCH ****").ok()?;
    }
}

/// Returns the hash of what was typed: data, since no template is in it.
fn hashed(prompt: &Prompt, sort: &str, plain: &str) -> Result<Value, String> {
    let hash = crate::template::Scheme::named(sort).and_then(|scheme| {
        let salt = prompt.salt.clone().map_or_else(|| scheme.random_salt(Some(prompt.salt_size)), Ok)?;
        scheme.hash(plain, &salt, None, None)
    });
    hash.map(|hash| Value::Str(Str::data(hash))).map_err(|error| format!("`vars_prompt` of `{}`: {error}", prompt.name))
}

/// Asks whether a task is to run: yes, no, or all from here on.
pub fn step(name: &str) -> bool {
    static GO_ON: AtomicBool = AtomicBool::new(false);
    if GO_ON.load(Ordering::Relaxed) {
        return true;
    }
    match line(&format!("Perform task: {name} (N)o/(y)es/(c)ontinue:"), true).as_deref().map(str::trim) {
        Some("y" | "yes") => true,
        Some("c" | "continue") => {
            GO_ON.store(true, Ordering::Relaxed);
            true
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_asked_for_once_and_a_failure_is_not_kept() {
        let mut typed = BTreeMap::new();
        let mut asked = 0;
        let mut ask = |question: &str, answer: Result<&str, &str>| {
            remembered(&mut typed, question, || {
                asked += 1;
                answer.map(str::to_owned).map_err(str::to_owned)
            })
        };
        assert!(ask("SSH password:", Err("nobody is there")).is_err());
        assert_eq!(ask("SSH password:", Ok("one")).as_deref(), Ok("one"));
        assert_eq!(ask("SSH password:", Ok("two")).as_deref(), Ok("one"));
        assert_eq!(ask("BECOME password:", Ok("three")).as_deref(), Ok("three"));
        assert_eq!(asked, 3);
    }
}
