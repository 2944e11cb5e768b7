//! The lists of `docs/compatibility.md`: what of Ansible's language is there, and what of `ansible.builtin` is not.

use crate::config::{SETTINGS, Setting, Usual};
use crate::playbook::{Keyword, Where};
use crate::template;

/// The filters of `ansible.builtin` that are no filters of Jinja. Source: the plugins of ansible-core 2.19.
const FILTERS: &str = "b64decode b64encode basename bool checksum combinations combine comment commonpath dict2items difference \
    dirname expanduser expandvars extract fileglob flatten from_json from_yaml from_yaml_all hash human_readable \
    human_to_bytes intersect items2dict log mandatory md5 normpath password_hash path_join permutations pow \
    product quote random realpath regex_escape regex_findall regex_replace regex_search rekey_on_member relpath \
    root sha1 shuffle split splitext strftime subelements symmetric_difference ternary to_datetime to_json \
    to_nice_json to_nice_yaml to_uuid to_yaml type_debug union unique unvault urldecode urlsplit vault win_basename \
    win_dirname win_splitdrive zip zip_longest";
/// Its tests, likewise.
const TESTS: &str = "abs all any change changed contains directory exists failed failure falsy file finished is_abs is_dir is_file \
    is_link is_mount is_same_file isnan issubset issuperset link link_exists match mount nan reachable regex \
    same_file search skip skipped started subset succeeded success successful superset timedout truthy \
    unreachable uri url urn vault_encrypted vaulted_file version version_compare";
/// Its lookups, likewise.
const LOOKUPS: &str = "config csvfile dict env file fileglob first_found indexed_items ini inventory_hostnames items lines list \
    nested password pipe random_choice sequence subelements template together unvault url varnames vars";

/// Returns the generated parts of the page, by their names.
pub fn compatibility() -> Vec<(&'static str, String)> {
    vec![
        ("keywords", keywords()),
        ("filters", names(template::filter_names(), FILTERS, "filters")),
        ("tests", names(template::test_names(), TESTS, "tests")),
        ("lookups", names(template::lookup_names(), LOOKUPS, "lookups")),
        ("inventories", inventories()),
        ("settings", settings()),
    ]
}

fn keywords() -> String {
    let places = [
        ("plays", Where::PLAY),
        ("blocks", Where::BLOCK),
        ("roles", Where::ROLE),
        ("tasks", Where::TASK),
        ("handlers", Where::HANDLER),
    ];
    let mut text = String::from("| keyword | of |\n|---|---|\n");
    let mut all: Vec<&Keyword> = Keyword::ALL.iter().collect();
    all.sort_by_key(|keyword| keyword.name());
    for keyword in all {
        let of: Vec<&str> =
            places.iter().filter(|(_, place)| keyword.places().includes(*place)).map(|(name, _)| *name).collect();
        let of = if of.len() == places.len() { "all".to_owned() } else { of.join(", ") };
        text.push_str(&format!("| `{keyword}` | {of} |\n"));
    }
    text
}

/// Returns the inventory plugins.
fn inventories() -> String {
    let mut names = crate::inventory::plugin_names();
    names.sort_unstable();
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ") + "\n"
}

/// Returns the names that there are, and which of Ansible's there are not.
fn names(mut known: Vec<&'static str>, ansible: &str, what: &str) -> String {
    known.sort_unstable();
    known.dedup();
    let shown = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
    let of_ansible: Vec<&str> = ansible.split_whitespace().collect();
    let missing: Vec<&str> = of_ansible.iter().copied().filter(|name| !known.contains(name)).collect();
    let verdict = match missing.is_empty() {
        true => format!("All {} {what} of `ansible.builtin`, and Jinja's own:", of_ansible.len()),
        false => format!("Of the {} {what} of `ansible.builtin` all but {}:", of_ansible.len(), shown(&missing)),
    };
    let listed = known.into_iter().filter(|name| name.chars().next().is_some_and(char::is_alphabetic));
    format!("{verdict}\n\n{}\n", shown(&listed.collect::<Vec<_>>()))
}

fn settings() -> String {
    let mut text =
        String::from("| setting | in `ansible.cfg` | environment | when absent | |\n|---|---|---|---|---|\n");
    for Setting { name, variables, section, key, usual, about } in SETTINGS {
        let usual = match usual {
            Usual::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Usual::Number(number) => number.to_string(),
            Usual::Text(text) => format!("`{text}`"),
            Usual::Nothing | Usual::Texts([]) => String::new(),
            Usual::Texts(texts) => format!("`{}`", texts.join(", ")),
            Usual::Paths(paths) => format!("`{}`", paths.join(":")),
        };
        let variables: Vec<String> = variables.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!(
            "| `{name}` | `[{section}]` `{key}` | {} | {usual} | {about} |\n",
            variables.join(", ")
        ));
    }
    text
}
