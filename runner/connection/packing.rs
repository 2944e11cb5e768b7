//! Whether what travels is quicker there compressed: told by how long sending and compressing have taken so far.

use std::io;
use std::time::{Duration, Instant};

use kubeon_modules::wire;

/// After how many pieces that were sent as they are one is compressed to see what that brings.
const TRY_EVERY: u32 = 32;
/// How long a piece must take to send before that is tried: less than it takes to compress one.
const WORTH_A_TRY: Duration = Duration::from_millis(8);
/// How much of a mean the latest measurement makes.
const LATEST: f64 = 0.125;
/// How much quicker it must be.
const QUICKER: f64 = 0.8;

/// What sending and compressing take, of one content on one connection.
#[derive(Debug, Default)]
pub(super) struct Packing {
    /// Seconds for each byte that is sent; 0 before anything was.
    sending: f64,
    /// Seconds for each byte that is compressed, and what share of it is left then.
    packed: Option<(f64, f64)>,
    since_tried: u32,
}

impl Packing {
    /// Returns the frame of a piece of content, compressed where that is quicker.
    ///
    /// # Errors
    /// When the piece is too large for a frame.
    pub fn frame(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        if !self.pays(bytes.len()) {
            return wire::piece_frame(bytes);
        }
        let begun = Instant::now();
        let frame = wire::packed_frame(bytes)?;
        self.took_to_pack(bytes.len(), frame.len(), begun.elapsed());
        if frame.len() < bytes.len() { Ok(frame) } else { wire::piece_frame(bytes) }
    }

    fn pays(&mut self, bytes: usize) -> bool {
        let plain = bytes as f64 * self.sending;
        if plain < WORTH_A_TRY.as_secs_f64() {
            return false;
        }
        let pays = self.packed.is_some_and(|(packing, left)| packing + left * self.sending < self.sending * QUICKER);
        self.since_tried = if pays { 0 } else { self.since_tried + 1 };
        pays || self.packed.is_none() || self.since_tried.is_multiple_of(TRY_EVERY)
    }

    fn took_to_pack(&mut self, bytes: usize, packed_bytes: usize, took: Duration) {
        let bytes = bytes as f64;
        self.packed = Some((took.as_secs_f64() / bytes, packed_bytes as f64 / bytes));
    }

    /// Notes how long a frame took to send.
    pub fn took_to_send(&mut self, bytes: usize, took: Duration) {
        let latest = took.as_secs_f64() / bytes.max(1) as f64;
        self.sending += LATEST * (latest - self.sending);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = wire::PIECE_BYTES;

    /// A line that takes so long for a piece, and a compressor that leaves a share of one after so long; returns how many
    /// of a hundred pieces are compressed.
    fn compressed(sending: Duration, packing: Duration, left: f64) -> usize {
        let mut line = Packing::default();
        let mut count = 0;
        for _ in 0..100 {
            let mut travels = 1.0;
            if line.pays(PIECE) {
                line.took_to_pack(PIECE, (PIECE as f64 * left) as usize, packing);
                (count, travels) = (count + 1, left);
            }
            line.took_to_send((PIECE as f64 * travels) as usize, sending.mul_f64(travels));
        }
        count
    }

    #[test]
    fn it_is_done_where_it_is_quicker_and_seldom_tried_elsewhere() {
        let ms = Duration::from_millis;
        assert_eq!(compressed(ms(2), ms(3), 0.1), 0, "a quick line");
        assert!(compressed(ms(100), ms(3), 0.3) > 90, "a slow line");
        assert!((1..6).contains(&compressed(ms(100), ms(3), 1.0)), "what is compressed already");
        assert!((1..6).contains(&compressed(ms(10), ms(9), 0.3)), "a slow processor");
    }

    #[test]
    fn what_does_not_shrink_travels_as_it_is() {
        let mut line = Packing::default();
        (0..100).for_each(|_| line.took_to_send(PIECE, Duration::from_secs(1)));
        let mut state = 1_u64;
        let noise: Vec<u8> = (0..PIECE)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        assert_eq!(line.frame(&noise).expect("a frame").len(), PIECE + 5);
        assert!(line.packed.is_some(), "it was tried");
    }
}
