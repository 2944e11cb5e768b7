//! What went over a wire: packets, bytes, and how often the near side spoke after the far one.

use std::collections::HashMap;
use std::io::{self, Write};

#[derive(Default)]
pub struct Counts {
    packets: u64,
    bytes: u64,
    /// How often the near side spoke after the far one, flow by flow: an opening counts, too.
    round_trips: u64,
    /// Whether the near side spoke last.
    flows: HashMap<[u8; 12], bool>,
}

impl Counts {
    /// As a line of JSON.
    pub fn told(&self) -> String {
        let Counts { packets, bytes, round_trips, .. } = self;
        format!(r#"{{"packets": {packets}, "bytes": {bytes}, "round_trips": {round_trips}}}"#)
    }

    /// Counts a packet of TCP over IPv4. Source: RFC 791 and 9293.
    pub fn count(&mut self, packet: &[u8], from_near: bool) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
        let head = usize::from(packet[0] & 15) * 4;
        if packet[0] >> 4 != 4 || packet.get(9) != Some(&6) || packet.len() < head + 20 {
            return;
        }
        let data = head + usize::from(packet[head + 12] >> 4) * 4;
        let opening = packet[head + 13] & 2 != 0;
        if packet.len() <= data && !opening {
            return;
        }
        let (source, target) = (&packet[12..16], &packet[16..20]);
        let (from, to) = (&packet[head..head + 2], &packet[head + 2..head + 4]);
        let flow = if from_near { [source, from, target, to] } else { [target, to, source, from] }.concat();
        let Ok(flow) = flow.try_into() else { return };
        let was_near = self.flows.insert(flow, from_near).unwrap_or(false);
        self.round_trips += u64::from(from_near && !was_near);
    }
}

/// Prints a line at once, for a reader that waits for it.
pub fn println(line: &str) -> io::Result<()> {
    let mut output = io::stdout();
    writeln!(output, "{line}")?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::Counts;

    /// An IPv4 packet of TCP with these flags and that much data.
    fn packet(near: bool, flags: u8, data: usize) -> Vec<u8> {
        let mut packet = vec![0; 40 + data];
        packet[0] = 0x45;
        packet[9] = 6;
        packet[if near { 12 } else { 16 }] = 10;
        packet[32] = 5 << 4;
        packet[33] = flags;
        packet
    }

    #[test]
    fn a_round_trip_is_a_change_of_the_speaker() {
        let mut counts = Counts::default();
        for (near, flags, data) in [(true, 2, 0), (false, 18, 0), (true, 16, 0), (true, 16, 9), (true, 16, 9)] {
            counts.count(&packet(near, flags, data), near);
        }
        assert_eq!((counts.packets, counts.round_trips), (5, 2));
        counts.count(&packet(false, 16, 1), false);
        counts.count(&packet(true, 16, 1), true);
        assert_eq!(counts.round_trips, 3);
    }
}
