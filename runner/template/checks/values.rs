//! What tests and lookups give, and what is a mistake.

use super::*;

#[test]
fn tests_of_values() {
    check(&[
        ("1 is number", "True"),
        ("1.5 is float", "True"),
        ("true is boolean", "True"),
        ("'a' is string", "True"),
        ("[1] is sequence", "True"),
        ("'a' is sequence", "True"),
        ("{} is sequence", "True"),
        ("[1] is iterable", "True"),
        ("none is none", "True"),
        ("3 is odd", "True"),
        ("4 is even", "True"),
        ("9 is divisibleby(3)", "True"),
        ("9 is divisibleby 3", "True"),
        ("'a' is in ['a', 'b']", "True"),
        ("['a', 'b'] is contains('a')", "True"),
        ("[1, 2] is subset([1, 2, 3])", "True"),
        ("[1, 2, 3] is superset([1])", "True"),
        ("[true, false] is any", "True"),
        ("[true, true] is all", "True"),
        ("1 is eq(1)", "True"),
        ("1 is ne(2)", "True"),
        ("1 is lt(2)", "True"),
        ("2 is ge 2", "True"),
        ("1 is sameas 1", "True"),
        ("'abc' is lower", "True"),
        ("'ABC' is upper", "True"),
        ("'1.10' is version('1.9', '>')", "True"),
        ("'1.2.3' is version('1.2', '<=')", "False"),
        ("'1.0.0-rc1' is version('1.0.0', 'lt', version_type='semver')", "True"),
        ("'1.2' is version('1.2', strict=true)", "True"),
        ("'1.0' is version('1.0.0', 'eq', version_type='pep440')", "True"),
        ("'yes' is truthy", "True"),
        ("'yes' is truthy(convert_bool=true)", "True"),
        ("'no' is truthy(convert_bool=true)", "False"),
        ("'' is falsy", "True"),
        ("result is changed", "True"),
        ("result is succeeded", "True"),
        ("result is failed", "False"),
        ("skipped_result is skipped", "True"),
        ("'/etc/passwd' is file", "True"),
        ("'/etc' is directory", "True"),
        ("'/nope' is exists", "False"),
        ("'/etc' is abs", "True"),
        ("'http://a.b/c' is url", "True"),
        ("'urn:x:y' is urn", "True"),
        ("'mailto:a@b' is uri", "True"),
        ("s is not defined", "False"),
        ("nope is not defined", "True"),
        ("'upper' is filter", "True"),
        ("'defined' is test", "True"),
        ("none is not none", "False"),
    ]);
}

#[test]
fn lookups() {
    check(&[
        ("lookup('items', [1, [2]])", "[1, [2]]"),
        ("query('items', [1, 2])", "[1, 2]"),
        ("q('dict', {'a': 1})", "[{'key': 'a', 'value': 1}]"),
        ("lookup('dict', {'a': 1, 'b': 2})", "[{'key': 'a', 'value': 1}, {'key': 'b', 'value': 2}]"),
        ("query('indexed_items', ['a', 'b'])", "[[0, 'a'], [1, 'b']]"),
        ("query('nested', [1, 2], ['a', 'b'])", "[[1, 'a'], [1, 'b'], [2, 'a'], [2, 'b']]"),
        ("query('cartesian', [1, 2], ['a'])", "[[1, 'a'], [2, 'a']]"),
        ("query('together', [1, 2], ['a'])", "[[1, 'a'], [2, None]]"),
        ("query('sequence', 'start=1 end=3')", "['1', '2', '3']"),
        ("query('sequence', '5-8')", "['5', '6', '7', '8']"),
        ("query('sequence', '2-10/4:host%02d')", "['host02', 'host06', 'host10']"),
        ("query('sequence', 'count=3 format=n%d')", "['n1', 'n2', 'n3']"),
        ("query('sequence', start=0, end=4, stride=2)", "['0', '2', '4']"),
        ("query('subelements', users, 'groups') | length", "3"),
        ("query('flattened', [1, [2, [3]]])", "[1, 2, 3]"),
        ("query('list', [1, 2])", "[[1, 2]]"),
        ("lookup('env', 'NO_SUCH_VAR_X')", "''"),
        ("lookup('env', 'NO_SUCH_VAR_X', default='d')", "'d'"),
        ("lookup('vars', 's')", "'hello'"),
        ("lookup('vars', 'nope', default='d')", "'d'"),
        ("lookup('vars', 'nope')", "!'nope' is undefined"),
        ("query('vars', 's', 'yes_text')", "['hello', 'yes']"),
        ("query('varnames', '^nest')", "['nested']"),
        ("lookup('pipe', 'echo hi')", "'hi'"),
        ("{{ lookup('vars', '{{ \"s\" }}') }}", "'hello'"),
        ("{{ lookup('items', ['{{ s }}', 'x']) }}", "'hello,x'"),
        ("{{ query('dict', {'a': '{{ d.a }}'}) }}", "[{'key': 'a', 'value': 1}]"),
        ("{{ lookup('items', '{{' ~ ' s }}') }}", "'{{ s }}'"),
        ("lookup('community.general.flattened', [1, [2, [3]]])", "[1, 2, 3]"),
        ("lookup('lines', 'printf \"a\\nb\"')", "'a,b'"),
        ("query('lines', 'printf \"a\\nb\"')", "['a', 'b']"),
        ("lookup('file', '/nope/x', errors='ignore')", "None"),
        ("lookup('items', [1, 2], wantlist=true)", "[1, 2]"),
        ("lookup('pipe', 'false', errors='ignore') | default('x')", "None"),
    ]);
}

