//! The page that lists every rule, made from the rules.

use super::rules;

const HEAD: &str = "\
# What kubeon-run lint finds

`kubeon-run check` finds what is wrong; `kubeon-run lint` finds what will surprise: what works by luck, does something else
than it seems to, or goes on after a failure. It only reads, needs no inventory, and looks at playbooks, files of tasks,
variables, and Kubernetes manifests, those in tasks included.

    kubeon-run lint                          # every .yml and .yaml file here and below
    kubeon-run lint site.yml roles/web       # files, or folders with all that is in them
    kubeon-run lint --fix                    # mend what can be mended by rule; the rest of each file stays as it is, byte for byte
    kubeon-run lint --only risky-octal,gpu-limits
    kubeon-run lint --skip name,truthy
    kubeon-run lint --output sarif           # or json

What `--fix` writes is what was meant by what stands there: `mode: 644` becomes `\"0644\"`, and `yes` a text where a text is taken.
Look at the difference before you keep it.

It ends with 0 where nothing is found, with 2 where something is, and with 1 where it could not look.

A comment leaves something alone: `# noqa: RULE` (or several, parted by commas; `# noqa` is all of them) on its line, or on
the first line of its task. Rules that ansible-lint has too go by its names, so that the comments that are there count.
";

/// Returns the page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n| rule | finds | `--fix` |\n|---|---|---|\n");
    let mut all: Vec<_> = rules().collect();
    all.sort_by_key(|rule| rule.id);
    for rule in &all {
        let mends = if rule.mends { "yes" } else { "" };
        page.push_str(&format!("| [`{0}`](#{0}) | {1} | {mends} |\n", rule.id, rule.what.replace('|', "\\|")));
    }
    for rule in &all {
        let also: Vec<String> = rule.also.iter().map(|name| format!("`{name}`")).collect();
        let also = if also.is_empty() { String::new() } else { format!(" Also known as {}.", also.join(", ")) };
        let (level, why) = (sentence(rule.weight.name()), sentence(rule.why));
        page.push_str(&format!(
            "\n### {}\n\n{level}: {}. {}.\n\n- Instead: {}.{also}\n",
            rule.id, rule.what, why, rule.fix
        ));
    }
    page
}

/// Returns a text that begins with a capital letter, unless it begins with code.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
