//! Where mistakes are said to be, and what data can't do.

use super::*;

fn template(file: FileId, text: &str, line: usize, column: usize) -> Value {
    Value::Str(Str::template(text, file.at(line, column)))
}

#[test]
fn a_mistake_points_to_where_it_was_written_and_how_it_was_reached() {
    let vars = FileId::register(Path::new("group_vars/all.yml"), "url: \"http://{{ hots }}/\"\nhost: x\n");
    let mut map = Map::new();
    map.insert("url", template(vars, "http://{{ hots }}/", 1, 6));
    map.insert("host", "x");
    let templar = Templar::new(Arc::new(map), Arc::default());
    let play = FileId::register(Path::new("site.yml"), "- get: \"{{ url }}\"\n");
    let error = templar.value(&template(play, "{{ url }}", 1, 8)).expect_err("undefined");
    assert_eq!(error.message, "'hots' is undefined");
    assert_eq!(error.undefined.as_deref(), Some("hots"));
    assert_eq!(error.place, vars.at(1, 17));
    assert_eq!(error.related, [(play.at(1, 12), "`url` is used here".to_owned())]);
    assert_eq!(error.help.as_deref(), Some("did you mean `host`?"));
}

#[test]
fn unknown_names_are_found_without_variables() {
    let of = |text: &str| syntax(&Str::template(text, Place::default())).map_err(|error| (error.message, error.help));
    assert_eq!(
        of("{{ a | deafult(1) }}"),
        Err(("no filter named `deafult`".into(), Some("did you mean `default`?".into())))
    );
    assert_eq!(
        of("{{ a is definde }}"),
        Err(("no test named `definde`".into(), Some("did you mean `defined`?".into())))
    );
    assert_eq!(
        of("{{ lookup('fiel', 'a') }}"),
        Err(("no lookup named `fiel`".into(), Some("did you mean `file`?".into())))
    );
    assert_eq!(of("{{ a | ansible.builtin.default(1) }}"), Ok(()));
    assert!(of("{{ a ").is_err());
    assert!(syntax_of_condition(&Str::template("a ==", Place::default())).is_err());
}

#[test]
fn text_from_hosts_is_never_rendered() {
    let mut map = Map::new();
    map.insert("evil", "{{ lookup('pipe', 'echo owned') }}");
    map.insert("wrapped", Value::Str(Str::template("{{ evil }}", Place::default())));
    map.insert(
        "listed",
        Value::list(vec![Value::Str(Str::template("{{ evil }}", Place::default())), "{{ 1 }}".into()]),
    );
    let templar = Templar::new(Arc::new(map), Arc::default());
    let plain = "{{ lookup('pipe', 'echo owned') }}";
    for text in
        ["evil", "wrapped", "listed[0]", "evil ~ ''", "[evil] | first", "evil | string", "lookup('vars', 'evil')"]
    {
        assert_eq!(shown(rendered(&templar, text)), format!("{:?}", Value::from(plain)), "{text}");
    }
    assert_eq!(shown(rendered(&templar, "a {{ evil }}")), format!("{:?}", Value::from(format!("a {plain}"))));
    assert_eq!(shown(rendered(&templar, "'{' ~ '{ 1 }}'")), "'{{ 1 }}'");
    assert!(templar.condition(&Value::from("1 == 1")).is_err());
    let again = rendered(&templar, "wrapped").expect("renders");
    assert!(!again.holds_template());
    assert!(!rendered(&super::templar(), "[s, users, names]").expect("renders").holds_template());
    assert_eq!(templar.value(&again).expect("is data"), again);
}

#[test]
fn what_an_author_wrote_may_be_a_condition_and_nothing_that_is_made_of_it() {
    let written = |text: &str| Value::Str(Str::template(text, Place::default()));
    let mut map = Map::new();
    map.insert("checks", Value::list(vec![written("1 == 1"), written("{{ 1 == 1 }}")]));
    map.insert("first", written("1 == "));
    map.insert("second", written("2"));
    let templar = Templar::new(Arc::new(map), Arc::default());
    let Value::List(checks) = rendered(&templar, "checks").expect("renders") else { panic!("a list") };
    assert!(checks.iter().all(|check| templar.condition(check) == Ok(true)));
    for made in ["first ~ second", "first + second", "'1 == 1'", "checks[0] | trim", "checks | join(' and ')"] {
        let made = rendered(&templar, made).expect("renders");
        assert!(templar.condition(&made).is_err(), "{made}");
    }
    assert_eq!(
        rendered(&templar, "checks[0] is ansible._protomatter.tagged_with('TrustedAsTemplate')"),
        Ok(true.into())
    );
    assert_eq!(
        rendered(&templar, "(first ~ '') is ansible._protomatter.tagged_with('TrustedAsTemplate')"),
        Ok(false.into())
    );
}

