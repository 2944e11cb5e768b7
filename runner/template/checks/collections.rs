//! What filters of `ansible.utils` and `community.general` give that work on data.

use super::*;

const VARIABLES: &str = r#"
csv1: "a,b\n1,2\n3,4\n"
csv2: "a;b\n1;2\n"
csv3: "a,b\n1\n1,2,3\n"
csv4: "a, b\n1, \"2 x\"\n"
csv5: "1,2\n3,4"
csv6: "a\tb\n1\t2\n"
csv7: "a,b\n\"x,\ny\",\"say \"\"hi\"\"\"\n\n5,6\n"
csv8: ""
ini1: "[s]\na = 1\nb: x\n[t]\nC = y\n"
ini2: "[DEFAULT]\nx=1\n[s]\na=1\n"
ini3: "[s]\na=%(b)s\nb=5\n; c\n# d\n"
ini4: "[s]\na\n"
ini5: "[s]\na = 1\n  2\nb =\n[s2]\nx = y = z ; c\n"
people:
- {name: alice, age: 30, team: 1, ok: true, tags: [{k: x}, {k: y}]}
- {name: bob, age: 25, team: 2, ok: false, tags: []}
- {name: carol, age: 41, team: 2, tags: [{k: z}]}
"#;

fn check(rows: &[(&str, &str)]) {
    check_with(&templar_with(VARIABLES), rows);
}

