//! What Kubernetes makes of a wish for GPUs.

use crate::lint::{Check, Edit, Found, Rule, Weight, text};
use crate::yaml::{Kind, Node};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "gpu-limits",
        also: &[],
        weight: Weight::Error,
        what: "a GPU in `requests` that is not the same in `limits`",
        why: "GPUs are extended resources, of which the API takes equal numbers alone; a request without a limit is refused",
        fix: "give the number in `limits`, and leave it out of `requests`",
        mends: true,
        check: Check::Manifest(limits),
    },
    Rule {
        id: "gpu-fraction",
        also: &[],
        weight: Weight::Error,
        what: "a part of a GPU",
        why: "extended resources are whole numbers: the API refuses the object",
        fix: "ask for whole GPUs; share one by time-slicing, MPS or MIG, which offer more of them or other names",
        mends: false,
        check: Check::Manifest(fraction),
    },
];

/// Deeper nodes are not looked at.
const DEPTH_LIMIT: usize = 100;

fn is_gpu(name: &str) -> bool {
    let of =
        |vendor: &str| name.strip_prefix(vendor).is_some_and(|rest| rest.contains("gpu") || rest.starts_with("mig-"));
    of("nvidia.com/") || of("amd.com/") || of("gpu.intel.com/")
}

/// Calls for every `resources` in an object.
fn each(node: &Node, depth: usize, look: &mut impl FnMut(&Node)) {
    if depth > DEPTH_LIMIT {
        return;
    }
    for item in node.items().unwrap_or_default() {
        each(item, depth + 1, look);
    }
    for (key, value) in node.entries() {
        if key.as_str() == Some("resources") && !value.entries().is_empty() {
            look(value);
        }
        each(value, depth + 1, look);
    }
}

fn amount(node: &Node) -> Option<String> {
    let text = node.text();
    (!crate::value::may_be_template(&text)).then_some(text)
}

fn limits(object: &Node, found: &mut Found) {
    each(object, 0, &mut |resources| {
        for (key, asked) in resources.get("requests").into_iter().flat_map(Node::entries) {
            let Some(name) = key.as_str().filter(|name| is_gpu(name)) else { continue };
            let limit = resources.get("limits").and_then(|limits| limits.get(name));
            let (Some(wanted), limited) = (amount(asked), limit.map(amount)) else { continue };
            match limited {
                None => found.tell(key.place, name.len(), format!("`{name}` in `requests` and not in `limits`")),
                // A template may give anything.
                Some(None) => {}
                Some(Some(limited)) if limited == wanted => {}
                Some(Some(limited)) => {
                    let message = format!("`{name}`: {wanted} in `requests`, {limited} in `limits`");
                    let word = text::plain_word(asked);
                    // The limit is what the container gets; a request that differs is refused.
                    let edits = word.map(|word| Edit::new(asked.place, word, limited)).into_iter().collect();
                    found.mend(asked.place, 0, message, edits);
                }
            }
        }
    });
}

fn fraction(object: &Node, found: &mut Found) {
    each(object, 0, &mut |resources| {
        for part in ["requests", "limits"] {
            for (key, value) in resources.get(part).into_iter().flat_map(Node::entries) {
                let Some(name) = key.as_str().filter(|name| is_gpu(name)) else { continue };
                let whole = match &value.kind {
                    Kind::Float(number) => number.fract() == 0.0,
                    Kind::Str { text, .. } => {
                        crate::value::may_be_template(text)
                            || !(text.ends_with('m') || text.parse::<f64>().is_ok_and(|number| number.fract() != 0.0))
                    }
                    _ => true,
                };
                if !whole {
                    found.tell(value.place, 0, format!("`{name}`: {} is no whole number", value.text()));
                }
            }
        }
    });
}
