//! An IP address with the network that it stands in, as the address filters of `ansible.utils` take it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::value::Value;

/// An address or a network.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub net: IpNet,
    /// Whether no prefix was written.
    pub is_bare: bool,
    /// What filters give back that only choose.
    pub shown: String,
}

/// The version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Address {
    /// Reads `10.0.0.1`, `10.0.0.0/24`, `10.0.0.0/255.255.255.0`, their like of version 6, or a number that is an address;
    /// `None` for anything else, or when it is of another version than wanted.
    pub fn read(value: &Value, wanted: Option<Family>) -> Option<Address> {
        let found = match value {
            Value::Str(text) => written(text.as_str(), wanted),
            Value::Int(number @ 1..) => {
                numbered(u128::try_from(*number).ok()?, wanted).map(|ip| Address::alone(ip, true))
            }
            _ => None,
        }?;
        wanted.is_none_or(|wanted| found.family() == wanted).then_some(found)
    }

    fn alone(ip: IpAddr, is_bare: bool) -> Address {
        let net = IpNet::from(ip);
        Address { net, is_bare, shown: cidr(ip, net.prefix_len()) }
    }

    pub fn ip(&self) -> IpAddr {
        self.net.addr()
    }

    pub fn family(&self) -> Family {
        match self.net {
            IpNet::V4(_) => Family::V4,
            IpNet::V6(_) => Family::V6,
        }
    }

    /// Returns how many bits number the addresses of its network: none for an address alone.
    pub fn host_bits(&self) -> u8 {
        self.net.max_prefix_len() - self.net.prefix_len()
    }

    pub fn first(&self) -> u128 {
        bits(self.net.network())
    }

    pub fn last(&self) -> u128 {
        bits(self.net.broadcast())
    }

    /// Returns the first and the last address that a host may have: both of a pair, else all but the outermost.
    pub fn usable(&self) -> (u128, u128) {
        match self.host_bits() {
            0 | 1 => (self.first(), self.last()),
            _ => (self.first() + 1, self.last() - 1),
        }
    }

    /// Returns whether it is a network's own address, of a network of two at least.
    pub fn is_network(&self) -> bool {
        self.host_bits() > 0 && self.ip() == self.net.network()
    }

    /// Returns the address with its prefix.
    pub fn cidr(&self) -> String {
        cidr(self.ip(), self.net.prefix_len())
    }

    /// Returns the address, with its prefix unless none was written.
    pub fn plain(&self) -> String {
        if self.is_bare { shown(self.ip()) } else { self.cidr() }
    }

    /// Returns an address of the same version; `None` beyond the last one.
    pub fn at(&self, number: u128) -> Option<IpAddr> {
        match self.family() {
            Family::V4 => u32::try_from(number).ok().map(|number| Ipv4Addr::from(number).into()),
            Family::V6 => Some(Ipv6Addr::from(number).into()),
        }
    }

    /// Returns the nth address of its network, counted from its end when negative; `None` outside of it.
    pub fn nth(&self, nth: i64) -> Option<IpAddr> {
        let distance = u128::from(nth.unsigned_abs());
        let number = match nth < 0 {
            true => self.last().checked_sub(distance - 1).filter(|number| *number >= self.first()),
            false => self.first().checked_add(distance).filter(|number| *number <= self.last()),
        };
        number.and_then(|number| self.at(number))
    }

    /// Returns whether all of another network lies in its own.
    pub fn contains(&self, other: &Address) -> bool {
        self.family() == other.family() && self.first() <= other.first() && other.last() <= self.last()
    }
}

fn written(text: &str, wanted: Option<Family>) -> Option<Address> {
    let (ip_text, prefix) = match text.split_once('/') {
        Some((ip, prefix)) => (ip, Some(prefix)),
        None => (text, None),
    };
    let is_number = !ip_text.is_empty() && ip_text.bytes().all(|byte| byte.is_ascii_digit());
    let ip = match is_number {
        true => numbered(ip_text.parse().ok()?, wanted)?,
        false => ip_text.parse().ok()?,
    };
    let Some(prefix) = prefix else {
        let shown = if is_number { None } else { Some(text.to_owned()) };
        let alone = Address::alone(ip, true);
        return Some(Address { shown: shown.unwrap_or_else(|| alone.shown.clone()), ..alone });
    };
    let net = with_prefix(ip, prefix)?;
    let shown = if is_number { cidr(ip, net.prefix_len()) } else { text.to_owned() };
    Some(Address { net, is_bare: false, shown })
}