#[test]
fn queries() {
    check(&[
        ("people | json_query('[].name')", "['alice', 'bob', 'carol']"),
        ("people | json_query('[?age > `30`].name')", "['carol']"),
        ("people | json_query(\"[?name=='bob'].age | [0]\")", "25"),
        ("people | json_query(\"[?name=='bob']|[0].tags[*].k\")", "[]"),
        (
            "people | json_query('[*].{n: name, a: age}')",
            "[{'n': 'alice', 'a': 30}, {'n': 'bob', 'a': 25}, {'n': 'carol', 'a': 41}]",
        ),
        ("people | json_query('[?name==`bob`].age')", "[25]"),
        ("people | json_query('[?contains(name, `a`)].name')", "['alice', 'carol']"),
        ("people | json_query('sort_by(@, &age)[*].name')", "['bob', 'alice', 'carol']"),
        ("people | json_query('max_by(@, &age).name')", "'carol'"),
        ("people | json_query('[].tags[].k')", "['x', 'y', 'z']"),
        ("people | json_query('[0].nope')", "None"),
        ("people | json_query('nope')", "None"),
        ("people | json_query('length(@)')", "3"),
        ("people | json_query('[*].age | sum(@)')", "96"),
        ("people | json_query('avg([*].age)')", "32.0"),
        ("people | json_query('[-1].name')", "'carol'"),
        ("people | json_query('[::-1].name')", "['carol', 'bob', 'alice']"),
        ("people | json_query('[0:2].name')", "['alice', 'bob']"),
        ("people | json_query('[:1:-1].name')", "['carol']"),
        ("people | json_query('map(&age, @)')", "[30, 25, 41]"),
        ("people | json_query('[?age >= `30` && name != `bob`].name')", "['alice', 'carol']"),
        ("people | json_query('[?!contains(name, `a`)].name')", "['bob']"),
        ("people | json_query(\"join(',', [].name)\")", "'alice,bob,carol'"),
        ("people | json_query('[0] | keys(@)')", "['name', 'age', 'team', 'ok', 'tags']"),
        ("people | json_query('[0] | values(@)')", "['alice', 30, 1, True, [{'k': 'x'}, {'k': 'y'}]]"),
        ("people | json_query('[0].*')", "['alice', 30, 1, True, [{'k': 'x'}, {'k': 'y'}]]"),
        (
            "people | json_query('to_string([0])')",
            "'{\"name\":\"alice\",\"age\":30,\"team\":1,\"ok\":true,\"tags\":[{\"k\":\"x\"},{\"k\":\"y\"}]}'",
        ),
        ("people | json_query('type([0].age)')", "'number'"),
        ("people | json_query('not_null([0].nope, [1].name)')", "'bob'"),
        (
            "people | json_query('merge([0], {x: `1`})')",
            "{'name': 'alice', 'age': 30, 'team': 1, 'ok': True, 'tags': [{'k': 'x'}, {'k': 'y'}], 'x': 1}",
        ),
        ("people | json_query('reverse([].name)')", "['carol', 'bob', 'alice']"),
        ("people | json_query('sort([].name)')", "['alice', 'bob', 'carol']"),
        ("people | json_query('min([].age)')", "25"),
        ("people | json_query('max([].age)')", "41"),
        ("people | json_query(\"[?starts_with(name, 'b') || ends_with(name, 'l')].name\")", "['bob', 'carol']"),
        ("people | json_query('[?tags].name')", "['alice', 'carol']"),
        ("people | json_query('[?tags[?k==`x`]].name')", "['alice']"),
        ("people | json_query(\"to_number('12')\")", "12"),
        ("people | json_query(\"to_number('1.5')\")", "1.5"),
        ("people | json_query(\"to_number('a')\")", "None"),
        ("people | json_query('floor(`1.7`)')", "1"),
        ("people | json_query('ceil(`1.2`)')", "2"),
        ("people | json_query('abs(`-1.5`)')", "1.5"),
        ("people | json_query('[?name > `b`].name')", "['bob', 'carol']"),
        ("people | json_query(\"[].[name, age]\")", "[['alice', 30], ['bob', 25], ['carol', 41]]"),
        ("people | json_query(\"[*].tags\")", "[[{'k': 'x'}, {'k': 'y'}], [], [{'k': 'z'}]]"),
        ("people | json_query(\"[*].tags[]\")", "[{'k': 'x'}, {'k': 'y'}, {'k': 'z'}]"),
        ("people | json_query(\"[].tags[0]\")", "[{'k': 'x'}, {'k': 'z'}]"),
        ("people | json_query('\"[0]\"')", "None"),
        ("people | json_query('max_by(@, &team).name')", "'bob'"),
        ("people | json_query('min_by(@, &team).name')", "'alice'"),
        ("people | json_query('[?team==`1`].name')", "['alice']"),
        ("people | json_query('to_array([0].name)')", "['alice']"),
        ("people | json_query('`foo bar`')", "'foo bar'"),
        ("people | json_query(\"'it'\")", "'it'"),
        ("people | json_query('@[0].name')", "'alice'"),
        (
            "people | json_query('[?age==`30`] | [0]')",
            "{'name': 'alice', 'age': 30, 'team': 1, 'ok': True, 'tags': [{'k': 'x'}, {'k': 'y'}]}",
        ),
        ("people | json_query(\"[?ok == `true`].name\")", "['alice']"),
        ("people | json_query(\"[?ok].name\")", "['alice']"),
        ("{'a-b': {'c': 1}} | json_query('\"a-b\".c')", "1"),
        ("{'a': {'b': [{'c': 1}, {'c': 2}]}} | json_query('a.b[*].c')", "[1, 2]"),
        ("{'a': {'x': {'v': 1}, 'y': {'v': 2}}} | json_query('a.*.v')", "[1, 2]"),
        ("{'a': {'x': {'v': 1}, 'y': {'w': 2}}} | json_query('a.*.v')", "[1]"),
        ("'x' | json_query('length(@)')", "1"),
        ("{'a': none} | json_query('a.b')", "None"),
        ("[[1,2],[3,[4]]] | json_query('[]')", "[1, 2, 3, [4]]"),
        ("[[1,2],[3,[4]]] | json_query('[][]')", "[1, 2, 3, 4]"),
        (
            "{'results': [{'item': 'a', 'stdout': '1'}, {'item': 'b'}]} | json_query(\"results[?item=='a'].stdout | [0]\")",
            "'1'",
        ),
        ("{'a': true} | json_query('a == `true`')", "True"),
        ("{'a': 1} | json_query('a == `true`')", "False"),
    ]);
}

