use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::attributes::{Wanted, describe};
use crate::decode::Arguments;
use crate::host::Map;
use crate::host::Put as _;
use crate::shared::{Http, Owner};
use crate::transfer::{FETCH, Transfer, failure};
use crate::{Algorithm, Change, Done, Error, ErrorKind, Exec, Expect, FileKind, Host, Module, Plan, paths};

/// Download a file to the host.
///
/// ```yaml
/// - get_url:
///     url: https://get.helm.sh/helm-v4.0.0-linux-amd64.tar.gz
///     dest: /usr/local/src/helm.tar.gz
///     checksum: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What to download: `http`, `https`, `ftp` or `file`.
    url: String,
    /// Where it goes. A directory gets it under the URL's last name.
    dest: String,
    /// `ALGORITHM:DIGITS`, or `ALGORITHM:URL` of a list of checksums. A file that has it is not downloaded.
    checksum: Option<String>,
    /// Download even where there is a file, and replace it when it differs.
    #[serde(default, alias = "thirsty")]
    force: bool,
    /// Keep what was there beside it, with the time in its name.
    #[serde(default)]
    backup: bool,
    /// Headers of the request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// How long the server may be silent, in seconds.
    #[serde(default = "timeout")]
    timeout: u64,
    #[serde(rename = "+http")]
    #[schemars(flatten)]
    http: Http,
    #[serde(rename = "+owner")]
    #[schemars(flatten)]
    owner: Owner,
}

fn timeout() -> u64 {
    10
}

/// Downloads beside `$3` and renames. `$1` scratch, `$2` folder, `$4` mode, `$5` owner, `$6` checksum program, `$7`
/// checksum, `$8` whether to keep the old file. Whatever fails, what was downloaded goes, and so does what a host that
/// lost its power left behind.
const SCRIPT: &str = r#"
umask 077
find "$2" -maxdepth 1 -name '.kubeon-download.??????' -mmin +60 -exec rm -f {} + 2>/dev/null
new=$(mktemp "$2/.kubeon-download.XXXXXX") || exit 91
trap 'rm -f "$new"' EXIT
trap 'exit 93' HUP INT TERM
fetch "$1" "$new" || exit
if [ -n "$6" ]; then
    found=$("$6" <"$new") || exit 94
    found=${found%% *}
    [ "$found" = "$7" ] || { echo "its checksum is $found, not $7" >&2; exit 95; }
fi
if [ -f "$3" ] && cmp -s "$new" "$3"; then
    echo same
    exit 0
fi
if [ -n "$5" ]; then chown "$5" "$new" || exit 96; fi
chmod "$4" "$new" || exit 97
if [ -n "$8" ] && [ -f "$3" ]; then
    old=$3.$$.$(date +%Y-%m-%d@%H:%M:%S)~
    cp -p "$3" "$old" || exit 98
    echo "backup $old"
fi
mv -f "$new" "$3" || exit 99
"#;

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let wanted = self.owner.wanted(host)?;
        let mut dest = paths::expand(host, &self.dest)?;
        let into_directory =
            dest.ends_with('/') || host.stat(&dest)?.is_some_and(|stat| stat.kind == FileKind::Directory);
        if into_directory {
            dest = paths::join(&dest, name_of(&self.url)?);
        }
        let dest = paths::follow(host, &dest)?;
        let found = host.stat(&dest)?;
        let checksum = self.checksum.as_deref().map(|text| self.checksum(host, text)).transpose()?;
        let mut changes = Vec::new();
        if let Some(output) = host.applied().iter().find_map(|done| done.output.as_ref()) {
            if !output.success() {
                return Err(failure(&self.url, output.rc, &output.stderr).with("dest", dest));
            }
        } else {
            let there = match (&checksum, &found) {
                (_, None) => false,
                (Some((algorithm, digits)), Some(_)) => host.checksum(&dest, *algorithm)?.as_ref() == Some(digits),
                (None, Some(_)) => !self.force && !into_directory,
            };
            if !there {
                changes.push(Change::Exec(self.download(host, &dest, checksum.as_ref(), &wanted)?));
            }
        }
        if let (true, Some(found)) = (changes.is_empty(), &found) {
            wanted.changes(host, &dest, found, &mut changes);
        }
        let unchanged = changes.is_empty() && host.applied().is_empty();
        let mut plan = Plan::from(changes).with("url", self.url.as_str()).with("dest", dest.as_str());
        if unchanged {
            plan = plan.with(
                "msg",
                if checksum.is_some() { "file already exists with this checksum" } else { "file already exists" },
            );
        }
        describe(host, &dest, &mut plan.result)?;
        Ok(plan)
    }

    fn report(&self, host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        let Some(output) = done.iter().find_map(|done| done.output.as_ref()) else { return Ok(()) };
        if done.len() == 1 && output.stdout.lines().any(|line| line == "same") {
            result.put("changed", false);
        }
        let told = |key: &str| output.stdout.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        if let Some(old) = told("backup ") {
            result.put("backup_file", old);
        }
        if let Some(status) = told("status ").and_then(|status| status.parse::<u16>().ok()) {
            result.put("status_code", status);
        }
        result.put("elapsed", (output.ended_s - output.started_s) as u64);
        let size = result.get("size").cloned().unwrap_or_default();
        result.put("msg", format!("OK ({size} bytes)"));
        if let Some(dest) = result.get("dest").and_then(|dest| dest.as_str()).map(str::to_owned) {
            let checksum = host.checksum(&dest, Algorithm::Sha1)?;
            result.put("checksum_src", checksum.clone());
            result.put("checksum_dest", checksum);
        }
        Ok(())
    }
}

