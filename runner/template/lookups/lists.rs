//! Lookups that only rearrange what they are given.

use crate::template::call::{Arguments, Call, Lookup, callable};
use crate::template::error::TemplateError;
use crate::template::filters::random::Source;
use crate::template::live::{Entries, Live, Result};
use crate::template::{filters, percent};
use crate::value::Value;

/// How many items a lookup may make.
const ITEMS_LIMIT: usize = 1_000_000;

pub(super) const LOOKUPS: &[Lookup] = &[
    callable("items", &["*"], |call| flattened(&call.rest, 1)),
    callable("flattened", &["*"], |call| flattened(&call.rest, usize::MAX)),
    callable("list", &["*"], |call| Ok(call.rest.clone())),
    callable("indexed_items", &["*"], |call| {
        let items = flattened(&call.rest, 1)?;
        Ok(items.into_iter().enumerate().map(|(nth, item)| vec![(nth as i64).into(), item].into()).collect())
    }),
    callable("dict", &["*"], dict),
    callable("nested", &["*"], nested),
    callable("cartesian", &["*"], nested),
    callable("together", &["*"], together),
    callable("subelements", &["*"], subelements),
    callable("random_choice", &["*"], |call| {
        let items = flattened(&call.rest, 1)?;
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let mut source = Source::unseeded().map_err(|message| call.fault(message))?;
        Ok(vec![items[source.below(items.len() as u64) as usize].clone()])
    }),
    callable("sequence", &["*", "start", "end", "stride", "count", "format"], sequence),
];

fn flattened(terms: &[Live], levels: usize) -> Result<Vec<Live>> {
    let mut items = Vec::new();
    for term in terms {
        match term.is_list() && levels > 0 {
            true => items.extend(flattened(&term.items()?, levels - 1)?),
            false => items.push(term.clone()),
        }
    }
    Ok(items)
}

fn dict(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let mut items = Vec::new();
    // A list of mappings stands for each of them.
    for term in flattened(&call.rest, 1)? {
        let entries = term.entries().unwrap_or_else(|| {
            Err(call.fault(format!("the lookup plugin expects a dictionary, not '{}'", term.type_name())))
        });
        items.extend(entries?.into_iter().map(|(key, value)| {
            Live::from(Entries::from_iter([(Value::from("key"), Live::Done(key)), (Value::from("value"), value)]))
        }));
    }
    Ok(items)
}

/// Returns terms as lists; a single value is a list of itself.
fn lists(call: &Call<'_>) -> Result<Vec<Vec<Live>>> {
    let terms = match &call.rest[..] {
        // `with_nested` gives all lists as one term.
        [only] if only.is_list() && only.items()?.iter().all(Live::is_list) => only.items()?,
        terms => terms.to_vec(),
    };
    terms.iter().map(|term| if term.is_list() { term.items() } else { Ok(vec![term.clone()]) }).collect()
}

fn nested(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let lists = lists(call)?;
    if lists.is_empty() {
        return Err(call.fault("takes at least one list"));
    }
    let mut rows: Vec<Vec<Live>> = vec![Vec::new()];
    for list in &lists {
        if rows.len().saturating_mul(list.len()) > ITEMS_LIMIT {
            return Err(call.fault(format!("more than {ITEMS_LIMIT} items")));
        }
        rows = rows
            .iter()
            .flat_map(|row| list.iter().map(|item| [&row[..], std::slice::from_ref(item)].concat()))
            .collect();
    }
    // An item that is a list itself is taken apart.
    rows.into_iter().map(|row| flattened(&row, 1).map(Live::from)).collect()
}

fn together(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let lists = lists(call)?;
    if lists.is_empty() {
        return Err(call.fault("takes at least one list"));
    }
    let rows = lists.iter().map(Vec::len).max().unwrap_or(0);
    let row = |nth: usize| {
        let row: Vec<Live> = lists.iter().map(|list| list.get(nth).cloned().unwrap_or(Live::NULL)).collect();
        Live::from(row)
    };
    Ok((0..rows).map(row).collect())
}

