use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::JsonSchema;

use crate::decode::Arguments;
use crate::{Algorithm, Error, ErrorKind, FileKind, Host, Module, Plan, paths, wire::FRAME_LIMIT_BYTES};

/// The largest file that fits into an answer once it is encoded, with room for the rest of the result.
const LIMIT_BYTES: u64 = (FRAME_LIMIT_BYTES as u64 - (1 << 20)) / 4 * 3;

/// Read a file of the host into a variable, encoded in base64.
///
/// ```yaml
/// - slurp:
///     src: /etc/machine-id
///   register: id
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file.
    #[serde(alias = "path")]
    src: String,
}

impl Module for Args {
    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        let path = paths::expand(host, &self.src)?;
        let wrong = |message: String| Error::new(ErrorKind::Host, message);
        match host.stat(&path)? {
            None => return Err(wrong(format!("file not found: {path}"))),
            Some(stat) if stat.kind == FileKind::Directory => {
                return Err(wrong(format!("`{path}` is a directory and must be a file")));
            }
            Some(stat) if stat.size_bytes > LIMIT_BYTES => {
                return Err(wrong(format!(
                    "`{path}` has {} bytes, more than the {LIMIT_BYTES} that a result can carry",
                    stat.size_bytes
                )));
            }
            Some(_) => {}
        }
        let bytes = host.read(&path)?.ok_or_else(|| wrong(format!("file not found: {path}")))?;
        Ok(Plan::default()
            .with("content", STANDARD.encode(&bytes))
            .with("encoding", "base64")
            .with("source", path)
            .with("checksum", Algorithm::Sha1.of(&bytes)))
    }
}
