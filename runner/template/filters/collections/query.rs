//! What `ipaddr` can be asked about an address.

use std::net::IpAddr;

use crate::source::nearest;
use crate::template::address::{self, Address, Family, bits, cidr, shown};
use crate::template::call::Call;
use crate::template::live::Result;
use crate::value::Value;

const NAMES: &[&str] = &[
    "6to4",
    "address",
    "address/prefix",
    "bool",
    "broadcast",
    "cidr",
    "first_usable",
    "gateway",
    "gw",
    "host",
    "host/prefix",
    "hostmask",
    "hostnet",
    "int",
    "ip",
    "ip/prefix",
    "ip_netmask",
    "ipv4",
    "ipv6",
    "last_usable",
    "link-local",
    "lo",
    "loopback",
    "multicast",
    "net",
    "netmask",
    "network",
    "network/prefix",
    "network_id",
    "network_netmask",
    "network_wildcard",
    "next_usable",
    "peer",
    "prefix",
    "previous_usable",
    "private",
    "public",
    "range_usable",
    "revdns",
    "size",
    "subnet",
    "type",
    "unicast",
    "version",
    "wildcard",
    "wrap",
];

/// Answers a query: a name, a number (the nth address), or a network that the address must be in.
pub(super) fn answer(call: &Call<'_>, of: &Address, query: &Value) -> Result<Value> {
    let text = match query {
        Value::Null | Value::Omit => "",
        Value::Int(nth) => return Ok(nth_of(of, *nth)),
        Value::Str(text) => text.as_str(),
        other => return Err(call.fault(format!("a query is a string or an integer, not {}", other.kind()))),
    };
    if text.is_empty() {
        return Ok(of.plain().into());
    }
    if let Ok(nth) = text.trim().parse::<i64>() {
        return Ok(nth_of(of, nth));
    }
    if text.contains("usable") || text == "peer" {
        return within_network(call, of, text);
    }
    if let Some(found) = parts(of, text).or_else(|| hosts(of, text)).or_else(|| kinds(of, text)) {
        return Ok(found);
    }
    match Address::read(query, None) {
        Some(network) => Ok(chosen(of, network.contains(of))),
        None => Err(unknown(call, text)),
    }
}

fn unknown(call: &Call<'_>, query: &str) -> crate::template::error::TemplateError {
    let error = call.fault(format!("no query `{query}`"));
    match nearest(query, NAMES.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// Gives an address back when it is what was asked for, else nothing.
fn chosen(of: &Address, holds: bool) -> Value {
    if holds { Value::from(of.shown.as_str()) } else { Value::Null }
}

/// Gives the text when it applies, else nothing.
fn perhaps(text: String, applies: bool) -> Value {
    if applies { text.into() } else { Value::Null }
}

fn nth_of(of: &Address, nth: i64) -> Value {
    match of.host_bits() {
        0 => of.plain().into(),
        _ => of.nth(nth).map_or(Value::Bool(false), |ip| cidr(ip, of.net.prefix_len()).into()),
    }
}

/// A number as a number while it fits, as text beyond.
pub(super) fn number(value: u128) -> Value {
    i64::try_from(value).map_or_else(|_| value.to_string().into(), Value::Int)
}

/// Queries that any address answers.
fn parts(of: &Address, query: &str) -> Option<Value> {
    let (ip, net) = (of.ip(), of.net);
    let text = |ip: IpAddr| Value::from(shown(ip));
    Some(match query {
        "bool" => Value::Bool(true),
        "cidr" => of.cidr().into(),
        "hostmask" | "wildcard" => text(net.hostmask()),
        "int" if of.is_bare => number(bits(ip)),
        "int" => format!("{}/{}", bits(ip), net.prefix_len()).into(),
        "netmask" => text(net.netmask()),
        "network" | "network_id" => text(net.network()),
        "network/prefix" | "subnet" => cidr(net.network(), net.prefix_len()).into(),
        "network_netmask" => format!("{} {}", shown(net.network()), shown(net.netmask())).into(),
        "network_wildcard" => format!("{} {}", shown(net.network()), shown(net.hostmask())).into(),
        "prefix" => Value::Int(i64::from(net.prefix_len())),
        "revdns" => reverse_name(ip).into(),
        "size" => match 1_u128.checked_shl(u32::from(of.host_bits())) {
            Some(size) => number(size),
            None => "340282366920938463463374607431768211456".into(),
        },
        "type" => if of.is_network() { "network" } else { "address" }.into(),
        "version" => Value::Int(if of.family() == Family::V4 { 4 } else { 6 }),
        _ => return None,
    })
}

fn reverse_name(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
        }
        IpAddr::V6(ip) => {
            let digits: String =
                format!("{:032x}", u128::from(ip)).chars().rev().flat_map(|digit| [digit, '.']).collect();
            format!("{digits}ip6.arpa.")
        }
    }
}

