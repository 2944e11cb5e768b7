//! Network interfaces, addresses and default routes; name servers; storage initiators.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use serde_json::{Value, json};

use super::{Files, map};
use crate::host::Map;
use crate::host::Put as _;

mod addresses;

use addresses::{Address, addresses};

/// Where a packet into the world goes: Ansible asks the way to these two.
const WORLD4: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);
const WORLD6: Ipv6Addr = Ipv6Addr::new(0x2404, 0x6800, 0x400a, 0x800, 0, 0, 0, 0x1012);

pub(super) fn facts(files: Files<'_>) -> Map {
    let devices: Vec<String> = files
        .names("/sys/class/net")
        .into_iter()
        .filter(|name| files.exists(&format!("/sys/class/net/{name}/")))
        .collect();
    let indices: Vec<(u32, &str)> = devices
        .iter()
        .filter_map(|name| {
            Some((u32::try_from(files.number(&format!("/sys/class/net/{name}/ifindex"))?).ok()?, name.as_str()))
        })
        .collect();
    let all: Vec<Address> = addresses(&files.text("/proc/net/if_inet6").unwrap_or_default(), &indices)
        .into_iter()
        .filter(|address| devices.contains(&address.device))
        .collect();
    let mut facts = map([("interfaces", devices.iter().map(|name| name.replace(':', "_")).collect())]);
    let mut described: Vec<(String, Map)> = Vec::new();
    for name in &devices {
        let mut device = device_of(files, name);
        let own: Vec<&Address> = all.iter().filter(|address| &address.device == name).collect();
        let mut fours = own.iter().filter(|address| address.ip.is_ipv4()).map(|address| address.facts());
        if let Some(first) = fours.next() {
            device.put("ipv4", first);
        }
        let others: Vec<Map> = fours.collect();
        if !others.is_empty() {
            device.put("ipv4_secondaries", json!(others));
        }
        let sixes: Vec<Map> =
            own.iter().filter(|address| address.ip.is_ipv6()).map(|address| address.facts()).collect();
        if !sixes.is_empty() {
            device.put("ipv6", json!(sixes));
        }
        described.push((name.clone(), device));
    }
    let listed = |wanted: fn(&IpAddr) -> bool| -> Value {
        all.iter().map(|address| address.ip).filter(wanted).map(|ip| ip.to_string()).collect()
    };
    let way4 = files.text("/proc/net/route").and_then(|text| way4(&text, WORLD4));
    let way6 = files.text("/proc/net/ipv6_route").and_then(|text| way6(&text, WORLD6));
    facts.put("default_ipv4", default(way4, source(WORLD4.into()), &all, &described));
    facts.put("default_ipv6", default(way6, source(WORLD6.into()), &all, &described));
    facts.put("all_ipv4_addresses", listed(|ip| matches!(ip, IpAddr::V4(ip) if ip.octets()[0] != 127)));
    facts.put("all_ipv6_addresses", listed(|ip| matches!(ip, IpAddr::V6(ip) if !ip.is_loopback())));
    facts.put("locally_reachable_ips", local(&all));
    facts.extend(described.into_iter().map(|(name, device)| (fact_name(&name), device.into())));
    facts
}

/// Returns an interface's name without what variables can't have in theirs.
fn fact_name(device: &str) -> String {
    device.replace([':', '-'], "_")
}

fn device_of(files: Files<'_>, name: &str) -> Map {
    let folder = format!("/sys/class/net/{name}");
    let text = |file: &str| files.text(&format!("{folder}/{file}"));
    let number = |file: &str| files.number(&format!("{folder}/{file}"));
    let mut device = map([("device", name.into())]);
    if let Some(address) = text("address").filter(|address| address != "00:00:00:00:00:00") {
        device.put("macaddress", address);
    }
    if let Some(mtu) = number("mtu") {
        device.put("mtu", mtu);
    }
    if let Some(state) = text("operstate") {
        device.put("active", state != "down");
    }
    if let Some(driver) = files.link_name(&format!("{folder}/device/driver/module")) {
        device.put("module", driver);
    }
    if let Some(kind) = text("type") {
        let kind = match kind.as_str() {
            "1" => "ether",
            "32" => "infiniband",
            "512" => "ppp",
            "772" => "loopback",
            "65534" => "tunnel",
            _ => "unknown",
        };
        device.put("type", kind);
    }
    if files.exists(&format!("{folder}/bridge")) {
        device.put("type", "bridge");
        device.put("interfaces", json!(files.names(&format!("{folder}/brif"))));
        device.put("id", text("bridge/bridge_id").unwrap_or_default());
        device.put("stp", text("bridge/stp_state").as_deref() == Some("1"));
    }
    if files.exists(&format!("{folder}/bonding")) {
        bonding(&mut device, &text);
    }
    if files.exists(&format!("{folder}/bonding_slave")) {
        device.put("perm_macaddress", text("bonding_slave/perm_hwaddr").unwrap_or_default());
    }
    if let Some(address) = files.link_name(&format!("{folder}/device")) {
        device.put("pciid", address);
    }
    if let Some(speed) = number("speed") {
        device.put("speed", speed);
    }
    if let Some(flags) = text("flags").and_then(|flags| u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()) {
        device.put("promisc", flags & libc::IFF_PROMISC as u32 != 0);
    }
    device
}

