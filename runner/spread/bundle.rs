//! The files that go to the pods: packed, those that nobody but pods may see apart from the others, in pieces that the
//! Kubernetes API takes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// How large a piece is: a ConfigMap and a Secret hold 1 MiB.
pub const PIECE_BYTES: usize = 900 << 10;
/// How much is taken, packed: each pod is given all of it, and the API's store holds it meanwhile.
pub const MOST_BYTES: usize = 16 << 20;
/// How much is taken before it is packed.
const MOST_PLAIN_BYTES: u64 = 256 << 20;
/// Folders that no playbook needs.
const LEFT_OUT: [&str; 7] = [".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules", ".tox"];
/// How deep folders, and links to them, are followed.
const DEPTH: usize = 40;
/// Variables whose values are passwords. One that is a template or comes out of a vault is none.
const PASSWORDS: [&str; 6] = [
    "ansible_password",
    "ansible_ssh_pass",
    "ansible_become_pass",
    "ansible_sudo_pass",
    "ansible_su_pass",
    "private_key",
];

/// A file on its way, its path relative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: PathBuf,
    pub mode: u32,
    pub content: Vec<u8>,
}

/// What goes to the pods: packed, and not yet cut.
#[derive(Debug, Default)]
pub struct Bundle {
    pub open: Vec<u8>,
    pub private: Vec<u8>,
}

/// Packs files as they are.
struct Packer(tar::Builder<GzEncoder<Vec<u8>>>);

impl Packer {
    fn new() -> Packer {
        Packer(tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default())))
    }

    fn add(&mut self, path: &Path, mode: u32, content: &[u8]) -> std::io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        self.0.append_data(&mut header, path, content)
    }

    fn folder(&mut self, path: &Path) -> std::io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        header.set_mode(0o755);
        self.0.append_data(&mut header, path, std::io::empty())
    }

    fn size(&self) -> usize {
        self.0.get_ref().get_ref().len()
    }

    fn finish(self) -> std::io::Result<Vec<u8>> {
        self.0.into_inner()?.finish()
    }
}

struct Walk<'a> {
    root: &'a Path,
    named: &'a BTreeSet<PathBuf>,
    open: Packer,
    private: Packer,
    plain: u64,
}

/// Packs a project, below `project/`, and further private files. `named` are files of the project that hold secrets.
///
/// # Errors
/// A sentence for a person when something can't be read, or is too much.
pub fn pack(project: Option<&Path>, named: &BTreeSet<PathBuf>, files: &[File]) -> Result<Bundle, String> {
    let root = project.unwrap_or(Path::new("/"));
    let mut walk = Walk { root, named, open: Packer::new(), private: Packer::new(), plain: 0 };
    if let Some(project) = project {
        walk.folder(project, Path::new("project"), 0)?;
    }
    for file in files {
        let added = walk.private.add(&file.path, file.mode, &file.content);
        added.map_err(|error| format!("pack `{}`: {error}", file.path.display()))?;
    }
    let finish = |packer: Packer| packer.finish().map_err(|error| format!("pack the project: {error}"));
    let bundle = Bundle { open: finish(walk.open)?, private: finish(walk.private)? };
    if bundle.open.len() + bundle.private.len() > MOST_BYTES { Err(too_much(root)) } else { Ok(bundle) }
}

fn too_much(root: &Path) -> String {
    format!(
        "`{}` is too much to go through the Kubernetes API: packed, it may have {} MiB; name a smaller folder with \
         `--project`, or give it to the pods with `--volume CLAIM` or in their image with `--project-path`",
        root.display(),
        MOST_BYTES >> 20
    )
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, at: &Path, depth: usize) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("read `{}`: {error}", folder.display());
        if depth > DEPTH {
            return Err(format!("`{}` lies too deep, or a link leads round in a circle", folder.display()));
        }
        self.open.folder(at).map_err(failed)?;
        let mut entries: Vec<_> = fs::read_dir(folder).and_then(Iterator::collect).map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            // A link leads to what it leads to; one that leads nowhere is nothing.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_dir() {
                if !LEFT_OUT.iter().any(|left_out| name == *left_out) {
                    self.folder(&path, &at.join(&name), depth + 1)?;
                }
            } else if metadata.is_file() {
                self.file(&path, &at.join(&name), &metadata)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, at: &Path, metadata: &fs::Metadata) -> Result<(), String> {
        self.plain += metadata.len();
        if self.plain > MOST_PLAIN_BYTES || self.open.size() + self.private.size() > MOST_BYTES {
            return Err(too_much(self.root));
        }
        let failed = |error: std::io::Error| format!("read `{}`: {error}", path.display());
        let mode = metadata.permissions().mode() & 0o777;
        let content = fs::read(path).map_err(failed)?;
        let is_private = self.named.contains(path) || is_private(mode, &content);
        let packer = if is_private { &mut self.private } else { &mut self.open };
        packer.add(at, mode, &content).map_err(failed)
    }
}

/// Returns whether a file is for nobody else's eyes: only its owner may read it, or it holds a key or a password.
fn is_private(mode: u32, content: &[u8]) -> bool {
    if mode & 0o044 == 0 {
        return true;
    }
    let text = String::from_utf8_lossy(content);
    text.contains("PRIVATE KEY-----") || text.lines().any(|line| PASSWORDS.iter().any(|name| sets(line, name)))
}

