//! `ipaddr` and the filters that are `ipaddr` with a question of their own.

use super::query::{answer, wrapped};
use crate::template::address::{Address, Family, shown};
use crate::template::call::{Call, Filter, callable};
use crate::template::live::{Live, Result};
use crate::value::Value;

pub(super) const FILTERS: &[Filter] = &[
    callable("ansible.utils.ipaddr", &["query", "version", "alias"], |call| {
        let version = match call.value_at(1)? {
            None | Some(Value::Null | Value::Bool(false)) => None,
            Some(Value::Int(4)) => Some(Family::V4),
            Some(Value::Int(6)) => Some(Family::V6),
            Some(other) => return Err(call.fault(format!("`version` must be 4 or 6, not {other}"))),
        };
        asked(call, version)
    }),
    callable("ansible.utils.ipv4", &["query"], |call| asked(call, Some(Family::V4))),
    callable("ansible.utils.ipv6", &["query"], |call| asked(call, Some(Family::V6))),
    callable("ansible.utils.ipwrap", &["query"], ipwrap),
    callable("ansible.utils.ip4_hex", &["delimiter"], |call| {
        let found = Address::read(&call.value()?, Some(Family::V4)).filter(|found| found.is_bare);
        let found = found.ok_or_else(|| call.fault("takes an IPv4 address without a prefix"))?;
        let delimiter = call.text_or(0, "")?;
        let octets = format!("{:08x}", crate::template::address::bits(found.ip()));
        let octets: Vec<&str> = (0..4).map(|nth| &octets[2 * nth..2 * nth + 2]).collect();
        Ok(octets.join(&delimiter).into())
    }),
    callable("ansible.utils.ipv6form", &["format"], |call| {
        let found = Address::read(&call.value()?, None).ok_or_else(|| call.fault("takes an IP address"))?;
        let format = call.text_or(0, "")?;
        let std::net::IpAddr::V6(ip) = found.ip() else { return Ok(shown(found.ip()).into()) };
        let groups = |each: fn(&u16) -> String| ip.segments().iter().map(each).collect::<Vec<_>>().join(":");
        match format.as_str() {
            "expand" => Ok(groups(|group| format!("{group:04x}")).into()),
            "x509" => Ok(groups(|group| format!("{group:x}")).into()),
            "compress" => Ok(shown(found.ip()).into()),
            other => Err(call.fault(format!("no format `{other}`")).help("one of expand, compress, x509")),
        }
    }),
];

/// Answers the query for an address, or for each of a list, of which those stay that have an answer.
fn asked(call: &mut Call<'_>, wanted: Option<Family>) -> Result<Live> {
    let query = call.value_at(0)?.unwrap_or_default();
    match call.value()? {
        value @ (Value::Str(_) | Value::Int(_) | Value::List(_) | Value::Bool(_)) => {
            Ok(Live::Done(each(call, &value, wanted, &query)?))
        }
        other => Err(not_an_address(call, &other)),
    }
}

fn not_an_address(call: &Call<'_>, value: &Value) -> crate::template::error::TemplateError {
    call.fault(format!("takes an address, a network or a list of them, not {}", value.kind()))
}

fn each(call: &Call<'_>, value: &Value, wanted: Option<Family>, query: &Value) -> Result<Value> {
    if let Value::List(items) = value {
        let answers = items.iter().map(|item| each(call, item, wanted, query)).collect::<Result<Vec<_>>>()?;
        return Ok(Value::list(answers.into_iter().filter(Value::truthy).collect()));
    }
    match Address::read(value, wanted) {
        Some(address) => answer(call, &address, query),
        None => Ok(Value::Bool(false)),
    }
}

/// Puts addresses of version 6 into brackets, and leaves everything else as it is.
fn ipwrap(call: &mut Call<'_>) -> Result<Live> {
    fn wrap(value: &Value) -> Value {
        match (value, Address::read(value, None)) {
            (Value::List(items), _) => Value::list(items.iter().map(wrap).collect()),
            (_, Some(address)) => wrapped(&address).into(),
            (_, None) => value.clone(),
        }
    }
    match call.value()? {
        // A number written as text is shown as the address alone.
        value @ Value::Str(_) => Ok(Live::Done(match Address::read(&value, Some(Family::V4)) {
            Some(address) if address.is_bare => shown(address.ip()).into(),
            _ => wrap(&value),
        })),
        value @ (Value::List(_) | Value::Bool(_)) => Ok(Live::Done(wrap(&value))),
        other => Err(not_an_address(call, &other)),
    }
}
