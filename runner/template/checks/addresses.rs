//! What the address filters and tests of `ansible.utils` give.

use super::*;

const VARIABLES: &str = r#"
addresses: ['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8', '224.0.0.1', '2001:db8::1/64', '2001:db8::/32', 'fe80::1', '::1', '::ffff:192.0.2.1', 3232235777, 'nope', '192.168.24.0/255.255.255.0']
nets: ['192.168.1.5/24', '10.1.1.0/31', '10.1.1.2/30', 'fd00::5/64', '10.1.1.5/32']
"#;

fn check(rows: &[(&str, &str)]) {
    check_with(&templar_with(VARIABLES), rows);
}

#[test]
fn queries() {
    check(&[
        (
            "addresses | map('ansible.utils.ipaddr', '') | list",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8', '224.0.0.1', '2001:db8::1/64', '2001:db8::/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1', False, '192.168.24.0/24']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'address') | list",
            "['192.168.1.5', None, '10.0.0.1', '10.1.1.0', '10.1.1.1', '8.8.8.8', '224.0.0.1', '2001:db8::1', '2001:db8::', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1', False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'bool') | list",
            "[True, True, True, True, True, True, True, True, True, True, True, True, True, False, True]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'broadcast') | list",
            "['192.168.1.255', '192.168.1.255', None, None, '10.1.1.3', None, None, '2001:db8::ffff:ffff:ffff:ffff', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', None, None, None, None, False, '192.168.24.255']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'cidr') | list",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1/32', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8/32', '224.0.0.1/32', '2001:db8::1/64', '2001:db8::/32', 'fe80::1/128', '::1/128', '::ffff:192.0.2.1/128', '192.168.1.1/32', False, '192.168.24.0/24']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'gateway') | list",
            "['192.168.1.5/24', False, '10.0.0.1/32', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8/32', '224.0.0.1/32', '2001:db8::1/64', False, 'fe80::1/128', '::1/128', '::ffff:192.0.2.1/128', '192.168.1.1/32', False, False]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'host') | list",
            "['192.168.1.5/24', None, '10.0.0.1/32', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8/32', '224.0.0.1/32', '2001:db8::1/64', None, 'fe80::1/128', '::1/128', '::ffff:192.0.2.1/128', '192.168.1.1/32', False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'hostmask') | list",
            "['0.0.0.255', '0.0.0.255', '0.0.0.0', '0.0.0.1', '0.0.0.3', '0.0.0.0', '0.0.0.0', '::ffff:ffff:ffff:ffff', '::ffff:ffff:ffff:ffff:ffff:ffff', '::', '::', '::', '0.0.0.0', False, '0.0.0.255']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'int') | list",
            "['3232235781/24', '3232235776/24', 167772161, '167837952/31', '167837953/30', 134744072, 3758096385, '42540766411282592856903984951653826561/64', '42540766411282592856903984951653826560/32', '338288524927261089654018896841347694593', 1, 281473902969345, 3232235777, False, '3232241664/24']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'ip/prefix') | list",
            "['192.168.1.5/24', None, None, '10.1.1.0/31', '10.1.1.1/30', None, None, '2001:db8::1/64', None, None, None, None, None, False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'ip_netmask') | list",
            "['192.168.1.5 255.255.255.0', None, None, '10.1.1.0 255.255.255.254', '10.1.1.1 255.255.255.252', None, None, '2001:db8::1 ffff:ffff:ffff:ffff::', None, None, None, None, None, False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'link-local') | list",
            "[None, None, None, None, None, None, None, None, None, 'fe80::1', None, None, None, False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'loopback') | list",
            "[None, None, None, None, None, None, None, None, None, None, '::1', None, None, False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'multicast') | list",
            "[None, None, None, None, None, None, '224.0.0.1', None, None, None, None, None, None, False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'net') | list",
            "[None, '192.168.1.0/24', None, '10.1.1.0/31', None, None, None, None, '2001:db8::/32', None, None, None, None, False, '192.168.24.0/24']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'netmask') | list",
            "['255.255.255.0', '255.255.255.0', '255.255.255.255', '255.255.255.254', '255.255.255.252', '255.255.255.255', '255.255.255.255', 'ffff:ffff:ffff:ffff::', 'ffff:ffff::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '255.255.255.255', False, '255.255.255.0']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'network') | list",
            "['192.168.1.0', '192.168.1.0', '10.0.0.1', '10.1.1.0', '10.1.1.0', '8.8.8.8', '224.0.0.1', '2001:db8::', '2001:db8::', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1', False, '192.168.24.0']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'network/prefix') | list",
            "['192.168.1.0/24', '192.168.1.0/24', '10.0.0.1/32', '10.1.1.0/31', '10.1.1.0/30', '8.8.8.8/32', '224.0.0.1/32', '2001:db8::/64', '2001:db8::/32', 'fe80::1/128', '::1/128', '::ffff:192.0.2.1/128', '192.168.1.1/32', False, '192.168.24.0/24']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'network_id') | list",
            "['192.168.1.0', '192.168.1.0', '10.0.0.1', '10.1.1.0', '10.1.1.0', '8.8.8.8', '224.0.0.1', '2001:db8::', '2001:db8::', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1', False, '192.168.24.0']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'network_netmask') | list",
            "['192.168.1.0 255.255.255.0', '192.168.1.0 255.255.255.0', '10.0.0.1 255.255.255.255', '10.1.1.0 255.255.255.254', '10.1.1.0 255.255.255.252', '8.8.8.8 255.255.255.255', '224.0.0.1 255.255.255.255', '2001:db8:: ffff:ffff:ffff:ffff::', '2001:db8:: ffff:ffff::', 'fe80::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '::ffff:192.0.2.1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '192.168.1.1 255.255.255.255', False, '192.168.24.0 255.255.255.0']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'network_wildcard') | list",
            "['192.168.1.0 0.0.0.255', '192.168.1.0 0.0.0.255', '10.0.0.1 0.0.0.0', '10.1.1.0 0.0.0.1', '10.1.1.0 0.0.0.3', '8.8.8.8 0.0.0.0', '224.0.0.1 0.0.0.0', '2001:db8:: ::ffff:ffff:ffff:ffff', '2001:db8:: ::ffff:ffff:ffff:ffff:ffff:ffff', 'fe80::1 ::', '::1 ::', '::ffff:192.0.2.1 ::', '192.168.1.1 0.0.0.0', False, '192.168.24.0 0.0.0.255']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'prefix') | list",
            "[24, 24, 32, 31, 30, 32, 32, 64, 32, 128, 128, 128, 32, False, 24]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'private') | list",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', None, None, '2001:db8::1/64', '2001:db8::/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1/32', False, '192.168.24.0/255.255.255.0']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'public') | list",
            "[None, None, None, None, None, '8.8.8.8', None, None, None, None, None, None, None, False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'revdns') | list",
            "['5.1.168.192.in-addr.arpa.', '0.1.168.192.in-addr.arpa.', '1.0.0.10.in-addr.arpa.', '0.1.1.10.in-addr.arpa.', '1.1.1.10.in-addr.arpa.', '8.8.8.8.in-addr.arpa.', '1.0.0.224.in-addr.arpa.', '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.', '0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.', '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.e.f.ip6.arpa.', '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.', '1.0.2.0.0.0.0.c.f.f.f.f.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.', '1.1.168.192.in-addr.arpa.', False, '0.24.168.192.in-addr.arpa.']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'size') | list",
            "[256, 256, 1, 2, 4, 1, 1, '18446744073709551616', '79228162514264337593543950336', 1, 1, 1, 1, False, 256]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'subnet') | list",
            "['192.168.1.0/24', '192.168.1.0/24', '10.0.0.1/32', '10.1.1.0/31', '10.1.1.0/30', '8.8.8.8/32', '224.0.0.1/32', '2001:db8::/64', '2001:db8::/32', 'fe80::1/128', '::1/128', '::ffff:192.0.2.1/128', '192.168.1.1/32', False, '192.168.24.0/24']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'type') | list",
            "['address', 'network', 'address', 'network', 'address', 'address', 'address', 'address', 'network', 'address', 'address', 'address', 'address', False, 'network']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'unicast') | list",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8', None, '2001:db8::1/64', '2001:db8::/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1/32', False, '192.168.24.0/255.255.255.0']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'version') | list",
            "[4, 4, 4, 4, 4, 4, 4, 6, 6, 6, 6, 6, 4, False, 4]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'wildcard') | list",
            "['0.0.0.255', '0.0.0.255', '0.0.0.0', '0.0.0.1', '0.0.0.3', '0.0.0.0', '0.0.0.0', '::ffff:ffff:ffff:ffff', '::ffff:ffff:ffff:ffff:ffff:ffff', '::', '::', '::', '0.0.0.0', False, '0.0.0.255']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'wrap') | list",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8', '224.0.0.1', '[2001:db8::1]/64', '[2001:db8::]/32', '[fe80::1]', '[::1]', '[::ffff:192.0.2.1]', '192.168.1.1/32', False, '192.168.24.0/255.255.255.0']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', '6to4') | list",
            "['2002:c0a8:0105::1/48', False, '2002:0a00:0001::1/48', False, '2002:0a01:0101::1/48', '2002:0808:0808::1/48', False, False, False, False, False, False, '2002:c0a8:0101::1/48', False, False]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'ipv4') | list",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8', '224.0.0.1', False, False, False, '0.0.0.1/32', '192.0.2.1/32', '192.168.1.1/32', False, '192.168.24.0/255.255.255.0']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', 'ipv6') | list",
            "['::ffff:192.168.1.5/120', '::ffff:192.168.1.0/120', '::ffff:10.0.0.1/128', '::ffff:10.1.1.0/127', '::ffff:10.1.1.1/126', '::ffff:8.8.8.8/128', '::ffff:224.0.0.1/128', '2001:db8::1/64', '2001:db8::/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '::ffff:192.168.1.1/128', False, '::ffff:192.168.24.0/120']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', '1') | list",
            "['192.168.1.1/24', '192.168.1.1/24', '10.0.0.1', '10.1.1.1/31', '10.1.1.1/30', '8.8.8.8', '224.0.0.1', '2001:db8::1/64', '2001:db8::1/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1', False, '192.168.24.1/24']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', '-1') | list",
            "['192.168.1.255/24', '192.168.1.255/24', '10.0.0.1', '10.1.1.1/31', '10.1.1.3/30', '8.8.8.8', '224.0.0.1', '2001:db8::ffff:ffff:ffff:ffff/64', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1', False, '192.168.24.255/24']",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', '300') | list",
            "[False, False, '10.0.0.1', False, False, '8.8.8.8', '224.0.0.1', '2001:db8::12c/64', '2001:db8::12c/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1', False, False]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', '10.0.0.0/8') | list",
            "[None, None, '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', None, None, None, None, None, None, None, None, False, None]",
        ),
        (
            "addresses | map('ansible.utils.ipaddr', '::/0') | list",
            "[None, None, None, None, None, None, None, '2001:db8::1/64', '2001:db8::/32', 'fe80::1', '::1', '::ffff:192.0.2.1', None, False, None]",
        ),
        (
            "nets | map('ansible.utils.ipaddr', 'first_usable') | list",
            "['192.168.1.1', '10.1.1.0', '10.1.1.1', 'fd00::1', None]",
        ),
        (
            "nets | map('ansible.utils.ipaddr', 'last_usable') | list",
            "['192.168.1.254', '10.1.1.1', '10.1.1.2', 'fd00::ffff:ffff:ffff:fffe', None]",
        ),
        (
            "nets | map('ansible.utils.ipaddr', 'next_usable') | list",
            "['192.168.1.6', '10.1.1.1', None, 'fd00::6', None]",
        ),
        (
            "nets | map('ansible.utils.ipaddr', 'previous_usable') | list",
            "['192.168.1.4', None, '10.1.1.1', 'fd00::4', None]",
        ),
        (
            "nets | map('ansible.utils.ipaddr', 'range_usable') | list",
            "['192.168.1.1-192.168.1.254', '10.1.1.0-10.1.1.1', '10.1.1.1-10.1.1.2', 'fd00::1-fd00::ffff:ffff:ffff:fffe', None]",
        ),
        ("'10.1.1.1/31' | ansible.utils.ipaddr('peer')", "'10.1.1.0'"),
        ("'10.1.1.2/30' | ansible.utils.ipaddr('peer')", "'10.1.1.1'"),
        (
            "addresses | ansible.utils.ipaddr",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8', '224.0.0.1', '2001:db8::1/64', '2001:db8::/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '192.168.1.1', '192.168.24.0/24']",
        ),
        (
            "addresses | ansible.utils.ipaddr('bool')",
            "[True, True, True, True, True, True, True, True, True, True, True, True, True, True]",
        ),
        ("addresses | ansible.utils.ipaddr('10.0.0.0/8')", "['10.0.0.1', '10.1.1.0/31', '10.1.1.1/30']"),
        ("[['10.0.0.1', 'x'], '10.0.0.2', 7, none] | ansible.utils.ipaddr", "[['10.0.0.1'], '10.0.0.2', '0.0.0.7']"),
        ("'10.0.0.1' | ansible.utils.ipaddr('', version=6)", "False"),
        ("true | ansible.utils.ipaddr", "False"),
        ("'0.0.0.0/0' | ansible.utils.ipaddr('prefix')", "0"),
        ("'::/0' | ansible.utils.ipaddr('size')", "'340282366920938463463374607431768211456'"),
        (
            "addresses | ansible.utils.ipv4",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8', '224.0.0.1', '192.168.1.1', '192.168.24.0/24']",
        ),
        (
            "addresses | ansible.utils.ipv6",
            "['2001:db8::1/64', '2001:db8::/32', 'fe80::1', '::1', '::ffff:192.0.2.1', '::192.168.1.1']",
        ),
        (
            "addresses | ansible.utils.ipv4('address')",
            "['192.168.1.5', '10.0.0.1', '10.1.1.0', '10.1.1.1', '8.8.8.8', '224.0.0.1', '192.168.1.1']",
        ),
        (
            "addresses | map('ansible.utils.ipv6', 'address') | list",
            "[False, False, False, False, False, False, False, '2001:db8::1', '2001:db8::', 'fe80::1', '::1', '::ffff:192.0.2.1', '::192.168.1.1', False, False]",
        ),
        ("3232235777 | ansible.utils.ipv6", "'::192.168.1.1'"),
        (
            "addresses | ansible.utils.ipwrap",
            "['192.168.1.5/24', '192.168.1.0/24', '10.0.0.1', '10.1.1.0/31', '10.1.1.1/30', '8.8.8.8', '224.0.0.1', '[2001:db8::1]/64', '[2001:db8::]/32', '[fe80::1]', '[::1]', '[::ffff:192.0.2.1]', '192.168.1.1/32', 'nope', '192.168.24.0/255.255.255.0']",
        ),
        (
            "['::1', 'nope', '::1/64', '[::1]', 'example.com', ''] | map('ansible.utils.ipwrap') | list",
            "['[::1]', 'nope', '[::1]/64', '[::1]', 'example.com', '']",
        ),
        (
            "'10.233.64.0/18' | ansible.utils.ipaddr('net') | ansible.utils.ipaddr(1) | ansible.utils.ipaddr('address')",
            "'10.233.64.1'",
        ),
    ]);
}

