//! Filters that reckon with networks: their addresses, their parts, and what lies within them.

use ipnet::IpNet;

use super::query::number;
use crate::template::address::{Address, bits, cidr, shown};
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::value::{Map, Value};

/// How many addresses `usable_range` may list.
const ADDRESSES_LIMIT: u128 = 1 << 20;

const FALSE: Live = Live::Done(Value::Bool(false));

pub(super) const FILTERS: &[Filter] = &[
    callable("ansible.utils.ipsubnet", &["query", "index"], ipsubnet),
    callable("ansible.utils.nthhost", &["query"], |call| {
        let nth = call.value_at(0)?.and_then(|nth| whole(&nth));
        let (Some(network), Some(nth)) = (Address::read(&call.value()?, None), nth) else { return Ok(FALSE) };
        match network.nth(nth) {
            Some(ip) => Ok(shown(ip).into()),
            None if nth < 0 => Err(call.fault(format!("`{}` has no address {nth} from its end", network.shown))),
            None => Ok(FALSE),
        }
    }),
    callable("ansible.utils.ipmath", &["amount"], |call| {
        let value = call.value()?;
        let address = Address::read(&value, None).ok_or_else(|| call.fault(format!("`{value}` is no IP address")))?;
        let amount = offset(call, 0)?;
        let moved = bits(address.ip()).checked_add_signed(i128::from(amount)).and_then(|number| address.at(number));
        let moved = moved.ok_or_else(|| call.fault(format!("`{value}` and {amount} give no address")))?;
        Ok(shown(moved).into())
    }),
    callable("ansible.utils.network_in_network", &["test"], |call| {
        with_other(call, |network, other| network.contains(other))
    }),
    callable("ansible.utils.network_in_usable", &["test"], |call| {
        with_other(call, |network, other| {
            let (first, last) = network.usable();
            network.family() == other.family() && first <= other.first() && other.last() <= last
        })
    }),
    callable("ansible.utils.next_nth_usable", &["offset"], |call| nth_usable(call, 1)),
    callable("ansible.utils.previous_nth_usable", &["offset"], |call| nth_usable(call, -1)),
    callable("ansible.utils.reduce_on_network", &["network"], |call| {
        let network = Address::read(&call.required(0)?.force()?, None);
        let items = match call.value()? {
            Value::List(items) => items.to_vec(),
            single => vec![single],
        };
        let is_within = |item: &Value| match (&network, Address::read(item, None)) {
            (Some(network), Some(address)) => network.contains(&address),
            _ => false,
        };
        Ok(Live::Done(Value::list(items.into_iter().filter(is_within).collect())))
    }),
    callable("ansible.utils.usable_range", &[], usable_range),
    callable("ansible.utils.cidr_merge", &["action"], cidr_merge),
];

/// Returns a whole number, also one written as text.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Str(text) => text.as_str().trim().parse().ok(),
        _ => None,
    }
}

fn offset(call: &Call<'_>, nth: usize) -> Result<i64> {
    call.int_at(nth)?.ok_or_else(|| call.fault("takes a number"))
}

fn with_other(call: &mut Call<'_>, holds: fn(&Address, &Address) -> bool) -> Result<Live> {
    let (network, other) = (Address::read(&call.value()?, None), Address::read(&call.required(0)?.force()?, None));
    Ok(matches!((network, other), (Some(network), Some(other)) if holds(&network, &other)).into())
}

fn nth_usable(call: &mut Call<'_>, direction: i64) -> Result<Live> {
    let offset = offset(call, 0)?.saturating_mul(direction);
    let Some(address) = Address::read(&call.value()?, None) else { return Ok(FALSE) };
    if address.host_bits() == 0 {
        return Ok(Live::NULL);
    }
    let (first, last) = address.usable();
    let moved = bits(address.ip()).checked_add_signed(i128::from(offset));
    let moved = moved.filter(|number| (first..=last).contains(number)).and_then(|number| address.at(number));
    Ok(moved.map_or(Live::NULL, |ip| shown(ip).into()))
}

/// `ipsubnet(size)` counts the networks of a size, `ipsubnet(size, n)` gives the nth, `ipsubnet(network)` says which one
/// of the network's parts it is.
fn ipsubnet(call: &mut Call<'_>) -> Result<Live> {
    let Some(own) = Address::read(&call.value()?, None) else { return Ok(FALSE) };
    let query = call.value_at(0)?.unwrap_or_default();
    if !query.truthy() && whole(&query).is_none() {
        return Ok(cidr(own.net.network(), own.net.prefix_len()).into());
    }
    let index = call.int_at(1)?;
    match whole(&query) {
        Some(size) if size > i64::from(own.net.max_prefix_len()) => Ok(FALSE),
        Some(size) => match (u8::try_from(size), own.host_bits()) {
            (Ok(size), 0) => network_around(call, &own, size, index),
            (Ok(size), _) if size >= own.net.prefix_len() => Ok(part_of(&own, size, index)),
            _ => Err(call.fault(format!("`{}` has no parts of the size {size}", own.shown))),
        },
        None => {
            let Some(network) = Address::read(&query, None) else {
                return Err(call.fault(format!("`{query}` is neither a size nor a network")));
            };
            if !network.contains(&own) {
                return Err(call.fault(format!("`{}` is not within `{}`", own.shown, network.shown)));
            }
            let before = (own.first() - network.first()).checked_shr(u32::from(own.host_bits())).unwrap_or(0);
            Ok((before + 1).to_string().into())
        }
    }
}

