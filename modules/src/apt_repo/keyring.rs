//! The file with the repository's key: whether it will do.

use crate::apt_repo::Site;
use crate::repository_key::openpgp::{self, Certificate};
use crate::repository_key::{Origin, expires_soon, write_key};
use crate::{Change, Error, Plan};

impl Site<'_> {
    /// Sees to the key's file; returns the key.
    pub(super) fn keyring(&self, plan: &mut Plan) -> Result<Certificate, Error> {
        let path = self.args.keyring();
        let there = self.host.read(&path)?.and_then(|bytes| openpgp::certificates(&bytes).ok()).unwrap_or_default();
        let mode = self.host.stat(&path)?.map(|stat| stat.mode);
        let pinned = self.args.pinned();
        let origin = Origin {
            key: self.args.key.as_ref(),
            key_file: self.args.key_file.as_deref(),
            key_url: self.args.key_url.as_deref(),
            uri: &self.args.uri,
            pinned: &pinned,
            env: Vec::new(),
        };
        let (certificate, is_there) = origin.certificate(self.host, there)?;
        if !is_there {
            write_key(self.host, &path, certificate.bytes.clone(), plan)?;
        } else if mode.is_some_and(|mode| mode & 0o444 != 0o444) {
            plan.changes.push(Change::Chmod { path, mode: 0o644 });
        }
        plan.warnings.extend(expires_soon(self.host, &certificate));
        Ok(certificate)
    }
}
