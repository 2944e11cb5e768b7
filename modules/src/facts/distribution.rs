//! Which distribution this is, as Ansible names it.

use serde_json::{Value, json};

use super::{Files, assignment, map};
use crate::host::Map;
use crate::host::Put as _;

mod told;

use told::{first, told};

/// A distribution under Ansible's names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Distribution {
    pub name: String,
    pub version: String,
    pub release: String,
    pub major_version: String,
    pub minor_version: Option<String>,
    pub os_family: String,
    /// The file that told it, and by which rule.
    file: Option<(&'static str, &'static str)>,
    search_string: Option<&'static str>,
    /// Whether the file's content was read, and not only found.
    parsed: bool,
}

impl Distribution {
    pub(super) fn facts(&self) -> Map {
        let mut facts = map([
            ("distribution", self.name.as_str().into()),
            ("distribution_version", self.version.as_str().into()),
            ("distribution_release", self.release.as_str().into()),
            ("distribution_major_version", self.major_version.as_str().into()),
            ("os_family", self.os_family.as_str().into()),
        ]);
        if let Some(minor) = &self.minor_version {
            facts.put("distribution_minor_version", minor.as_str());
        }
        if let Some((path, variety)) = self.file {
            facts.put("distribution_file_path", path);
            facts.put("distribution_file_variety", variety);
        }
        if self.parsed {
            facts.put("distribution_file_parsed", true);
        }
        if let Some(text) = self.search_string {
            facts.put("distribution_file_search_string", text);
        }
        facts
    }
}

/// A file and the distribution that it may tell of, in the order in which they are tried. Source: ansible-core 2.19.
const FILES: [(&str, &str); 22] = [
    ("/etc/altlinux-release", "Altlinux"),
    ("/etc/oracle-release", "OracleLinux"),
    ("/etc/slackware-version", "Slackware"),
    ("/etc/centos-release", "CentOS"),
    ("/etc/redhat-release", "RedHat"),
    ("/etc/vmware-release", "VMwareESX"),
    ("/etc/openwrt_release", "OpenWrt"),
    ("/etc/os-release", "Amazon"),
    ("/etc/system-release", "Amazon"),
    ("/etc/alpine-release", "Alpine"),
    ("/etc/arch-release", "Archlinux"),
    ("/etc/os-release", "Archlinux"),
    ("/etc/os-release", "SUSE"),
    ("/etc/SuSE-release", "SUSE"),
    ("/etc/gentoo-release", "Gentoo"),
    ("/etc/os-release", "Debian"),
    ("/etc/lsb-release", "Debian"),
    ("/etc/lsb-release", "Mandriva"),
    ("/usr/lib/os-release", "ClearLinux"),
    ("/etc/coreos/update.conf", "Coreos"),
    ("/etc/os-release", "Flatcar"),
    ("/etc/os-release", "NA"),
];

const FAMILIES: [(&str, &[&str]); 9] = [
    (
        "RedHat",
        &[
            "RedHat",
            "RHEL",
            "Fedora",
            "CentOS",
            "Scientific",
            "SLC",
            "Ascendos",
            "CloudLinux",
            "PSBM",
            "OracleLinux",
            "OVS",
            "OEL",
            "Amazon",
            "Amzn",
            "Virtuozzo",
            "XenServer",
            "Alibaba",
            "EulerOS",
            "openEuler",
            "AlmaLinux",
            "Rocky",
            "TencentOS",
            "EuroLinux",
            "Kylin Linux Advanced Server",
            "MIRACLE",
        ],
    ),
    (
        "Debian",
        &[
            "Debian",
            "Ubuntu",
            "Raspbian",
            "Neon",
            "KDE neon",
            "Linux Mint",
            "SteamOS",
            "Devuan",
            "Kali",
            "Cumulus Linux",
            "Pop!_OS",
            "Parrot",
            "Pardus GNU/Linux",
            "Uos",
            "Deepin",
            "OSMC",
            "Linux Mint Debian Edition",
        ],
    ),
    (
        "Suse",
        &[
            "SuSE",
            "SLES",
            "SLED",
            "openSUSE",
            "openSUSE Tumbleweed",
            "SLES_SAP",
            "SUSE_LINUX",
            "openSUSE Leap",
            "ALP-Dolomite",
            "SL-Micro",
            "openSUSE MicroOS",
        ],
    ),
    ("Archlinux", &["Archlinux", "Antergos", "Manjaro"]),
    ("Mandrake", &["Mandrake", "Mandriva"]),
    ("Gentoo", &["Gentoo", "Funtoo"]),
    ("ClearLinux", &["Clear Linux OS", "Clear Linux Mix"]),
    ("Altlinux", &["Altlinux"]),
    ("Slackware", &["Slackware"]),
];

