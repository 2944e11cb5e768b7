//! The addresses of this machine's interfaces, by system call.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

use super::map;
use crate::host::Map;
use crate::order::sort_by;

/// One address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub device: String,
    /// The name under which the address was added, such as `eth0:1`.
    pub label: String,
    pub ip: IpAddr,
    pub prefix: u32,
    pub broadcast: Option<Ipv4Addr>,
    /// Of an IPv6 address: `global`, `link`, `host`, `site`.
    pub scope: &'static str,
}

impl Address {
    pub(super) fn facts(&self) -> Map {
        match self.ip {
            IpAddr::V4(ip) => {
                let mask = mask(self.prefix);
                let broadcast = self.broadcast.map(|ip| ip.to_string()).unwrap_or_default();
                map([
                    ("address", ip.to_string().into()),
                    ("broadcast", broadcast.into()),
                    ("netmask", Ipv4Addr::from(mask).to_string().into()),
                    ("network", Ipv4Addr::from(u32::from(ip) & mask).to_string().into()),
                    ("prefix", self.prefix.to_string().into()),
                ])
            }
            IpAddr::V6(ip) => map([
                ("address", ip.to_string().into()),
                ("prefix", self.prefix.to_string().into()),
                ("scope", self.scope.into()),
            ]),
        }
    }

    /// Returns the address's network as `127.0.0.0/8`.
    pub(super) fn network(&self) -> Option<String> {
        match self.ip {
            IpAddr::V4(ip) => Some(format!("{}/{}", Ipv4Addr::from(u32::from(ip) & mask(self.prefix)), self.prefix)),
            IpAddr::V6(_) => None,
        }
    }
}

fn mask(prefix: u32) -> u32 {
    u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or(0)
}

/// Returns IPv4 addresses in the kernel's order, then the IPv6 ones of `if_inet6`; `indices` names interfaces.
pub(super) fn addresses(if_inet6: &str, indices: &[(u32, &str)]) -> Vec<Address> {
    let mut found = ipv4();
    let mut six: Vec<Address> = if_inet6.lines().filter_map(|line| ipv6(line, indices)).collect();
    // The kernel lists these by hash: the widest scope first is what people expect.
    let rank = |scope| ["global", "site", "link", "host"].iter().position(|&other| other == scope);
    let place = |address: &Address| {
        let index = indices.iter().find(|(_, name)| *name == address.device).map(|&(index, _)| index);
        (index, rank(address.scope))
    };
    sort_by(&mut six, |one, other| place(one).cmp(&place(other)));
    found.extend(six);
    found
}

/// Reads one line: address, interface, prefix length, scope and flags in hexadecimal, name.
/// Source: `net/ipv6/addrconf.c`.
fn ipv6(line: &str, indices: &[(u32, &str)]) -> Option<Address> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [address, index, prefix, scope, _flags, name] = fields.as_slice() else { return None };
    let index = u32::from_str_radix(index, 16).ok()?;
    let device = indices.iter().find(|(number, _)| *number == index).map_or(*name, |(_, name)| name);
    Some(Address {
        device: device.to_owned(),
        label: device.to_owned(),
        ip: Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?).into(),
        prefix: u32::from_str_radix(prefix, 16).ok()?,
        broadcast: None,
        scope: match *scope {
            "10" => "host",
            "20" => "link",
            "40" => "site",
            _ => "global",
        },
    })
}

fn ipv4() -> Vec<Address> {
    let mut found = Vec::new();
    // SAFETY: getifaddrs(3) makes a list that is read before it is freed, once; an address of family AF_INET is a
    // sockaddr_in, and what may be missing is checked for null.
    unsafe {
        let mut list: *mut libc::ifaddrs = ptr::null_mut();
        if libc::getifaddrs(&raw mut list) != 0 {
            return found;
        }
        let read = |address: *const libc::sockaddr| {
            (!address.is_null() && i32::from((*address).sa_family) == libc::AF_INET)
                .then(|| Ipv4Addr::from(u32::from_be((*address.cast::<libc::sockaddr_in>()).sin_addr.s_addr)))
        };
        let mut at = list;
        while let Some(entry) = at.as_ref() {
            at = entry.ifa_next;
            let Some(ip) = read(entry.ifa_addr) else { continue };
            let label = CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned();
            let flags = entry.ifa_flags as libc::c_int;
            // What is a broadcast address on most interfaces is the peer's own on these.
            let other = read(entry.ifa_ifu);
            let peer = flags & libc::IFF_POINTOPOINT != 0 && other.is_some_and(|other| other != ip);
            found.push(Address {
                device: label.split(':').next().unwrap_or(&label).to_owned(),
                label,
                ip: ip.into(),
                prefix: if peer { 32 } else { read(entry.ifa_netmask).map_or(32, |mask| u32::from(mask).count_ones()) },
                // Without one, the address itself is in its place.
                broadcast: other.filter(|&other| {
                    other != ip && flags & libc::IFF_BROADCAST != 0 && flags & libc::IFF_POINTOPOINT == 0
                }),
                scope: "",
            });
        }
        libc::freeifaddrs(list);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_if_inet6_is_an_address() {
        let line = "fe80000000000000021122fffe334455 02 40 20 80     eth0";
        let address = ipv6(line, &[(2, "eth0")]).expect("an address");
        assert_eq!(address.ip.to_string(), "fe80::211:22ff:fe33:4455");
        assert_eq!((address.prefix, address.scope), (64, "link"));
    }

    #[test]
    fn a_network_follows_from_address_and_prefix() {
        let address = Address {
            device: "eth0".into(),
            label: "eth0".into(),
            ip: Ipv4Addr::new(10, 1, 2, 3).into(),
            prefix: 20,
            broadcast: Some(Ipv4Addr::new(10, 1, 15, 255)),
            scope: "",
        };
        let facts = address.facts();
        assert_eq!((&facts["network"], &facts["netmask"]), (&"10.1.0.0".into(), &"255.255.240.0".into()));
    }
}
