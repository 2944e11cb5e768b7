//! Counts what this machine says by SSH over one of its devices, until its own input ends.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::counts::{Counts, println};

const SSH_PORT: [u8; 2] = 22_u16.to_be_bytes();
/// Source: `linux/if_packet.h`.
const PACKET_OUTGOING: u8 = 4;

pub fn listen(device: &str) -> io::Result<()> {
    let socket = open(device)?;
    let (mut counts, mut packet) = (Counts::default(), vec![0; 1 << 16]);
    println("ready")?;
    loop {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut entries = [entry(socket.as_raw_fd()), entry(0)];
        // SAFETY: two entries.
        if unsafe { libc::poll(entries.as_mut_ptr(), 2, -1) } < 0 {
            return Err(io::Error::last_os_error());
        }
        if entries[0].revents != 0 {
            let (size, from_near) = receive(&socket, &mut packet)?;
            let head = usize::from(packet[0] & 15) * 4;
            if packet[..size].get(head..head + 4).is_some_and(|ports| ports[..2] == SSH_PORT || ports[2..] == SSH_PORT)
            {
                counts.count(&packet[..size], from_near);
            }
        } else if entries[1].revents != 0 {
            return println(&counts.told());
        }
    }
}

/// Opens a socket that sees every packet which passes the device, without its Ethernet header. Of one protocol alone it
/// would see what comes in, and nothing of what this machine sends.
fn open(device: &str) -> io::Result<OwnedFd> {
    let name = std::ffi::CString::new(device)?;
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: the name ends with a zero, the descriptor is owned by nobody yet, and the address outlives the call.
    unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, i32::from(protocol));
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        if address.sll_ifindex == 0 {
            return Err(io::Error::last_os_error());
        }
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        if libc::bind(fd, (&raw const address).cast(), size) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }
}

/// Returns a packet's size, and whether this machine sent it.
fn receive(socket: &OwnedFd, packet: &mut [u8]) -> io::Result<(usize, bool)> {
    // SAFETY: zeroes are a value of this plain structure, and all pointers outlive the call.
    unsafe {
        let mut from: libc::sockaddr_ll = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let into = packet.as_mut_ptr().cast();
        let size = libc::recvfrom(socket.as_raw_fd(), into, packet.len(), 0, (&raw mut from).cast(), &raw mut length);
        if size < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok((size as usize, from.sll_pkttype == PACKET_OUTGOING))
        }
    }
}
