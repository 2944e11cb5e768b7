//! Modules that are not built in: programs of a `library/` folder or a collection, in Python with Ansible's own
//! libraries, or of any other make under Ansible's protocols for them.

mod find;
mod payload;

use std::path::{Path, PathBuf};

pub use find::{Search, find};
pub use payload::Payload;

/// A program that is a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub path: PathBuf,
    /// Its name as Python imports it: `ansible.modules.NAME`, or that in its collection.
    pub import_name: String,
    pub kind: ForeignKind,
    /// Folders of `module_utils` that may hold what it imports, beside ansible-core's own.
    pub module_utils: Vec<PathBuf>,
    /// Folders that hold `ansible_collections/`.
    pub collections: Vec<PathBuf>,
}

/// How a module is started and given its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignKind {
    /// Python that imports `ansible.module_utils`: it needs a Python on the host, and ansible-core here.
    Python,
    /// A program that reads its arguments as JSON from the file it is given: it holds the word `WANT_JSON`, or is binary.
    Json,
    /// A script in which `<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>` stands for its arguments.
    Embedded,
    /// A script that reads `key=value` words from the file it is given.
    Words,
}

/// What stands in a script for its arguments.
const ARGUMENTS_MARK: &str = "<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>";

impl Foreign {
    /// Returns the module's name without its collection.
    pub fn name(&self) -> &str {
        self.import_name.rsplit('.').next().unwrap_or(&self.import_name)
    }
}

impl ForeignKind {
    /// Tells how a program wants to be started, by what it holds.
    pub fn of(path: &Path, program: &[u8]) -> ForeignKind {
        let text = String::from_utf8_lossy(program);
        let is_python = path.extension().is_some_and(|ending| ending == "py")
            || text.lines().next().is_some_and(|line| line.starts_with("#!") && line.contains("python"));
        let imports = |line: &str| {
            let line = line.trim_start();
            let marks = ["ansible.module_utils", "ansible_collections.", "from .."];
            (line.starts_with("from ") || line.starts_with("import ")) && marks.iter().any(|mark| line.contains(mark))
        };
        if is_python && text.lines().any(imports) {
            ForeignKind::Python
        } else if text.contains(ARGUMENTS_MARK) {
            ForeignKind::Embedded
        } else if text.contains("WANT_JSON") || program.contains(&0) {
            ForeignKind::Json
        } else {
            ForeignKind::Words
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_say_how_they_are_started() {
        let kind = |name: &str, text: &str| ForeignKind::of(Path::new(name), text.as_bytes());
        assert_eq!(
            kind("a.py", "import json\nfrom ansible.module_utils.basic import AnsibleModule"),
            ForeignKind::Python
        );
        assert_eq!(kind("a", "#!/usr/bin/python\n  import ansible.module_utils.basic"), ForeignKind::Python);
        assert_eq!(kind("a.py", "from ..module_utils.x import y"), ForeignKind::Python);
        assert_eq!(kind("a.py", "# no ansible.module_utils\nWANT_JSON = 1"), ForeignKind::Json);
        assert_eq!(kind("a", "\u{7f}ELF\0"), ForeignKind::Json);
        assert_eq!(kind("a.rb", "args = <<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>"), ForeignKind::Embedded);
        assert_eq!(kind("a.sh", "#!/bin/sh\n. $1"), ForeignKind::Words);
    }
}
