//! Filters of the collections that playbooks use most: `ansible.utils` and `community.general`.

mod addresses;
mod cidr;
mod formats;
pub(in crate::template) mod general;
mod hardware;
mod keys;
mod paths;
mod query;
mod units;

use crate::template::call::Filter;

pub(super) const TABLES: &[&[Filter]] = &[
    addresses::FILTERS,
    cidr::FILTERS,
    formats::FILTERS,
    general::FILTERS,
    hardware::FILTERS,
    keys::FILTERS,
    paths::FILTERS,
    units::FILTERS,
];

/// Names without a collection that ansible-core once had itself and still sends on to one.
const MOVED: &[(&str, &str)] = &[
    ("cidr_merge", "ansible.utils.cidr_merge"),
    ("hwaddr", "ansible.utils.hwaddr"),
    ("ip4_hex", "ansible.utils.ip4_hex"),
    ("ipaddr", "ansible.utils.ipaddr"),
    ("ipmath", "ansible.utils.ipmath"),
    ("ipsubnet", "ansible.utils.ipsubnet"),
    ("ipv4", "ansible.utils.ipv4"),
    ("ipv6", "ansible.utils.ipv6"),
    ("ipwrap", "ansible.utils.ipwrap"),
    ("json_query", "community.general.json_query"),
    ("macaddr", "ansible.utils.macaddr"),
    ("network_in_network", "ansible.utils.network_in_network"),
    ("network_in_usable", "ansible.utils.network_in_usable"),
    ("next_nth_usable", "ansible.utils.next_nth_usable"),
    ("nthhost", "ansible.utils.nthhost"),
    ("previous_nth_usable", "ansible.utils.previous_nth_usable"),
    ("random_mac", "community.general.random_mac"),
    ("reduce_on_network", "ansible.utils.reduce_on_network"),
    ("slaac", "ansible.utils.slaac"),
];

/// Finds a filter by its full name, by the name that it had before it moved to its collection, or under
/// `ansible.netcommon`, where the address filters once were.
pub(super) fn find(name: &str) -> Option<&'static Filter> {
    let bare = name.strip_prefix("ansible.netcommon.").unwrap_or(name);
    let full = MOVED.iter().find(|(old, _)| *old == bare).map_or(name, |(_, full)| full);
    TABLES.iter().copied().flatten().find(|filter| filter.name == full)
}
