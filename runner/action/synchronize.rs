//! Folders kept alike by rsync, between this machine and a host over the run's own SSH, or on one machine.

use std::io;
use std::path::PathBuf;

use kubeon_modules::{Error, ErrorKind, Machine, Service, Settings};

use super::variables::find;
use super::{Failure, text};
use crate::connection::{Become, BecomeMethod, Contents, Via, shell_to};
use crate::execute::{self, ItemRun};
use crate::playbook::Keyword;
use crate::value::Map;

const MODULE: &str = "synchronize";

pub(super) fn synchronize(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    let delegated = run.keyword(Keyword::DelegateTo)?.is_some_and(|host| host.truthy());
    let near = run.reach();
    let here = near.target.via == Via::Local;
    if delegated && near.host == *run.host {
        return on_one_machine(run, args);
    }
    if delegated && !here {
        let message = "`synchronize` goes from this machine to a host, or on one host: delegate it to `localhost` or to \
                       `{{ inventory_hostname }}`";
        return Err(Failure::message(message));
    }
    let mut far = if delegated { run.own_reach().map_err(Failure::message)? } else { near.clone() };
    let args = local_path(run, args)?;
    match &far.target.via {
        Via::Local => return on_one_machine(run, &args),
        Via::Ssh | Via::OpenSsh => {}
        Via::Command(_) => return Err(Failure::message("`synchronize` needs a host that is reached over SSH")),
    }
    if let Some(port) = text(&args, "dest_port") {
        far.target.port = Some(port.parse().map_err(|_| Failure::message(format!("`dest_port` is `{port}`")))?);
    }
    if let Some(key) = text(&args, "private_key") {
        far.target.private_key_file = Some(execute::home_expanded(PathBuf::from(key)));
    }
    if args.get("set_remote_user").is_some_and(|wanted| !execute::truth(wanted)) {
        far.target.user = None;
    }
    let shell = shell_to(&far.target)?;
    let mut args = args;
    let end = if is_pull(&args) { "src" } else { "dest" };
    let path = text(&args, end).unwrap_or_default();
    args.insert(end, format!("{}:{path}", bracketed(&far.target.address)));
    args.insert("_rsh", shell.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    if let Some(by) = far.become_.as_ref().filter(|_| !args.contains_key("rsync_path")) {
        args.insert("rsync_path", as_other_user(by)?);
    }
    let decoded = kubeon_modules::spec_of(MODULE).expect("the module is in the table").decode;
    let decoded = decoded(&args.to_json())?;
    let service = Here(run);
    let mut machine = Machine::new(&service, shell.env.clone(), None);
    let settings = Settings { check: run.check, diff: run.diff, look: false };
    Ok(Map::from_json(kubeon_modules::run(decoded.as_ref(), &mut machine, settings)))
}

fn on_one_machine(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    execute::module(run, MODULE, args, &Contents::default())
}

fn is_pull(args: &Map) -> bool {
    text(args, "mode").is_some_and(|mode| mode == "pull")
}

/// Makes the path on this machine one that holds wherever rsync runs. A `/` at its end has a meaning, and stays.
fn local_path(run: &ItemRun<'_>, args: &Map) -> Result<Map, Failure> {
    let mut args = args.clone();
    let end = if is_pull(&args) { "dest" } else { "src" };
    let Some(given) = text(&args, end) else { return Ok(args) };
    let path = match is_pull(&args) {
        true => run.play.play.folder.join(execute::home_expanded(PathBuf::from(&given))),
        false => find(run, &given, "files")?,
    };
    let path = std::path::absolute(&path).unwrap_or(path).display().to_string();
    let slash = given.ends_with('/') && !path.ends_with('/');
    args.insert(end, path + if slash { "/" } else { "" });
    Ok(args)
}

fn bracketed(address: &str) -> String {
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    if bare.contains(':') { format!("[{bare}]") } else { bare.to_owned() }
}

/// Quotes a word of `--rsh` as rsync takes it apart: a quote within quotes is doubled.
fn quoted(word: &str) -> String {
    if word.contains([' ', '"', '\'']) { format!("'{}'", word.replace('\'', "''")) } else { word.to_owned() }
}

/// Returns how rsync is called at the other end as another user: no password can be given there.
fn as_other_user(by: &Become) -> Result<String, Failure> {
    match by.method {
        BecomeMethod::Sudo => Ok(format!("sudo -n -u {} rsync", shell_words::quote(&by.user))),
        BecomeMethod::Su | BecomeMethod::Doas => {
            Err(Failure::message("`synchronize` becomes another user by `sudo` alone; else give `rsync_path`"))
        }
    }
}

/// What the module needs of the runner where that runs it itself.
struct Here<'a>(&'a ItemRun<'a>);

impl Service for Here<'_> {
    fn fetch(&self, _sha256: &str, _sink: &mut dyn io::Write) -> Result<(), Error> {
        Err(Error::new(ErrorKind::Failed, "no content travels with this task"))
    }

    fn progress(&self, line: &str) {
        self.0.alive(line);
    }
}
