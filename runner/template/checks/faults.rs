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
    assert_eq!(templar.value(&again).expect("is data"), again);
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
