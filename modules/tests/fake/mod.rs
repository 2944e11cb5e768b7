//! A host made of data: what a case says is there, and nothing else.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kubeon_modules::{
    Algorithm, Change, Content, Done, Error, ErrorKind, FileKind, Host, KubeAnswer, KubeRequest, Output, Probe, Stat,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fake {
    /// A path and what is there. A text is a file's content.
    #[serde(default)]
    pub files: BTreeMap<String, Node>,
    /// A command line, words joined by a blank, and how it ends. One that is not listed is not installed.
    #[serde(default)]
    probe: BTreeMap<String, Output>,
    /// `METHOD path` and the API server's answer.
    #[serde(default)]
    kubernetes: BTreeMap<String, KubeAnswer>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    uid: u32,
    /// Seconds since 1970 at which the task started.
    #[serde(default)]
    started_s: f64,
    /// What the task is said to have applied before this plan.
    #[serde(default)]
    applied: Vec<Applied>,
    #[serde(skip)]
    done: std::sync::OnceLock<Vec<Done>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Applied {
    change: Change,
    output: Option<Output>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum Node {
    Text(String),
    Described(Described),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    #[serde(default)]
    content: Option<String>,
    /// The content where it is no text.
    #[serde(default)]
    base64: Option<String>,
    #[serde(default)]
    directory: bool,
    /// A symbolic link's target.
    #[serde(default)]
    link: Option<String>,
    /// `[major, minor]` of a character device.
    #[serde(default)]
    device: Option<(u32, u32)>,
    #[serde(default)]
    mode: Option<u32>,
    #[serde(default)]
    uid: u32,
    #[serde(default)]
    gid: u32,
    #[serde(default)]
    modified_s: i64,
    #[serde(default)]
    inode: u64,
}

impl Described {
    fn bytes(&self) -> Vec<u8> {
        match &self.base64 {
            Some(packed) => STANDARD.decode(packed).unwrap_or_default(),
            None => self.content.clone().unwrap_or_default().into_bytes(),
        }
    }
}

impl Fake {
    /// Follows links, of folders on the way too.
    fn resolve(&self, path: &str) -> String {
        let mut path = path.trim_end_matches('/').to_owned();
        for _ in 0..16 {
            let mut next = None;
            for (at, _) in path.match_indices('/').chain([(path.len(), "")]) {
                let prefix = &path[..at];
                if let Some(Node::Described(Described { link: Some(target), .. })) = self.files.get(prefix) {
                    let base = prefix.rsplit_once('/').map_or("", |(parent, _)| parent);
                    let target =
                        if target.starts_with('/') { target.clone() } else { normal(&format!("{base}/{target}")) };
                    next = Some(format!("{target}{}", &path[at..]));
                    break;
                }
            }
            match next {
                Some(next) => path = next,
                None => return path,
            }
        }
        path
    }

    fn stat_at(&self, path: &str) -> Option<Stat> {
        let below = format!("{path}/");
        let nothing = Described::default();
        let (kind, described, size) = match self.files.get(path) {
            Some(Node::Text(text)) => (FileKind::File, &nothing, text.len()),
            Some(Node::Described(described)) => match described {
                Described { link: Some(_), .. } => (FileKind::Link, described, 0),
                Described { device: Some(_), .. } => (FileKind::CharacterDevice, described, 0),
                Described { directory: true, .. } => (FileKind::Directory, described, 0),
                Described { .. } => (FileKind::File, described, described.bytes().len()),
            },
            None if self.files.keys().any(|other| other.starts_with(&below)) => (FileKind::Directory, &nothing, 0),
            None => return None,
        };
        let usual = if kind == FileKind::Directory { 0o755 } else { 0o644 };
        Some(Stat {
            kind,
            mode: described.mode.unwrap_or(usual),
            uid: described.uid,
            gid: described.gid,
            size_bytes: size as u64,
            modified_s: described.modified_s,
            accessed_s: described.modified_s,
            changed_s: described.modified_s,
            inode: described.inode,
            links: 1,
            device: 1,
            rdev: described.device.unwrap_or_default(),
            blocks: (size as u64).div_ceil(512),
            block_size_bytes: 4096,
        })
    }
}

/// Takes `..` and `.` out of a path.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Host for Fake {
    fn lstat(&self, path: &str) -> Result<Option<Stat>, Error> {
        let path = path.trim_end_matches('/');
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.stat_at(&format!("{}/{name}", self.resolve(parent))))
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>, Error> {
        Ok(self.stat_at(&self.resolve(path)))
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(match self.files.get(&self.resolve(path)) {
            Some(Node::Text(text)) => Some(text.clone().into_bytes()),
            Some(Node::Described(described @ Described { directory: false, device: None, link: None, .. })) => {
                Some(described.bytes())
            }
            Some(Node::Described(_)) | None => None,
        })
    }

    fn read_link(&self, path: &str) -> Result<Option<String>, Error> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(match self.files.get(&format!("{}/{name}", self.resolve(parent))) {
            Some(Node::Described(Described { link, .. })) => link.clone(),
            Some(Node::Text(_)) | None => None,
        })
    }

    fn list(&self, path: &str) -> Result<Option<Vec<String>>, Error> {
        let below = format!("{}/", self.resolve(path));
        if self.stat(path)?.is_none_or(|stat| stat.kind != FileKind::Directory) {
            return Ok(None);
        }
        let mut names: Vec<String> = self
            .files
            .keys()
            .filter_map(|other| other.strip_prefix(&below))
            .map(|rest| rest.split('/').next().unwrap_or(rest).to_owned())
            .collect();
        names.dedup();
        names.sort();
        names.dedup();
        Ok(Some(names))
    }

    fn sha256(&self, path: &str) -> Result<Option<String>, Error> {
        Ok(self.read(path)?.map(|bytes| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    fn checksum(&self, path: &str, algorithm: Algorithm) -> Result<Option<String>, Error> {
        Ok(self.read(path)?.map(|bytes| algorithm.of(&bytes)))
    }

    fn probe(&self, probe: &Probe) -> Result<Output, Error> {
        let line = probe.argv.join(" ");
        Ok(self.probe.get(&line).cloned().unwrap_or_else(|| Output {
            rc: 127,
            stderr: format!("{}: command not found", probe.argv[0]),
            ..Output::default()
        }))
    }

    fn content(&self, content: &Content) -> Result<Vec<u8>, Error> {
        match content {
            Content::Inline(bytes) => Ok(bytes.clone()),
            Content::File { path } => Ok(self.read(path)?.unwrap_or_default()),
            Content::Sent { .. } => Err(Error::new(ErrorKind::Failed, "a case has its content inline")),
        }
    }

    fn started_s(&self) -> f64 {
        self.started_s
    }

    fn applied(&self) -> &[Done] {
        self.done.get_or_init(|| {
            self.applied
                .iter()
                .map(|applied| Done {
                    change: applied.change.clone(),
                    output: applied.output.clone(),
                    backup: None,
                    answer: None,
                })
                .collect()
        })
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }

    fn environment(&self) -> BTreeMap<String, String> {
        self.env.clone()
    }

    fn uid(&self) -> u32 {
        self.uid
    }

    fn kubernetes(&self, request: &KubeRequest) -> Result<KubeAnswer, Error> {
        let line = format!("{} {}", request.method, request.path);
        let missing = || KubeAnswer { status: 404, body: serde_json::json!({"message": format!("no case: {line}")}) };
        Ok(self.kubernetes.get(&line).cloned().unwrap_or_else(missing))
    }
}
