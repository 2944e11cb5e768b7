use schemars::JsonSchema;
use serde::Deserialize;

use crate::accounts::{self, User};
use crate::decode::Arguments;
use crate::host::Put as _;
use crate::shared::{State, yes};
use crate::{Change, Error, ErrorKind, Exec, Host, Module, Plan};

mod home;
mod settings;
mod ssh_key;

/// Keep a user account present or absent, with its groups, password, home and SSH key.
///
/// ```yaml
/// - user:
///     name: deploy
///     groups: [docker, sudo]
///     append: true
///     shell: /bin/bash
///     password: "{{ vaulted_hash }}"
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The account's name.
    #[serde(alias = "user")]
    name: String,
    #[serde(default)]
    state: State,
    /// The account's number; the next free one when absent.
    uid: Option<u32>,
    /// Allow a number that another account has.
    #[serde(default)]
    non_unique: bool,
    /// The primary group, by name or number.
    group: Option<String>,
    /// Further groups; an empty list takes the account out of all of them unless `append` is set.
    groups: Option<Vec<String>>,
    /// Add to the groups that the account is in.
    #[serde(default)]
    append: bool,
    /// The person's name or another comment.
    comment: Option<String>,
    /// The login shell.
    shell: Option<String>,
    /// The home folder.
    home: Option<String>,
    /// Make the home folder where it is missing.
    #[serde(default = "yes", alias = "createhome")]
    create_home: bool,
    /// Move what is in the old home when `home` changes.
    #[serde(default)]
    move_home: bool,
    /// The folder whose files a new home begins with; `/etc/skel` when absent.
    skeleton: Option<String>,
    /// Bits that a new home is made without, such as `"077"`.
    umask: Option<String>,
    /// Take the number of a new account from those of the system's own.
    #[serde(default)]
    system: bool,
    /// The password's hash, as `/etc/shadow` holds it; `*` and `!` let no password in.
    password: Option<String>,
    /// Whether an existing account's password is changed too.
    #[serde(default)]
    update_password: UpdatePassword,
    /// Keep passwords from letting anybody in, or undo that.
    password_lock: Option<bool>,
    /// Days after which a password must be changed.
    password_expire_max: Option<i64>,
    /// Days for which a password can't be changed.
    password_expire_min: Option<i64>,
    /// Days before a password's end at which a warning begins.
    password_expire_warn: Option<i64>,
    /// Days after a password's end at which the account is closed.
    password_expire_account_disable: Option<i64>,
    /// When the account ends, in seconds since 1970; a negative number is never.
    expires: Option<f64>,
    /// Remove home and mail along with the account.
    #[serde(default)]
    remove: bool,
    /// Remove an account that is in use; make an SSH key over the old one.
    #[serde(default)]
    force: bool,
    /// Make an SSH key where there is none.
    #[serde(default)]
    generate_ssh_key: bool,
    /// The key's size; what `ssh-keygen` takes when absent.
    ssh_key_bits: Option<u32>,
    /// The key's kind.
    #[serde(default = "rsa")]
    ssh_key_type: String,
    /// The key's file, below the home unless absolute; `.ssh/id_KIND` when absent.
    ssh_key_file: Option<String>,
    /// The key's comment; `ansible-generated on HOST` when absent.
    ssh_key_comment: Option<String>,
    /// The key's passphrase; none when absent.
    ssh_key_passphrase: Option<String>,
    /// Look at `/etc/passwd` alone, and not at a directory service.
    #[serde(default)]
    local: bool,
    /// The lowest number for a new account.
    uid_min: Option<u32>,
    /// The highest number for a new account.
    uid_max: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum UpdatePassword {
    #[default]
    Always,
    OnCreate,
}

fn rsa() -> String {
    "rsa".to_owned()
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        self.check()?;
        let found = accounts::user(host, &self.name, self.local)?;
        let mut plan = Plan::default()
            .with("name", self.name.as_str())
            .with("state", if self.state == State::Present { "present" } else { "absent" });
        match (self.state, found) {
            (State::Absent, None) => {}
            (State::Absent, Some(_)) => {
                let mut argv = vec!["userdel"];
                if self.force {
                    argv.push("--force");
                }
                if self.remove {
                    argv.push("--remove");
                }
                argv.push(&self.name);
                plan.changes.push(Change::Exec(Exec::new(argv)));
            }
            (State::Present, None) => {
                plan.changes = self.create(host)?;
                plan.warnings.extend(self.doubtful_password());
            }
            (State::Present, Some(user)) => {
                plan.changes = self.change(host, &user)?;
                plan.changes.extend(self.make_home(host, &user)?);
                if self.generate_ssh_key {
                    self.ssh_key(host, &user, &mut plan)?;
                }
                self.describe(host, &user, &mut plan)?;
                plan.warnings.extend(self.doubtful_password());
            }
        }
        Ok(plan)
    }
}

impl Args {
    fn check(&self) -> Result<(), Error> {
        let bad = |message: String| Err(Error::new(ErrorKind::Arguments, message));
        if self.name.is_empty() || self.name.contains([':', '\n', '/', ' ']) || self.name.starts_with('-') {
            return bad(format!("`{}` is no user's name", self.name));
        }
        if self.append && self.groups.is_none() {
            return bad("`append` adds to groups: give `groups`".into());
        }
        let texts =
            [("comment", &self.comment), ("shell", &self.shell), ("home", &self.home), ("password", &self.password)];
        if let Some((key, _)) =
            texts.iter().find(|(_, text)| text.as_ref().is_some_and(|text| text.contains([':', '\n'])))
        {
            return bad(format!("`{key}` holds a colon or a new line, which ends a field of `/etc/passwd`"));
        }
        Ok(())
    }

    /// Returns a warning about a password that is none of the hashes of `crypt(5)`.
    fn doubtful_password(&self) -> Option<String> {
        let hash = self.password.as_deref()?.trim_start_matches('!');
        let closed = hash.chars().all(|letter| letter == '*' || letter == 'x');
        let hashed = hash.starts_with(['$', '_']) && hash.matches('$').count() >= 2 || hash.starts_with('_');
        (!closed && !hashed).then(|| {
            "The input password appears not to have been hashed. `password` is a hash, such as the filter \
             `password_hash` makes."
                .to_owned()
        })
    }

    fn describe(&self, host: &dyn Host, user: &User, plan: &mut Plan) -> Result<(), Error> {
        let groups = settings::groups_of(&accounts::groups(host)?, user);
        plan.result.put("uid", user.uid);
        plan.result.put("group", user.gid);
        plan.result.put("comment", user.comment.as_str());
        plan.result.put("home", user.home.as_str());
        plan.result.put("shell", user.shell.as_str());
        plan.result.put("groups", groups.join(","));
        plan.result.put("append", self.append);
        plan.result.put("move_home", self.move_home);
        if self.password.is_some() {
            plan.result.put("password", "NOT_LOGGING_PASSWORD");
        }
        Ok(())
    }
}
