//! A set of bytes.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Set([u64; 4]);

impl Set {
    pub(super) fn all() -> Set {
        Set([u64::MAX; 4])
    }

    pub(super) fn of(byte: u8) -> Set {
        let mut set = Set::default();
        set.insert(byte);
        set
    }

    /// Returns the ASCII members of `\d`, `\s` or `\w`.
    pub(super) fn named(letter: u8) -> Set {
        let mut set = Set::default();
        for byte in 0..128u8 {
            let member = match letter {
                b'd' => byte.is_ascii_digit(),
                b's' => matches!(byte, b' ' | 9..=13),
                _ => is_word(byte),
            };
            if member {
                set.insert(byte);
            }
        }
        set
    }

    pub(super) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    pub(super) fn add(&mut self, other: Set) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own |= other;
        }
    }

    pub(super) fn inverted(self) -> Set {
        Set(self.0.map(|bits| !bits))
    }

    /// Adds the other case of every ASCII letter in it.
    pub(super) fn fold_case(&mut self) {
        for lower in b'a'..=b'z' {
            let upper = lower.to_ascii_uppercase();
            if self.has(lower) || self.has(upper) {
                self.insert(lower);
                self.insert(upper);
            }
        }
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
