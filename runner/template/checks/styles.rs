//! How `to_yaml` writes scalars where it is told to, what `urlize` and `xmlattr` write, signs before numbers.

use super::check;

#[test]
fn scalars_are_written_as_told() {
    check(&[
        ("'thing' | to_yaml(default_style='|')", r"'|-\n  thing\n'"),
        ("'a b\nc\n' | to_yaml(default_style='|')", r"'|\n  a b\n  c\n'"),
        ("'a b\nc\n' | to_yaml(default_style='>')", r"'>\n  a b\n\n  c\n'"),
        ("'a\n b\nc\n\nd' | to_yaml(default_style='>')", r"'>-\n  a\n   b\n  c\n\n\n  d\n'"),
        ("' a\n\n' | to_yaml(default_style='|')", r"'|2+\n   a\n\n...\n'"),
        ("'' | to_yaml(default_style='|')", "'\"\"\\n'"),
        ("{'n': 5, 's': 't'} | to_nice_yaml(default_style='|')", r#"'"n": ! |-\n    5\n"s": |-\n    t\n'"#),
        (
            "[1, none, true, 'x', []] | to_nice_yaml(default_style='\"')",
            r#"'- ! "1"\n- ! "null"\n- ! "true"\n- "x"\n- []\n'"#,
        ),
        (
            "{'n': 5, 'l': [1.5, 'x'], 'e': []} | to_yaml(canonical=true)",
            r#"'---\n!!map {\n  ? !!str "e"\n  : !!seq [],\n  ? !!str "l"\n  : !!seq [\n    !!float "1.5",\n    !!str "x",\n  ],\n  ? !!str "n"\n  : !!int "5",\n}\n'"#,
        ),
        ("'thing' | to_yaml(canonical=true)", r#"'---\n!!str "thing"\n'"#),
    ]);
}

#[test]
fn links_and_attributes() {
    check(&[
        (
            "'see (http://a.com/b?c=1&d), ok' | urlize",
            r#"'see (<a href="http://a.com/b?c=1&amp;d" rel="noopener">http://a.com/b?c=1&amp;d</a>), ok'"#,
        ),
        ("'me@x.yz' | urlize", r#"'<a href="mailto:me@x.yz">me@x.yz</a>'"#),
        (
            "'www.x.com' | urlize(5, true, '_top')",
            r#"'<a href="https://www.x.com" rel="nofollow noopener" target="_top">www.x...</a>'"#,
        ),
        (
            "'tel:555 ftp://x.y' | urlize(extra_schemes=['tel:'])",
            r#"'<a href="tel:555" rel="noopener">tel:555</a> ftp://x.y'"#,
        ),
        (
            "'a <b> http://a.com/(b)' | urlize",
            r#"'a &lt;b&gt; <a href="http://a.com/(b)" rel="noopener">http://a.com/(b)</a>'"#,
        ),
        ("{'a': '1<', 'b': none, 'c': 5} | xmlattr", r#"' a="1&lt;" c="5"'"#),
        ("{'a': 1} | xmlattr(false)", r#"'a="1"'"#),
        ("{} | xmlattr", "''"),
    ]);
}

#[test]
fn a_plus_before_a_value_means_nothing() {
    check(&[("[+2.5, -1, +(3), 1 ++2]", "[2.5, -1, 3, 3]"), ("'+1' if +1 == 1 else +2", "'+1'")]);
}