fn bonding(device: &mut Map, text: &dyn Fn(&str) -> Option<String>) {
    let first = |file: &str| text(file).and_then(|text| text.split_whitespace().next().map(str::to_owned));
    let slaves = text("bonding/slaves").unwrap_or_default();
    device.put("type", "bonding");
    device.put("slaves", slaves.split_whitespace().collect::<serde_json::Value>());
    for key in ["mode", "miimon", "lacp_rate"] {
        device.insert(key.to_owned(), first(&format!("bonding/{key}")).unwrap_or_default().into());
    }
    if let Some(primary) = text("bonding/primary") {
        device.put("primary", primary);
        if let Some(all) = text("bonding/all_slaves_active") {
            device.put("all_slaves_active", all == "1");
        }
    }
}

/// A route's interface and gateway.
type Way = (String, Option<IpAddr>);

/// Returns the longest route to `target`, the cheapest of equals. Source: `/proc/net/route`: addresses in host order.
fn way4(routes: &str, target: Ipv4Addr) -> Option<Way> {
    let address = |field: &str| u32::from_str_radix(field, 16).ok().map(|bits| u32::from_be(bits.swap_bytes().to_be()));
    let mut best: Option<((u32, std::cmp::Reverse<u32>), Way)> = None;
    for line in routes.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [device, destination, gateway, flags, _, _, metric, mask, ..] = fields.as_slice() else { continue };
        let (Some(destination), Some(gateway), Some(mask)) = (address(destination), address(gateway), address(mask))
        else {
            continue;
        };
        let flags = u32::from_str_radix(flags, 16).unwrap_or(0);
        // RTF_UP, and not RTF_REJECT.
        if flags & 1 == 0 || flags & 0x200 != 0 || u32::from(target) & mask != destination {
            continue;
        }
        let rank = (mask.count_ones(), std::cmp::Reverse(metric.parse().unwrap_or(u32::MAX)));
        if best.as_ref().is_none_or(|(other, _)| rank > *other) {
            let gateway = (gateway != 0).then(|| IpAddr::from(Ipv4Addr::from(gateway)));
            best = Some((rank, ((*device).to_owned(), gateway)));
        }
    }
    best.map(|(_, way)| way)
}

/// As [`way4`]. Source: `/proc/net/ipv6_route`: addresses as 32 digits, then a prefix length in hexadecimal.
fn way6(routes: &str, target: Ipv6Addr) -> Option<Way> {
    let mut best: Option<((u32, std::cmp::Reverse<u32>), Way)> = None;
    for line in routes.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [destination, length, _, _, gateway, metric, _, _, flags, device] = fields.as_slice() else { continue };
        let number = |field: &str| u128::from_str_radix(field, 16).ok();
        let (Some(destination), Some(length), Some(gateway), Some(flags), Some(metric)) =
            (number(destination), number(length), number(gateway), number(flags), number(metric))
        else {
            continue;
        };
        let mask = u128::MAX.checked_shl(128 - length as u32).unwrap_or(0);
        // RTF_UP, and not RTF_REJECT, which the kernel puts on `lo` where there is no way.
        if flags & 1 == 0 || flags & 0x200 != 0 || *device == "lo" || u128::from(target) & mask != destination {
            continue;
        }
        let rank = (length as u32, std::cmp::Reverse(metric as u32));
        if best.as_ref().is_none_or(|(other, _)| rank > *other) {
            let gateway = (gateway != 0).then(|| IpAddr::from(Ipv6Addr::from(gateway)));
            best = Some((rank, ((*device).to_owned(), gateway)));
        }
    }
    best.map(|(_, way)| way)
}

