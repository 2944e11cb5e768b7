//! What filters of data and paths give.

use super::check;

#[test]
fn data() {
    check(&[
        (
            "{'a': [1, none, true, 1.5], 'b': 'é\"'} | to_json",
            "'{\"a\": [1, null, true, 1.5], \"b\": \"\\\\u00e9\\\\\"\"}'",
        ),
        (
            "{'b': 1, 'a': [1, {}]} | to_nice_json",
            "'{\\n    \"a\": [\\n        1,\\n        {}\\n    ],\\n    \"b\": 1\\n}'",
        ),
        (
            "{'b': 1, 'a': [1]} | to_nice_json(indent=2, sort_keys=false)",
            "'{\\n  \"b\": 1,\\n  \"a\": [\\n    1\\n  ]\\n}'",
        ),
        ("[1, 2] | to_json(indent=1)", "'[\\n 1,\\n 2\\n]'"),
        ("{'a': 'é'} | to_json(ensure_ascii=false)", "'{\"a\": \"é\"}'"),
        ("{'b': 1, 'a': 2} | to_json(sort_keys=true)", "'{\"a\": 2, \"b\": 1}'"),
        ("'{\"a\": [1, 2.5, null, true]}' | from_json", "{'a': [1, 2.5, None, True]}"),
        ("'a: [1, yes, 0o7, 010]' | from_yaml", "{'a': [1, True, '0o7', 8]}"),
        ("'- a\n- b: 1' | from_yaml", "['a', {'b': 1}]"),
        ("'--- 1\n--- 2' | from_yaml_all | list", "[1, 2]"),
        (
            "{'b': [1, 2, {'x': 'y'}], 'a': 'multi\nline\n', 'c': {}, 'd': [], 'e': none, 'f': 'yes', 'g': '', 'h': '12', 'i': true, 'j': 1.5, 'k': {'z': [], 'y': {'q': 1}}} | to_nice_yaml",
            "\"a: 'multi\\n\\n    line\\n\\n    '\\nb:\\n- 1\\n- 2\\n-   x: y\\nc: {}\\nd: []\\ne: null\\nf: 'yes'\\ng: ''\\nh: '12'\\ni: true\\nj: 1.5\\nk:\\n    y:\\n        q: 1\\n    z: []\\n\"",
        ),
        (
            "{'b': [1, 2, {'x': 'y'}], 'a': 'multi\nline\n', 'c': {}, 'd': [], 'e': none, 'f': 'yes', 'k': {'z': [], 'y': {'q': 1}}} | to_yaml",
            "\"a: 'multi\\n\\n  line\\n\\n  '\\nb:\\n- 1\\n- 2\\n- {x: y}\\nc: {}\\nd: []\\ne: null\\nf: 'yes'\\nk:\\n  y: {q: 1}\\n  z: []\\n\"",
        ),
        (
            "{'b': [1, 2, {'x': 'y'}], 'a': 'multi\nline\n'} | to_nice_yaml(indent=2)",
            "\"a: 'multi\\n\\n  line\\n\\n  '\\nb:\\n- 1\\n- 2\\n- x: y\\n\"",
        ),
        (
            "['a: b', 'c #d', '#x', '- z', '-z', '@a', '`b', '!t', '&a', '*a', '%x', '>x', '|x', '{x', '[x', 'a\"b', ' lead', 'trail ', 'null', '~', '1e3', '0x1f', '1_000', '12:30', '2020-01-01', '=', '<<', 'true', 'On', '?', '? a', ':', 'a:', ',a', 'é', 'tab\there', 'a\\b', '.5', '1.', '.inf', '---', '...', '-', '0o7', '010', 'a\n', '\na', 'a\n\nb', 'a\n b'] | to_nice_yaml",
            "'- \\'a: b\\'\\n- \\'c #d\\'\\n- \\'#x\\'\\n- \\'- z\\'\\n- -z\\n- \\'@a\\'\\n- \\'`b\\'\\n- \\'!t\\'\\n- \\'&a\\'\\n- \\'*a\\'\\n- \\'%x\\'\\n- \\'>x\\'\\n- \\'|x\\'\\n- \\'{x\\'\\n- \\'[x\\'\\n- a\"b\\n- \\' lead\\'\\n- \\'trail \\'\\n- \\'null\\'\\n- \\'~\\'\\n- 1e3\\n- \\'0x1f\\'\\n- \\'1_000\\'\\n- \\'12:30\\'\\n- \\'2020-01-01\\'\\n- \\'=\\'\\n- \\'<<\\'\\n- \\'true\\'\\n- \\'On\\'\\n- \\'?\\'\\n- \\'? a\\'\\n- \\':\\'\\n- \\'a:\\'\\n- \\',a\\'\\n- é\\n- \"tab\\\\there\"\\n- a\\\\b\\n- \\'.5\\'\\n- \\'1.\\'\\n- \\'.inf\\'\\n- \\'---\\'\\n- \\'...\\'\\n- \\'-\\'\\n- 0o7\\n- \\'010\\'\\n- \\'a\\n\\n    \\'\\n- \\'\\n\\n    a\\'\\n- \\'a\\n\\n\\n    b\\'\\n- \"a\\\\n b\"\\n'",
        ),
        ("'hello' | to_yaml", "'hello\\n'"),
        ("5 | to_yaml", "'5\\n'"),
        ("[[1, 2], [3, [4]]] | to_nice_yaml", "'-   - 1\\n    - 2\\n-   - 3\\n    -   - 4\\n'"),
        ("[[1, 2], [3, [4]]] | to_yaml", "'- [1, 2]\\n- - 3\\n  - [4]\\n'"),
        ("[] | to_nice_yaml", "'[]\\n'"),
        (
            "[{'a': 1, 'b': [1]}, {'c': {'d': 1}}] | to_nice_yaml",
            "'-   a: 1\\n    b:\\n    - 1\\n-   c:\\n        d: 1\\n'",
        ),
        (
            "{'long': 'word ' * 30, 'k2': 'x' * 100} | to_nice_yaml",
            "\"k2: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\nlong: 'word word word word word word word word word word word word word word word\\n    word word word word word word word word word word word word word word word '\\n\"",
        ),
        (
            "{'long': 'word ' * 30} | to_nice_yaml(width=1000)",
            "\"long: 'word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word '\\n\"",
        ),
        (
            "['word: ' * 30] | to_nice_yaml",
            "\"- 'word: word: word: word: word: word: word: word: word: word: word: word: word: word:\\n    word: word: word: word: word: word: word: word: word: word: word: word: word:\\n    word: word: word: '\\n\"",
        ),
        (
            "['a\tb ' * 30] | to_nice_yaml",
            "'- \"a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb\\n    a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb a\\\\tb \"\\n'",
        ),
        ("{'z': 1, 'a': 2} | to_nice_yaml(sort_keys=false)", "'z: 1\\na: 2\\n'"),
        ("{'a': 1} | to_nice_yaml(explicit_start=true)", "'---\\na: 1\\n'"),
        (
            "{'a': ['x' * 30, 'y' * 30, 'z' * 30, 'w']} | to_yaml",
            "'a: [xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy, zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz,\\n  w]\\n'",
        ),
        ("[1e16, 1e-5, 1.0] | to_yaml", "'[1.0e+16, 1.0e-05, 1.0]\\n'"),
        (
            "{'k' * 130: 1} | to_nice_yaml",
            "'? kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\\n: 1\\n'",
        ),
        ("'hello' | b64encode", "'aGVsbG8='"),
        ("'aGVsbG8=' | b64decode", "'hello'"),
        ("'yes' | bool", "True"),
        ("'no' | bool", "False"),
        ("1 | bool", "True"),
        ("'3' | int", "3"),
        ("'3.7' | int", "3"),
        ("'x' | int", "0"),
        ("'0x1f' | int(base=16)", "31"),
        ("'777' | int(base=8)", "511"),
        ("3.9 | int", "3"),
        ("'1.5' | float", "1.5"),
        ("'x' | float(2.5)", "2.5"),
        ("3 | float", "3.0"),
        ("none | bool", "False"),
        ("1 | type_debug", "'int'"),
        ("'a' | type_debug", "'str'"),
        ("[1] | type_debug", "'list'"),
        ("{} | type_debug", "'dict'"),
        ("none | type_debug", "'NoneType'"),
        ("1.0 | type_debug", "'float'"),
        ("true | type_debug", "'bool'"),
    ]);
}