fn subelements(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let mut terms = match &call.rest[..] {
        [only] if only.is_list() => only.items()?,
        terms => terms.to_vec(),
    };
    if terms.len() < 2 || terms.len() > 3 {
        return Err(call.fault("takes a list, the name of a list in its items, and perhaps `skip_missing`"));
    }
    let mut named = Vec::new();
    if let Some(options) = terms.get(2)
        && let Some(skip) = options.item(&Value::from("skip_missing"))?
    {
        named.push(("skip_missing".into(), skip));
    }
    let filter = filters::find("subelements").expect("the filter is in the table");
    let input = terms.remove(0);
    let arguments = Arguments { positional: vec![terms.remove(0)], named };
    Call::run(filter, call.evaluator, input, arguments)?.items()
}

/// What a sequence is made of.
struct Sequence {
    start: i64,
    end: Option<i64>,
    count: Option<i64>,
    stride: i64,
    format: String,
}

fn sequence(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let mut wanted = Sequence { start: 1, end: None, count: None, stride: 1, format: "%d".to_owned() };
    for term in super::files::terms(call)? {
        if !shortly(&term, &mut wanted) {
            for (name, value) in super::settings(call, &term)? {
                set(call, &mut wanted, &name, &value)?;
            }
        }
    }
    for (nth, name) in ["start", "end", "stride", "count", "format"].into_iter().enumerate() {
        if let Some(value) = call.text_at(nth)? {
            set(call, &mut wanted, name, &value)?;
        }
    }
    let end = match (wanted.count, wanted.end) {
        (Some(_), Some(_)) => return Err(call.fault("`count` and `end` can't both be given")),
        (Some(0), None) => return Ok(Vec::new()),
        (Some(count), None) => wanted.start + count * wanted.stride - wanted.stride,
        (None, Some(end)) => end,
        (None, None) => return Err(call.fault("takes `count` or `end`")),
    };
    if wanted.stride == 0 || (wanted.stride > 0 && end < wanted.start) || (wanted.stride < 0 && end > wanted.start) {
        let (start, stride) = (wanted.start, wanted.stride);
        return Err(call.fault(format!("no way from {start} to {end} in steps of {stride}")));
    }
    let mut items = Vec::new();
    let mut at = wanted.start;
    while (wanted.stride > 0 && at <= end) || (wanted.stride < 0 && at >= end) {
        let text = percent::format(&wanted.format, &Value::Int(at), false).map_err(|message| call.fault(message))?;
        items.push(text.into());
        if items.len() > ITEMS_LIMIT {
            return Err(call.fault(format!("more than {ITEMS_LIMIT} items")));
        }
        at += wanted.stride;
    }
    Ok(items)
}

fn set(call: &Call<'_>, wanted: &mut Sequence, name: &str, value: &str) -> std::result::Result<(), TemplateError> {
    let number = || whole(value).ok_or_else(|| call.fault(format!("`{name}` must be an integer, not `{value}`")));
    match name {
        "start" => wanted.start = number()?,
        "end" => wanted.end = Some(number()?),
        "count" => wanted.count = Some(number()?),
        "stride" => wanted.stride = number()?,
        "format" => wanted.format = value.to_owned(),
        _ => return Err(call.fault(format!("no argument named `{name}`"))),
    }
    Ok(())
}

fn whole(text: &str) -> Option<i64> {
    let (digits, base) = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 8),
        (None, None) => (text, 10),
    };
    i64::from_str_radix(digits, base).ok()
}

/// Takes `[start-]end[/stride][:format]`; returns whether the text is one.
fn shortly(text: &str, wanted: &mut Sequence) -> bool {
    let (numbers, format) = text.split_once(':').map_or((text, None), |(numbers, format)| (numbers, Some(format)));
    let (range, stride) = numbers.split_once('/').map_or((numbers, None), |(range, stride)| (range, Some(stride)));
    let (start, end) = match range.char_indices().skip(1).find(|(_, c)| *c == '-') {
        Some((at, _)) => (Some(&range[..at]), &range[at + 1..]),
        None => (None, range),
    };
    let (Some(end), Some(start), Some(stride)) =
        (whole(end), start.map_or(Some(1), whole), stride.map_or(Some(1), whole))
    else {
        return false;
    };
    (wanted.start, wanted.end, wanted.stride) = (start, Some(end), stride);
    if let Some(format) = format {
        wanted.format = format.to_owned();
    }
    true
}