/// Returns the address that this host would speak from. Nothing is sent: connecting a UDP socket only chooses.
fn source(target: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((target, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn default(way: Option<Way>, source: Option<IpAddr>, all: &[Address], devices: &[(String, Map)]) -> Map {
    let Some((name, gateway)) = way else { return Map::new() };
    let mut facts = map([("interface", name.as_str().into())]);
    if let Some(gateway) = gateway {
        facts.put("gateway", gateway.to_string());
    }
    let four = gateway.or(source).is_some_and(|ip| ip.is_ipv4());
    let own = || all.iter().filter(|address| address.device == name && address.ip.is_ipv4() == four);
    let chosen = own().find(|address| Some(address.ip) == source).or_else(|| own().next());
    if let Some(address) = chosen {
        facts.extend(address.facts());
        if four {
            facts.put("alias", address.label.as_str());
        }
    }
    if let Some((_, device)) = devices.iter().find(|(device, _)| *device == name) {
        for key in ["macaddress", "mtu", "type"] {
            if let Some(value) = device.get(key) {
                facts.insert(key.to_owned(), value.clone());
            }
        }
    }
    facts
}

/// Returns the addresses that never leave this host: its own, and the whole of a loopback's network.
fn local(all: &[Address]) -> Value {
    let mut four: Vec<String> = Vec::new();
    let mut six: Vec<String> = Vec::new();
    for address in all {
        match address.ip {
            IpAddr::V4(ip) => {
                if ip.is_loopback() {
                    four.extend(address.network());
                }
                four.push(ip.to_string());
            }
            IpAddr::V6(ip) => six.push(ip.to_string()),
        }
    }
    json!({"ipv4": four, "ipv6": six})
}

pub(super) fn dns(files: Files<'_>) -> Map {
    let mut dns = Map::new();
    for line in files.text("/etc/resolv.conf").unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        let Some(key) = words.next().filter(|key| !key.starts_with(['#', ';'])) else { continue };
        match key {
            "nameserver" => {
                let servers = dns.entry("nameservers").or_insert_with(|| json!([]));
                if let Value::Array(servers) = servers {
                    servers.extend(words.map(Value::from));
                }
            }
            "domain" => drop(words.next().map(|domain| dns.insert("domain".into(), domain.into()))),
            "search" | "sortlist" => drop(dns.insert(key.to_owned(), words.collect())),
            "options" => {
                let option = |word: &str| match word.split_once(':') {
                    Some((name, value)) if !value.is_empty() => (name.to_owned(), Value::from(value)),
                    Some((name, _)) => (name.to_owned(), true.into()),
                    None => (word.to_owned(), true.into()),
                };
                dns.put("options", words.map(option).collect::<Map>());
            }
            _ => {}
        }
    }
    map([("dns", dns.into())])
}

/// Returns the names under which this host asks for storage.
pub(super) fn initiators(files: Files<'_>) -> Map {
    let iscsi = files.text("/etc/iscsi/initiatorname.iscsi").unwrap_or_default();
    let iscsi = iscsi.lines().find_map(|line| line.strip_prefix("InitiatorName=")).unwrap_or_default().to_owned();
    let nvme = files.text("/etc/nvme/hostnqn").unwrap_or_default();
    let nvme = nvme.lines().find(|line| line.starts_with("nqn.")).unwrap_or_default().to_owned();
    let hosts = files.names("/sys/class/fc_host").into_iter();
    let ports: Vec<String> = hosts
        .filter_map(|host| files.text(&format!("/sys/class/fc_host/{host}/port_name")))
        .map(|name| name.trim_start_matches("0x").to_owned())
        .collect();
    map([("iscsi_iqn", iscsi.into()), ("hostnqn", nvme.into()), ("fibre_channel_wwn", json!(ports))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_then_cheapest_route_is_the_way() {
        let routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                      eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                      wlan0\t00000000\t0103A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                      eth0\t0002A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(way4(routes, WORLD4), Some(("eth0".into(), Some(Ipv4Addr::new(192, 168, 2, 1).into()))));
        assert_eq!(way4(routes, Ipv4Addr::new(192, 168, 2, 9)), Some(("eth0".into(), None)));
    }

    #[test]
    fn a_reject_route_is_no_way() {
        let routes = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                      00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n";
        assert_eq!(way6(routes, WORLD6), None);
        let routes = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                      fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n";
        let gateway: IpAddr = "fe80::1".parse().expect("an address");
        assert_eq!(way6(routes, WORLD6), Some(("eth0".into(), Some(gateway))));
    }
}