pub(crate) fn distribution_of(files: Files<'_>) -> Distribution {
    let mut found = guess(files);
    for (path, variety) in FILES {
        let there = match variety {
            "VMwareESX" | "Archlinux" if path != "/etc/os-release" => files.exists(path).then(String::new),
            _ => files.text(path),
        };
        let Some(text) = there else { continue };
        if text.is_empty() {
            found.name = variety.to_owned();
        } else {
            let text = text.trim_matches(['\'', '"', '\\']);
            let mut read = Distribution { name: variety.to_owned(), parsed: true, ..found.clone() };
            if !told(files, path, variety, text, &mut read) {
                continue;
            }
            found = read;
        }
        found.file = Some((path, variety));
        break;
    }
    let family = FAMILIES.iter().find(|(_, names)| names.contains(&found.name.as_str()));
    found.os_family = family.map_or_else(|| found.name.clone(), |(family, _)| (*family).to_owned());
    found
}

/// What os-release and, for a more exact version, the distribution's own file say.
fn guess(files: Files<'_>) -> Distribution {
    let os = files.text("/etc/os-release").or_else(|| files.text("/usr/lib/os-release")).unwrap_or_default();
    let id = assignment(&os, "ID").unwrap_or_default();
    let name = match id.as_str() {
        "" => "OtherLinux".to_owned(),
        "amzn" => "Amazon".to_owned(),
        "rhel" => "Redhat".to_owned(),
        "ol" => "Oracle".to_owned(),
        "opensuse-leap" => "Opensuse".to_owned(),
        _ => capital(&id.to_ascii_lowercase()),
    };
    let mut version = assignment(&os, "VERSION_ID").unwrap_or_default();
    match id.as_str() {
        "debian" => {
            let exact = files.text("/etc/debian_version").unwrap_or_default();
            if version.is_empty() || exact.matches('.').count() > version.matches('.').count() {
                version = exact;
            }
        }
        "centos" => {
            let release = files.text("/etc/centos-release").unwrap_or_default();
            let exact = first(r"release ([0-9]+(?:\.[0-9]+)?)", &release).unwrap_or_default();
            if exact.matches('.').count() > version.matches('.').count() {
                version = exact;
            }
        }
        _ => {}
    }
    // Older than os-release: `CentOS release 6.7 (Final)`.
    let releases = ["/etc/redhat-release", "/etc/centos-release", "/etc/system-release"];
    let old = if os.is_empty() { releases.iter().find_map(|path| files.text(path)) } else { None }.unwrap_or_default();
    if let Some(exact) = first("release ([0-9.]+)", &old) {
        version = exact;
    }
    let lsb = if id == "ubuntu" { files.text("/etc/lsb-release") } else { None }.unwrap_or_default();
    let release = assignment(&os, "VERSION_CODENAME")
        .or_else(|| assignment(&os, "UBUNTU_CODENAME"))
        .or_else(|| assignment(&lsb, "DISTRIB_CODENAME"))
        .or_else(|| first(r"\(([^0-9]+)\)|, *([^0-9]+)", &assignment(&os, "VERSION")?))
        .or_else(|| first(r"\(([^0-9()]+)\)", &old).filter(|_| !old.starts_with("Amazon")));
    let or_na = |text: String| if text.is_empty() { "NA".to_owned() } else { text };
    Distribution {
        name,
        release: release.unwrap_or_else(|| "NA".to_owned()),
        major_version: or_na(version.split('.').next().unwrap_or_default().to_owned()),
        version: or_na(version),
        ..Distribution::default()
    }
}

/// Begins a text with a capital letter; what `ID` of os-release holds is ASCII.
fn capital(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// Returns what `lsb_release -a` says, where it or its file is there.
pub(super) fn lsb(files: Files<'_>) -> Map {
    let mut lsb = Map::new();
    let file = files.text("/etc/lsb-release");
    let os = files.text("/etc/os-release").filter(|_| files.exists("/usr/bin/lsb_release"));
    let keys: [(&str, &str, &str); 4] = [
        ("id", "DISTRIB_ID", "ID"),
        ("release", "DISTRIB_RELEASE", "VERSION_ID"),
        ("description", "DISTRIB_DESCRIPTION", "PRETTY_NAME"),
        ("codename", "DISTRIB_CODENAME", "VERSION_CODENAME"),
    ];
    for (fact, in_file, in_os) in keys {
        let value = file.as_ref().and_then(|text| assignment(text, in_file));
        let value = value.or_else(|| os.as_ref().and_then(|text| assignment(text, in_os)));
        if let Some(value) = value {
            // lsb_release begins the name with a capital, which os-release has in lower case.
            let in_small = fact == "id" && file.is_none();
            let value = if in_small { capital(&value) } else { value };
            lsb.insert(fact.to_owned(), value.into());
        }
    }
    if let Some(major) = lsb.get("release").and_then(Value::as_str).and_then(|release| release.split('.').next()) {
        let major = major.to_owned();
        lsb.put("major_release", major);
    }
    map([("lsb", json!(lsb))])
}
