//! The mistakes that people ask about most: each is told where it was written, with what to do.

use super::Project;

/// A file, the place that is told, and words of the message and of its help.
type Case = (&'static str, &'static str, &'static [&'static str]);

#[track_caller]
fn tells(cases: &[Case], below: &str) {
    for (nth, (text, place, words)) in cases.iter().enumerate() {
        let text = format!("- hosts: web1\n  gather_facts: false\n{below}{text}");
        let template = "line\nlisten {{ conf.port }};\n";
        let name = format!("asked{nth}-{}", below.len());
        let project = Project::new(&name, &[("site.yml", text.as_str()), ("t.j2", template)]);
        let (status, told) = project.told();
        assert!(matches!(status, Some(2 | 4)), "{text}{told}");
        assert!(told.contains(&format!(" --> {place}\n")), "no {place}: {text}{told}");
        for word in *words {
            assert!(told.contains(word), "no {word:?}: {text}{told}");
        }
    }
}

#[test]
fn yaml_that_is_none() {
    let cases: &[Case] = &[
        ("    - shell: echo a: b\n", "site.yml:4:20", &["= help: a value that holds `: ` must be quoted"]),
        ("    - copy:\n        dest: {{ d }}/x\n", "site.yml:5:15", &["must be quoted: \"{{ … }}\""]),
        ("    - debug:\n        msg: {{ d }}\n", "site.yml:5:14", &["must be quoted: \"{{ … }}\""]),
        ("    - debug: {msg: %h}\n", "site.yml:4:20", &["a value that starts with `%` must be quoted"]),
        (
            "    - debug:\n        msg: *.example\n",
            "site.yml:5:14",
            &["a value that starts with `*` repeats what `&` names"],
        ),
        ("    - debug:\n      name: \"a\" b\n", "site.yml:5:17", &["quote the whole value, or no part of it"]),
        (
            "    - name: a\n     debug: {msg: b}\n",
            "site.yml:5:6",
            &["this line is indented by 5 blanks, and the key above it stands behind 6"],
        ),
        ("    - debug:\n\tmsg: a\n", "site.yml:5:1", &["indented with blanks, never with tabs"]),
    ];
    tells(cases, "  tasks:\n");
}

#[test]
fn words_that_are_none() {
    let cases: &[Case] = &[
        ("    - include: x.yml\n", "site.yml:4:7", &["no module or action `include`", "`include_tasks` reads a file"]),
        ("    - debug:\n      sudo: true\n", "site.yml:5:7", &["= help: `become: true` does it now"]),
        ("    - debug:\n      when: x = 1\n", "site.yml:5:15", &["= help: `==` compares"]),
        ("    - debug:\n      when: x == 1 && y\n", "site.yml:5:20", &["= help: conditions are joined by `and`"]),
        ("    - debug: {msg: \"{{ a || b }}\"}\n", "site.yml:4:27", &["= help: conditions are joined by `or`"]),
    ];
    tells(cases, "  tasks:\n");
}

#[test]
fn values_that_are_not_there() {
    let cases: &[Case] = &[
        ("    - debug: {msg: '{{ url }}'}\n", "site.yml:3:83", &["no attribute 'host'", "`url` is used here"]),
        ("    - debug: {msg: '{{ item }}'}\n", "site.yml:5:24", &["= help: `item` is there in a task with `loop`"]),
        (
            "    - {command: 'true', register: r, when: false}\n    - debug: {msg: '{{ r.stdout }}'}\n",
            "site.yml:6:26",
            &["= help: the task that it comes from was skipped: ask `is skipped` first"],
        ),
        (
            "    - {command: /none/such, register: r, ignore_errors: true}\n    - debug: {msg: '{{ r.stdoutt.x }}'}\n",
            "site.yml:6:26",
            &["no attribute 'stdoutt'"],
        ),
        ("    - debug: {msg: '{{ ansible_distribution }}'}\n", "site.yml:5:24", &["= help: facts are known once"]),
        ("    - debug: {msg: \"{{ groups['db'][0] }}\"}\n", "site.yml:5:24", &["no attribute 'db'", "it has `all`"]),
        ("    - debug: {msg: \"{{ hostvars['db1'].x }}\"}\n", "site.yml:5:24", &["no attribute 'db1'"]),
        ("    - debug: {msg: '{{ nothing[0] }}'}\n", "site.yml:5:24", &["= help: the list has no item"]),
        ("    - debug: {msg: '{{ all_of.name }}'}\n", "site.yml:5:31", &["it is a list: take one, as in `x[0].name`"]),
        ("    - debug:\n      loop: '{{ text }}'\n", "site.yml:6:13", &["this is a string", "`x | split(',')`"]),
        ("    - debug:\n      loop: '{{ server }}'\n", "site.yml:6:13", &["use the filter `dict2items`"]),
        ("    - template: {src: t.j2, dest: out}\n", "t.j2:2:16", &["no attribute 'port'", "did you mean `prot`?"]),
    ];
    let vars = "  vars: {server: {name: x}, conf: {prot: 80}, text: 'a,b', url: 'http://{{ server.host }}/', nothing: [], all_of: [{name: x}]}\n  tasks:\n";
    tells(cases, vars);
}
