use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::shared::{State, yes};
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan, Write};

/// Set a kernel parameter in a file that is read at each start, and now.
///
/// ```yaml
/// - sysctl:
///     name: net.ipv4.ip_forward
///     value: "1"
///     sysctl_set: true
///     sysctl_file: /etc/sysctl.d/99-kubernetes.conf
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The parameter, such as `net.ipv4.ip_forward`.
    #[serde(alias = "key")]
    name: String,
    /// Its value.
    #[serde(alias = "val")]
    value: Option<String>,
    #[serde(default)]
    state: State,
    /// Let the kernel take over the whole file when it has changed.
    #[serde(default = "yes")]
    reload: bool,
    /// Compare with the kernel's own value and set that too.
    #[serde(default)]
    sysctl_set: bool,
    /// The file.
    #[serde(default = "usual_file")]
    sysctl_file: String,
    /// Do not fail for parameters that the kernel does not know.
    #[serde(default)]
    ignoreerrors: bool,
}

fn usual_file() -> String {
    "/etc/sysctl.conf".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let name = self.name.trim();
        if name.is_empty() || name.contains(['=', '\n', '#']) {
            return Err(Error::new(ErrorKind::Arguments, format!("`{name}` is no parameter's name")));
        }
        let wanted = match (self.state, &self.value) {
            (State::Absent, _) => None,
            (State::Present, Some(value)) => Some(number_of(value)),
            (State::Present, None) => {
                return Err(Error::new(ErrorKind::Arguments, format!("`value` of `{name}` is missing")));
            }
        };
        let mut changes = Vec::new();
        if let (Some(value), true) = (&wanted, self.sysctl_set) {
            changes.extend(self.set_now(host, name, value)?);
        }
        let bytes = host.read(&self.sysctl_file)?.unwrap_or_default();
        let old = String::from_utf8_lossy(&bytes).into_owned();
        let new = edited(&old, name, wanted.as_deref());
        if new != old {
            changes.push(Change::Write(Write::new(&self.sysctl_file, new)));
            if self.reload {
                let mut argv = vec!["sysctl"];
                if self.ignoreerrors {
                    argv.push("-e");
                }
                argv.extend(["-p", &self.sysctl_file]);
                changes.push(Change::Exec(Exec::new(argv)));
            }
        }
        Ok(changes.into())
    }
}

impl Args {
    fn set_now(&self, host: &dyn Host, name: &str, value: &str) -> Result<Option<Change>, Error> {
        let path = path_of(name);
        let now = match host.read(&path) {
            Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(None) if self.ignoreerrors => return Ok(None),
            Ok(None) => {
                let hint = match () {
                    () if name.starts_with("net.bridge") => "\nload the kernel module `br_netfilter` first",
                    () if name.starts_with("net.netfilter") => "\nload the kernel module `nf_conntrack` first",
                    () => "",
                };
                return Err(Error::new(
                    ErrorKind::Host,
                    format!("this host's kernel has no parameter `{name}`: there is no `{path}`{hint}"),
                ));
            }
            // Some parameters can only be written.
            Err(_) => String::new(),
        };
        if now.split_whitespace().eq(value.split_whitespace()) {
            return Ok(None);
        }
        let mut argv = vec!["sysctl".to_owned()];
        if self.ignoreerrors {
            argv.push("-e".to_owned());
        }
        argv.extend(["-w".to_owned(), format!("{name}={value}")]);
        Ok(Some(Change::Exec(Exec::new(argv))))
    }
}

/// Turns what YAML makes of a switch into what the kernel has.
fn number_of(value: &str) -> String {
    match value.trim().to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "y" | "t" => "1".to_owned(),
        "no" | "false" | "off" | "n" | "f" => "0".to_owned(),
        _ => value.trim().to_owned(),
    }
}

/// Returns where the kernel shows a parameter. Source: `sysctl(8)`: where a dot comes first, dots and slashes stand
/// for each other.
fn path_of(name: &str) -> String {
    let turned: String = if name.find('/').is_some_and(|slash| name.find('.').is_none_or(|dot| slash < dot)) {
        name.to_owned()
    } else {
        let turn = |letter| match letter {
            '.' => '/',
            '/' => '.',
            letter => letter,
        };
        name.chars().map(turn).collect()
    };
    format!("/proc/sys/{turned}")
}

/// Returns the file's text with the parameter once, in place of its last line, or without it.
fn edited(text: &str, name: &str, value: Option<&str>) -> String {
    let is_it = |line: &&str| {
        let line = line.trim_start().trim_start_matches('-');
        !line.starts_with(['#', ';']) && line.split_once('=').is_some_and(|(key, _)| same(key.trim(), name))
    };
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().rposition(is_it);
    let mut edited = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match value {
            Some(value) if Some(at) == last => {
                let now = line.split_once('=').map_or("", |(_, now)| now);
                let as_wanted = now.split_whitespace().eq(value.split_whitespace());
                edited.push(if as_wanted { (*line).to_owned() } else { format!("{name}={value}") });
            }
            Some(_) | None if is_it(line) => {}
            Some(_) | None => edited.push((*line).to_owned()),
        }
    }
    if let (Some(value), None) = (value, last) {
        edited.push(format!("{name}={value}"));
    }
    if edited.is_empty() { String::new() } else { edited.join("\n") + "\n" }
}

fn same(a: &str, b: &str) -> bool {
    a == b || path_of(a) == path_of(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_the_kernels_files() {
        assert_eq!(path_of("net.ipv4.conf.eth0/100.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.100/rp_filter");
        assert_eq!(path_of("net/ipv4/ip_forward"), "/proc/sys/net/ipv4/ip_forward");
    }

    #[test]
    fn a_parameter_is_there_once() {
        let text = "# ours\nvm.swappiness=60\nkernel.pid_max = 1\nvm.swappiness = 70\n";
        assert_eq!(edited(text, "vm.swappiness", Some("10")), "# ours\nkernel.pid_max = 1\nvm.swappiness=10\n");
        assert_eq!(edited("a.b = 1  2\n", "a.b", Some("1 2")), "a.b = 1  2\n");
        assert_eq!(edited("a.b=1\n", "a.b", None), "");
    }
}
