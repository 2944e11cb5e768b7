//! How deep an expression goes, told from its text: minijinja's parser and the tree that it makes take stack for each
//! operator of a chain such as `a ~ b ~ c`, as for each bracket.

/// How deep an expression may go.
pub(super) const LIMIT: usize = 1000;
/// How deep it may go on any thread's stack.
const USUAL: usize = 60;
/// The stack on which deeper ones are read.
const STACK_BYTES: usize = 64 << 20;

/// Where expressions begin and end in a text.
pub(super) struct Marks<'a> {
    pub pairs: [(&'a str, &'a str); 2],
}

/// Reads a text, on a stack that is large enough for what is in it; `None` when none is.
pub(super) fn read<T: Send>(depth: usize, read: impl FnOnce() -> T + Send) -> Option<T> {
    if depth <= USUAL {
        return Some(read());
    }
    if depth > LIMIT {
        return None;
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, read).ok()?;
        match thread.join() {
            Ok(read) => Some(read),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Returns how deep the deepest of a template's expressions goes at most, `elif` behind `elif` counted as well.
pub(super) fn of_template(text: &str, marks: &Marks<'_>) -> usize {
    let from = |at: usize, start: &str| match start {
        "" => usize::MAX,
        start => text[at..].find(start).map_or(usize::MAX, |found| at + found),
    };
    let mut next = marks.pairs.map(|(start, _)| from(0, start));
    // For each `if` that is open: how many an `elif` has added.
    let mut chains: Vec<usize> = Vec::new();
    let (mut deepest, mut chained) = (0, 0);
    loop {
        let kind = usize::from(next[1] < next[0]);
        let (start, end) = marks.pairs[kind];
        let Some(begin) = next[kind].checked_add(start.len()).filter(|begin| *begin <= text.len()) else {
            return deepest;
        };
        let inner = text[begin..].trim_start_matches(['-', '+', ' ', '\t', '\n', '\r']);
        match inner.split(|c: char| !c.is_alphanumeric()).next() {
            Some("if") if kind == 1 => chains.push(0),
            Some("elif") if kind == 1 => {
                chained += 1;
                chains.iter_mut().next_back().into_iter().for_each(|count| *count += 1);
            }
            Some("endif") if kind == 1 => chained -= chains.pop().unwrap_or(0).min(chained),
            Some(_) | None => {}
        }
        let (depth, length) = measured(&text[begin..], end);
        deepest = deepest.max(depth + chained);
        for (nth, (start, _)) in marks.pairs.iter().enumerate() {
            if next[nth] < begin + length {
                next[nth] = from(begin + length, start);
            }
        }
    }
}

/// Returns how deep a bare expression goes at most.
pub(super) fn of_expression(text: &str) -> usize {
    measured(text, "").0
}

/// Measures an expression up to its end; returns also how long it is.
fn measured(text: &str, end: &str) -> (usize, usize) {
    // For each bracket that is open: how deep what is around it goes, and how deep its present item.
    let mut open: Vec<(usize, usize)> = vec![(0, 0)];
    let mut deepest = 0;
    let mut quote = None;
    let mut in_word = false;
    let mut skip = false;
    for (at, byte) in text.bytes().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        if let Some(mark) = quote {
            skip = byte == b'\\';
            if byte == mark {
                quote = None;
            }
            continue;
        }
        // Braces of a mapping may come right before the end.
        if !end.is_empty() && open.len() == 1 && text.as_bytes()[at..].starts_with(end.as_bytes()) {
            return (deepest, at + end.len());
        }
        let starts_word = !in_word && (byte.is_ascii_alphabetic() || byte == b'_');
        in_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        let is_inner = open.len() > 1;
        let (base, item) = open.last_mut().map(|level| (level.0, &mut level.1)).expect("one level is always open");
        match byte {
            b'"' | b'\'' => quote = Some(byte),
            b',' => *item = 0,
            b'(' | b'[' | b'{' => {
                *item += 1;
                let inner = base + *item;
                open.push((inner, 0));
            }
            b')' | b']' | b'}' if is_inner => drop(open.pop()),
            b'.' | b'|' | b'~' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' | b':' => *item += 1,
            _ if starts_word && is_operator(&text[at..]) => *item += 1,
            _ => {}
        }
        deepest = deepest.max(open.last().map_or(0, |(base, item)| base + item));
    }
    (deepest, text.len())
}

fn is_operator(text: &str) -> bool {
    let word = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("");
    matches!(word, "not" | "and" | "or" | "if" | "else" | "in" | "is")
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL_MARKS: Marks<'_> = Marks { pairs: [("{{", "}}"), ("{%", "%}")] };

    #[test]
    fn chains_and_brackets_count_and_lists_do_not() {
        assert_eq!(of_expression("a"), 0);
        assert_eq!(of_expression("a ~ b ~ 'c ~ d'"), 2);
        assert_eq!(of_expression("not not a and b"), 3);
        assert_eq!(of_expression("a | f(1, 2) | f(1, 2)"), 4);
        assert_eq!(of_expression("[a.b, c.d, e.f]"), 2);
        assert_eq!(of_expression("[[[1]]]"), 3);
        assert_eq!(of_template("... a.b.c {{ x.y }} {% if {'k': '%}'}.a.b %}", &USUAL_MARKS), 4);
        assert!(of_template("{{ 1, }}", &USUAL_MARKS) == 0 && of_template("{{", &USUAL_MARKS) == 0);
    }

    #[test]
    fn each_elif_is_within_the_one_before() {
        let text = "{% if a %}{% elif b %}{% elif c %}{% endif %}".repeat(10);
        assert_eq!(of_template(&text, &USUAL_MARKS), 2);
        assert_eq!(of_template(&format!("{{% if a %}}{}", "{% elif b.c %}".repeat(99)), &USUAL_MARKS), 100);
    }

    #[test]
    fn what_is_deep_is_read_on_a_stack_of_its_own() {
        let text = format!("{{{{ 1{} }}}}", " ~ 1".repeat(LIMIT - 1));
        let templar = super::super::Templar::new(
            std::sync::Arc::new(crate::value::Map::new()),
            std::sync::Arc::new(super::super::Folders::default()),
        );
        let value = |text: String| {
            let text = crate::value::Str::template(text, crate::source::Place::default());
            templar.value(&crate::value::Value::Str(text))
        };
        // Whether it can be evaluated is up to the stack, which a build without the optimizer uses more of.
        if let Err(error) = value(text) {
            assert!(error.message.contains("too deep"), "{}", error.message);
        }
        let error = value(format!("{{{{ 1{} }}}}", " ~ 1".repeat(LIMIT + 1))).expect_err("it is too deep");
        assert!(error.message.contains("more than 1000"), "{}", error.message);
    }
}
