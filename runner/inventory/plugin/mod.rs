//! Inventory plugins: which there are, which are enabled, and the options that a file gives to the one it names.

pub(super) mod constructed;
pub(super) mod generator;
pub(super) mod nodes;

use super::{Inventory, Reader};
use crate::source::{Diagnostic, nearest};
use crate::yaml::{Kind, Node};

/// What reads an inventory source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    HostList,
    AdvancedHostList,
    Script,
    /// Whatever plugin a YAML file names under `plugin`.
    Auto,
    Yaml,
    Ini,
    Toml,
    Constructed,
    Generator,
    Nodes,
}

/// The plugins under their names.
const PLUGINS: &[(&str, Plugin)] = &[
    ("host_list", Plugin::HostList),
    ("advanced_host_list", Plugin::AdvancedHostList),
    ("script", Plugin::Script),
    ("auto", Plugin::Auto),
    ("yaml", Plugin::Yaml),
    ("ini", Plugin::Ini),
    ("toml", Plugin::Toml),
    ("constructed", Plugin::Constructed),
    ("generator", Plugin::Generator),
    ("k8s_nodes", Plugin::Nodes),
];

/// Those that are enabled where the configuration says nothing, in the order in which they are asked.
const USUAL: &[Plugin] = &[Plugin::HostList, Plugin::Script, Plugin::Auto, Plugin::Yaml, Plugin::Ini, Plugin::Toml];

impl Plugin {
    /// Returns the plugin of a name, with or without the collection of those that come with Ansible.
    pub fn named(name: &str) -> Option<Plugin> {
        let short = ["ansible.builtin.", "ansible.legacy."].iter().find_map(|collection| name.strip_prefix(collection));
        PLUGINS.iter().find(|(known, _)| *known == short.unwrap_or(name)).map(|(_, plugin)| *plugin)
    }

    pub fn name(self) -> &'static str {
        PLUGINS.iter().find(|(_, plugin)| *plugin == self).map_or("", |(name, _)| name)
    }

    /// Returns the plugin's name that is nearest to a wrong one.
    pub fn nearest(name: &str) -> Option<&'static str> {
        nearest(name, PLUGINS.iter().map(|(known, _)| *known))
    }
}

/// Returns the names of all inventory plugins.
pub fn plugin_names() -> Vec<&'static str> {
    PLUGINS.iter().map(|(name, _)| *name).collect()
}

/// The plugins that may read sources, in their order: `[inventory] enable_plugins`.
#[derive(Debug, Clone)]
pub struct Enabled(Vec<Plugin>);

impl Default for Enabled {
    fn default() -> Enabled {
        Enabled(USUAL.to_vec())
    }
}

impl Enabled {
    pub fn new(plugins: Vec<Plugin>) -> Enabled {
        if plugins.is_empty() { Enabled::default() } else { Enabled(plugins) }
    }

    pub fn has(&self, plugin: Plugin) -> bool {
        self.0.contains(&plugin)
    }

    /// Returns which of some plugins is asked first.
    pub fn first_of(&self, some: &[Plugin]) -> Option<Plugin> {
        self.0.iter().copied().find(|plugin| some.contains(plugin))
    }
}

impl Reader<'_> {
    /// Reads a file that names the plugin to read it with.
    pub(super) fn plugin(&mut self, inventory: &mut Inventory, node: &Node, named: &Node) {
        let Some(name) = named.as_str() else {
            let message = format!("`plugin` must be the name of an inventory plugin, found {}", named.what());
            return self.problems.push(Diagnostic::error(named.place, message));
        };
        let Some(plugin) = Plugin::named(name) else { return self.problems.push(unknown(name, named)) };
        let enabled = &self.reading.enabled;
        if !enabled.has(Plugin::Auto) && !enabled.has(plugin) {
            let message = format!("the inventory plugin `{name}` is not enabled, and neither is `auto`");
            return self.problems.push(Diagnostic::error(named.place, message).help(ENABLE));
        }
        match plugin {
            Plugin::Constructed => constructed::read(self, inventory, node),
            Plugin::Generator => generator::read(self, inventory, node),
            Plugin::Nodes => nodes::read(self, inventory, node),
            Plugin::HostList
            | Plugin::AdvancedHostList
            | Plugin::Script
            | Plugin::Auto
            | Plugin::Yaml
            | Plugin::Ini
            | Plugin::Toml => {
                let message = format!("the inventory plugin `{name}` reads no file of options");
                let help = "such a source is given as it is, without the key `plugin`";
                self.problems.push(Diagnostic::error(named.place, message).help(help));
            }
        }
    }
}

