//! What the files of each distribution tell of it, by the rules that Ansible has for them.

use fancy_regex::Regex;

use super::Distribution;
use crate::facts::{Files, assignment};

/// Returns the first group that matched of `pattern` in `text`.
pub(super) fn first(pattern: &str, text: &str) -> Option<String> {
    let pattern = Regex::new(pattern).expect("our own patterns are patterns");
    let captures = pattern.captures(text).ok()??;
    captures.iter().skip(1).flatten().next().map(|group| group.as_str().to_owned())
}

/// Whether a file's text is of this distribution; `found` then has what the text tells.
pub(super) fn told(files: Files<'_>, path: &str, variety: &str, text: &str, found: &mut Distribution) -> bool {
    match variety {
        "Altlinux" => searched(text, "ALT", found),
        "OracleLinux" => searched(text, "Oracle Linux", found),
        "RedHat" => searched(text, "Red Hat", found),
        "Slackware" => slackware(text, found),
        "CentOS" => centos(text, found),
        "OpenWrt" => {
            set(&mut found.version, first("DISTRIB_RELEASE=[\"'](.*)[\"']", text));
            set(&mut found.release, first("DISTRIB_CODENAME=[\"'](.*)[\"']", text));
            text.contains("OpenWrt")
        }
        "Amazon" => amazon(path, text, found),
        "Alpine" => {
            found.version = text.to_owned();
            true
        }
        "Archlinux" => text.contains("Arch Linux"),
        "SUSE" => suse(files, path, text, found),
        "Gentoo" => searched(text, "Gentoo", found),
        "Debian" => debian(files, path, text, found),
        "Mandriva" => {
            set(&mut found.version, first("DISTRIB_RELEASE=\"(.*)\"", text));
            set(&mut found.release, first("DISTRIB_CODENAME=\"(.*)\"", text));
            text.contains("Mandriva")
        }
        "ClearLinux" => clear_linux(text, found),
        "Coreos" => {
            set(&mut found.release, first("(?m)^GROUP=(.*)", text));
            assignment(&files.text("/etc/os-release").unwrap_or_default(), "ID").as_deref() == Some("coreos")
        }
        "Flatcar" => {
            let version = assignment(text, "VERSION").unwrap_or_default();
            found.major_version = version.split('.').next().unwrap_or_default().to_owned();
            found.version = version;
            assignment(text, "ID").as_deref() == Some("flatcar")
        }
        _ => {
            set(&mut found.name, assignment(text, "NAME"));
            if found.version == "NA" {
                set(&mut found.version, assignment(text, "VERSION"));
            }
            true
        }
    }
}

