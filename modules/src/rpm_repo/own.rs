//! The file that is ours, and the section in it.

use crate::rpm::Manager;
use crate::rpm::files::{RepoFile, Section};
use crate::rpm_repo::Site;

/// Options that whoever runs the host may have added to our section: how its server is reached.
const KEPT: [&str; 19] = [
    "proxy",
    "proxy_username",
    "proxy_password",
    "proxy_auth_method",
    "proxy_sslverify",
    "username",
    "password",
    "sslverify",
    "sslcacert",
    "sslclientcert",
    "sslclientkey",
    "timeout",
    "retries",
    "throttle",
    "bandwidth",
    "ip_resolve",
    "cost",
    "metadata_expire",
    "skip_if_unavailable",
];

impl Site<'_> {
    /// Returns the options of the section.
    fn wanted(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![
            ("name", self.args.name.clone()),
            ("baseurl", self.args.uri.clone()),
            ("enabled", "1".to_owned()),
            ("priority", self.args.priority.to_string()),
            // The index is signed, and holds the checksums of the packages.
            ("repo_gpgcheck", "1".to_owned()),
            ("gpgcheck", "0".to_owned()),
            ("gpgkey", format!("file://{}", self.args.keyring())),
        ];
        match self.manager {
            Manager::Dnf(_) => {}
            Manager::Zypper => options.push(("autorefresh", "1".to_owned())),
        }
        options
    }

    fn is_right(&self, section: &Section) -> bool {
        let same = |(name, value): &(&str, String)| match *name {
            "baseurl" => section.words(name).len() == 1 && section.has_address(value, &self.architecture),
            "enabled" | "repo_gpgcheck" | "autorefresh" => section.get(name).is_some() && section.is_on(name),
            "gpgcheck" => section.get(name).is_some() && !section.is_on(name),
            // It is shown to people, who may call it what they like; zypper's answers go by it.
            "name" => self.manager != Manager::Zypper || section.get(name) == Some(value),
            _ => section.get(name) == Some(value),
        };
        let wanted = self.wanted();
        let known = |key: &str| KEPT.contains(&key) || wanted.iter().any(|(name, _)| *name == key);
        wanted.iter().all(same) && section.options.iter().all(|(key, _)| known(key))
    }

    /// Returns what our file must hold where it does not.
    pub(super) fn own_text(&self) -> Option<String> {
        let file = self.files.iter().find(|file| file.path == self.path).cloned();
        let mut file = file.unwrap_or_else(|| RepoFile { path: self.path.clone(), text: String::new() });
        if file.is_strange() {
            file.text.clear();
        }
        let is_ours = |section: &Section| section.id == self.args.name;
        let ours: Vec<Section> = file.sections().into_iter().filter(is_ours).collect();
        let is_other = |section: &Section| !is_ours(section) && self.names_the_same(section);
        let before = file.text.clone();
        while let Some(other) = file.sections().into_iter().find(is_other) {
            file.text = file.without(&other);
        }
        if let ([section], true) = (ours.as_slice(), file.text == before)
            && self.is_right(section)
        {
            return None;
        }
        let mut text = format!("[{}]\n", self.args.name);
        for (name, value) in self.wanted() {
            text.push_str(&format!("{name}={value}\n"));
        }
        let kept = ours.iter().rev().take(1).flat_map(|section| &section.options);
        for (name, value) in kept.filter(|(name, _)| KEPT.contains(&name.as_str())) {
            text.push_str(&format!("{name}={value}\n"));
        }
        for section in file.sections().iter().filter(|section| !is_ours(section)) {
            text.push_str(&format!("\n{}\n", file.lines_of(section).join("\n").trim_end()));
        }
        Some(text)
    }

    /// Returns our file without our section; `None` where nothing would be left in it.
    pub(super) fn without_own(&self, file: &RepoFile) -> Option<String> {
        let restored = RepoFile { path: file.path.clone(), text: file.restored() };
        let left: Vec<Section> =
            restored.sections().into_iter().filter(|section| section.id != self.args.name).collect();
        if left.is_empty() {
            return None;
        }
        let text: Vec<String> =
            left.iter().map(|section| format!("{}\n", restored.lines_of(section).join("\n").trim_end())).collect();
        Some(text.join("\n"))
    }
}
