//! Questions to the person at the terminal: passwords, `vars_prompt`, `--step`, `pause`.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Asks for a password.
///
/// # Errors
/// A sentence for a person where nobody can answer.
pub fn password(question: &str) -> Result<String, String> {
    let typed = line(question, false).ok_or_else(|| format!("{question} nobody is there to answer: no terminal"))?;
    secrets::register(&typed);
    Ok(typed)
}

/// Asks for what `vars_prompt` names and the command line did not give.
///
/// # Errors
/// A sentence for a person when two answers that must be the same are not.
pub fn ask(prompts: &[Prompt], given: &Map) -> Result<Map, String> {
    let mut answers = Map::new();
    for prompt in prompts.iter().filter(|prompt| !given.contains_key(&prompt.name)) {
        let default = prompt.default.as_ref().filter(|default| !matches!(default, Value::Null));
        let shown = match default {
            Some(default) => format!("{} [{default}]:", prompt.prompt),
            None => format!("{}:", prompt.prompt),
        };
        let typed = line(&shown, !prompt.private);
        if prompt.confirm && typed.is_some() && line(&format!("confirm {shown}"), !prompt.private) != typed {
            return Err(format!("the two answers for `{}` differ", prompt.name));
        }
        if prompt.encrypt.is_some() {
            return Err(format!(
                "`vars_prompt`: `encrypt` of `{}` is not supported: use the filter `password_hash`",
                prompt.name
            ));
        }
        let value = match typed.filter(|typed| !typed.is_empty()) {
            Some(typed) => {
                if prompt.private {
                    secrets::register(&typed);
                }
                Value::Str(if prompt.unsafe_ { Str::data(typed) } else { Str::template(typed, Default::default()) })
            }
            None => default.cloned().unwrap_or_else(|| "".into()),
        };
        answers.insert(prompt.name.as_str(), value);
    }
    Ok(answers)
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
