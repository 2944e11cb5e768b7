//! Filters of hardware addresses: `hwaddr`, `macaddr`, `slaac`, `random_mac`.

use std::net::IpAddr;

use super::query::number;
use crate::template::address::{Address, bits, shown};
use crate::template::call::{Call, Filter, callable};
use crate::template::filters::random::Source;
use crate::template::live::{Live, Result};
use crate::value::Value;

pub(super) const FILTERS: &[Filter] = &[
    callable("ansible.utils.hwaddr", &["query", "alias"], hwaddr),
    callable("ansible.utils.macaddr", &["query"], hwaddr),
    callable("ansible.utils.slaac", &["query"], slaac),
    callable("community.general.random_mac", &["seed"], random_mac),
];

/// Random bytes are drawn at once, as a number of ten hexadecimal digits, so that a seed gives what it gave under Ansible.
const RANDOM_FROM: u64 = 0x10_0000_0000;
const RANDOM_COUNT: u64 = 0x100_0000_0000 - RANDOM_FROM;

/// A hardware address of 48 or 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hardware {
    Eui48(u64),
    Eui64(u64),
}

impl Hardware {
    fn read(value: &Value) -> Option<Hardware> {
        let text = match value {
            Value::Int(number) => return u64::try_from(*number).ok().map(Hardware::of),
            Value::Str(text) => text.as_str(),
            _ => return None,
        };
        let Some(separator) = text.chars().find(|c| [':', '-', '.'].contains(c)) else { return Hardware::alone(text) };
        let groups: Vec<&str> = text.split(separator).collect();
        let (width, eui): (usize, fn(u64) -> Hardware) = match (groups.len(), separator) {
            (6, ':' | '-') => (2, Hardware::Eui48),
            (3, _) => (4, Hardware::Eui48),
            (2, ':' | '-') => (6, Hardware::Eui48),
            (8, ':' | '-') => (2, Hardware::Eui64),
            (4, _) => (4, Hardware::Eui64),
            _ => return None,
        };
        let is_group = |group: &&str| {
            (1..=width).contains(&group.len())
                && (width != 6 || group.len() >= 5)
                && group.bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        if !groups.iter().all(is_group) {
            return None;
        }
        let joined: String = groups.iter().map(|group| format!("{group:0>width$}")).collect();
        u64::from_str_radix(&joined, 16).ok().map(eui)
    }

    /// Reads digits without separators; few decimal ones are a number.
    fn alone(text: &str) -> Option<Hardware> {
        if text.is_empty() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let hexadecimal = u64::from_str_radix(text, 16).ok();
        match text.len() {
            11 | 12 => hexadecimal.map(Hardware::Eui48),
            16 => hexadecimal.map(Hardware::Eui64),
            _ => text.parse().ok().map(Hardware::of),
        }
    }

    fn of(number: u64) -> Hardware {
        if number < 1 << 48 { Hardware::Eui48(number) } else { Hardware::Eui64(number) }
    }

    /// Returns the 64 bits of which an address of version 6 is made.
    fn interface(self) -> u64 {
        let wide = match self {
            Hardware::Eui64(wide) => wide,
            Hardware::Eui48(short) => (short >> 24) << 40 | 0xff_fe00_0000 | (short & 0xff_ffff),
        };
        // The universal/local bit (RFC 4291, appendix A).
        wide ^ 1 << 57
    }
}

fn hwaddr(call: &mut Call<'_>) -> Result<Live> {
    let value = call.value()?;
    let query = call.text_or(0, "")?;
    let found = Hardware::read(&value);
    match (query.as_str(), found) {
        ("", Some(_)) => return Ok(value.to_string().into()),
        ("bool", Some(_)) => return Ok(true.into()),
        ("" | "bool", None) => return Ok(Live::NULL),
        _ => {}
    }
    let short = match found {
        Some(Hardware::Eui48(short)) => short,
        Some(Hardware::Eui64(_)) => return Err(call.fault(format!("`{value}` has more than 48 bits"))),
        None => return Err(call.fault(format!("`{value}` is no hardware address"))),
    };
    let digits = format!("{short:012x}");
    let grouped = |width: usize, separator: &str| {
        let groups: Vec<&str> = (0..12 / width).map(|nth| &digits[nth * width..][..width]).collect();
        groups.join(separator)
    };
    Ok(match query.as_str() {
        "bare" => digits.to_uppercase().into(),
        "cisco" => grouped(4, ".").into(),
        "eui48" | "win" => grouped(2, "-").to_uppercase().into(),
        "int" => Live::Done(number(short.into())),
        "linux" => grouped(2, ":").into(),
        "pgsql" | "postgresql" | "psql" => grouped(6, ":").into(),
        "unix" => short.to_be_bytes()[2..].iter().map(|byte| format!("{byte:x}")).collect::<Vec<_>>().join(":").into(),
        other => {
            let help = "one of bare, bool, cisco, eui48, int, linux, pgsql, unix, win";
            return Err(call.fault(format!("no query `{other}`")).help(help));
        }
    })
}

/// Returns the address that a network interface gives itself in a network of version 6.
fn slaac(call: &mut Call<'_>) -> Result<Live> {
    let hardware = Hardware::read(&call.required(0)?.force()?);
    let network = Address::read(&call.value()?, None);
    let (Some(hardware), Some(network)) = (hardware, network) else { return Ok(false.into()) };
    Ok(match network.net.network() {
        IpAddr::V4(_) => false.into(),
        first @ IpAddr::V6(_) => {
            let own = bits(first).checked_add(hardware.interface().into()).and_then(|number| network.at(number));
            own.map_or(false.into(), |ip| shown(ip).into())
        }
    })
}

/// Fills the start of a hardware address up with random bytes.
fn random_mac(call: &mut Call<'_>) -> Result<Live> {
    let value = call.value()?;
    let start = value.as_str().ok_or_else(|| call.fault(format!("takes a string, not {}", value.kind())))?;
    let start = start.to_lowercase();
    let parts: Vec<&str> = start.split(':').collect();
    let is_byte = |part: &&str| part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
    if parts.len() > 5 || !parts.iter().all(is_byte) {
        return Err(call.fault(format!("`{value}` must be one to five bytes such as `52:54:00`")));
    }
    let seed = call.value_at(0)?;
    let mut source = match &seed {
        None | Some(Value::Null) => Source::unseeded().map_err(|error| call.fault(error))?,
        Some(Value::Int(seed)) => Source::seeded_by_number(seed.unsigned_abs()),
        Some(seed) => Source::seeded_by_text(&seed.to_string()),
    };
    let digits = format!("{:x}", RANDOM_FROM + source.below(RANDOM_COUNT));
    let bytes = (0..6 - parts.len()).map(|nth| format!(":{}", &digits[2 * nth..2 * nth + 2]));
    Ok(format!("{start}{}", bytes.collect::<String>()).into())
}
