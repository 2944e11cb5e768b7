//! The 22 levels of precedence: all of them set one variable, and the strongest is taken away again and again. The
//! lowest, what the command line says of a connection, has a name of its own.
//!
//! `REFERENCE=/path/to/ansible-playbook cargo test --test precedence` asks the same of Ansible.

mod common;

use std::process::Command;

use common::program::Project;

/// The levels under Ansible's numbers: the file that a level stands in, and what is written there.
const FILES: &[(usize, &str, &str)] = &[
    (2, "roles/r/defaults/main.yml", "chosen: level2\n"),
    (3, "inventory/hosts", "[g:vars]\nchosen=level3\n"),
    (4, "inventory/group_vars/all.yml", "chosen: level4\n"),
    (5, "group_vars/all.yml", "chosen: level5\n"),
    (6, "inventory/group_vars/g.yml", "chosen: level6\n"),
    (7, "group_vars/g.yml", "chosen: level7\n"),
    (9, "inventory/host_vars/h.yml", "chosen: level9\n"),
    (10, "host_vars/h.yml", "chosen: level10\n"),
    (14, "level14.yml", "chosen: level14\n"),
    (15, "roles/r/vars/main.yml", "chosen: level15\n"),
    (18, "roles/r/vars/level18.yml", "chosen: level18\n"),
];

/// Returns a project in which every level up to `top` sets the variable.
fn project(top: usize) -> Project {
    let project = Project::new("");
    let seen = project.path("seen").display().to_string();
    let at = |level: usize, text: &str| if level <= top { text.to_owned() } else { String::new() };
    project.write("inventory/hosts", &format!("[g]\nh ansible_connection=local{}\n", at(8, " chosen=level8")));
    for (level, file, text) in FILES.iter().filter(|(level, _, _)| *level <= top) {
        let before = if *level == 3 { project.read(file) } else { String::new() };
        project.write(file, &format!("{before}{text}"));
    }
    project.write(
        "site.yml",
        &format!(
            "
- hosts: all
  gather_facts: false
{}{}{}  roles:
    - {{role: r{}}}
",
            at(12, "  vars: {chosen: level12}\n"),
            at(13, "  vars_prompt: [{name: chosen, default: level13}]\n"),
            at(14, "  vars_files: [level14.yml]\n"),
            at(20, ", chosen: level20"),
        ),
    );
    project.write(
        "roles/r/tasks/main.yml",
        &format!(
            "
{}{}- block:
    - include_tasks: show.yml
{}  vars: {{other: 1{}}}
",
            at(18, "- include_vars: level18.yml\n"),
            at(19, "- set_fact: {chosen: level19}\n"),
            at(21, "      vars: {chosen: level21}\n"),
            at(16, ", chosen: level16"),
        ),
    );
    project.write(
        "roles/r/tasks/show.yml",
        &format!(
            "- shell: echo {{{{ chosen | default(ansible_user) | default('nobody') }}}} > {seen}\n  vars: {{other: 2{}}}\n",
            at(17, ", chosen: level17")
        ),
    );
    // Level 11 comes from an earlier run.
    project.write(
        "seed.yml",
        "- hosts: all\n  gather_facts: false\n  tasks: [{set_fact: {chosen: level11, cacheable: true}}]\n",
    );
    project
}

fn run(project: &Project, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = project.command(&[]);
    if let Some(reference) = std::env::var_os("REFERENCE") {
        let mut other = Command::new(reference);
        other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        other.env_remove("ANSIBLE_CONFIG").current_dir(project.folder.path()).stdin(std::process::Stdio::null());
        command = other;
    }
    let output = command
        .args(["-i", "inventory/hosts"])
        .args(arguments)
        .env("ANSIBLE_CACHE_PLUGIN", "jsonfile")
        .env("ANSIBLE_CACHE_PLUGIN_CONNECTION", project.path("facts"))
        .output()
        .expect("the program starts");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

#[test]
fn of_all_levels_the_strongest_wins_and_each_below_it_when_it_is_gone() {
    for top in (1..=22).rev() {
        let project = project(top);
        if top >= 11 {
            let (code, told) = run(&project, &["seed.yml"]);
            assert_eq!(code, Some(0), "{told}");
        }
        let mut arguments = vec!["site.yml", "-u", "level1"];
        if top == 22 {
            arguments.extend(["-e", "chosen=level22"]);
        }
        let (code, told) = run(&project, &arguments);
        assert_eq!((code, project.read("seen").trim()), (Some(0), format!("level{top}").as_str()), "{told}");
    }
    let project = project(1);
    let (_, told) = run(&project, &["site.yml"]);
    assert_eq!(project.read("seen"), "nobody\n", "{told}");
}
