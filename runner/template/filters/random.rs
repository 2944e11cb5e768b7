//! Random numbers: Python's generator, so that a seed chooses here what it chose under Ansible.

use std::io::Read;

use sha2::{Digest, Sha512};

const SIZE: usize = 624;
const SHIFT: usize = 397;

/// The Mersenne twister MT19937, seeded and read as Python's `random` does.
pub(in crate::template) struct Source {
    state: [u32; SIZE],
    at: usize,
}

impl Source {
    /// Returns a generator that nobody can foresee.
    pub fn unseeded() -> Result<Source, String> {
        let mut bytes = [0; 64];
        let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
        read.map_err(|error| format!("read `/dev/urandom`: {error}"))?;
        let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        Ok(Source::from_words(&words.collect::<Vec<_>>()))
    }

    pub fn seeded_by_number(seed: u64) -> Source {
        match seed >> 32 {
            0 => Source::from_words(&[seed as u32]),
            high => Source::from_words(&[seed as u32, high as u32]),
        }
    }

    /// Python takes a text and its SHA-512 for one large number.
    pub fn seeded_by_text(seed: &str) -> Source {
        let mut bytes = seed.as_bytes().to_vec();
        bytes.extend(Sha512::digest(seed.as_bytes()));
        bytes.reverse();
        let words = bytes
            .chunks(4)
            .map(|chunk| chunk.iter().enumerate().fold(0, |word, (nth, byte)| word | u32::from(*byte) << (8 * nth)));
        let mut words: Vec<u32> = words.collect();
        while words.len() > 1 && words.last() == Some(&0) {
            words.pop();
        }
        Source::from_words(&words)
    }

    fn from_words(key: &[u32]) -> Source {
        let mut state = [0_u32; SIZE];
        state[0] = 19_650_218;
        for nth in 1..SIZE {
            let before = state[nth - 1];
            state[nth] = 1_812_433_253_u32.wrapping_mul(before ^ before >> 30).wrapping_add(nth as u32);
        }
        let (mut i, mut j) = (1, 0);
        for _ in 0..SIZE.max(key.len()) {
            let before = state[i - 1];
            state[i] = (state[i] ^ (before ^ before >> 30).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i += 1;
            j = (j + 1) % key.len();
            if i == SIZE {
                state[0] = state[SIZE - 1];
                i = 1;
            }
        }
        for _ in 1..SIZE {
            let before = state[i - 1];
            state[i] = (state[i] ^ (before ^ before >> 30).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i += 1;
            if i == SIZE {
                state[0] = state[SIZE - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        Source { state, at: SIZE }
    }

    fn word(&mut self) -> u32 {
        if self.at == SIZE {
            for nth in 0..SIZE {
                let mixed = self.state[nth] & 0x8000_0000 | self.state[(nth + 1) % SIZE] & 0x7fff_ffff;
                let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[nth] = self.state[(nth + SHIFT) % SIZE] ^ mixed >> 1 ^ odd;
            }
            self.at = 0;
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    fn bits(&mut self, count: u32) -> u64 {
        match count {
            0 => 0,
            1..=32 => u64::from(self.word() >> (32 - count)),
            _ => {
                let low = u64::from(self.word());
                low | u64::from(self.word() >> (64 - count)) << 32
            }
        }
    }

    /// Returns a number below a limit that is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        let count = 64 - limit.leading_zeros();
        loop {
            let number = self.bits(count);
            if number < limit {
                return number;
            }
        }
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for nth in (1..items.len()).rev() {
            let other = self.below(nth as u64 + 1) as usize;
            items.swap(nth, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_what_python_gives() {
        // random.Random(42).randrange(0, 100) and its next two; random.Random('web1').randrange(0, 60).
        let mut source = Source::seeded_by_number(42);
        assert_eq!([source.below(100), source.below(100), source.below(100)], [81, 14, 3]);
    }
}
