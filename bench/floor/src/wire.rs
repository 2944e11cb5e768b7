//! A wire between two network namespaces: every packet takes half the round-trip time, and is counted. For kernels
//! without netem, and for what netem doesn't count.
//!
//! Lines on its input: `delay MICROSECONDS` sets the round-trip time, `take` prints the counts and starts them anew.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// Source: `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: libc::Ioctl = 0x4004_54ca_u32 as libc::Ioctl;
const DEVICE: &[u8] = b"wire0";
/// The largest packet that the devices' MTU of 1500 allows, with room.
const PACKET_BYTES: usize = 2048;

/// One end.
struct End {
    device: File,
    /// What is on its way to it, in the order in which it is due.
    coming: VecDeque<(Instant, Vec<u8>)>,
}

#[derive(Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    /// How often the near side spoke after the far one, flow by flow: an opening counts, too.
    round_trips: u64,
    /// Whether the near side spoke last.
    flows: HashMap<[u8; 12], bool>,
}

/// Joins the namespaces of two processes; the first is the side that starts conversations.
pub fn join(near: &str, far: &str) -> io::Result<()> {
    let mut ends = [End::open(near)?, End::open(far)?];
    let (mut counts, mut delay) = (Counts::default(), Duration::ZERO);
    let mut input = io::stdin().lock();
    // SAFETY: no pointer is passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0, 0, 0) };
    println("ready")?;
    loop {
        let due = ends.iter().filter_map(|end| end.coming.front()).map(|(due, _)| *due).min();
        let told = wait(&ends, due)?;
        for at in 0..2 {
            let mut packet = [0; PACKET_BYTES];
            loop {
                match ends[at].device.read(&mut packet) {
                    Ok(size) => {
                        counts.count(&packet[..size], at == 0);
                        ends[1 - at].coming.push_back((Instant::now() + delay, packet[..size].to_vec()));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        ends.iter_mut().for_each(End::deliver);
        if told {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim().split_once(' ') {
                Some(("delay", microseconds)) => {
                    delay = Duration::from_micros(microseconds.parse::<u64>().map_err(io::Error::other)? / 2);
                    println("set")?;
                }
                _ => {
                    let Counts { packets, bytes, round_trips, .. } = std::mem::take(&mut counts);
                    println(&format!(r#"{{"packets": {packets}, "bytes": {bytes}, "round_trips": {round_trips}}}"#))?;
                }
            }
        }
    }
}

fn println(line: &str) -> io::Result<()> {
    let mut output = io::stdout();
    writeln!(output, "{line}")?;
    output.flush()
}

/// Waits for a packet, a line or the time when a packet is due; returns whether there is a line.
fn wait(ends: &[End; 2], due: Option<Instant>) -> io::Result<bool> {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries = [entry(ends[0].device.as_raw_fd()), entry(ends[1].device.as_raw_fd()), entry(0)];
    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
    let limit = left.map(|left| libc::timespec {
        tv_sec: left.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(left.subsec_nanos()),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: three entries, and a limit that outlives the call.
    let rc = unsafe { libc::ppoll(entries.as_mut_ptr(), 3, limit, std::ptr::null()) };
    match io::Error::last_os_error() {
        error if rc < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(rc > 0 && entries[2].revents != 0),
    }
}

impl End {
    /// Makes a device in a process's namespace.
    fn open(pid: &str) -> io::Result<End> {
        let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
        // SAFETY: the descriptor is open.
        if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let device = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: zeroes are a value of this plain structure, and the pointer outlives the call.
        let rc = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (to, from) in request.ifr_name.iter_mut().zip(DEVICE) {
                *to = *from as libc::c_char;
            }
            request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
            libc::ioctl(device.as_raw_fd(), TUNSETIFF, &raw mut request)
        };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(End { device, coming: VecDeque::new() }) }
    }

    /// Hands over what is due. What the other side's kernel can't take is lost, as on any wire.
    fn deliver(&mut self) {
        while self.coming.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            if let Some((_, packet)) = self.coming.pop_front() {
                self.device.write_all(&packet).ok();
            }
        }
    }
}

impl Counts {
    /// Counts a packet of TCP over IPv4. Source: RFC 791 and 9293.
    fn count(&mut self, packet: &[u8], from_near: bool) {
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
