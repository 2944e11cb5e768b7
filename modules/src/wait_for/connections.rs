//! Ports of machines as seen from this host, and the connections to its own.

use std::io::{ErrorKind as IoErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::host::Map;
use crate::pattern::Pattern;
use crate::{Error, Host};

/// States of a connection and their numbers in `/proc/net/tcp`; the first six are active ones.
pub(super) const STATES: [(&str, &str); 11] = [
    ("ESTABLISHED", "01"),
    ("FIN_WAIT1", "04"),
    ("FIN_WAIT2", "05"),
    ("SYN_RECV", "03"),
    ("SYN_SENT", "02"),
    ("TIME_WAIT", "06"),
    ("CLOSE", "07"),
    ("CLOSE_WAIT", "08"),
    ("LAST_ACK", "09"),
    ("LISTEN", "0A"),
    ("CLOSING", "0B"),
];

/// How much of what a port sends is kept to search in.
const KEPT_BYTES: usize = 1 << 20;

pub(super) fn number_of(state: &str) -> Option<&'static str> {
    STATES.iter().find(|(name, _)| *name == state).map(|&(_, number)| number)
}

/// What a regular expression found.
#[derive(Debug, Default)]
pub(super) struct Matched {
    pub groups: Vec<Value>,
    pub named: Map,
}

impl Matched {
    /// Returns what `pattern`, written as `regex`, finds.
    pub(super) fn of(pattern: &Pattern, regex: &str, text: &[u8]) -> Result<Option<Matched>, Error> {
        let Some(found) = pattern.find(text, 0)? else { return Ok(None) };
        let group = |place: Option<(usize, usize)>| match place {
            Some((start, end)) => Value::from(String::from_utf8_lossy(&text[start..end]).into_owned()),
            None => Value::Null,
        };
        let named = regex.split("(?P<").skip(1).filter_map(|rest| rest.split_once('>')).map(|(name, _)| name);
        Ok(Some(Matched {
            named: named
                .filter_map(|name| Some((name.to_owned(), group(*found.groups.get(pattern.group(name)?)?))))
                .collect(),
            groups: found.groups[1..].iter().map(|&place| group(place)).collect(),
        }))
    }
}

/// Whether a port takes connections and, where a pattern is given, sends what it matches before `left` is over.
pub(super) fn port_answers(
    machine: &str,
    port: u16,
    limit: Duration,
    left: Duration,
    search: Option<(&Pattern, &str)>,
) -> Result<Option<Matched>, Error> {
    // A name that can't be resolved now may be later.
    let Ok(addresses) = (machine, port).to_socket_addrs() else { return Ok(None) };
    let Some(mut stream) = addresses.into_iter().find_map(|address| TcpStream::connect_timeout(&address, limit).ok())
    else {
        return Ok(None);
    };
    let Some((pattern, regex)) = search else {
        stream.shutdown(Shutdown::Both).ok();
        return Ok(Some(Matched::default()));
    };
    let end = Instant::now() + left;
    let mut text = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Ok(None);
        }
        match stream.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(count) => text.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == IoErrorKind::Interrupted => {}
            Err(_) => return Ok(None),
        }
        if let Some(matched) = Matched::of(pattern, regex, &text)? {
            return Ok(Some(matched));
        }
        if text.len() > KEPT_BYTES {
            text.drain(..KEPT_BYTES / 2);
        }
    }
}

/// Whether no connection to this port of this host counts. `machine` is the host's own address to look at; an
/// unspecified one stands for all of them.
pub(super) fn drained(
    host: &dyn Host,
    machine: &str,
    port: u16,
    states: &[String],
    excluded: &[String],
) -> Result<bool, Error> {
    let resolved = |name: &str| -> Vec<IpAddr> {
        (name, port).to_socket_addrs().map(|all| all.map(|address| plain(address.ip())).collect()).unwrap_or_default()
    };
    let own = resolved(machine);
    let excluded: Vec<IpAddr> = excluded.iter().flat_map(|name| resolved(name)).collect();
    let numbers: Vec<&str> = states.iter().filter_map(|state| number_of(state)).collect();
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let bytes = host.read(file)?.unwrap_or_default();
        for line in String::from_utf8_lossy(&bytes).lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, local, remote, state, ..] = fields.as_slice() else { continue };
            let (Some((ip, at)), Some((peer, _))) = (end_of(local), end_of(remote)) else { continue };
            let ours = own.iter().any(|address| address.is_unspecified() || *address == ip);
            if at == port && ours && numbers.contains(state) && !excluded.contains(&peer) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Reads `0100007F:1F90`: an address in groups of four bytes, each in host order, and a port.
fn end_of(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for at in (0..address.len()).step_by(8) {
        let group = u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?;
        bytes.extend(group.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some((plain(ip), u16::from_str_radix(port, 16).ok()?))
}

/// Turns `::ffff:10.0.0.1` into `10.0.0.1`.
fn plain(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::pattern::Flags;

    #[test]
    fn an_end_of_a_connection_is_read() {
        assert_eq!(end_of("0100007F:1F90"), Some((Ipv4Addr::LOCALHOST.into(), 8080)));
        assert_eq!(end_of("0000000000000000FFFF00000100007F:0016"), Some((Ipv4Addr::LOCALHOST.into(), 22)));
    }

    #[test]
    fn a_port_answers_while_somebody_listens() {
        use std::io::Write as _;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let serve = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").expect("writing");
        });
        let second = Duration::from_secs(5);
        let regex = r"SSH-(?P<version>\d\.\d)-(\w+)";
        let pattern = Pattern::new(regex, Flags::default()).expect("a pattern");
        let found = port_answers("127.0.0.1", port, second, second, Some((&pattern, regex))).expect("no fault");
        let found = found.expect("the port answers");
        assert_eq!((found.groups[1].clone(), found.named["version"].clone()), ("OpenSSH_9".into(), "2.0".into()));
        serve.join().expect("the thread ends");
        assert!(port_answers("127.0.0.1", port, second, second, None).expect("no fault").is_none());
    }
}