/// Queries that tell an address of a host from one of a network.
fn hosts(of: &Address, query: &str) -> Option<Value> {
    let net = of.net;
    let (alone, pair) = (of.host_bits() == 0, of.host_bits() == 1);
    let is_host = !of.is_network() || pair;
    Some(match query {
        "address" | "ip" => perhaps(shown(of.ip()), is_host || of.family() == Family::V6),
        "broadcast" => perhaps(shown(net.broadcast()), of.host_bits() > 1),
        "host" => perhaps(of.cidr(), is_host),
        "net" => perhaps(of.cidr(), of.is_network()),
        "hostnet" | "host/prefix" | "address/prefix" | "gateway" | "gw" => {
            let is_usable = alone || pair || (is_host && of.ip() != net.broadcast());
            if is_usable { of.cidr().into() } else { Value::Bool(false) }
        }
        "ip/prefix" => perhaps(of.cidr(), !alone && is_host),
        "ip_netmask" => perhaps(format!("{} {}", shown(of.ip()), shown(net.netmask())), !alone && is_host),
        _ => return None,
    })
}

/// Queries that choose addresses of a kind, or write them as one.
fn kinds(of: &Address, query: &str) -> Option<Value> {
    let ip = of.ip();
    Some(match query {
        "link-local" => chosen(of, address::is_link_local(ip)),
        "lo" | "loopback" => chosen(of, ip.is_loopback()),
        "multicast" => chosen(of, ip.is_multicast()),
        "private" => chosen(of, !address::is_global(ip) && !ip.is_multicast()),
        "public" => chosen(of, address::is_global(ip) && !ip.is_multicast()),
        "unicast" => chosen(of, !ip.is_multicast()),
        "6to4" => six_to_four(of),
        "ipv4" => version_4(of),
        "ipv6" => match ip {
            IpAddr::V4(four) => cidr(four.to_ipv6_mapped().into(), 96 + of.net.prefix_len()).into(),
            IpAddr::V6(_) => chosen(of, true),
        },
        "wrap" => wrapped(of).into(),
        _ => return None,
    })
}

fn six_to_four(of: &Address) -> Value {
    match of.ip() {
        IpAddr::V4(ip) if !ip.is_multicast() && !of.is_network() => {
            let [a, b, c, d] = ip.octets();
            format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1/48").into()
        }
        IpAddr::V6(ip) if ip.segments()[0] == 0x2002 && !of.is_network() => chosen(of, true),
        IpAddr::V4(_) | IpAddr::V6(_) => Value::Bool(false),
    }
}

fn version_4(of: &Address) -> Value {
    match of.ip() {
        IpAddr::V4(_) => chosen(of, true),
        IpAddr::V6(ip) => match (address::embedded(ip), of.net.prefix_len().checked_sub(96)) {
            (Some(ip), Some(prefix)) => cidr(ip.into(), prefix).into(),
            _ => Value::Bool(false),
        },
    }
}

/// Returns an address of version 6 in brackets, its prefix behind them; one of version 4 as it was written.
pub(super) fn wrapped(of: &Address) -> String {
    match (of.family(), of.is_bare) {
        (Family::V4, _) => of.shown.clone(),
        (Family::V6, true) => format!("[{}]", shown(of.ip())),
        (Family::V6, false) => format!("[{}]/{}", shown(of.ip()), of.net.prefix_len()),
    }
}

/// Queries about the addresses that hosts of its network may have.
fn within_network(call: &Call<'_>, of: &Address, query: &str) -> Result<Value> {
    if !["first_usable", "last_usable", "next_usable", "previous_usable", "range_usable", "peer"].contains(&query) {
        return Err(unknown(call, query));
    }
    if of.is_bare {
        let error = call.fault(format!("`{}` is no network, which the query `{query}` is about", of.shown));
        return Err(error.help("write a prefix behind it, such as `/24`"));
    }
    if query == "peer" {
        return peer(call, of);
    }
    if of.host_bits() == 0 {
        return Ok(Value::Null);
    }
    let (first, last) = of.usable();
    let text = |number: u128| of.at(number).map(shown).unwrap_or_default();
    let if_usable = |number: Option<u128>| {
        let number = number.filter(|number| (first..=last).contains(number));
        number.map_or(Value::Null, |number| text(number).into())
    };
    Ok(match query {
        "first_usable" => text(first).into(),
        "last_usable" => text(last).into(),
        "next_usable" => if_usable(bits(of.ip()).checked_add(1)),
        "previous_usable" => if_usable(bits(of.ip()).checked_sub(1)),
        _ => format!("{}-{}", text(first), text(last)).into(),
    })
}

/// Returns the other host of a point-to-point network.
fn peer(call: &Call<'_>, of: &Address) -> Result<Value> {
    let own = bits(of.ip());
    let other = match of.host_bits() {
        1 => own ^ 1,
        2 if own == of.first() || own == of.last() => {
            return Err(call.fault(format!("`{}` is no host's address, and has no peer", of.shown)));
        }
        2 => own ^ 3,
        _ => return Err(call.fault(format!("`{}` is in no point-to-point network, and has no peer", of.shown))),
    };
    Ok(of.at(other).map(shown).unwrap_or_default().into())
}