#[test]
fn mistakes_and_old_names() {
    check(&[
        ("'fe80::1' | ipwrap", "'[fe80::1]'"),
        ("'10.0.0.1' | ansible.netcommon.ipaddr('prefix')", "32"),
        ("'10.0.0.5/24' | ipaddr('network') | ipaddr", "'10.0.0.0'"),
        ("'10.0.0.1' | ipaddr('adress')", "!`ansible.utils.ipaddr`: no query `adress`"),
        ("none | ipaddr", "!`ansible.utils.ipaddr`: takes an address, a network or a list of them, not nothing"),
        (
            "'10.0.0.1' | ipaddr('first_usable')",
            "!`ansible.utils.ipaddr`: `10.0.0.1` is no network, which the query `first_usable` is about",
        ),
        (
            "'10.1.1.1/24' | ipaddr('peer')",
            "!`ansible.utils.ipaddr`: `10.1.1.1/24` is in no point-to-point network, and has no peer",
        ),
        ("'10.0.0.0/16' | ipsubnet(10)", "!`ansible.utils.ipsubnet`: `10.0.0.0/16` has no parts of the size 10"),
        (
            "'10.9.0.0/16' | ipsubnet('11.0.0.0/8')",
            "!`ansible.utils.ipsubnet`: `10.9.0.0/16` is not within `11.0.0.0/8`",
        ),
        ("'255.255.255.255' | ipmath(1)", "!`ansible.utils.ipmath`: `255.255.255.255` and 1 give no address"),
        ("['x'] | cidr_merge", "!`ansible.utils.cidr_merge`: `x` is no network, such as 10.0.0.0/8"),
        ("'x' | hwaddr('linux')", "!`ansible.utils.hwaddr`: `x` is no hardware address"),
        (
            "'10.0.0.0/8' | ansible.utils.usable_range",
            "!`ansible.utils.usable_range`: `10.0.0.0/8` has more than 1048576 addresses",
        ),
    ]);
    assert_eq!(
        rendered(&templar(), "a | ansible.utils.ipadr").expect_err("no such filter").help.as_deref(),
        Some("did you mean `ansible.utils.ipaddr`?")
    );
}
