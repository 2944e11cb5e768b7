//! Filters of regular expressions.

use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::template::regex::{compiled, expanded};
use crate::value::Value;

pub(super) const FILTERS: &[Filter] = &[
    callable(
        "regex_replace",
        &["pattern", "replacement", "ignorecase", "multiline", "count", "mandatory_count"],
        regex_replace,
    ),
    callable("regex_search", &["regex", "*", "ignorecase", "multiline"], regex_search),
    callable("regex_findall", &["regex", "multiline", "ignorecase"], regex_findall),
    callable("regex_escape", &["re_type"], regex_escape),
];

fn regex_replace(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let (pattern, replacement) = (call.text_or(0, "")?, call.text_or(1, "")?);
    let regex = compiled(call, &pattern, call.bool_or(2, false)?, call.bool_or(3, false)?)?;
    let most = call.int_at(4)?.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
    let mut out = String::with_capacity(text.len());
    let mut last = 0;
    let mut count = 0_usize;
    for found in regex.captures_iter(text.as_str()) {
        let found = found.map_err(|error| call.fault(format!("pattern `{pattern}`: {error}")))?;
        let Some(whole) = found.get(0) else { break };
        if most.is_some_and(|most| count >= most) {
            break;
        }
        out.push_str(&text[last..whole.start()]);
        out.push_str(&expanded(&replacement, &found).map_err(|message| call.fault(message))?);
        last = whole.end();
        count += 1;
    }
    let wanted = call.int_at(5)?.unwrap_or(0);
    if wanted != 0 && wanted != count as i64 {
        return Err(call.fault(format!("'{pattern}' should match {wanted} times, but matches {count} times")));
    }
    out.push_str(&text[last..]);
    Ok(out.into())
}

fn regex_search(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let pattern = call.required(0)?.text()?;
    let regex = compiled(call, &pattern, call.bool_or(1, false)?, call.bool_or(2, false)?)?;
    let found = regex.captures(text.as_str()).map_err(|error| call.fault(format!("pattern `{pattern}`: {error}")))?;
    let Some(found) = found else { return Ok(Live::NULL) };
    let text_of = |group: Option<fancy_regex::Match<'_>>| group.map_or(Value::Null, |group| group.as_str().into());
    if call.rest.is_empty() {
        return Ok(Live::Done(text_of(found.get(0))));
    }
    let mut groups = Vec::new();
    for wanted in &call.rest {
        let wanted = wanted.text()?;
        let group = if let Some(name) = wanted.strip_prefix("\\g<") {
            let name = name.trim_end_matches('>');
            match name.parse::<usize>() {
                Ok(nth) => found.get(nth),
                Err(_) => found.name(name),
            }
        } else if let Some(nth) = wanted.strip_prefix('\\').and_then(|nth| nth.parse::<usize>().ok()) {
            if nth >= found.len() {
                return Err(call.fault(format!("no group `{wanted}` in `{pattern}`")));
            }
            found.get(nth)
        } else {
            return Err(call.fault(format!("`{wanted}` is no group, such as `\\1` or `\\g<name>`")));
        };
        groups.push(text_of(group));
    }
    Ok(Live::Done(Value::list(groups)))
}

fn regex_findall(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let pattern = call.required(0)?.text()?;
    let regex = compiled(call, &pattern, call.bool_or(2, false)?, call.bool_or(1, false)?)?;
    let mut all = Vec::new();
    for found in regex.captures_iter(text.as_str()) {
        let found = found.map_err(|error| call.fault(format!("pattern `{pattern}`: {error}")))?;
        let group = |nth: usize| Live::from(found.get(nth).map_or("", |group| group.as_str()));
        all.push(match found.len() {
            1 => group(0),
            2 => group(1),
            groups => Live::tuple((1..groups).map(group)),
        });
    }
    Ok(all.into())
}

fn regex_escape(call: &mut Call<'_>) -> Result<Live> {
    let text = call.text()?;
    let marks = match call.text_or(0, "python")?.as_str() {
        "python" => "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}",
        "posix_basic" => ".[]*^$\\",
        "posix_extended" => return Err(call.fault("Regex type (posix_extended) not yet implemented")),
        other => {
            let error = call.fault(format!("Invalid regex type ({other})"));
            return Err(error.help("`re_type` is python or posix_basic"));
        }
    };
    let mut out = String::new();
    for c in text.chars() {
        if marks.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    Ok(out.into())
}