/// What to do where a plugin is not enabled.
pub(super) const ENABLE: &str =
    "add it to `enable_plugins` of `[inventory]` in ansible.cfg, or to ANSIBLE_INVENTORY_ENABLED";

fn unknown(name: &str, named: &Node) -> Diagnostic {
    let problem = Diagnostic::error(named.place, format!("inventory plugin `{name}` is not supported"))
        .width(name.chars().count());
    match Plugin::nearest(name) {
        Some(meant) => problem.help(format!("did you mean `{meant}`?")),
        None => problem.help(
            "let Ansible ask it: name an executable script here that ends with `exec ansible-inventory -i FILE --list`, \
             or a file that `ansible-inventory -i FILE --list --yaml --export --output hosts.yml` has written",
        ),
    }
}

/// The options that a file gives to a plugin.
pub(super) struct Options<'a> {
    plugin: Plugin,
    node: &'a Node,
    pub problems: Vec<Diagnostic>,
}

impl<'a> Options<'a> {
    /// Takes the options of a file; those that the plugin has not are mistakes.
    pub fn new(plugin: Plugin, node: &'a Node, known: &[&str]) -> Options<'a> {
        let mut options = Options { plugin, node, problems: Vec::new() };
        let what = format!("an option of the inventory plugin `{}`", plugin.name());
        let all: Vec<&str> = std::iter::once("plugin").chain(known.iter().copied()).collect();
        options.known(node, &all, &what);
        options
    }

    /// Tells the keys of a mapping that are none.
    pub fn known(&mut self, node: &Node, known: &[&str], what: &str) {
        for (key, _) in node.entries() {
            let name = key.text();
            if known.contains(&name.as_str()) {
                continue;
            }
            let problem = Diagnostic::error(key.place, format!("`{name}` is not {what}"));
            self.problems.push(match nearest(&name, known.iter().copied()) {
                Some(meant) => problem.help(format!("did you mean `{meant}`?")),
                None => problem.help(format!("there are `{}`", known.join("`, `"))),
            });
        }
    }

    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.node.get(key).filter(|node| !node.is_null())
    }

    /// Says that an option is wrong.
    pub fn wrong(&mut self, node: &Node, key: &str, expected: &str) {
        let message = format!("`{key}` of `{}` must be {expected}, found {}", self.plugin.name(), node.what());
        self.problems.push(Diagnostic::error(node.place, message));
    }

    /// Returns what an option is, or `usual` where it is not given.
    pub fn flag(&mut self, key: &str, usual: bool) -> bool {
        let Some(node) = self.get(key) else { return usual };
        flag(node).unwrap_or_else(|| {
            self.wrong(node, key, "a boolean");
            usual
        })
    }

    /// Returns the entries of an option that is a mapping.
    pub fn entries(&mut self, key: &str) -> &'a [(Node, Node)] {
        let Some(node) = self.get(key) else { return &[] };
        if !matches!(node.kind, Kind::Map(_)) {
            self.wrong(node, key, "a mapping");
        }
        node.entries()
    }

    /// Returns the items of an option that is a list.
    pub fn items(&mut self, key: &str) -> &'a [Node] {
        let Some(node) = self.get(key) else { return &[] };
        node.items().unwrap_or_else(|| {
            self.wrong(node, key, "a list");
            &[]
        })
    }
}

/// Returns a boolean, also where it is written as a text.
pub(super) fn flag(node: &Node) -> Option<bool> {
    match &node.kind {
        Kind::Bool(value) => Some(*value),
        Kind::Str { text, .. } => match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" | "1" => Some(true),
            "no" | "false" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
