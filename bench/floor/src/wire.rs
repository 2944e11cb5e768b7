//! A wire between two network namespaces: every packet takes half the round-trip time, and is counted. For kernels
//! without netem, and for what netem doesn't count.
//!
//! Lines on its input: `delay MICROSECONDS` sets the round-trip time, `take` prints the counts and starts them anew.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use crate::counts::{Counts, println};

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
                    println(&std::mem::take(&mut counts).told())?;
                }
            }
        }
    }
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