#[test]
fn faults_of_values() {
    check(&[
        ("1 + 'a'", "!unsupported operand types for +: 'int' and 'str'"),
        ("'a' + 1", "!unsupported operand types for +: 'str' and 'int'"),
        ("1 / 0", "!division by zero"),
        ("1 % 0", "!modulo by zero"),
        ("'a' < 1", "!'<' not supported between instances of 'str' and 'int'"),
        ("[1] + 1", "!unsupported operand types for +: 'list' and 'int'"),
        ("{} < {}", "!'<' not supported between instances of 'dict' and 'dict'"),
        ("5 | length", "!`length`: object of type 'int' has no length"),
        ("none.x", "!object of type 'NoneType' has no attribute 'x'"),
        ("s()", "!'str' object is not callable"),
        ("d.a()", "!'int' object is not callable"),
        ("l.foo()", "!object of type 'list' has no attribute 'foo'"),
        ("'abc'.nope", "!object of type 'str' has no attribute 'nope'"),
        ("[1, 'a'] | sort", "!`sort`: '<' not supported between instances of 'str' and 'int'"),
        ("'x' | from_json", "!`from_json`: not JSON: expected value at line 1 column 1"),
        ("users | map(attribute='nope') | list", "!object of type 'dict' has no attribute 'nope'"),
        ("users | selectattr('nope', 'eq', 1)", "!object of type 'dict' has no attribute 'nope'"),
        ("range(1, 2, 0)", "!`range`: `step` must not be zero"),
        ("'%d' % 'a'", "!%d format: a real number is required, not a string"),
        ("'%s %s' % 'a'", "!not enough arguments for `%s`"),
        ("{'a': 1}[nope]", "!'nope' is undefined"),
        ("nope.x.y", "!'nope' is undefined"),
        ("l['a']", "!object of type 'list' has no attribute 'a'"),
        ("l[1.5]", "!object of type 'list' has no attribute 1.5"),
        ("'a' is divisibleby(2)", "!`divisibleby`: takes an integer, not a string"),
        ("'5' is version('', '>')", "!`version`: a version must not be empty"),
    ]);
}

/// Answers requests with what was asked for, until nobody listens.
fn echo() -> String {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
            let lines: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let token = lines.iter().find_map(|line| line.strip_prefix("X-Token: ")).unwrap_or("none");
            let body = format!("{}\ntoken {token}\n", lines[0]);
            let status = if lines[0].contains("/missing") { "404 Not Found" } else { "200 OK" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).expect("written");
        }
    });
    format!("http://{address}")
}

#[test]
fn the_lookup_url_fetches() {
    let server = echo();
    let templar = templar_with(&format!("server: {server}\npath: a"));
    let of = |text: &str| shown(rendered(&templar, text));
    assert_eq!(of("{{ lookup('url', server ~ '/a', wantlist=true) }}"), "['GET /a HTTP/1.1', 'token none']");
    assert_eq!(
        of("{{ lookup('url', '{{ server }}/{{ path }}', split_lines=false, headers={'X-Token': 'abc'}) }}"),
        "'GET /a HTTP/1.1\\ntoken abc\\n'"
    );
    let missing = of("lookup('url', server ~ '/missing')");
    assert!(missing.contains("/missing`") && missing.contains("404"), "{missing}");
    assert_eq!(of("lookup('url', server ~ '/missing', errors='ignore')"), "None");
}
