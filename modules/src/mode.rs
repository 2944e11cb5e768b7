//! Permission bits as users write them: `"0644"`, `0o644`, `u=rw,g=r,o=`.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, de};

use crate::host::{FileKind, Stat};

/// A mode that is still to be applied to what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The bits themselves.
    Bits(u32),
    /// chmod(1)'s symbolic clauses, such as `u=rwX,g-w`.
    Symbolic(String),
}

impl Mode {
    /// Returns the bits for what is at a path; `found` is `None` where it is still to be made as `kind` with `new`
    /// bits.
    pub fn bits(&self, found: Option<&Stat>, kind: FileKind, new: u32) -> u32 {
        let (kind, old) = found.map_or((kind, new), |stat| (stat.kind, stat.mode));
        match self {
            Mode::Bits(bits) => *bits,
            Mode::Symbolic(clauses) => clauses
                .split(',')
                .fold(old, |mode, clause| symbolic(clause, mode, kind == FileKind::Directory).unwrap_or(mode)),
        }
    }

    /// Reads a mode as users write it.
    ///
    /// # Errors
    /// A sentence for a person when `text` is no mode.
    pub fn parse(text: &str) -> Result<Mode, String> {
        let digits = text.trim_start_matches("0o");
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return match u32::from_str_radix(digits, 8) {
                Ok(bits) if bits <= 0o7777 => Ok(Mode::Bits(bits)),
                Ok(_) | Err(_) => Err(format!("`{text}` is no mode: expected octal digits up to 7777")),
            };
        }
        if text == "preserve" || text.split(',').all(|clause| symbolic(clause, 0, false).is_some()) {
            return Ok(Mode::Symbolic(text.to_owned()));
        }
        Err(format!("`{text}` is no mode: expected octal digits such as \"0644\" or clauses such as u=rw,g=r"))
    }
}

/// Applies one clause of chmod(1): `[ugoa]*([-+=]([rwxXst]*|[ugo]))+`.
fn symbolic(clause: &str, mode: u32, directory: bool) -> Option<u32> {
    let operators_at = clause.find(['+', '-', '='])?;
    let (who, mut rest) = clause.split_at(operators_at);
    let mut classes = 0;
    for letter in who.chars() {
        classes |= match letter {
            'u' => 0o4700,
            'g' => 0o2070,
            'o' => 0o1007,
            'a' => 0o7777,
            _ => return None,
        };
    }
    if who.is_empty() {
        classes = 0o7777;
    }
    let mut mode = mode;
    while let Some(operator) = rest.chars().next() {
        let end = rest[1..].find(['+', '-', '=']).map_or(rest.len(), |at| at + 1);
        let mut bits = 0;
        for letter in rest[1..end].chars() {
            bits |= match letter {
                'r' => 0o444,
                'w' => 0o222,
                'x' => 0o111,
                'X' if directory || mode & 0o111 != 0 => 0o111,
                'X' => 0,
                's' => 0o6000,
                't' => 0o1000,
                'u' => (mode >> 6 & 7) * 0o111,
                'g' => (mode >> 3 & 7) * 0o111,
                'o' => (mode & 7) * 0o111,
                _ => return None,
            };
        }
        bits &= classes;
        mode = match operator {
            '+' => mode | bits,
            '-' => mode & !bits,
            '=' => mode & !(classes & 0o777 | bits & 0o7000) | bits,
            _ => return None,
        };
        rest = &rest[end..];
    }
    Some(mode)
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Mode;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a mode such as \"0644\" or u=rw,g=r")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Mode, E> {
                Mode::parse(text).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, bits: u64) -> Result<Mode, E> {
                match u32::try_from(bits) {
                    Ok(bits) if bits <= 0o7777 => Ok(Mode::Bits(bits)),
                    Ok(_) | Err(_) => Err(E::custom(format_args!(
                        "{bits} is no mode: write it in quotes, as in \"0644\", so that YAML keeps its zero"
                    ))),
                }
            }
            fn visit_i64<E: de::Error>(self, bits: i64) -> Result<Mode, E> {
                self.visit_u64(u64::try_from(bits).unwrap_or(u64::MAX))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Mode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mode".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": ["string", "integer"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_clauses_follow_chmod() {
        let bits = |clauses: &str, old: u32, kind| {
            let stat = Stat {
                kind,
                mode: old,
                uid: 0,
                gid: 0,
                size_bytes: 0,
                modified_s: 0,
                accessed_s: 0,
                changed_s: 0,
                inode: 0,
                links: 1,
                device: 0,
                rdev: (0, 0),
                blocks: 0,
                block_size_bytes: 4096,
            };
            Mode::parse(clauses).map(|mode| mode.bits(Some(&stat), kind, 0))
        };
        assert_eq!(bits("u=rw,g=r,o=", 0o777, FileKind::File), Ok(0o640));
        assert_eq!(bits("a+X", 0o644, FileKind::File), Ok(0o644));
        assert_eq!(bits("a+X", 0o644, FileKind::Directory), Ok(0o755));
        assert_eq!(bits("g-w,o-rwx", 0o777, FileKind::File), Ok(0o750));
        assert_eq!(bits("u+s", 0o755, FileKind::File), Ok(0o4755));
        assert_eq!(bits("o=u", 0o750, FileKind::File), Ok(0o757));
        assert_eq!(bits("0644", 0, FileKind::File), Ok(0o644));
        assert!(Mode::parse("888").is_err());
        assert!(Mode::parse("rw-r--r--x").is_err());
    }
}
