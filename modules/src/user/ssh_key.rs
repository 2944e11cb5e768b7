//! An SSH key for an account.

use super::Args;
use crate::accounts::{self, User};
use crate::host::Put as _;
use crate::{Change, Error, Exec, Host, Plan, Probe};

impl Args {
    pub(super) fn ssh_key(&self, host: &dyn Host, user: &User, plan: &mut Plan) -> Result<(), Error> {
        let usual = format!(".ssh/id_{}", self.ssh_key_type);
        let file = self.ssh_key_file.as_deref().unwrap_or(&usual);
        let file = if file.starts_with('/') { file.to_owned() } else { format!("{}/{file}", user.home) };
        let public = format!("{file}.pub");
        plan.result.put("ssh_key_file", file.as_str());
        for path in [&file, &public] {
            accounts::stays_own(host, user.uid, &user.home, path)?;
        }
        let made = host.applied().iter().any(|done| is_keygen(&done.change));
        if host.stat(&file)?.is_some() && (made || !self.force) {
            if let Some(bytes) = host.read(&public)? {
                plan.result.put("ssh_public_key", String::from_utf8_lossy(&bytes).trim());
            }
            let output = host.probe(&Probe::of(&["ssh-keygen", "-l", "-f", &file]))?;
            if output.success() {
                plan.result.put("ssh_fingerprint", output.stdout.trim());
            }
            return Ok(());
        }
        let own = |path: &str| Change::Chown { path: path.to_owned(), uid: Some(user.uid), gid: Some(user.gid) };
        let folder = crate::paths::parent(&file).to_owned();
        if host.stat(&folder)?.is_none() {
            plan.changes.push(Change::Mkdir { path: folder.clone(), mode: Some(0o700) });
            plan.changes.push(own(&folder));
        }
        for path in [&file, &public] {
            if host.lstat(path)?.is_some() {
                plan.changes.push(Change::Remove { path: path.clone() });
            }
        }
        let host_name = host.read("/proc/sys/kernel/hostname")?.unwrap_or_default();
        let usual = format!("ansible-generated on {}", String::from_utf8_lossy(&host_name).trim());
        let comment = self.ssh_key_comment.as_deref().unwrap_or(&usual);
        let mut argv = vec!["ssh-keygen", "-q", "-t", &self.ssh_key_type];
        let bits = self.ssh_key_bits.map(|bits| bits.to_string());
        if let Some(bits) = &bits {
            argv.extend(["-b", bits]);
        }
        argv.extend(["-C", comment, "-f", &file]);
        let keygen = match &self.ssh_key_passphrase {
            // Without a terminal the passphrase is read from the input, twice; no list of processes shows it.
            Some(passphrase) => Exec {
                stdin: Some(format!("{passphrase}\n{passphrase}\n")),
                env: vec![("SSH_ASKPASS_REQUIRE".into(), "never".into())],
                ..Exec::new(["setsid", "-w"].into_iter().chain(argv))
            },
            None => Exec::new(argv.into_iter().chain(["-N", ""])),
        };
        plan.changes.push(Change::Exec(keygen));
        plan.changes.extend([own(&file), own(&public)]);
        Ok(())
    }
}

fn is_keygen(change: &Change) -> bool {
    matches!(change, Change::Exec(exec) if exec.argv.iter().any(|word| word == "ssh-keygen"))
}