#[test]
fn data() {
    check(&[
        ("{'a': {'b': [1, 2, {'c': 3}]}} | ansible.utils.get_path('a.b.2.c')", "3"),
        ("{'a': {'b': [1, 2, {'c': 3}]}} | ansible.utils.get_path('a.b[2].c')", "3"),
        ("{'a': {'b': [1, 2, {'c': 3}]}} | ansible.utils.get_path('a[\"b\"][0]')", "1"),
        ("{'a': {'b': [1, 2, {'c': 3}]}} | ansible.utils.get_path('a.b', wantlist=true)", "[[1, 2, {'c': 3}]]"),
        ("{'a': {'b': [1, 2, {'c': 3}]}} | ansible.utils.to_paths", "{'a.b[0]': 1, 'a.b[1]': 2, 'a.b[2].c': 3}"),
        (
            "{'a': {'b': [1, 2, {'c': 3}]}} | ansible.utils.to_paths(prepend='p')",
            "{'p.a.b[0]': 1, 'p.a.b[1]': 2, 'p.a.b[2].c': 3}",
        ),
        ("{'a': {'b': [1]}} | ansible.utils.to_paths(prepend='p-q', wantlist=true)", "[{'p-q.a.b[0]': 1}]"),
        ("[1, {'a': 2}] | ansible.utils.to_paths", "{'[0]': 1, '[1].a': 2}"),
        ("['a','b','a'] | ansible.utils.index_of('eq', 'a')", "[0, 2]"),
        ("['a','b','c'] | ansible.utils.index_of('eq', 'b')", "1"),
        ("['a','b','c'] | ansible.utils.index_of('eq', 'z')", "[]"),
        ("['a','b','c'] | ansible.utils.index_of('==', 'c', wantlist=true)", "[2]"),
        ("[{'n': 1}, {'n': 2}] | ansible.utils.index_of('gt', 1, 'n')", "1"),
        ("[{'n': 1}, {'n': 2}, {'m': 1}] | ansible.utils.index_of('eq', 2, 'n')", "1"),
        ("['a','b','c'] | ansible.utils.index_of('!=', 'b')", "[0, 2]"),
        ("['a','b','c'] | ansible.utils.index_of('in', ['b','c'])", "[1, 2]"),
        ("['abc','xbc'] | ansible.utils.index_of('match', 'a.*')", "0"),
        ("[1,2,3] | ansible.utils.index_of('odd')", "[0, 2]"),
        ("[1,2,3] | ansible.utils.index_of('ansible.builtin.gt', 1)", "[1, 2]"),
        ("'a' | ansible.utils.index_of('eq','a')", "0"),
        ("[{'n': {'x': 1}}] | ansible.utils.index_of('eq', 1, 'n.x')", "[]"),
        (
            "{'a': 1, 'b': 2, 'c': {'a': 3, 'd': 4}} | ansible.utils.remove_keys(target=['a'])",
            "{'b': 2, 'c': {'d': 4}}",
        ),
        (
            "[{'a': 1, 'b': 2, 'c': {'a': 3, 'd': 4}}] | ansible.utils.remove_keys(target='a')",
            "[{'b': 2, 'c': {'d': 4}}]",
        ),
        (
            "{'ab': 1, 'b': 2, 'c': {'ax': 3, 'd': 4}} | ansible.utils.remove_keys(target=['a'], matching_parameter='starts_with')",
            "{'b': 2, 'c': {'d': 4}}",
        ),
        (
            "{'ab': 1, 'ba': 2, 'c': {'xa': 3, 'd': 4}} | ansible.utils.remove_keys(target=['a'], matching_parameter='ends_with')",
            "{'ab': 1, 'c': {'d': 4}}",
        ),
        (
            "{'ab': 1, 'ba': 2, 'c': {'xa': 3, 'd': 4}} | ansible.utils.remove_keys(target=['^a.*$', '.a'], matching_parameter='regex')",
            "{'c': {'d': 4}}",
        ),
        ("{'a': 1, 'b': 2, 'c': {'a': 3, 'd': 4}} | ansible.utils.keep_keys(target=['a'])", "{'a': 1, 'c': {'a': 3}}"),
        (
            "[{'a': 1, 'b': 2, 'c': {'a': 3, 'd': 4}}, {'x': 1}] | ansible.utils.keep_keys(target=['a', 'd'])",
            "[{'a': 1, 'c': {'a': 3, 'd': 4}}, {}]",
        ),
        ("{'a': 1, 'b': 2, 'c': {'a': 3, 'd': 4}} | ansible.utils.keep_keys(target=['c'])", "{'c': {'a': 3, 'd': 4}}"),
        ("{'c': [{'a': 3, 'd': 4}, {'z': 1}], 'e': 'a'} | ansible.utils.keep_keys(target=['a'])", "{'c': [{'a': 3}]}"),
        (
            "{'ab': 1, 'b': 2, 'c': {'ax': 3, 'd': 4}} | ansible.utils.keep_keys(target=['a'], matching_parameter='starts_with')",
            "{'ab': 1, 'c': {'ax': 3}}",
        ),
        (
            "{'a': 1, 'c': {'a': 3, 'd': 4}} | ansible.utils.replace_keys(target=[{'before': 'a', 'after': 'z'}])",
            "{'c': {'d': 4, 'z': 3}, 'z': 1}",
        ),
        (
            "[{'a': 1, 'c': [{'a': 3, 'd': 4}]}] | ansible.utils.replace_keys(target=[{'before': 'a', 'after': 'z'}, {'before': 'd', 'after': 'q'}])",
            "[{'c': [{'z': 3, 'q': 4}], 'z': 1}]",
        ),
        (
            "{'ab': 1, 'c': {'ac': 3, 'd': 4}} | ansible.utils.replace_keys(target=[{'before': 'a', 'after': 'z'}], matching_parameter='starts_with')",
            "{'c': {'d': 4, 'z': 3}, 'z': 1}",
        ),
        (
            "{'ab': 1, 'c': {'xb': 3, 'd': 4}} | ansible.utils.replace_keys(target=[{'before': 'b', 'after': 'z'}], matching_parameter='ends_with')",
            "{'c': {'d': 4, 'z': 3}, 'z': 1}",
        ),
        (
            "{'ab': 1} | ansible.utils.replace_keys(target=[{'before': 'a.', 'after': 'z'}], matching_parameter='regex')",
            "{'z': 1}",
        ),
        (
            "{'a': 1, 'b': 2} | ansible.utils.fact_diff({'a': 1, 'b': 3})",
            "'[\\'--- before\\', \\'+++ after\\', \\'@@ -1,4 +1,4 @@\\', \\' {\\', \\'     \"a\": 1,\\', \\'-    \"b\": 2\\', \\'+    \"b\": 3\\', \\' }\\', \\'\\']'",
        ),
        ("{'a': 1} | ansible.utils.fact_diff({'a': 1})", "'[]'"),
        (
            "['interfaces', 'vlans', 'bgp'] | ansible.utils.param_list_compare(['all', 'vlans'])",
            "{'actionable': ['bgp', 'interfaces', 'vlans'], 'unsupported': []}",
        ),
        ("['a', 'b'] | ansible.utils.param_list_compare(['!a'])", "{'actionable': [], 'unsupported': []}"),
        (
            "['a', 'b', 'c'] | ansible.utils.param_list_compare(['all', '!a'])",
            "{'actionable': ['b', 'c'], 'unsupported': []}",
        ),
        ("['a', 'b', 'c'] | ansible.utils.param_list_compare(['!a', 'c'])", "{'actionable': ['c'], 'unsupported': []}"),
        ("['a', 'b', 'c'] | ansible.utils.param_list_compare(['zz'])", "{'actionable': [], 'unsupported': ['zz']}"),
        (
            "{'x-y': 5, 'e': {}, 'f': [], 'g h': 1, 'A_b': 2, '7': 3, \"q'\": 1, '1a': 5} | ansible.utils.to_paths",
            "{'x-y': 5, 'e': {}, 'f': [], 'g h': 1, 'A_b': 2, '7': 3, \"q'\": 1, '1a': 5}",
        ),
        ("5 | ansible.utils.to_paths", "{'': 5}"),
        ("'x' | ansible.utils.to_paths", "{'': 'x'}"),
        ("{'a': {'b-c': 1}} | ansible.utils.get_path('a[\"b-c\"]')", "1"),
        (
            "['a', 'b', 'c'] | ansible.utils.param_list_compare(['c', 'a'])",
            "{'actionable': ['a', 'c'], 'unsupported': []}",
        ),
        (
            "['c', 'b', 'a'] | ansible.utils.param_list_compare(['all'])",
            "{'actionable': ['a', 'b', 'c'], 'unsupported': []}",
        ),
        (
            "['a', 'b', 'c'] | ansible.utils.param_list_compare(['all', 'zz', '!yy'])",
            "{'actionable': ['a', 'b', 'c'], 'unsupported': ['zz']}",
        ),
        ("['a', 'b', 'c'] | ansible.utils.param_list_compare([])", "{'actionable': [], 'unsupported': []}"),
        (
            "{'a': 1, 'b': [1,2]} | ansible.utils.fact_diff({'b': [1,3]})",
            "'[\\'--- before\\', \\'+++ after\\', \\'@@ -1,7 +1,6 @@\\', \\' {\\', \\'-    \"a\": 1,\\', \\'     \"b\": [\\', \\'         1,\\', \\'-        2\\', \\'+        3\\', \\'     ]\\', \\' }\\', \\'\\']'",
        ),
        (
            "{'a': 1, 'b': 2, 'c': 5} | ansible.utils.fact_diff({'a': 1, 'b': 3, 'c': 5}) | to_json",
            "'\"[\\'--- before\\', \\'+++ after\\', \\'@@ -1,5 +1,5 @@\\', \\' {\\', \\'     \\\\\"a\\\\\": 1,\\', \\'-    \\\\\"b\\\\\": 2,\\', \\'+    \\\\\"b\\\\\": 3,\\', \\'     \\\\\"c\\\\\": 5\\', \\' }\\', \\'\\']\"'",
        ),
        (
            "[{'data': [{'n': 'x', 'v': 1}], 'match_key': 'n', 'name': 'one'}, {'data': [{'n': 'x', 'w': 3}], 'match_key': 'n', 'name': 'two'}] | ansible.utils.consolidate",
            "{'x': {'one': {'n': 'x', 'v': 1}, 'two': {'n': 'x', 'w': 3}}}",
        ),
        (
            "[{'data': [{'n': 'x', 'v': 1}, {'n': 'y', 'v': 2}], 'match_key': 'n', 'name': 'one'}, {'data': [{'n': 'x', 'w': 3}], 'match_key': 'n', 'name': 'two'}] | ansible.utils.consolidate(fail_missing_match_value=false)",
            "{'x': {'one': {'n': 'x', 'v': 1}, 'two': {'n': 'x', 'w': 3}}, 'y': {'one': {'n': 'y', 'v': 2}, 'two': {}}}",
        ),
        (
            "[{'data': [{'n': 'x', 'v': 1}, {'n': 'x', 'v': 2}], 'match_key': 'n', 'name': 'one'}] | ansible.utils.consolidate(fail_duplicate=false)",
            "{'x': {'one': {'n': 'x', 'v': 2}}}",
        ),
        (
            "[{'data': [{'n': 'x', 'v': 1}, {'v': 2}], 'match_key': 'n', 'name': 'one'}] | ansible.utils.consolidate(fail_missing_match_key=false)",
            "{'x': {'one': {'n': 'x', 'v': 1}}}",
        ),
        (
            "{'a': {'x-y': 5, 'g h': 1, 'A_b': 2, '7': 3, \"q'\": 1, '1a': 5, 'l': [], 'd': {}, 'z.z': 1}} | ansible.utils.to_paths",
            "{\"a['x-y']\": 5, \"a['g h']\": 1, 'a.A_b': 2, \"a['7']\": 3, \"a['q'']\": 1, \"a['1a']\": 5, 'a.l': [], 'a.d': {}, \"a['z.z']\": 1}",
        ),
        (
            "{'b': 1, 'a': 2} | ansible.utils.fact_diff({'b': 1, 'a': 3})",
            "'[\\'--- before\\', \\'+++ after\\', \\'@@ -1,4 +1,4 @@\\', \\' {\\', \\'-    \"a\": 2,\\', \\'+    \"a\": 3,\\', \\'     \"b\": 1\\', \\' }\\', \\'\\']'",
        ),
        ("['a'] | ansible.utils.fact_diff(['b'])", "\"['--- before', '+++ after', '@@ -1 +1 @@', '-a', '+b', '']\""),
        (
            "'a' | ansible.utils.fact_diff('b')",
            "\"['--- before', '+++ after', '@@ -1 +1 @@', '-a', '\\\\\\\\ No newline at end of file', '+b', '\\\\\\\\ No newline at end of file', '']\"",
        ),
        (
            "[{'data': [{'n': 'y', 'v': 1}, {'n': 'x', 'v': 2}], 'match_key': 'n', 'name': 'one'}] | ansible.utils.consolidate",
            "{'x': {'one': {'n': 'x', 'v': 2}}, 'y': {'one': {'n': 'y', 'v': 1}}}",
        ),
        (
            "[{'data': [{'n': 2}, {'n': 10}], 'match_key': 'n', 'name': 'one'}] | ansible.utils.consolidate",
            "{2: {'one': {'n': 2}}, 10: {'one': {'n': 10}}}",
        ),
    ]);
}