/// Returns the network of a size that an address is in, or the nth of all from that size down to two addresses.
fn network_around(call: &Call<'_>, own: &Address, size: u8, index: Option<i64>) -> Result<Live> {
    let count = i64::from(own.net.max_prefix_len() - size);
    let index = index.unwrap_or(0);
    let nth = if index < 0 { count + index } else { index };
    if nth < 0 {
        return Ok(FALSE);
    }
    let size =
        u8::try_from(nth).ok().and_then(|nth| size.checked_add(nth)).filter(|size| *size < own.net.max_prefix_len());
    let network = size.and_then(|size| IpNet::new(own.ip(), size).ok());
    let network = network.ok_or_else(|| call.fault(format!("there are {count} networks of that size and smaller")))?;
    Ok(cidr(network.network(), network.prefix_len()).into())
}

/// Returns how many parts of a size a network has, as text, or the nth of them.
fn part_of(own: &Address, size: u8, index: Option<i64>) -> Live {
    let part_bits = u32::from(own.net.max_prefix_len() - size);
    let count = 1_u128.checked_shl(u32::from(size - own.net.prefix_len()));
    let Some(index) = index else {
        return count
            .map_or_else(|| "340282366920938463463374607431768211456".into(), |count| count.to_string().into());
    };
    let nth = match (u128::try_from(index), count) {
        (Ok(nth), _) => Some(nth),
        (Err(_), Some(count)) => count.checked_sub(u128::from(index.unsigned_abs())),
        (Err(_), None) => Some(u128::MAX - u128::from(index.unsigned_abs()) + 1),
    };
    let first = nth
        .filter(|nth| count.is_none_or(|count| *nth < count))
        .and_then(|nth| own.at(own.first() + nth.checked_shl(part_bits).unwrap_or(0)));
    first.map_or(FALSE, |ip| cidr(ip, size).into())
}

fn usable_range(call: &mut Call<'_>) -> Result<Live> {
    let value = call.value()?;
    let network = value.as_str().and_then(crate::template::address::strict);
    let Some(network) = network else {
        return Err(call.fault(format!("`{value}` is no network, or has bits set beyond its prefix")));
    };
    let network = Address { net: network, is_bare: false, shown: value.to_string() };
    let size = 1_u128.checked_shl(u32::from(network.host_bits())).filter(|size| *size <= ADDRESSES_LIMIT);
    let size = size.ok_or_else(|| call.fault(format!("`{value}` has more than {ADDRESSES_LIMIT} addresses")))?;
    let addresses = (0..size).filter_map(|nth| network.at(network.first() + nth)).map(|ip| shown(ip).into()).collect();
    let mut range = Map::new();
    range.insert("usable_ips", Value::list(addresses));
    range.insert("number_of_ips", number(size));
    Ok(Live::Done(range.into()))
}

/// Puts networks together: into the fewest that hold no more, or into the one that spans them all.
fn cidr_merge(call: &mut Call<'_>) -> Result<Live> {
    let items = match call.value()? {
        Value::List(items) => items.to_vec(),
        single => vec![single],
    };
    let read = |item: &Value| match item {
        Value::Str(_) => Address::read(item, None).map(|address| address.net),
        _ => None,
    };
    let networks = items
        .iter()
        .map(|item| read(item).ok_or_else(|| call.fault(format!("`{item}` is no network, such as 10.0.0.0/8"))));
    let networks = networks.collect::<Result<Vec<IpNet>>>()?;
    match call.text_or(0, "merge")?.as_str() {
        "merge" => {
            let mut merged = IpNet::aggregate(&networks);
            merged.sort();
            let shown = merged.iter().map(|merged| {
                let mut within = networks.iter().filter(|network| merged.contains(*network));
                match (within.next(), within.next()) {
                    // A network that was merged with no other one stays as it was written.
                    (Some(only), None) => cidr(only.addr(), only.prefix_len()).into(),
                    _ => cidr(merged.addr(), merged.prefix_len()).into(),
                }
            });
            Ok(Live::Done(Value::list(shown.collect())))
        }
        "span" => {
            let Some(first) = networks.first() else { return Ok(Live::NULL) };
            let mut span = first.trunc();
            for network in &networks {
                while !span.contains(network) {
                    span = span.supernet().ok_or_else(|| call.fault("takes networks of one version only"))?;
                }
            }
            Ok(cidr(span.addr(), span.prefix_len()).into())
        }
        other => Err(call.fault(format!("no action `{other}`")).help("one of merge, span")),
    }
}