#[test]
fn conditions() {
    let templar = templar();
    let of = |text: &str| match templar.condition(&Value::Str(Str::template(text, Place::default()))) {
        Ok(holds) => holds.to_string(),
        Err(error) => error.message,
    };
    assert_eq!(of("d.a == 1"), "true");
    assert_eq!(of("nope is defined"), "false");
    assert_eq!(of("s"), "the condition gives a string, and must give a boolean");
    assert_eq!(of("l"), "the condition gives a list, and must give a boolean");
    assert_eq!(of("nope"), "'nope' is undefined");
    assert_eq!(of("{{ d.a == 1 }}"), "true");
    assert_eq!(of("'{{ s }}' == 'hello'"), "true");
    assert_eq!(of("result is changed and result is not failed"), "true");
    assert!(
        templar
            .condition(&Value::list(vec![Value::Bool(true), Value::Str(Str::template("d.a > 0", Place::default()))]))
            .expect("holds")
    );
}

#[test]
fn places_hold_behind_doubled_backslashes_and_in_files() {
    let vars = FileId::register(Path::new("v.yml"), r#"x: '{{ "a" | regex_replace("\.", "\1") ~ nope }}'"#);
    let text = r#"{{ "a" | regex_replace("\.", "\1") ~ nope }}"#;
    let error = templar().value(&template(vars, text, 1, 4)).expect_err("undefined");
    assert_eq!(error.place, vars.at(1, 42));
    let error = templar().file("a\n{{ s }}\n  {{ oops }}\n", Path::new("t.j2"), FileOptions::default());
    let error = error.expect_err("undefined");
    assert_eq!((error.place.line, error.place.column), (3, 6));
    assert_eq!(error.place.path().as_deref(), Some(Path::new("t.j2")));
}

#[test]
fn template_files() {
    let file =
        |text: &str| templar().file(text, Path::new("f.j2"), FileOptions::default()).map_err(|error| error.message);
    assert_eq!(file("{% if true %}\na\n{% endif %}\nb\n"), Ok("a\nb\n".into()));
    assert_eq!(file("#jinja2: trim_blocks: False\n{% if true %}\na\n{% endif %}\n"), Ok("\na\n".into()));
    assert_eq!(
        file("#jinja2: variable_start_string: '[%', variable_end_string: '%]'\n[% s %] {{ s }}"),
        Ok("hello {{ s }}".into())
    );
    assert_eq!(file("#jinja2: newline_sequence: '\\r\\n'\na\nb\n"), Ok("a\r\nb\r\n".into()));
    assert_eq!(file("{{ 'a\\n' }}|"), Ok("a\n|".into()));
    assert_eq!(file("{{ nothing }}{{ l }}"), Ok("[1, 2, 3]".into()));
    // What ansible-core makes of the newlines at the end.
    for (text, result) in [
        ("a\n{{ '' }}\n", "a\n"),
        ("{{ '' }}\n", "\n"),
        ("{{ '' }}\n\n", "\n\n"),
        ("a\n\n", "a\n\n"),
        ("\n", "\n"),
        ("", ""),
        ("{% if false %}b\n{% endif %}\n", ""),
        ("{% if true %}b\n{% endif %}\n", "b\n"),
        ("a\n{# c #}\n", "a\n"),
        ("{{ 'a\\n' }}\n", "a\n"),
        ("{{ 'a\\n\\n' }}\n\n\n", "a\n\n\n\n"),
        ("#jinja2: keep_trailing_newline:True\na\n{{ '' }}\n", "a\n\n"),
        ("#jinja2: newline_sequence:'\\r\\n'\na\n{{ '' }}\n", "a\r\n"),
        ("#jinja2: trim_blocks:False\n{% if true %}b\n{% endif %}\n", "b\n"),
    ] {
        assert_eq!(file(text), Ok(result.into()), "{text:?}");
    }
    // And of those of a variable.
    for (text, result) in [
        ("{{ s }}\n", Value::from("hello\n")),
        ("{{ 5 }}\n", Value::Int(5)),
        ("a\n{{ '' }}\n", Value::from("a\n")),
        ("{{ '' }}\n", Value::from("\n")),
        ("{{ s }}c\n\n", Value::from("helloc\n\n")),
        ("{% if false %}q{% endif %}\n", Value::Null),
        ("{{ none }}\n", Value::Null),
        ("a{{ none }}\n", Value::from("a\n")),
    ] {
        let value = templar().value(&Value::Str(Str::template(text, Place::default())));
        assert_eq!(value.map_err(|error| error.message), Ok(result), "{text:?}");
    }
    let lines = FileOptions { line_statement_prefix: "#".into(), ..FileOptions::default() };
    let text = templar().file("# for i in l\n{{ i }}\n# endfor\n", Path::new("g.j2"), lines);
    assert_eq!(text.map_err(|error| error.message), Ok("1\n2\n3\n".into()));
}

#[test]
fn templates_include_import_and_extend_one_another() {
    let folder = std::env::temp_dir().join(format!("kubeon-run-templates-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("templates")).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join("templates").join(name), text).expect("a file");
    write("base.j2", "<{% block a %}base{% endblock %}|{% block b %}b{% endblock %}>");
    write("child.j2", "{% extends 'base.j2' %}{% block a %}{{ super() }}+{{ s }}{% endblock %}");
    write("part.j2", "part {{ i }} {{ s }}");
    write("lib.j2", "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}{% set v = 7 %}");
    write("broken.j2", "{{ oops }}");
    let folders = Arc::new(Folders { playbook: folder.clone(), ..Folders::default() });
    let templar = Templar::new(Arc::new(variables(VARIABLES)), folders);
    let file =
        |text: &str| templar.file(text, Path::new("x.j2"), FileOptions::default()).map_err(|error| error.message);
    assert_eq!(file("{% include 'child.j2' %}"), Ok("<base+hello|b>".into()));
    assert_eq!(
        file("{% for i in l %}{% include 'part.j2' %},{% endfor %}"),
        Ok("part 1 hello,part 2 hello,part 3 hello,".into())
    );
    assert_eq!(file("{% import 'lib.j2' as lib %}{{ lib.twice('a') }}{{ lib.v }}"), Ok("aa7".into()));
    assert_eq!(file("{% from 'lib.j2' import twice as t %}{{ t(1) }}"), Ok("11".into()));
    assert_eq!(file("{% include ['no.j2', 'part.j2'] ignore missing %}"), Err("'i' is undefined".into()));
    assert_eq!(file("{% include 'no.j2' %}"), Err("no template `no.j2`".into()));
    assert_eq!(file("{% include 'no.j2' ignore missing %}x"), Ok("x".into()));
    assert_eq!(file("{{ lookup('template', 'part.j2', template_vars={'i': 5}) }}"), Ok("part 5 hello".into()));
    assert_eq!(file("{{ lookup('file', 'templates/lib.j2') | length > 5 }}"), Ok("True".into()));
    assert_eq!(file("{{ lookup('first_found', ['a', 'templates/lib.j2']) | basename }}"), Ok("lib.j2".into()));
    let error =
        templar.file("{% include 'broken.j2' %}", Path::new("x.j2"), FileOptions::default()).expect_err("undefined");
    assert!(error.place.path().is_some_and(|path| path.ends_with("broken.j2")), "{error:?}");
    assert_eq!(error.related.len(), 1);
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_bomb_of_templates_ends() {
    let mut text = String::from("a0: x\n");
    for nth in 1..200 {
        text.push_str(&format!("a{nth}: \"{{{{ a{} }}}}\"\n", nth - 1));
    }
    let templar = templar_with(&text);
    assert_eq!(shown(rendered(&templar, "a20")), "'x'");
    assert_eq!(shown(rendered(&templar, "a199")), "!recursive loop detected in template");
    let templar = templar_with("a: \"{{ 'x' * 1000000000 }}\"\nb: \"{{ range(100000000) }}\"\n");
    assert!(shown(rendered(&templar, "a")).starts_with("!`*` gives more"));
    assert!(shown(rendered(&templar, "b")).starts_with("!`range`: more than"));
    assert!(shown(rendered(&templar, "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")).starts_with("!"));
    assert_eq!(shown(rendered(&templar, "10 ** 20")), "!the result of `**` is beyond 64 bits");
}

#[test]
fn loop_variables_are_strongest_and_nothing_else_renders_twice() {
    let templar = templar().with([("s".to_owned(), Value::from("{{ evil }}")), ("item".to_owned(), Value::Int(3))]);
    assert_eq!(shown(rendered(&templar, "s ~ item")), "'{{ evil }}3'");
    let value = Value::map(Map::from_iter([(
        Value::Str(Str::template("k{{ item }}", Place::default())),
        Value::list(vec![
            Value::Str(Str::template("{{ item }}", Place::default())),
            Value::Str(Str::template("{{ omit }}", Place::default())),
        ]),
    )]));
    assert_eq!(format!("{:?}", templar.value(&value).expect("renders")), "{'k3': [3]}");
    assert_eq!(shown(rendered(&templar, "unsafe_one")), "'{{ 1 + 1 }}'");
}

/// Many hosts render the same texts: each is parsed once.
#[test]
fn rendering_is_quick_once_parsed() {
    let templar = templar();
    let task = Value::map(Map::from_iter([
        ("name".into(), Value::Str(Str::template("install {{ users[0].name }} on {{ s }}", Place::default()))),
        (
            "when".into(),
            Value::Str(Str::template("{{ users | selectattr('uid', 'gt', 1001) | list }}", Place::default())),
        ),
        ("plain".into(), Value::Str(Str::template("no template", Place::default()))),
    ]));
    let start = std::time::Instant::now();
    for _ in 0..2_000 {
        templar.value(&task).expect("renders");
    }
    // Without the cache this takes many times as long; the bound is loose for slow machines.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_missing_entry_has_its_own_place_and_the_nearest_key() {
    let vars = FileId::register(Path::new("m.yml"), "x: \"{{ users[0].nmae }}\"\n");
    let error = templar().value(&template(vars, "{{ users[0].nmae }}", 1, 4)).expect_err("undefined");
    assert_eq!(error.place, vars.at(1, 17));
    assert_eq!(error.help.as_deref(), Some("did you mean `name`?"));
    assert_eq!(error.related, []);
    fn shared<T: Send + Sync>() {}
    shared::<Templar>();
}
