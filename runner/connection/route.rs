//! How to reach a host over SSH: what its target, its arguments for `ssh` and the user's configuration say together,
//! and whether it takes the system's `ssh` to do it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ssh_config::{self, Asked, Settings, words};
use super::{Target, Unreachable, UnreachableKind};

const DEFAULT_PORT: u16 = 22;

/// Keywords that this program follows itself.
const FOLLOWED: [&str; 14] = [
    "connecttimeout",
    "globalknownhostsfile",
    "hostkeyalias",
    "hostname",
    "identitiesonly",
    "identityagent",
    "identityfile",
    "port",
    "preferredauthentications",
    "proxycommand",
    "proxyjump",
    "stricthostkeychecking",
    "user",
    "userknownhostsfile",
];

/// Keywords that change nothing here, or only how fast it goes or what is printed. GSSAPI is on in the configuration
/// that some systems ship; where nothing else lets us in, the system's `ssh` gets to try it.
const HARMLESS: [&str; 41] = [
    "addkeystoagent",
    "batchmode",
    "checkhostip",
    "clearallforwardings",
    "compression",
    "connectionattempts",
    "controlmaster",
    "controlpersist",
    "enableescapecommandline",
    "escapechar",
    "exitonforwardfailure",
    "fingerprinthash",
    "forwardx11",
    "forwardx11timeout",
    "forwardx11trusted",
    "gssapiauthentication",
    "gssapidelegatecredentials",
    "gssapikeyexchange",
    "hashknownhosts",
    "ignoreunknown",
    "ipqos",
    "loglevel",
    "logverbose",
    "nohostauthenticationforlocalhost",
    "numberofpasswordprompts",
    "obscurekeystroketiming",
    "permitlocalcommand",
    "rekeylimit",
    "remotecommand",
    "requesttty",
    "sendenv",
    "serveralivecountmax",
    "serveraliveinterval",
    "sessiontype",
    "setenv",
    "syslogfacility",
    "tcpkeepalive",
    "updatehostkeys",
    "usekeychain",
    "verifyhostkeydns",
    "visualhostkey",
];

/// Values of other keywords that ask for what is done anyway.
const DEFAULTS: [(&str, &str); 8] = [
    ("addressfamily", "any"),
    ("canonicalizehostname", "no"),
    ("controlpath", "none"),
    ("forwardagent", "no"),
    ("gatewayports", "no"),
    ("hostbasedauthentication", "no"),
    ("protocol", "2"),
    ("tunnel", "no"),
];

/// Ways to log in, by OpenSSH's names, and the keywords that allow each.
const METHODS: [(&str, &[&str]); 3] = [
    ("publickey", &["pubkeyauthentication"]),
    ("password", &["passwordauthentication"]),
    ("keyboard-interactive", &["kbdinteractiveauthentication", "challengeresponseauthentication"]),
];

/// What to do about a host's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strict {
    /// Refuse one that is not known.
    Yes,
    /// Take a new host's key and keep it; refuse one that has changed.
    AcceptNew,
    No,
}

/// The way to a host.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub address: String,
    pub port: u16,
    pub user: String,
    /// Keys named for this host, in order.
    pub identity_files: Vec<PathBuf>,
    /// Use no keys but these.
    pub identities_only: bool,
    /// The SSH agent's socket; `None` for none.
    pub agent: Option<PathBuf>,
    pub strict: Strict,
    /// Files of known keys; empty for the usual ones.
    pub known_hosts: Vec<PathBuf>,
    /// The name that the host's key is kept under, in place of its address and port.
    pub key_name: Option<String>,
    pub connect_timeout: Duration,
    /// Ways to log in that are allowed, of those libssh2 has.
    pub methods: Vec<&'static str>,
    /// Kerberos may be used.
    pub gssapi: bool,
    /// Why it takes the system's `ssh`.
    pub openssh: Option<String>,
}