/// Returns whether a line of an inventory or of variables sets this variable to a text of its own.
fn sets(line: &str, name: &str) -> bool {
    let Some((_, after)) = line.split_once(name) else { return false };
    // `ansible_password: x`, `ansible_become_password=x`, `"ansible_password": "x"`.
    let after = after.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start_matches(['"', '\'']);
    let Some(value) = after.trim_start().strip_prefix([':', '=']) else { return false };
    let value = value.trim().trim_start_matches(['"', '\'']);
    !value.is_empty() && !value.starts_with("{{") && !value.starts_with("!vault")
}

/// Returns what a bundle is cut into, by names in their order.
pub fn pieces(bytes: &[u8]) -> Vec<(String, &[u8])> {
    bytes.chunks(PIECE_BYTES).enumerate().map(|(number, piece)| (format!("part-{number:04}"), piece)).collect()
}

/// Unpacks the pieces in a folder into another one.
///
/// # Errors
/// A sentence for a person.
pub fn unpack(pieces: &Path, into: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("unpack `{}`: {error}", pieces.display());
    let mut names: Vec<PathBuf> = fs::read_dir(pieces)
        .map_err(failed)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("part-")))
        .collect();
    names.sort();
    let mut packed = Vec::new();
    for name in names {
        packed.extend(fs::read(&name).map_err(failed)?);
    }
    let mut archive = tar::Archive::new(GzDecoder::new(&packed[..]));
    archive.set_preserve_permissions(true);
    archive.set_preserve_mtime(false);
    archive.unpack(into).map_err(failed)
}

/// Packs a text.
///
/// # Errors
/// None that memory does not give.
pub fn packed(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// Reads what [`packed`] gives.
///
/// # Errors
/// When it is damaged.
pub fn unpacked(bytes: &[u8]) -> std::io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("kubeon-bundle-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn write(path: &Path, mode: u32, text: &str) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("write");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    }

    fn unpacked_to(bytes: &[u8], into: &Path) {
        let from = into.with_extension("pieces");
        fs::create_dir_all(&from).expect("a folder");
        for (name, piece) in pieces(bytes) {
            fs::write(from.join(name), piece).expect("write");
        }
        fs::create_dir_all(into).expect("a folder");
        unpack(&from, into).expect("what was packed");
    }

    #[test]
    fn what_is_private_is_in_the_private_part_alone() {
        let project = folder("private");
        write(&project.join("site.yml"), 0o644, "- hosts: all\n");
        write(&project.join("roles/r/tasks/main.yml"), 0o644, "ansible_password: '{{ x }}'\n");
        write(&project.join("own"), 0o600, "for my eyes");
        write(&project.join("hosts"), 0o644, "h1 ansible_password=hunter2\n");
        write(&project.join("named"), 0o644, "a password");
        write(&project.join("id"), 0o644, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
        write(&project.join(".git/config"), 0o644, "left out");
        let named = BTreeSet::from([project.join("named")]);
        let more = File { path: "orders.json".into(), mode: 0o600, content: b"{}".to_vec() };
        let bundle = pack(Some(&project), &named, &[more]).expect("it is small");
        let (open, private) = (project.join("open"), project.join("closed"));
        unpacked_to(&bundle.open, &open);
        unpacked_to(&bundle.private, &private);
        for name in ["site.yml", "roles/r/tasks/main.yml"] {
            assert!(
                open.join("project").join(name).is_file() && !private.join("project").join(name).exists(),
                "{name}"
            );
        }
        for name in ["own", "hosts", "named", "id"] {
            assert!(
                !open.join("project").join(name).exists() && private.join("project").join(name).is_file(),
                "{name}"
            );
        }
        assert!(private.join("orders.json").is_file());
        assert!(!open.join("project/.git").exists());
        fs::remove_dir_all(&project).expect("the folder is ours");
    }

    #[test]
    fn what_is_too_much_is_refused_with_the_ways_out() {
        let project = folder("much");
        let mut noise = Vec::new();
        let mut state = 1_u64;
        while noise.len() < MOST_BYTES + (1 << 20) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            noise.extend_from_slice(&state.to_le_bytes()[3..]);
        }
        fs::write(project.join("big"), noise).expect("write");
        let said = pack(Some(&project), &BTreeSet::new(), &[]).expect_err("it is too much");
        assert!(said.contains("--volume") && said.contains("16 MiB"), "{said}");
        fs::remove_dir_all(&project).expect("the folder is ours");
    }

    #[test]
    fn large_bundles_come_together_again() {
        let bytes: Vec<u8> = (0..PIECE_BYTES * 2 + 5).map(|number| (number % 251) as u8).collect();
        let cut = pieces(&bytes);
        assert_eq!(cut.len(), 3);
        assert!(cut.iter().all(|(_, piece)| piece.len() <= PIECE_BYTES));
        assert_eq!(cut.iter().flat_map(|(_, piece)| piece.to_vec()).collect::<Vec<_>>(), bytes);
    }
}