#[test]
fn general() {
    check(&[
        ("'val' | community.general.dict_kv('key')", "{'key': 'val'}"),
        ("[['a', 1], ['b', 2]] | community.general.dict", "{'a': 1, 'b': 2}"),
        (
            "[{'n': 'a', 'v': 1}, {'n': 'b', 'v': 2}] | community.general.groupby_as_dict('n')",
            "{'a': {'n': 'a', 'v': 1}, 'b': {'n': 'b', 'v': 2}}",
        ),
        ("[{'k0': 1, 'k1': 2}, {'k0': 3}] | community.general.keep_keys(target=['k0'])", "[{'k0': 1}, {'k0': 3}]"),
        (
            "[{'k0_x': 1, 'k1_x': 2}] | community.general.keep_keys(target=['k0'], matching_parameter='starts_with')",
            "[{'k0_x': 1}]",
        ),
        (
            "[{'k0_x': 1, 'k1_y': 2}] | community.general.keep_keys(target='^.*y$', matching_parameter='regex')",
            "[{'k1_y': 2}]",
        ),
        ("[{'k0': 1, 'k1': 2}] | community.general.remove_keys(target=['k0'])", "[{'k1': 2}]"),
        (
            "[{'k0_x': 1, 'k1_y': 2}] | community.general.remove_keys(target=['x'], matching_parameter='ends_with')",
            "[{'k1_y': 2}]",
        ),
        (
            "[{'k0': 1, 'k1': 2}] | community.general.replace_keys(target=[{'before': 'k0', 'after': 'a0'}])",
            "[{'a0': 1, 'k1': 2}]",
        ),
        (
            "[{'k0_x': 1, 'k1': 2}] | community.general.replace_keys(target=[{'before': 'k0', 'after': 'a0'}], matching_parameter='starts_with')",
            "[{'a0': 1, 'k1': 2}]",
        ),
        (
            "[{'k0_x': 1, 'k1': 2}] | community.general.replace_keys(target=[{'before': '^.*_x$', 'after': 'a0'}], matching_parameter='regex')",
            "[{'a0': 1, 'k1': 2}]",
        ),
        ("[1,2,3] | community.general.lists_union([3,4], [5])", "[1, 2, 3, 4, 5]"),
        ("[1,2,3] | community.general.lists_intersect([3,2], [2])", "[2]"),
        ("[1,2,3] | community.general.lists_difference([3], [2])", "[1]"),
        ("[1,2,3] | community.general.lists_symmetric_difference([3,4])", "[1, 2, 4]"),
        ("[[1,2],[2,3]] | community.general.lists_union(flatten=true)", "[1, 2, 3]"),
        ("[1,2,3] | community.general.lists_symmetric_difference([3,4],[1])", "[2, 4]"),
        (
            "[{'name': 'a', 'x': 1}] | community.general.lists_mergeby([{'name': 'a', 'y': 2}, {'name': 'b'}], 'name')",
            "[{'name': 'a', 'x': 1, 'y': 2}, {'name': 'b'}]",
        ),
        (
            "[{'name': 'a', 'x': [1]}] | community.general.lists_mergeby([{'name': 'a', 'x': [2]}], 'name', list_merge='append')",
            "[{'name': 'a', 'x': [1, 2]}]",
        ),
        (
            "[{'name': 'a', 'x': {'p': [1]}}] | community.general.lists_mergeby([{'name': 'a', 'x': {'q': 1, 'p': [2]}}], 'name', recursive=true, list_merge='append_rp')",
            "[{'name': 'a', 'x': {'p': [1, 2], 'q': 1}}]",
        ),
        (
            "[[{'name': 'b', 'x': 1}], [{'name': 'a', 'y': 2}]] | community.general.lists_mergeby('name')",
            "[{'name': 'a', 'y': 2}, {'name': 'b', 'x': 1}]",
        ),
        (
            "[{'name': 'a', 'x': 1}, {'z': 1}] | community.general.lists_mergeby([{'name': 'a', 'y': 2}], 'name')",
            "[{'name': 'a', 'x': 1, 'y': 2}]",
        ),
        ("'1y 7m 15d 2h 3min 4s 5ms' | community.general.to_seconds", "32839804.005"),
        ("'2h' | community.general.to_minutes", "120.0"),
        ("'1000000s' | community.general.to_days", "11.574074074074"),
        ("'36min' | community.general.to_hours", "0.6"),
        ("'1w' | community.general.to_days", "7.0"),
        ("'1mo' | community.general.to_days", "30.0"),
        ("'1y' | community.general.to_days", "365.0"),
        ("'1y' | community.general.to_months", "12.166666666667"),
        ("'1h' | community.general.to_time_unit('ms')", "3600000.0"),
        ("'1h' | community.general.to_milliseconds", "3600000.0"),
        ("'1y' | community.general.to_days(year=365)", "365.0"),
        ("'1month' | community.general.to_days(month=28)", "28.0"),
        ("'-1h 5m' | community.general.to_minutes", "-55.0"),
        ("'Å' | community.general.unicode_normalize('NFD') | length", "2"),
        ("'ﬁ' | community.general.unicode_normalize('NFKC')", "'fi'"),
        ("['2.10','2.9','1.0rc1','1.0'] | community.general.version_sort", "['1.0', '1.0rc1', '2.9', '2.10']"),
        ("['2.10','2.9'] | community.general.version_sort(reverse=true)", "['2.10', '2.9']"),
        ("[1,2,3,4] | community.general.accumulate", "[1, 3, 6, 10]"),
        ("['a','b','a'] | community.general.counter", "{'a': 2, 'b': 1}"),
        ("'aab' | community.general.counter", "{'a': 2, 'b': 1}"),
        ("'hello' | community.general.crc32", "'3610a686'"),
        ("'' | community.general.crc32", "'0'"),
        ("5 | community.general.reveal_ansible_type", "'int'"),
        ("'a' | community.general.reveal_ansible_type", "'str'"),
        ("[1,'a'] | community.general.reveal_ansible_type", "'list[int|str]'"),
        ("{'a': 1} | community.general.reveal_ansible_type", "'dict[str, int]'"),
        ("'a' is community.general.ansible_type('str')", "True"),
        ("[1,2] is community.general.ansible_type('list[int]')", "True"),
        ("[1,2] | community.general.counter", "{1: 1, 2: 1}"),
        ("[[1],[2]] | community.general.accumulate", "[[1], [1, 2]]"),
        ("['a','b'] | community.general.accumulate", "['a', 'ab']"),
        ("[] | community.general.accumulate", "[]"),
        ("'abc' | community.general.accumulate", "['a', 'ab', 'abc']"),
        ("[1,2,2,1] | community.general.lists_union", "[1, 2, 2, 1]"),
        ("[1,2] | community.general.lists_union([2], flatten=true)", "[1, 2]"),
        (
            "[{'name': 'a'}] | community.general.lists_mergeby([{'name': 'a', 'v': 1}], [{'name': 'a', 'v': 2}], 'name')",
            "[{'name': 'a', 'v': 2}]",
        ),
        (
            "[[{'name': 2}], [{'name': 10}, {'name': 1}]] | community.general.lists_mergeby('name')",
            "[{'name': 1}, {'name': 2}, {'name': 10}]",
        ),
        ("'-1h' | community.general.to_seconds", "-3600.0"),
        ("'3hours' | community.general.to_minutes", "180.0"),
        ("'3hour' | community.general.to_minutes", "180.0"),
        ("'3msecs' | community.general.to_seconds", "0.003"),
        ("'1m' | community.general.to_seconds", "60.0"),
        ("'' | community.general.to_seconds", "0.0"),
        ("'1y' | community.general.to_time_unit('w', year=364)", "52.0"),
        ("'1days 2weeks' | community.general.to_time_unit('hours')", "360.0"),
        ("{'k0': 1, 'k1': {'a': 1}} | community.general.reveal_ansible_type", "'dict[str, dict|int]'"),
        ("[] | community.general.reveal_ansible_type", "'list'"),
        ("[[1],{'a':true}] | community.general.reveal_ansible_type", "'list[dict|list]'"),
        ("none | community.general.reveal_ansible_type", "'NoneType'"),
        ("(1 == 1) | community.general.reveal_ansible_type", "'bool'"),
        ("[{'a': 1}, {'b': 1}] | community.general.reveal_ansible_type", "'list[dict]'"),
        ("['a', 1, 'b'] | community.general.reveal_ansible_type(alias={'str': 'string'})", "'list[int|string]'"),
        ("[1,2] is community.general.ansible_type(['list[int]', 'x'])", "True"),
        (
            "{'a': 1, 'b': 2} | dict2items | community.general.groupby_as_dict('key')",
            "{'a': {'key': 'a', 'value': 1}, 'b': {'key': 'b', 'value': 2}}",
        ),
        (
            "[{'k0_x': 1, 'k0_y': 2}] | community.general.replace_keys(target=[{'before': 'k0', 'after': 'a'}, {'before': 'k', 'after': 'b'}], matching_parameter='starts_with')",
            "[{'a': 2}]",
        ),
        ("{'a': 1} | community.general.dict_kv('x')", "{'x': {'a': 1}}"),
    ]);
}