impl Route {
    /// Returns the way to a target.
    ///
    /// # Errors
    /// When its arguments for `ssh` make no sense.
    pub fn of(target: &Target) -> Result<Route, Unreachable> {
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let local_user = own_name();
        let mut arguments = Arguments::read(&target.ssh_args).map_err(|message| {
            let message = format!("`{}`: the arguments for `ssh`: {message}", target.host);
            Unreachable::new(UnreachableKind::Configuration, message)
        })?;
        let mut beyond = arguments.beyond.take();
        let mut settings = arguments.settings;
        let unfollowed = |settings: &Settings| {
            let usual = |word: &str| {
                let value = settings.first(word).unwrap_or_default().to_ascii_lowercase();
                DEFAULTS.contains(&(word, value.as_str()))
                    || METHODS.iter().any(|(_, keywords)| keywords.contains(&word))
            };
            let strange = |word: &&str| !FOLLOWED.contains(word) && !HARMLESS.contains(word) && !usual(word);
            settings.keywords().find(strange).map(|word| format!("the option `{word}`"))
        };
        let files = match arguments.config.as_deref() {
            Some("none") => Vec::new(),
            Some(path) => vec![under_home(path, &home)],
            None => vec![home.join(".ssh/config"), PathBuf::from("/etc/ssh/ssh_config")],
        };
        let asked = Asked { host: &target.address, user: target.user.as_deref(), local_user: &local_user, home: &home };
        ssh_config::read(&files, &asked, &mut settings);
        beyond = beyond.or_else(|| unfollowed(&settings)).or_else(|| settings.beyond.clone());
        let mut route = Route::merged(target, &settings, &home, &local_user)?;
        for keyword in ["proxyjump", "proxycommand"] {
            if settings.first(keyword).is_some_and(|value| !value.eq_ignore_ascii_case("none")) {
                beyond = Some(format!("the option `{keyword}`"));
                break;
            }
        }
        route.openssh = beyond.or_else(|| route.strange_key());
        Ok(route)
    }

    fn merged(target: &Target, settings: &Settings, home: &Path, local_user: &str) -> Result<Route, Unreachable> {
        let wrong = |what: &str, value: &str| {
            let message = format!("`{}`: `{value}` is no {what} in the SSH configuration", target.host);
            Unreachable::new(UnreachableKind::Configuration, message)
        };
        let port = match (target.port, settings.first("port")) {
            (Some(port), _) => port,
            (None, Some(text)) => text.parse().map_err(|_| wrong("port", text))?,
            (None, None) => DEFAULT_PORT,
        };
        let user = target.user.as_deref().or(settings.first("user")).unwrap_or(local_user).to_owned();
        let address = match settings.first("hostname") {
            Some(name) => name.replace("%h", &target.address).replace("%%", "%"),
            None => target.address.clone(),
        };
        // An IPv6 address may stand in brackets, as where a port follows.
        let address = address.trim_start_matches('[').trim_end_matches(']').to_owned();
        let tokens = |text: &str| {
            let text = text.replace("%h", &address).replace("%n", &target.address).replace("%r", &user);
            let text = text.replace("%u", local_user).replace("%p", &port.to_string());
            under_home(&text.replace("%d", &home.to_string_lossy()).replace("%%", "%"), home)
        };
        let named = settings.all("identityfile").iter().filter(|name| !name.eq_ignore_ascii_case("none"));
        let agent = match settings.first("identityagent") {
            Some("none") => None,
            Some("SSH_AUTH_SOCK") | None => std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from),
            Some(name) => match name.strip_prefix('$') {
                Some(variable) => std::env::var_os(variable.trim_matches(['{', '}'])).map(PathBuf::from),
                None => Some(tokens(name)),
            },
        };
        let strict = match settings.first("stricthostkeychecking").map(str::to_ascii_lowercase).as_deref() {
            _ if !target.host_key_checking => Strict::No,
            Some("no" | "off" | "false") => Strict::No,
            Some("accept-new") => Strict::AcceptNew,
            Some(_) | None => Strict::Yes,
        };
        let connect_timeout = match settings.first("connecttimeout") {
            Some(text) => text.parse().map(Duration::from_secs).map_err(|_| wrong("number of seconds", text))?,
            None => target.connect_timeout,
        };
        Ok(Route {
            identity_files: target.private_key_file.iter().cloned().chain(named.map(|name| tokens(name))).collect(),
            identities_only: settings.first("identitiesonly").is_some_and(|value| value.eq_ignore_ascii_case("yes")),
            agent,
            strict,
            known_hosts: known_hosts(target, settings, &tokens),
            methods: methods(settings),
            gssapi: settings.first("gssapiauthentication").is_some_and(|value| value.eq_ignore_ascii_case("yes")),
            key_name: settings.first("hostkeyalias").map(str::to_owned),
            connect_timeout: connect_timeout.min(target.connect_timeout.max(Duration::from_secs(1)) * 10),
            address,
            port,
            user,
            openssh: None,
        })
    }

    /// Why one of the keys named for this host is none for libssh2.
    fn strange_key(&self) -> Option<String> {
        self.identity_files.iter().find_map(|path| {
            let certificate = PathBuf::from(format!("{}-cert.pub", path.display()));
            if certificate.is_file() {
                return Some(format!("the certificate `{}`", certificate.display()));
            }
            let public = std::fs::read_to_string(format!("{}.pub", path.display())).unwrap_or_default();
            public.starts_with("sk-").then(|| format!("the hardware key `{}`", path.display()))
        })
    }
}