#[test]
fn paths() {
    check(&[
        ("'/etc/hosts' | basename", "'hosts'"),
        ("'/etc/' | basename", "''"),
        ("'/etc/hosts' | dirname", "'/etc'"),
        ("'/' | dirname", "'/'"),
        ("'hosts' | dirname", "''"),
        ("'a/b.tar.gz' | splitext", "['a/b.tar', '.gz']"),
        ("'.bashrc' | splitext", "['.bashrc', '']"),
        ("['/a', 'b', 'c'] | path_join", "'/a/b/c'"),
        ("['/a', '/b'] | path_join", "'/b'"),
        ("'/a/b/c' | relpath('/a/d')", "'../b/c'"),
        ("'/a/../b/./c//d' | normpath", "'/b/c/d'"),
        ("['/a/b/c', '/a/b/d'] | commonpath", "'/a/b'"),
        ("'C:\\a\\b.txt' | win_basename", "'b.txt'"),
        ("'C:\\a\\b.txt' | win_dirname", "'C:\\\\a'"),
        ("'C:\\a\\b.txt' | win_splitdrive", "['C:', '\\\\a\\\\b.txt']"),
        (
            "'http://user:pw@host.com:8080/a/b?q=1#frag' | urlsplit",
            "{'fragment': 'frag', 'hostname': 'host.com', 'netloc': 'user:pw@host.com:8080', 'password': 'pw', 'path': '/a/b', 'port': 8080, 'query': 'q=1', 'scheme': 'http', 'username': 'user'}",
        ),
        ("'http://host.com/a' | urlsplit('hostname')", "'host.com'"),
        ("'http://host.com/a' | urlsplit('port')", "None"),
    ]);
}
