//! Entries of other files that get in this repository's way.

use crate::apt_repo::Site;
use crate::apt_repo::sources::Source;
use crate::{Change, Error, ErrorKind, Plan, Write};

impl Site<'_> {
    /// Takes entries of other files out of service that name the same repository.
    pub(super) fn reconcile(&self, sources: &[Source], own: &str, plan: &mut Plan) -> Result<Vec<String>, Error> {
        let mut disabled = Vec::new();
        for source in sources.iter().filter(|source| source.path != own) {
            let mut source = source.clone();
            let mut touched = false;
            while let Some((entry, shared)) =
                source.entries().into_iter().find_map(|entry| self.named.is_in(&entry).map(|shared| (entry, shared)))
            {
                if shared {
                    return Err(Error::new(
                        ErrorKind::Refused,
                        format!(
                            "`{}` names this repository together with others in one stanza: take `{}` out of it",
                            source.path,
                            self.named.address()
                        ),
                    ));
                }
                let key = entry.signed_by.clone().unwrap_or_else(|| "no key of its own".to_owned());
                plan.warnings.push(format!(
                    "`{}` names the same repository with {key}: taken out of service, since apt takes one key for each",
                    source.path
                ));
                source.text = source.without(&entry);
                touched = true;
            }
            if touched {
                disabled.push(source.path.clone());
                plan.changes.push(Change::Write(Write::new(&source.path, source.text.clone())));
            }
        }
        Ok(disabled)
    }

    /// Finds entries that name NVIDIA's paths of old.
    pub(super) fn old(&self, sources: &[Source], own: &str, plan: &mut Plan) -> Result<Vec<String>, Error> {
        let mut old = Vec::new();
        for source in sources.iter().filter(|source| source.path != own) {
            let mut source = source.clone();
            let before = source.text.clone();
            while let Some(entry) = source.entries().into_iter().find(|entry| entry.uris.iter().any(|uri| is_old(uri)))
            {
                if !old.contains(&source.path) {
                    old.push(source.path.clone());
                }
                if !self.args.disable_old || entry.uris.len() > 1 {
                    let uris = entry.uris.join(", ");
                    plan.warnings.push(format!(
                        "`{}` names {uris}, which NVIDIA no longer serves, so that `apt-get update` fails: give \
                         `disable_old: true` to take it out of service",
                        source.path
                    ));
                    break;
                }
                source.text = source.without(&entry);
            }
            if source.text != before {
                plan.changes.push(Change::Write(Write::new(&source.path, source.text.clone())));
            }
        }
        Ok(old)
    }
}

/// Whether an address is one that NVIDIA no longer serves.
pub(crate) fn is_old(uri: &str) -> bool {
    uri.split_once("://nvidia.github.io/").is_some_and(|(_, path)| {
        let mut parts = path.split('/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("libnvidia-container"), Some("stable" | "experimental"), Some(third)) => {
                !matches!(third, "deb" | "rpm")
            }
            (Some("nvidia-docker" | "nvidia-container-runtime" | "libnvidia-container"), _, _) => true,
            _ => false,
        }
    })
}