fn set(field: &mut String, value: Option<String>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// A release file: the distribution itself where its words are in it, else the clone that its first word names.
fn searched(text: &str, words: &'static str, found: &mut Distribution) -> bool {
    if text.contains(words) {
        found.search_string = Some(words);
    } else {
        text.split_whitespace().next().unwrap_or_default().clone_into(&mut found.name);
    }
    true
}

fn slackware(text: &str, found: &mut Distribution) -> bool {
    set(&mut found.version, first(r"([A-Za-z0-9_]+[.][A-Za-z0-9_]+)\+?", text));
    text.contains("Slackware")
}

fn centos(text: &str, found: &mut Distribution) -> bool {
    if text.contains("CentOS Stream") {
        found.release = "Stream".to_owned();
        return true;
    }
    found.name = "TencentOS".to_owned();
    text.contains("TencentOS Server")
}

fn amazon(path: &str, text: &str, found: &mut Distribution) -> bool {
    if path == "/etc/os-release" {
        if let Some(version) = first("VERSION_ID=\"(.*)\"", text) {
            let (major, minor) = version.split_once('.').unwrap_or((&version, "NA"));
            found.major_version = major.to_owned();
            found.minor_version = Some(minor.to_owned());
            found.version = version;
        }
    } else {
        let number = text.split_whitespace().find(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        found.version = number.unwrap_or("NA").to_owned();
    }
    text.contains("Amazon")
}

fn suse(files: Files<'_>, path: &str, text: &str, found: &mut Distribution) -> bool {
    let lower = text.to_ascii_lowercase();
    if !lower.contains("suse") {
        return false;
    }
    if path == "/etc/os-release" {
        set(&mut found.name, assignment(text, "NAME"));
        if let Some(version) = first("(?m)^VERSION_ID=\"?([0-9]+\\.?[0-9]*)\"?", text) {
            let (major, minor) = version.split_once('.').unwrap_or((&version, ""));
            if lower.contains("open") {
                // Tumbleweed's version is a date: what follows its digits is nothing.
                found.release = minor.to_owned();
            } else if lower.contains("enterprise") {
                found.release = if minor.is_empty() { "0".to_owned() } else { minor.to_owned() };
            }
            found.major_version = major.to_owned();
            found.version = version;
        }
    } else if lower.contains("open") {
        text.split_whitespace().next().unwrap_or_default().clone_into(&mut found.name);
        set(&mut found.release, first("CODENAME *= *([^\n]+)", text));
    } else if lower.contains("enterprise") {
        found.name = if text.contains("Desktop") { "SLED" } else { "SLES" }.to_owned();
        if let Some(level) = first("PATCHLEVEL = ([0-9]+)", text) {
            found.version = format!("{}.{level}", found.version);
            found.release = level;
        }
    }
    let variant = assignment(text, "VARIANT_ID");
    let product = files.link_name("/etc/products.d/baseproduct").unwrap_or_default();
    match (variant.as_deref(), product.as_str()) {
        (Some("server-sap" | "sles-sap"), _) | (None, "SLES_SAP.prod") => found.name = "SLES_SAP".to_owned(),
        (Some("transactional"), _) | (None, "SL-Micro.prod") => found.name = "SL-Micro".to_owned(),
        (Some(_) | None, _) => {}
    }
    true
}

fn debian(files: Files<'_>, path: &str, text: &str, found: &mut Distribution) -> bool {
    let has = |word: &str| text.contains(word);
    let versions = |found: &mut Distribution| {
        if let Some(version) = first("VERSION_ID=\"(.*)\"", text) {
            version.split('.').next().unwrap_or_default().clone_into(&mut found.major_version);
            found.version = version;
        }
    };
    if has("Debian") || has("Raspbian") {
        found.name = "Debian".to_owned();
        set(&mut found.release, first(r"PRETTY_NAME=[^(]+ \(?([^)]+?)\)", text));
        let exact = files.text("/etc/debian_version").unwrap_or_default();
        found.minor_version = first(r"[0-9]+\.([0-9]+)", &exact);
    } else if has("Ubuntu") {
        found.name = "Ubuntu".to_owned();
    } else if has("SteamOS") {
        found.name = "SteamOS".to_owned();
    } else if ["/etc/lsb-release", "/etc/os-release"].contains(&path) && (has("Kali") || has("Parrot")) {
        found.name = if has("Kali") { "Kali" } else { "Parrot" }.to_owned();
        set(&mut found.release, first("DISTRIB_RELEASE=(.*)", text));
    } else if has("Devuan") {
        found.name = "Devuan".to_owned();
        set(&mut found.release, first("PRETTY_NAME=\"?[^(\"]+ \\(?([^) \"]+)\\)?", text));
        set(&mut found.version, first("VERSION_ID=\"(.*)\"", text));
        found.major_version = found.version.clone();
    } else if has("Cumulus") {
        found.name = "Cumulus Linux".to_owned();
        set(&mut found.version, first("VERSION_ID=(.*)", text));
        found.version.split('.').next().unwrap_or_default().clone_into(&mut found.major_version);
        set(&mut found.release, first("VERSION=\"(.*)\"", text));
    } else if has("Mint") {
        found.name = "Linux Mint".to_owned();
        versions(found);
    } else if ["UOS", "Uos", "uos", "Deepin", "deepin"].iter().any(|word| has(word)) {
        found.name = if text.to_ascii_lowercase().contains("uos") { "Uos" } else { "Deepin" }.to_owned();
        set(&mut found.release, assignment(text, "VERSION_CODENAME"));
        versions(found);
    } else if has("LMDE") {
        found.name = "Linux Mint Debian Edition".to_owned();
    } else {
        return false;
    }
    true
}

fn clear_linux(text: &str, found: &mut Distribution) -> bool {
    set(&mut found.name, first("NAME=\"(.*)\"", text));
    set(&mut found.version, first("VERSION_ID=(.*)", text));
    found.major_version = found.version.clone();
    set(&mut found.release, first("ID=(.*)", text));
    found.name.contains("Clear Linux")
}