#[test]
fn formats() {
    check(&[
        ("{'s': {'a': 1, 'b': 'x'}, 't': {}} | community.general.to_ini", "'[s]\\na = 1\\nb = x\\n\\n[t]\\n'"),
        (
            "{'s': {'a': true, 'b': 'x'}, 'T': {'Up': 1.5}} | community.general.to_ini",
            "'[s]\\na = True\\nb = x\\n\\n[T]\\nUp = 1.5\\n'",
        ),
        ("{'k0': {'a': 1}} | community.general.to_ini", "'[k0]\\na = 1\\n'"),
        ("csv1 | community.general.from_csv", "[{'a': '1', 'b': '2'}, {'a': '3', 'b': '4'}]"),
        ("csv2 | community.general.from_csv(delimiter=';')", "[{'a': '1', 'b': '2'}]"),
        ("csv3 | community.general.from_csv", "[{'a': '1', 'b': None}, {'a': '1', 'b': '2', None: ['3']}]"),
        ("csv4 | community.general.from_csv(skipinitialspace=true)", "[{'a': '1', 'b': '2 x'}]"),
        ("csv5 | community.general.from_csv(fieldnames=['x','y'])", "[{'x': '1', 'y': '2'}, {'x': '3', 'y': '4'}]"),
        ("csv6 | community.general.from_csv(dialect='excel-tab')", "[{'a': '1', 'b': '2'}]"),
        ("csv7 | community.general.from_csv", "[{'a': 'x,\\ny', 'b': 'say \"hi\"'}, {'a': '5', 'b': '6'}]"),
        ("csv1 | community.general.from_csv(dialect='unix')", "[{'a': '1', 'b': '2'}, {'a': '3', 'b': '4'}]"),
        (
            "csv3 | community.general.from_csv(strict=true)",
            "[{'a': '1', 'b': None}, {'a': '1', 'b': '2', None: ['3']}]",
        ),
        ("csv8 | community.general.from_csv", "[]"),
        ("ini1 | community.general.from_ini", "{'s': {'a': '1', 'b': 'x'}, 't': {'C': 'y'}}"),
        ("ini2 | community.general.from_ini", "{'s': {'x': '1', 'a': '1'}, 'DEFAULT': {'x': '1'}}"),
        ("ini3 | community.general.from_ini", "{'s': {'a': '%(b)s', 'b': '5'}}"),
        ("ini5 | community.general.from_ini", "{'s': {'a': '1\\n2', 'b': ''}, 's2': {'x': 'y = z ; c'}}"),
        ("'[s]' | community.general.from_ini", "{'s': {}}"),
        ("{'s': {'a': 1, 'b': ''}, 't': {}} | community.general.to_ini", "'[s]\\na = 1\\nb = \\n\\n[t]\\n'"),
        (
            "{'DEFAULT': {'a': 1}, 't': {'x': 'two words'}} | community.general.to_ini",
            "'[DEFAULT]\\na = 1\\n\\n[t]\\nx = two words\\n'",
        ),
        ("{'s': {'a': [1]}} | community.general.to_ini", "'[s]\\na = [1]\\n'"),
    ]);
}