impl Args {
    fn transfer<'a>(&'a self, url: &'a str) -> Transfer<'a> {
        self.http.transfer(url, &self.headers, self.timeout)
    }

    fn download(
        &self,
        host: &dyn Host,
        dest: &str,
        checksum: Option<&(Algorithm, String)>,
        wanted: &Wanted,
    ) -> Result<Exec, Error> {
        let folder = paths::parent(dest);
        let found = host.stat(dest)?;
        let mode = match (&wanted.mode, &found) {
            (Some(mode), found) => mode.bits(found.as_ref(), FileKind::File, 0o644),
            (None, Some(found)) => found.mode,
            (None, None) => 0o644,
        };
        let uid = wanted.uid.or(found.map(|found| found.uid).filter(|&uid| uid != host.uid()));
        let gid = wanted.gid.or(found.map(|found| found.gid).filter(|_| host.uid() == 0));
        let owner = match (uid, gid) {
            (None, None) => String::new(),
            (uid, gid) => {
                let text = |id: Option<u32>| id.map_or(String::new(), |id| id.to_string());
                format!("{}{}{}", text(uid), if gid.is_some() { ":" } else { "" }, text(gid))
            }
        };
        let (program, digits) = match checksum {
            Some((algorithm, digits)) => (program(*algorithm), digits.as_str()),
            None => ("", ""),
        };
        let script = format!("{FETCH}{SCRIPT}");
        let mode = format!("{mode:04o}");
        let backup = if self.backup { "yes" } else { "" };
        let argv =
            ["/bin/sh", "-c", &script, "get_url", "{scratch}", folder, dest, &mode, &owner, program, digits, backup];
        let files = self.transfer(&self.url).files()?;
        Ok(Exec { files, expect: Expect::Any, ..Exec::new(argv) })
    }

    /// Reads `ALGORITHM:DIGITS`; digits may stand in a list that a URL leads to.
    fn checksum(&self, host: &dyn Host, text: &str) -> Result<(Algorithm, String), Error> {
        let wrong = || bad(format!("`checksum: {text}` is not written as `sha256:DIGITS` or `sha256:URL`"));
        let (algorithm, value) = text.split_once(':').ok_or_else(wrong)?;
        let algorithm = Algorithm::named(&algorithm.to_ascii_lowercase()).ok_or_else(wrong)?;
        let value = value.trim();
        if !value.contains("://") {
            let digits = value.to_ascii_lowercase();
            let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let size = algorithm.of(b"").len();
            return if hexadecimal && digits.len() == size { Ok((algorithm, digits)) } else { Err(wrong()) };
        }
        let list = self.transfer(value).read(host)?;
        let name = name_of(&self.url)?;
        listed(&list, name, algorithm.of(b"").len()).map(|digits| (algorithm, digits)).ok_or_else(|| {
            Error::new(ErrorKind::Failed, format!("the list of checksums at `{value}` names no `{name}`"))
        })
    }
}

/// Returns the checksum of a file in a list as `sha256sum` writes it; that of a list with nothing but one checksum.
fn listed(list: &str, name: &str, size: usize) -> Option<String> {
    let is_checksum = |word: &str| word.len() == size && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = list.split_whitespace();
    if let (Some(only), None) = (words.next(), words.next()) {
        return Some(only.to_ascii_lowercase()).filter(|only| is_checksum(only));
    }
    list.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (digits, file) = (words.next()?, words.next()?);
        let file = file.trim_start_matches('*');
        (is_checksum(digits) && paths::name(file) == name).then(|| digits.to_ascii_lowercase())
    })
}

/// Returns the program that prints such a checksum.
fn program(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Md5 => "md5sum",
        Algorithm::Sha1 => "sha1sum",
        Algorithm::Sha224 => "sha224sum",
        Algorithm::Sha256 => "sha256sum",
        Algorithm::Sha384 => "sha384sum",
        Algorithm::Sha512 => "sha512sum",
    }
}

/// Returns the last name of a URL's path.
fn name_of(url: &str) -> Result<&str, Error> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let after_host = path.split_once("://").map_or(path, |(_, rest)| rest).split_once('/').map_or("", |(_, path)| path);
    match paths::name(after_host) {
        "" => Err(bad(format!("`{url}` has no file name: give the whole path of the file as `dest`"))),
        name => Ok(name),
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_found_in_lists() {
        let digits = "a".repeat(64);
        assert_eq!(listed(&format!("{digits}\n"), "x", 64), Some(digits.clone()));
        let list = format!("{}  other\n{digits} *./dir/x.tar\n", "b".repeat(64));
        assert_eq!(listed(&list, "x.tar", 64), Some(digits));
        assert_eq!(listed(&list, "y", 64), None);
    }

    #[test]
    fn names_of_urls() {
        assert_eq!(name_of("https://h/a/b.tgz?x=/y").ok(), Some("b.tgz"));
        assert!(name_of("https://h").is_err() && name_of("https://h/").is_err());
    }
}