/// Takes a number for an address: of version 4 while it fits, unless the other is wanted.
fn numbered(number: u128, wanted: Option<Family>) -> Option<IpAddr> {
    match (u32::try_from(number), wanted) {
        (Ok(number), None | Some(Family::V4)) => Some(Ipv4Addr::from(number).into()),
        (Err(_), Some(Family::V4)) => None,
        (_, None | Some(Family::V6)) => Some(Ipv6Addr::from(number).into()),
    }
}

/// Puts an address into a network given as a length, a netmask or a hostmask.
fn with_prefix(ip: IpAddr, prefix: &str) -> Option<IpNet> {
    if !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit()) {
        return IpNet::new(ip, prefix.parse().ok()?).ok();
    }
    let mask: IpAddr = prefix.parse().ok()?;
    let inverted = match mask {
        IpAddr::V4(mask) => IpAddr::from(Ipv4Addr::from(!u32::from(mask))),
        IpAddr::V6(mask) => IpAddr::from(Ipv6Addr::from(!u128::from(mask))),
    };
    IpNet::with_netmask(ip, mask).or_else(|_| IpNet::with_netmask(ip, inverted)).ok()
}

pub(super) fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// Writes an address as C's `inet_ntop` does, which writes `::a.b.c.d` where the standard library does not.
pub(super) fn shown(ip: IpAddr) -> String {
    match ip {
        IpAddr::V6(six) if six.segments()[..6] == [0; 6] && six.segments()[6] != 0 => {
            format!("::{}", Ipv4Addr::from(u128::from(six) as u32))
        }
        ip => ip.to_string(),
    }
}

pub(super) fn cidr(ip: IpAddr, prefix: u8) -> String {
    format!("{}/{prefix}", shown(ip))
}

/// Networks that are not reachable from everywhere.
///
/// Source: the IANA special-purpose address registries for version 4 and version 6.
const SPECIAL: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "::/128",
    "::1/128",
    "::ffff:0:0/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "fc00::/7",
    "fe80::/10",
];

/// Networks within those of [`SPECIAL`] that are reachable all the same.
const REACHABLE: &[&str] = &[
    "192.0.0.9/32",
    "192.0.0.10/32",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:20::/28",
    "2001:30::/28",
];

/// Networks of version 6 that are set aside, and 240.0.0.0/4.
///
/// Source: RFC 4291 and the list of IANA's IPv6 address space.
const RESERVED: &[&str] = &[
    "240.0.0.0/4",
    "::/8",
    "100::/8",
    "200::/7",
    "400::/6",
    "800::/5",
    "1000::/4",
    "4000::/3",
    "6000::/3",
    "8000::/3",
    "a000::/3",
    "c000::/3",
    "e000::/4",
    "f000::/5",
    "f800::/6",
    "fe00::/9",
];

fn is_in(ip: IpAddr, networks: &[&str]) -> bool {
    networks.iter().any(|network| {
        let network: IpNet = network.parse().expect("a network of our own tables");
        network.contains(&ip)
    })
}

/// Returns whether an address is reachable from everywhere.
pub(super) fn is_global(ip: IpAddr) -> bool {
    !is_in(ip, SPECIAL) || is_in(ip, REACHABLE)
}

pub(super) fn is_reserved(ip: IpAddr) -> bool {
    is_in(ip, RESERVED)
}

pub(super) fn is_link_local(ip: IpAddr) -> bool {
    is_in(ip, &["169.254.0.0/16", "fe80::/10"])
}

/// Returns the address of version 4 within one of version 6: `::ffff:a.b.c.d` or `::a.b.c.d`.
pub(super) fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] => Some(Ipv4Addr::from(u128::from(ip) as u32)),
        _ => None,
    }
}

/// Reads an address or a network strictly, as Python's `ipaddress` does: a network's address has no bits set beyond its
/// prefix.
pub(super) fn strict(text: &str) -> Option<IpNet> {
    match text.split_once('/') {
        None => text.parse::<IpAddr>().ok().map(IpNet::from),
        Some((ip, prefix)) => {
            let net = with_prefix(ip.parse().ok()?, prefix)?;
            (net.addr() == net.network()).then_some(net)
        }
    }
}
