//! The tests of `ansible.utils`: what kind of address a text is, and which network it is in.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use ipnet::IpNet;

use super::address::{self, strict};
use super::call::{Call, Test, callable};
use super::live::Result;
use crate::value::Value;

pub(super) const TESTS: &[Test] = &[
    callable("ansible.utils.in_any_network", &["networks"], |call| Ok(networks_around(call)? > 0)),
    callable("ansible.utils.in_network", &["network"], |call| Ok(is_within(&own(call)?, &other(call)?))),
    callable("ansible.utils.in_one_network", &["networks"], |call| Ok(networks_around(call)? == 1)),
    callable("ansible.utils.ip", &[], |call| Ok(own(call)?.is_some())),
    callable("ansible.utils.ip_address", &[], |call| an_address(call, |_| true)),
    callable("ansible.utils.ipv4", &[], |call| Ok(matches!(own(call)?, Some(IpNet::V4(_))))),
    callable("ansible.utils.ipv4_address", &[], |call| an_address(call, |ip| ip.is_ipv4())),
    callable("ansible.utils.ipv4_hostmask", &[], |call| a_mask(call, |mask| !mask)),
    callable("ansible.utils.ipv4_netmask", &[], |call| a_mask(call, |mask| mask)),
    callable("ansible.utils.ipv6", &[], |call| Ok(matches!(own(call)?, Some(IpNet::V6(_))))),
    callable("ansible.utils.ipv6_address", &[], |call| an_address(call, |ip| ip.is_ipv6())),
    callable("ansible.utils.ipv6_ipv4_mapped", &[], |call| {
        an_address(call, |ip| matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some()))
    }),
    callable("ansible.utils.ipv6_sixtofour", &[], |call| {
        an_address(call, |ip| matches!(ip, IpAddr::V6(ip) if ip.segments()[0] == 0x2002))
    }),
    callable("ansible.utils.ipv6_teredo", &[], |call| {
        an_address(call, |ip| matches!(ip, IpAddr::V6(ip) if ip.segments()[..2] == [0x2001, 0]))
    }),
    callable("ansible.utils.loopback", &[], |call| an_address(call, |ip| ip.is_loopback())),
    callable("ansible.utils.mac", &[], |call| Ok(text(&call.value()?).is_some_and(is_mac))),
    callable("ansible.utils.multicast", &[], |call| an_address(call, |ip| ip.is_multicast())),
    // What providers share among their customers (RFC 6598) is neither private nor public.
    callable("ansible.utils.private", &[], |call| {
        an_address(call, |ip| !address::is_global(ip) && !matches!(ip, IpAddr::V4(ip) if is_shared(ip)))
    }),
    callable("ansible.utils.public", &[], |call| an_address(call, address::is_global)),
    callable("ansible.utils.reserved", &[], |call| an_address(call, address::is_reserved)),
    callable("ansible.utils.resolvable", &[], |call| {
        let value = call.value()?;
        Ok(text(&value).is_some_and(|name| (name, 0).to_socket_addrs().is_ok_and(|mut found| found.next().is_some())))
    }),
    callable("ansible.utils.subnet_of", &["network"], |call| Ok(is_within(&own(call)?, &other(call)?))),
    callable("ansible.utils.supernet_of", &["network"], |call| Ok(is_within(&other(call)?, &own(call)?))),
    callable("ansible.utils.unspecified", &[], |call| an_address(call, |ip| ip.is_unspecified())),
];

fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

fn own(call: &Call<'_>) -> Result<Option<IpNet>> {
    Ok(text(&call.value()?).and_then(strict))
}

fn other(call: &Call<'_>) -> Result<Option<IpNet>> {
    Ok(text(&call.required(0)?.force()?).and_then(strict))
}

fn is_within(inner: &Option<IpNet>, outer: &Option<IpNet>) -> bool {
    matches!((inner, outer), (Some(inner), Some(outer)) if outer.contains(inner))
}

/// Returns how many of a list of networks hold the address or network.
fn networks_around(call: &Call<'_>) -> Result<usize> {
    let own = own(call)?;
    let Value::List(networks) = call.required(0)?.force()? else { return Ok(0) };
    Ok(networks.iter().filter(|network| is_within(&own, &text(network).and_then(strict))).count())
}

fn an_address(call: &Call<'_>, holds: impl Fn(IpAddr) -> bool) -> Result<bool> {
    Ok(text(&call.value()?).and_then(|text| text.parse().ok()).is_some_and(holds))
}

/// Returns whether a text is the mask of a network from `/7` to `/31`, or `/32` when the mask is given as it is.
fn a_mask(call: &Call<'_>, netmask: impl Fn(u32) -> u32) -> Result<bool> {
    let mask: Option<Ipv4Addr> = text(&call.value()?).and_then(|text| text.parse().ok());
    Ok(mask.map(u32::from).filter(|mask| *mask != 0).map(netmask).is_some_and(|mask| {
        let ones = mask.leading_ones();
        ones >= 7 && ones + mask.trailing_zeros() >= 32
    }))
}

fn is_shared(ip: Ipv4Addr) -> bool {
    ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64
}

/// Returns whether a text is six bytes with `:` or `-` between them, three pairs with `.`, or twelve digits.
fn is_mac(text: &str) -> bool {
    let groups: Vec<&str> = match text.contains('.') {
        true => text.split('.').collect(),
        false => text.split([':', '-']).collect(),
    };
    let width = match (groups.len(), text.contains('.')) {
        (6, false) => 2,
        (3, true) => 4,
        (1, false) => 12,
        _ => return false,
    };
    groups.iter().all(|group| group.len() == width && group.bytes().all(|digit| digit.is_ascii_hexdigit()))
}
