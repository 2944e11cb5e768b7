use schemars::JsonSchema;
use serde::Deserialize;

use crate::ask::{bad, failed, slow};
use crate::decode::Arguments;
use crate::passed::table;
use crate::{Change, Diff, Error, Exec, Host, Module, Plan};

/// Seconds that looking at two large trees may take.
const SLOW_S: u64 = 3600;
/// Marks the lines that name what differs.
const MARK: &str = "<<CHANGED>>";
/// What `archive` stands for, and each of which can be had or left out.
const PARTS: [&str; 6] = ["recursive", "links", "perms", "times", "owner", "group"];

/// Keep a folder or a file like another, with rsync: one here and one on the host, or two on the host.
///
/// From this machine to the host, over the run's own SSH; `mode: pull` turns it round. With
/// `delegate_to: "{{ inventory_hostname }}"` both are on the host. rsync has to be installed at both ends.
///
/// ```yaml
/// - synchronize:
///     src: site/
///     dest: /srv/site
///     delete: true
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// What is copied; a folder's content when it ends with `/`.
    src: String,
    /// Where it goes.
    dest: String,
    /// From here to the host, or from the host to here.
    #[serde(default)]
    #[expect(dead_code, reason = "the runner has put the host into `src` or `dest` by it")]
    mode: Direction,
    #[serde(rename = "+options")]
    #[schemars(flatten)]
    options: Options,
    /// How rsync gets to the other end: of the runner.
    #[serde(rename = "_rsh")]
    #[schemars(skip)]
    rsh: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    #[default]
    Push,
    Pull,
}

table! {
    pub(super) struct Options {
        /// Take folders with all that is in them, links, modes, times, owners and groups; yes when absent.
        archive: Flag,
        /// Compare contents, and not sizes and times.
        checksum: Flag,
        /// Compress what travels; yes when absent.
        compress: Flag,
        /// Follow links.
        copy_links: Flag,
        /// Put new files in place at the end, all together; yes when absent.
        delay_updates: Flag,
        /// Remove what is only at `dest`.
        delete: Flag,
        /// The port of SSH; the inventory's when absent.
        dest_port: Number,
        /// Take folders without what is in them.
        dirs: Flag,
        /// Make nothing new at `dest`.
        existing_only: Flag,
        /// Keep the group; as `archive` when absent.
        group: Flag,
        /// Folders at `dest` of which unchanged files are made links.
        link_dest: List,
        /// Keep links; as `archive` when absent.
        links: Flag,
        /// Keep the owner; as `archive` when absent.
        owner: Flag,
        /// Keep what has arrived of a file when the transfer breaks off.
        partial: Flag,
        /// Keep modes; as `archive` when absent.
        perms: Flag,
        /// The file with the SSH key; the inventory's when absent.
        private_key: Text,
        /// Take folders with what is in them; as `archive` when absent.
        recursive: Flag,
        /// Further options of rsync.
        rsync_opts: List,
        /// How rsync is called at the other end; with `become`, `sudo` calls it.
        rsync_path: Text,
        /// Seconds without any data after which rsync gives up.
        rsync_timeout: Number,
        /// Log in as the inventory says; yes when absent.
        set_remote_user: Flag,
        /// Taken and not needed: the connections of a run are its own.
        ssh_connection_multiplexing: Flag,
        /// Keep times; as `archive` when absent.
        times: Flag,
        /// Taken and not needed: SSH is always called as the inventory says.
        use_ssh_args: Flag,
        /// Taken and not needed: keys of hosts are checked as the run does it.
        verify_host: Flag,
    }
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.src.is_empty() || self.dest.is_empty() {
            return Err(bad("`src` and `dest` name a file or a folder each"));
        }
        if let Some(output) = host.applied().last().and_then(|done| done.output.as_ref()) {
            // rsync has compared what it sent with what arrived.
            return Ok(self.told(&output.stdout));
        }
        let argv = self.argv(true);
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let output = slow(host, &argv, SLOW_S)?;
        if !output.success() {
            return Err(failed(&["rsync", &self.src, &self.dest], &output));
        }
        let mut plan = self.told(&output.stdout);
        if output.stdout.contains(MARK) {
            plan.diff.push(Diff { prepared: Some(plain(&output.stdout)), ..Diff::default() });
            let env = vec![("LC_ALL".to_owned(), "C".to_owned())];
            plan.changes.push(Change::Exec(Exec { env, ..Exec::new(self.argv(false)) }));
        }
        Ok(plan)
    }
}

fn plain(told: &str) -> String {
    told.replace(MARK, "")
}

impl Args {
    fn told(&self, stdout: &str) -> Plan {
        let text = plain(stdout);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let plan = Plan::default().with("stdout_lines", lines);
        plan.with("cmd", shell_words::join(self.argv(false))).with("msg", text).with("rc", 0)
    }

    fn argv(&self, dry: bool) -> Vec<String> {
        let options = &self.options;
        let unless_off = |name: &str| options.flag(name) != Some(false);
        let mut argv = vec!["rsync".to_owned()];
        let mut add = |wanted: bool, word: &str| argv.extend(wanted.then(|| word.to_owned()));
        add(unless_off("delay_updates"), "--delay-updates");
        add(true, "-F");
        add(unless_off("compress"), "--compress");
        add(dry, "--dry-run");
        add(options.is("delete"), "--delete-after");
        add(options.is("existing_only"), "--existing");
        add(options.is("checksum"), "--checksum");
        add(options.is("copy_links"), "--copy-links");
        let archive = unless_off("archive");
        add(archive, "--archive");
        for name in PARTS {
            match options.flag(name) {
                Some(false) => add(archive, &format!("--no-{name}")),
                given => add(!archive && given == Some(true), &format!("--{name}")),
            }
        }
        add(options.is("dirs"), "--dirs");
        add(options.is("partial"), "--partial");
        if let Some(seconds) = options.number("rsync_timeout").filter(|&seconds| seconds > 0) {
            add(true, &format!("--timeout={seconds}"));
        }
        if let Some(rsh) = &self.rsh {
            add(true, &format!("--rsh={rsh}"));
        }
        if let Some(path) = options.text("rsync_path") {
            add(true, &format!("--rsync-path={path}"));
        }
        for word in options.list("rsync_opts") {
            add(true, word);
        }
        for (nth, folder) in options.list("link_dest").into_iter().enumerate() {
            add(nth == 0, "-H");
            add(true, &format!("--link-dest={folder}"));
        }
        add(true, &format!("--out-format={MARK}%i %n%L"));
        add(true, "--");
        add(true, &self.src);
        add(true, &self.dest);
        argv
    }
}
