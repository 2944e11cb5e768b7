//! What expressions give.

use super::check;

#[test]
fn native_types() {
    check(&[
        ("{% if true %}{{ 5 }}{% endif %}", "5"),
        ("{% if false %}{{ 5 }}{% endif %}", "None"),
        (" {{ 5 }}", "' 5'"),
        ("{{ 5 }}{{ 6 }}", "'56'"),
        ("{{ [1] }} x", "'[1] x'"),
        ("{{ none }}", "None"),
        ("a{{ none }}b", "'ab'"),
        ("(1,2)", "[1, 2]"),
        ("a {{ (1,2) }}", "'a [1, 2]'"),
        ("d.u", "2"),
        ("whole", "2"),
        ("mixed", "'n=1'"),
        ("{{ d.u }}{# c #}", "2"),
        ("{{ omit is defined }}", "True"),
        ("a{{ omit }}", "'a'"),
        ("a{{ 'x' if false else none }}b", "'ab'"),
        ("{{ 1.0 }}", "1.0"),
        ("{{ 1e3 }} ", "'1000.0 '"),
        ("{'a': 1, 'b': [1, None, True, 1.5, 'q\"']} ~ ''", "'{\\'a\\': 1, \\'b\\': [1, None, True, 1.5, \\'q\"\\']}'"),
    ]);
}

#[test]
fn operators() {
    check(&[
        ("[1,2] + [3]", "[1, 2, 3]"),
        ("'%s-%d' % ('a', 3)", "'a-3'"),
        ("1 < 2 < 3", "True"),
        ("1 < 2 > 3", "False"),
        ("2 ** 3", "8"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("7 / 2", "3.5"),
        ("l[::-1]", "[3, 2, 1]"),
        ("l[-2:]", "[2, 3]"),
        ("l[:1]", "[1]"),
        ("s[1:]", "'ello'"),
        ("s[-1]", "'o'"),
        ("'a' * 3", "'aaa'"),
        ("true + 1", "2"),
        ("true == 1", "True"),
        ("'a' in s", "False"),
        ("'ell' in s", "True"),
        ("'a' in d", "True"),
        ("2 in l", "True"),
        ("4 not in l", "True"),
        ("'a' 'b'", "'ab'"),
        ("true and 'x'", "'x'"),
        ("'' or 'y'", "'y'"),
        ("not l", "False"),
        ("1 ~ 'a' ~ none", "'1aNone'"),
        ("'abc'[0]", "'a'"),
        ("'abc'.0", "'a'"),
        ("1 if l else 2", "1"),
    ]);
}

#[test]
fn undefined_values() {
    check(&[
        ("nope", "!'nope' is undefined"),
        ("nope.a.b | default(1)", "1"),
        ("d.b", "!object of type 'dict' has no attribute 'b'"),
        ("d.b.c | default('x')", "'x'"),
        ("d['b']", "!object of type 'dict' has no attribute 'b'"),
        ("l[7]", "!object of type 'list' has no attribute 7"),
        ("s.foo", "!object of type 'str' has no attribute 'foo'"),
        ("d.t", "!'nope' is undefined"),
        ("chain", "!'nope' is undefined"),
        ("chain | default(3)", "3"),
        ("chain is defined", "False"),
        ("d", "!'nope' is undefined"),
        ("r1", "!recursive loop detected in template"),
        ("nope ~ 'x'", "!'nope' is undefined"),
        ("nope == 1", "!'nope' is undefined"),
        ("not nope", "!'nope' is undefined"),
        ("true or nope", "True"),
        ("[nope, 1] | last", "1"),
        ("[nope, 1] | first", "!'nope' is undefined"),
        ("nope | bool", "!'nope' is undefined"),
        ("nope | mandatory", "!Mandatory variable 'nope' not defined."),
        ("nope | mandatory(msg='foo')", "!foo"),
        ("undef(hint='hh')", "!hh"),
        ("'x' if false", "!the inline if has no `else`, and its condition is false"),
        ("[] | first", "!no first item, the sequence is empty"),
        ("[] | max", "!no aggregated item, the sequence is empty"),
        ("d | dict2items | map(attribute='key')", "['a', 't', 'u']"),
        ("empty | default('e')", "''"),
        ("empty | default('e', true)", "'e'"),
    ]);
}

#[test]
fn statements() {
    check(&[
        ("{% set x = [] %}{% set _ = x.append(1) %}{{ x }}", "[1]"),
        ("{% for i in l %}{{ loop.index }}:{{ i }}{{ ',' if not loop.last }}{% endfor %}", "'1:1,2:2,3:3'"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}", "'a=1'"),
        ("{% set ns = namespace(n=0) %}{% for i in l %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "6"),
        ("{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{% endmacro %}{{ m(1) }}{{ m(1, 3, 4) }}", "'12[]13[4]'"),
        ("{% for i in l if i > 1 %}{{ i }}{% else %}none{% endfor %}", "'23'"),
        ("{% for i in [] %}{{ i }}{% else %}none{% endfor %}", "'none'"),
        ("{% filter upper %}a{{ s }}{% endfilter %}", "'AHELLO'"),
        ("{% set x %}a{{ 1 }}{% endset %}{{ x }}", "'a1'"),
        ("{% with a = 1 %}{{ a }}{% endwith %}", "1"),
        ("{% raw %}{{ x }}{% endraw %}", "'{{ x }}'"),
        ("{% call(x) m() %}<{{ x }}>{% endcall %}", "!'m' is undefined"),
        ("{% macro m() %}[{{ caller(3) }}]{% endmacro %}{% call(x) m() %}<{{ x }}>{% endcall %}", "'[<3>]'"),
        ("{% for i in l %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "'13'"),
        ("{% for i in l %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "1"),
        (
            "{% for i in [[1, [2]], [3, []]] recursive %}{{ i[0] }}{% if i[1] %}({{ loop([[i[1][0], []]]) }}){% endif %}{% endfor %}",
            "'1(2)3'",
        ),
    ]);
}