#[test]
fn mistakes() {
    check(&[
        (
            "people | json_query('[0')",
            "!`community.general.json_query`: the query `[0`: Parse error: Expected ':', or ']' -- found Eof (line 0, column 2)",
        ),
        ("people | json_query('foo(@)')", "!`community.general.json_query`: JMESPath has no function `foo()`"),
        (
            "people | json_query('length([0].age)')",
            "!`community.general.json_query`: `length()` takes a string, an array or an object, not the number 30",
        ),
        (
            "people | json_query('sort_by(@, age)')",
            "!`community.general.json_query`: `sort_by()` takes an expression, written with `&`, not a value",
        ),
        ("people | json_query('join(@)')", "!`community.general.json_query`: `join()` takes 2 arguments, not 1"),
        (
            "[1, 'a'] | json_query('sort(@)')",
            "!`community.general.json_query`: `sort()` takes numbers only or strings only, not the string 'a'",
        ),
        ("'2 days' | community.general.to_hours", "!`community.general.to_hours`: `2` is no whole number with a unit"),
        ("'1h' | community.general.to_time_unit('parsec')", "!`community.general.to_time_unit`: no unit `parsec`"),
        (
            "[{'n': 1}, {'n': 1}] | community.general.groupby_as_dict('n')",
            "!`community.general.groupby_as_dict`: two items have 1 as their `n`",
        ),
        (
            "{'a': 1} | community.general.to_ini",
            "!`community.general.to_ini`: the section `a` must be a mapping, not an integer",
        ),
        (
            "'a=1' | community.general.from_ini",
            "!`community.general.from_ini`: line 1: an option stands before the first section",
        ),
        ("{'a': 1} | ansible.utils.get_path('b')", "!object of type 'dict' has no attribute 'b'"),
        (
            "[{'data': [{'n': 1}, {'n': 1}], 'match_key': 'n', 'name': 's'}] | ansible.utils.consolidate",
            "!`ansible.utils.consolidate`: the source `s` has `n` 1 twice",
        ),
        (
            "'x' | ansible.utils.keep_keys(target=['a'])",
            "!`ansible.utils.keep_keys`: takes a mapping or a list of them, not a string",
        ),
        ("'a=1' | community.general.jc('kv')", "!no filter named `community.general.jc`"),
    ]);
    assert_eq!(
        rendered(&templar(), "'a' | community.general.hashids_encode").expect_err("not built in").help.as_deref(),
        Some("filters of the collection `community.general` work only as far as they are built in")
    );
}
