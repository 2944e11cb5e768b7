//! Hosts that are named and are not there.

use super::expect_files;

#[test]
fn a_limit_that_names_nobody() {
    let play = "- hosts: all\n  gather_facts: false\n  tasks:\n    - file: {path: marker, state: touch}\n";
    expect_files(
        "limit",
        &[("site.yml", play)],
        &["--limit", "wbe1"],
        1,
        "
error: `--limit wbe1`: no host or group `wbe1` in the inventory
 |
 = help: did you mean `web1`?

error: one mistake found; nothing was run",
    );
}

#[test]
fn a_pattern_that_is_none() {
    expect_files(
        "pattern",
        &[("site.yml", "- hosts: ~web(\n  gather_facts: false\n  tasks: [{ping: }]\n")],
        &[],
        4,
        "
error: pattern `~web(`: Parsing error at position 9: Opening parenthesis without closing parenthesis
 --> site.yml:1:10
  |
1 | - hosts: ~web(
  |          ^

error: one mistake found; nothing was run",
    );
}