fn methods(settings: &Settings) -> Vec<&'static str> {
    let preferred = settings.first("preferredauthentications");
    let preferred = preferred.map(|list| list.split(',').map(str::trim).collect::<Vec<_>>());
    let on = |(name, keywords): &(&str, &[&str])| {
        let off = |keyword: &&str| settings.first(keyword).is_some_and(|value| value.eq_ignore_ascii_case("no"));
        !keywords.iter().any(off) && preferred.as_ref().is_none_or(|list| list.contains(name))
    };
    METHODS.iter().filter(|method| on(method)).map(|(name, _)| *name).collect()
}

fn known_hosts(target: &Target, settings: &Settings, tokens: &dyn Fn(&str) -> PathBuf) -> Vec<PathBuf> {
    if !target.known_hosts.is_empty() {
        return target.known_hosts.clone();
    }
    let listed = |keyword: &str| {
        let words = settings.first(keyword).map(words).unwrap_or_default();
        words.iter().filter(|name| *name != "none").map(|name| tokens(name)).collect::<Vec<_>>()
    };
    let mut files = listed("userknownhostsfile");
    if !files.is_empty() {
        let system = listed("globalknownhostsfile");
        files.extend(if system.is_empty() { vec![PathBuf::from("/etc/ssh/ssh_known_hosts")] } else { system });
    }
    files
}

/// Returns the name of the user this program runs as.
pub(super) fn own_name() -> String {
    let said = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
    said("LOGNAME").or_else(|| said("USER")).unwrap_or_else(|| "root".to_owned())
}

fn under_home(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(path),
    }
}

/// What was written for `ssh`'s command line.
#[derive(Debug, Default)]
struct Arguments {
    settings: Settings,
    /// `-F`.
    config: Option<String>,
    /// The first argument that is not ours to follow.
    beyond: Option<String>,
}

impl Arguments {
    fn read(arguments: &[String]) -> Result<Arguments, String> {
        let mut read = Arguments::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                return Err(format!("`{argument}` is no option"));
            };
            for (at, letter) in letters.char_indices() {
                let after = &letters[at + letter.len_utf8()..];
                let takes_value = "oipJlFcmbBDEeILOQRSWw".contains(letter);
                if !takes_value {
                    read.flag(letter);
                    continue;
                }
                let value = if after.is_empty() { rest.next().map(String::as_str) } else { Some(after) };
                let value = value.ok_or_else(|| format!("`-{letter}` lacks its value"))?;
                read.option(letter, value)?;
                break;
            }
        }
        Ok(read)
    }

    fn flag(&mut self, letter: char) {
        // Compression, quiet, verbose, no terminal, no X11, no agent forwarding: what is done here anyway.
        if !"CqvTxa".contains(letter) {
            self.beyond.get_or_insert_with(|| format!("the argument `-{letter}`"));
        }
    }

    fn option(&mut self, letter: char, value: &str) -> Result<(), String> {
        match letter {
            'o' => {
                let end = value.find(|c: char| c == '=' || c.is_ascii_whitespace());
                let end = end.ok_or_else(|| format!("`-o {value}` lacks its value"))?;
                let text = value[end..].trim_start_matches(|c: char| c == '=' || c.is_ascii_whitespace());
                let keyword = value[..end].to_ascii_lowercase();
                let raw = keyword == "proxycommand";
                self.settings.add(&keyword, &if raw { text.to_owned() } else { words(text).join(" ") });
            }
            'i' => self.settings.add("identityfile", value),
            'p' => self.settings.add("port", value),
            'J' => self.settings.add("proxyjump", value),
            'l' => self.settings.add("user", value),
            'F' => self.config = Some(value.to_owned()),
            'E' | 'e' => {}
            _ => {
                self.beyond.get_or_insert_with(|| format!("the argument `-{letter}`"));
            }
        }
        Ok(())
    }
}
