//! Faults that tools of this kind had and were told of in public: each is tried here, and judged by what it leaves
//! behind. Adds users, so it runs as root.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use common::program::{Project, Ran, files};
use common::secrets::Secrets;
use common::sshd::{User, must};

/// Text that leaves a file `MARKER` in the folder where it is rendered as a template.
const BAIT: &str = "{{ lookup('pipe', 'touch MARKER') }}";
const SECRET: &str = "known-S3cr3t-Gh72";

/// A project whose host `h` is this machine.
fn project() -> Project {
    Project::new("h ansible_connection=local\nother ansible_connection=local\n")
}

/// Runs tasks on `h`; nothing of what they were given may have been rendered.
#[track_caller]
fn rendered_nothing(project: &Project, tasks: &str) -> Ran {
    project.write("site.yml", &format!("- hosts: h\n  gather_facts: false\n  tasks:\n{tasks}"));
    let ran = project.run(&["site.yml", "-v"]);
    assert!(!project.path("MARKER").exists(), "a text of others was rendered: {}", ran.stdout);
    ran
}

/// Runs tasks under `-vvvv`; the secret may be nowhere that is left, and in no process.
#[track_caller]
fn shown_nowhere(project: &Project, tasks: &str, options: &[&str]) -> Ran {
    let secrets = Secrets::new(&[SECRET]);
    project.write("site.yml", &format!("- hosts: h\n  gather_facts: false\n  tasks:\n{tasks}"));
    let watch = secrets.watch();
    let ran = project.run(&[&["site.yml", "-vvvv", "-e", "@extra.json"], options].concat());
    watch.end();
    secrets.none_in("the output", &format!("{}{}", ran.stdout, ran.stderr));
    for folder in [".local", ".cache", ".ansible", "tmp"] {
        for file in files(&project.path(folder)) {
            secrets
                .none_in(&file.display().to_string(), &String::from_utf8_lossy(&fs::read(&file).unwrap_or_default()));
        }
    }
    ran
}

/// Writes a file into a vault, beside its password.
fn vaulted(project: &Project, name: &str, text: &str) {
    project.write("vault-password", "of the vault\n").write(name, text);
    let done = project.wait({
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubeon-run"));
        command.args(["vault", "encrypt", "--vault-password-file", "vault-password", name]);
        command.current_dir(project.folder.path()).env("HOME", project.folder.path());
        command
    });
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!project.read(name).contains(SECRET));
}

fn extra(project: &Project) {
    project.write("extra.json", &serde_json::json!({"secret": SECRET}).to_string());
}

/// CVE-2024-8775: `include_vars` showed what was in a vault.
#[test]
fn variables_out_of_a_vault_are_not_shown_when_they_are_included() {
    let project = project();
    extra(&project);
    vaulted(&project, "closed.yml", &format!("opened: {SECRET}\nlist: [{{inner: {SECRET}}}]\n"));
    let tasks = format!(
        "    - include_vars: closed.yml\n    - include_vars: {{file: closed.yml, name: all_of_it}}\n\
         \x20   - debug: {{var: all_of_it}}\n    - copy: {{content: '{{{{ opened }}}}', dest: '{}', mode: '0600'}}\n",
        project.path("kept").display()
    );
    let ran = shown_nowhere(&project, &tasks, &["--vault-password-file", "vault-password", "--diff"]);
    assert_eq!((ran.code, project.read("kept").as_str()), (0, SECRET), "{}{}", ran.stdout, ran.stderr);
}

/// CVE-2020-10685: files out of a vault stayed in temporary folders in clear.
#[test]
fn files_out_of_a_vault_leave_nothing_in_temporary_folders() {
    let project = project();
    extra(&project);
    fs::create_dir(project.path("tmp")).expect("a folder");
    vaulted(&project, "closed.txt", &format!("{SECRET}\n"));
    vaulted(&project, "closed.sh", &format!("#!/bin/sh\n# {SECRET}\ntrue\n"));
    fs::create_dir(project.path("parts")).expect("a folder");
    vaulted(&project, "parts/one", &format!("{SECRET}\n"));
    let out = project.path("out");
    fs::create_dir(&out).expect("a folder");
    let out = out.display();
    project.write("ansible.cfg", "");
    let tasks = format!(
        "    - copy: {{src: closed.txt, dest: '{out}/copied', mode: '0600'}}\n\
         \x20   - template: {{src: closed.txt, dest: '{out}/rendered', mode: '0600'}}\n\
         \x20   - script: closed.sh\n\
         \x20   - assemble: {{src: parts, dest: '{out}/whole', remote_src: false, mode: '0600'}}\n\
         \x20   - command: cat {out}/nothing\n      ignore_errors: true\n"
    );
    project.write("site.yml", &format!("- hosts: h\n  gather_facts: false\n  tasks:\n{tasks}"));
    let mut command = project.command(&["site.yml", "--vault-password-file", "vault-password"]);
    command.env("TMPDIR", project.path("tmp"));
    let ran = project.wait(command);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for name in ["copied", "rendered", "whole"] {
        assert_eq!(project.read(&format!("out/{name}")), format!("{SECRET}\n"), "{name}");
    }
    let secrets = Secrets::new(&[SECRET]);
    for folder in ["tmp", ".ansible", ".cache", ".local"] {
        for file in files(&project.path(folder)) {
            secrets.none_in(&file.display().to_string(), &String::from_utf8_lossy(&fs::read(&file).expect("a file")));
        }
    }
}

/// CVE-2024-9902: `user` wrote through links of the user it was run for, and gave away what they led to. `authorized_key`
/// could be led astray in the same way, to the keys of root.
#[test]
fn links_in_a_home_lead_nobody_to_the_files_of_others() {
    for module in ["user: {name: NAME, generate_ssh_key: true, ssh_key_type: ed25519}", KEY, FOLLOWED] {
        for link in [".ssh", ".ssh/id_ed25519.pub"] {
            let (project, user) = (project(), User::new("/bin/sh"));
            let target = project.path("target");
            if link == ".ssh" {
                fs::create_dir(&target).expect("a folder");
            } else {
                fs::create_dir(user.home.join(".ssh")).expect("a folder");
                must("chown", &[&user.name, user.home.join(".ssh").to_str().expect("a path")]);
                fs::write(&target, "of root\n").expect("a file");
            }
            fs::set_permissions(&target, fs::Permissions::from_mode(0o750)).expect("chmod");
            let link = if link == ".ssh" || module.starts_with("user") { link } else { ".ssh/authorized_keys" };
            let place = user.home.join(link);
            symlink(&target, &place).expect("a link");
            must("chown", &["-h", &user.name, place.to_str().expect("a path")]);
            let play =
                format!("- hosts: h\n  gather_facts: false\n  tasks:\n    - {}\n", module.replace("NAME", &user.name));
            let ran = project.write("site.yml", &play).run(&["site.yml"]);
            let found = fs::metadata(&target).expect("it is still there");
            assert_eq!((found.uid(), found.mode() & 0o777), (0, 0o750), "{module} over {link}: {}", ran.stdout);
            if found.is_dir() {
                assert_eq!(fs::read_dir(&target).expect("a folder").count(), 0, "{module} over {link}: {}", ran.stdout);
            } else {
                assert_eq!(fs::read_to_string(&target).expect("a file"), "of root\n", "{module} over {link}");
            }
            assert_eq!(ran.code, 2, "{module} over {link}: {}", ran.stdout);
            assert!(ran.stdout.contains("is a link of the user's own to"), "{module} over {link}: {}", ran.stdout);
        }
    }
}
const KEY: &str = "authorized_key: {user: NAME, key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIsiVRmUgJ3nWuJQvrdtzKdDyQIPVzJLw2cFw0rmkPZ1 a'}";
const FOLLOWED: &str = "authorized_key: {user: NAME, follow: true, key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIsiVRmUgJ3nWuJQvrdtzKdDyQIPVzJLw2cFw0rmkPZ1 a'}";

/// A link among the user's own files is the user's own affair.
#[test]
fn links_in_a_home_to_the_user_s_own_files_are_followed() {
    let (project, user) = (project(), User::new("/bin/sh"));
    let own = user.home.join("dotfiles");
    fs::create_dir(&own).expect("a folder");
    symlink(&own, user.home.join(".ssh")).expect("a link");
    for path in [&own, &user.home.join(".ssh")] {
        must("chown", &["-h", &user.name, path.to_str().expect("a path")]);
    }
    let key = KEY.replace("NAME", &user.name);
    let ran = project
        .write("site.yml", &format!("- hosts: h\n  gather_facts: false\n  tasks: [{{{key}}}]\n"))
        .run(&["site.yml"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(fs::read_to_string(own.join("authorized_keys")).expect("a file").starts_with("ssh-ed25519"));
}

/// CVE-2024-11079: text from one host was rendered when another reached it through `hostvars`.
#[test]
fn text_of_a_host_is_not_rendered_through_hostvars() {
    let project = project();
    project.write("said", BAIT).write(
        "site.yml",
        "
- hosts: h
  gather_facts: false
  tasks:
    - {command: cat said, args: {chdir: '{{ playbook_dir }}'}, register: said}
    - set_fact: {kept: '{{ said.stdout }}', mixed: {deep: ['{{ said.stdout }}']}}
- hosts: other
  gather_facts: false
  vars: {of_h: '{{ hostvars.h.kept }}', all_of_h: '{{ hostvars[\"h\"] }}'}
  tasks:
    - debug: {msg: '{{ hostvars.h.said.stdout }} {{ of_h }} {{ all_of_h.mixed.deep[0] }}'}
    - debug: {var: hostvars.h.kept}
    - debug: {msg: '{{ hostvars.values() | map(attribute=\"kept\", default=\"\") | join }}'}
    - copy: {content: '{{ of_h }}', dest: '{{ playbook_dir }}/told'}
",
    );
    let ran = project.run(&["site.yml", "-v"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(!project.path("MARKER").exists(), "{}", ran.stdout);
    assert_eq!(project.read("told"), BAIT);
}

/// CVE-2023-5764, CVE-2021-3583: text of others became part of a condition or of a template of several lines.
#[test]
fn text_of_others_is_no_part_of_conditions_loops_and_folded_lines() {
    let project = project();
    project.write("said", &format!("1 == 1 {BAIT}\nx' or lookup('pipe', 'touch MARKER') or '\n{BAIT}"));
    let tasks = "
    - {command: cat said, args: {chdir: '{{ playbook_dir }}'}, register: said}
    - {debug: , when: said.stdout is match('1')}
    - {debug: , when: \"'{{ said.stdout_lines[1] }}' == 'x'\", ignore_errors: true}
    - {debug: , when: '{{ said.stdout_lines[0] }}', ignore_errors: true}
    - {assert: {that: [\"'{{ said.stdout_lines[1] }}'\"]}, ignore_errors: true}
    - {assert: {that: '{{ said.stdout_lines }}'}, ignore_errors: true}
    - {debug: {msg: '{{ item }}'}, loop: '{{ said.stdout_lines }}'}
    - {debug: {var: item}, with_items: '{{ said.stdout_lines }}', ignore_errors: true}
    - {debug: {var: '{{ said.stdout_lines[2] }}'}, ignore_errors: true}
    - {command: echo again, register: tried, retries: 1, delay: 0, until: \"'{{ said.stdout_lines[1] }}' != ''\", ignore_errors: true}
    - {command: echo again, changed_when: \"'{{ said.stdout_lines[1] }}' != ''\", ignore_errors: true}
    - debug:
        msg: >
          folded {{ said.stdout }}
          over lines
    - name: of several lines
      debug:
      when: >
        said.stdout_lines[2]
        == 'x'
    - {set_fact: {'{{ \"key\" }}': '{{ said.stdout_lines[2] ~ \"\" }}'}}
    - {debug: {msg: '{{ key }}'}}
    - {debug: {msg: \"{{ lookup('vars', 'key') }} {{ lookup('dict', {'a': key}) }} {{ query('items', said.stdout_lines) }}\"}}
    - {include_tasks: {file: '{{ said.stdout_lines[2] }}'}}
";
    let ran = rendered_nothing(&project, tasks);
    assert_eq!(ran.stdout.matches("TASK [").count(), 17, "not all was tried: {}{}", ran.stdout, ran.stderr);
}

/// CVE-2019-10156, CVE-2017-7481: what a lookup gave was rendered once more.
#[test]
fn what_a_lookup_gives_is_not_rendered() {
    let project = project();
    project
        .write("said", BAIT)
        .write("said.csv", &format!("a,\"{BAIT}\"\n"))
        .write("said.ini", &format!("[s]\na={BAIT}\n"));
    project.write("said.yml", &format!("a: \"{BAIT}\"\n"));
    let tasks = "
    - set_fact:
        kept:
          - \"{{ lookup('file', 'said') }}\"
          - \"{{ lookup('pipe', 'cat said') }}\"
          - \"{{ lookup('csvfile', 'a file=said.csv delimiter=,') }}\"
          - \"{{ lookup('ini', 'a section=s file=said.ini') }}\"
          - \"{{ lookup('lines', 'cat said') }}\"
          - \"{{ (lookup('file', 'said.yml') | from_yaml).a }}\"
          - \"{{ lookup('env', 'BAIT') }}\"
    - {debug: {msg: '{{ item }}'}, loop: '{{ kept }}'}
    - {debug: {msg: '{{ item }}'}, with_file: said}
    - {copy: {content: '{{ kept | join }}', dest: '{{ playbook_dir }}/told'}}
";
    project.write("site.yml", &format!("- hosts: h\n  gather_facts: false\n  tasks:{tasks}"));
    let mut command = project.command(&["site.yml", "-v"]);
    command.env("BAIT", BAIT);
    let ran = project.wait(command);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(!project.path("MARKER").exists(), "{}", ran.stdout);
    assert_eq!(project.read("told"), BAIT.repeat(7));
}

/// CVE-2014-4966: a value with blanks became further arguments.
#[test]
fn a_value_adds_no_argument() {
    let project = project();
    let tasks = "
    - set_fact: {given: \"own mode=0777 owner=nobody\", given_too: \"x' creates=x '\"}
    - copy: content=text dest={{ playbook_dir }}/{{ given }}
    - command: touch {{ playbook_dir }}/made-{{ given_too | quote }}
";
    let ran = rendered_nothing(&project, tasks);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let found = fs::metadata(project.path("own mode=0777 owner=nobody")).expect("a file of that name");
    assert_eq!((found.uid(), found.mode() & 0o022), (0, 0));
    assert!(project.path("made-x' creates=x '").exists(), "{}", ran.stdout);
}

/// CVE-2020-10684, CVE-2016-9587: facts of a host changed what the controller does.
#[test]
fn facts_of_a_host_do_not_say_how_the_controller_works() {
    let project = project();
    let facts = serde_json::json!({"ansible_facts": {
        "ansible_connection": "nowhere", "ansible_host": "198.51.100.1", "ansible_facts": {"x": BAIT},
        "ansible_ssh_executable": "/bin/false", "ansible_become": true, "ansible_become_exe": "/bin/false",
        "ansible_shell_executable": "/bin/false", "ansible_delegated_vars": {"h": {}}, "hostvars": {}, "groups": {},
        "inventory_hostname": "evil", "playbook_dir": "/", "ansible_python_interpreter": "/bin/false", "bait": BAIT,
        "omit": "x", "lookup": "x", "ansible_check_mode": true, "ansible_local": {"bait": BAIT},
    }, "changed": false});
    project.write("library/taken.sh", &format!("#!/bin/sh\ncat <<'END'\n{facts}\nEND\n"));
    let tasks = "
    - taken:
    - {copy: {content: '{{ inventory_hostname }} {{ groups.all | length }} {{ hostvars.other is defined }}', dest: '{{ playbook_dir }}/told'}}
    - {debug: {msg: '{{ bait }} {{ ansible_facts }} {{ ansible_local }}'}}
    - {command: 'touch {{ playbook_dir }}/ran'}
";
    let ran = rendered_nothing(&project, tasks);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(project.read("told"), "h 2 True");
    assert!(project.path("ran").exists());
}

/// CVE-2019-3828, CVE-2020-1735: `fetch` wrote outside the folder it was given.
#[test]
fn fetch_stays_in_its_folder() {
    let project = project();
    fs::create_dir_all(project.path("deep/out")).expect("a folder");
    let place = project.folder.path().display().to_string();
    project.write("evil", "text\n");
    let up = "../".repeat(place.matches('/').count() + 1);
    for source in [format!("{place}/deep/../evil"), format!("{place}/{up}{}/evil", &place[1..])] {
        let task = format!("    - fetch: {{src: '{source}', dest: deep/out}}\n");
        rendered_nothing(&project, &task);
    }
    let outside: Vec<_> = files(project.folder.path())
        .into_iter()
        .filter(|path| {
            path.ends_with("evil") && !path.starts_with(project.path("deep/out/h")) && path != &project.path("evil")
        })
        .collect();
    assert_eq!(outside, Vec::<std::path::PathBuf>::new());
}

/// CVE-2023-5115 and the like: an archive wrote outside the folder that it was unpacked into.
#[test]
fn archives_stay_in_their_folder() {
    let project = project();
    let make = "
import io, sys, tarfile, zipfile
def tar(name, *members):
    with tarfile.open(name, 'w:gz') as archive:
        for path, link in members:
            member = tarfile.TarInfo(path)
            if link:
                member.type, member.linkname = tarfile.SYMTYPE, link
                archive.addfile(member)
            else:
                member.size = 5
                archive.addfile(member, io.BytesIO(b'evil\\n'))
tar('up.tar.gz', ('../escaped', None))
tar('root.tar.gz', (sys.argv[1] + '/escaped', None))
tar('link.tar.gz', ('way', '..'), ('way/escaped', None))
with zipfile.ZipFile('up.zip', 'w') as archive:
    archive.writestr('../escaped', 'evil')
";
    let folder = project.folder.path();
    let made = Command::new("python3").args(["-c", make]).arg(folder).current_dir(folder).status().expect("python3");
    assert!(made.success());
    for name in ["up.tar.gz", "root.tar.gz", "link.tar.gz", "up.zip"] {
        fs::create_dir_all(project.path("out")).expect("a folder");
        let ran = rendered_nothing(
            &project,
            &format!("    - unarchive: {{src: {name}, dest: '{}'}}\n", project.path("out").display()),
        );
        assert!(!project.path("escaped").exists(), "{name}: {}", ran.stdout);
        fs::remove_dir_all(project.path("out")).expect("a folder");
    }
}

/// CVE-2018-16837, CVE-2020-1739, CVE-2020-1753, CVE-2022-3697, CVE-2021-20178, CVE-2021-20180, CVE-2021-20191, CVE-2021-20228: arguments
/// that are secret were on command lines, in the log or in what was told.
#[test]
fn secret_arguments_are_neither_told_nor_on_a_command_line() {
    let (project, user) = (project(), User::new("/bin/sh"));
    extra(&project);
    let place = project.folder.path().display();
    let name = &user.name;
    let tasks = format!(
        "    - user: {{name: {name}, generate_ssh_key: true, ssh_key_type: ed25519, ssh_key_passphrase: '{{{{ secret }}}}'}}\n\
         \x20   - user: {{name: {name}, password: '{{{{ secret }}}}'}}\n\
         \x20   - uri: {{url: 'http://127.0.0.1:1/', user: me, password: '{{{{ secret }}}}', force_basic_auth: true}}\n      ignore_errors: true\n\
         \x20   - get_url: {{url: 'http://me:{{{{ secret }}}}@127.0.0.1:1/', dest: '{place}/got', url_password: '{{{{ secret }}}}'}}\n      ignore_errors: true\n      no_log: true\n\
         \x20   - debconf: {{name: kubeon-nothing, question: kubeon-nothing/pw, vtype: password, value: '{{{{ secret }}}}'}}\n      ignore_errors: true\n      check_mode: true\n"
    );
    let ran = shown_nowhere(&project, &tasks, &[]);
    assert!(ran.stdout.contains("PLAY RECAP"), "{}{}", ran.stdout, ran.stderr);
    let shadow = fs::read_to_string("/etc/shadow").expect("a file");
    assert!(shadow.contains(&format!("{name}:{SECRET}:")), "no password was set");
    let key = user.home.join(".ssh/id_ed25519");
    let opens = |passphrase: &str| {
        Command::new("ssh-keygen")
            .args(["-y", "-P", passphrase, "-f"])
            .arg(&key)
            .output()
            .expect("ssh-keygen")
            .status
            .success()
    };
    assert!(!opens("") && opens(SECRET), "the key has another passphrase");
}

/// CVE-2020-14332, CVE-2018-10855, CVE-2019-14846: `no_log` held neither in check mode nor for what fails.
#[test]
fn no_log_holds_in_check_mode_for_differences_for_failures_and_for_skipped_items() {
    let project = project();
    extra(&project);
    let place = project.path("kept");
    let place = place.display();
    project.write("old", "old\n");
    let tasks = format!(
        "    - {{copy: {{content: '{{{{ secret }}}}', dest: '{place}'}}, no_log: true}}\n\
         \x20   - {{lineinfile: {{path: '{place}', line: '{{{{ secret }}}}', create: true}}, no_log: true}}\n\
         \x20   - {{debug: {{msg: '{{{{ item }}}}'}}, loop: ['{{{{ secret }}}}'], when: false, no_log: true}}\n\
         \x20   - {{assert: {{that: ['secret == 1']}}, no_log: true, ignore_errors: true}}\n\
         \x20   - {{fail: {{msg: '{{{{ secret }}}}'}}, no_log: true, ignore_errors: true}}\n\
         \x20   - {{command: 'true', no_log: true, failed_when: 'secret is defined', ignore_errors: true}}\n\
         \x20   - {{set_fact: {{again: '{{{{ secret }}}}'}}, no_log: true}}\n\
         \x20   - {{include_vars: {{file: 'nothing-like-{{{{ secret }}}}.yml'}}, no_log: true, ignore_errors: true}}\n"
    );
    for options in [&["--check", "--diff"][..], &["--diff"]] {
        let ran = shown_nowhere(&project, &tasks, options);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(project.read("kept"), format!("{SECRET}\n"));
}

/// CVE-2019-10206: a password that was asked for was rendered as a template. As in Ansible, what is typed for `vars_prompt`
/// is the user's own text, and may be a template unless it is `unsafe`.
#[test]
fn a_password_that_a_person_types_is_not_rendered() {
    let project = project();
    project.write(
        "site.yml",
        "
- hosts: h
  gather_facts: false
  vars_prompt: [{name: asked, private: true, unsafe: true}]
  tasks:
    - {copy: {content: '{{ asked }}', dest: '{{ playbook_dir }}/told'}, become: true}
",
    );
    let typed = format!("*{BAIT}");
    let (code, said) = project.converse("site.yml -K", &[("BECOME password", &typed), ("asked", &typed)]);
    assert_eq!((code, project.read("told").as_str()), (0, BAIT), "{said}");
    assert!(!project.path("MARKER").exists(), "{said}");
}

/// CVE-2020-1736, CVE-2020-1740: files that hold secrets could be read by others while they were written.
#[test]
fn nobody_else_can_read_a_file_while_it_is_written() {
    let project = project();
    let out = project.path("out");
    fs::create_dir(&out).expect("a folder");
    project.write("large", &"x".repeat(8 << 20));
    let (watched, done) = (out.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let told = done.clone();
    let watch = std::thread::spawn(move || {
        let mut open = Vec::new();
        while !told.load(std::sync::atomic::Ordering::Relaxed) {
            for entry in fs::read_dir(&watched).into_iter().flatten().flatten() {
                let mode = entry.metadata().map_or(0, |found| found.mode());
                if mode & 0o077 != 0 {
                    open.push((entry.path(), mode));
                }
            }
        }
        open
    });
    let place = out.display();
    let tasks = format!(
        "    - copy: {{src: large, dest: '{place}/copied', mode: '0600'}}\n\
         \x20   - template: {{src: large, dest: '{place}/rendered', mode: '0600'}}\n\
         \x20   - copy: {{src: '{place}/copied', remote_src: true, dest: '{place}/again', mode: '0600'}}\n\
         \x20   - replace: {{path: '{place}/copied', regexp: '^x', replace: y}}\n\
         \x20   - lineinfile: {{path: '{place}/lines', line: z, create: true, mode: '0600'}}\n\
         \x20   - lineinfile: {{path: '{place}/lines', line: zz, backup: true}}\n"
    );
    let ran = rendered_nothing(&project, &tasks);
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(watch.join().expect("it ends"), vec![]);
    assert_eq!(fs::read_dir(&out).expect("a folder").count(), 5);
}

/// CVE-2020-1733, CVE-2020-10744, CVE-2021-3533: temporary folders could be made beforehand by others.
#[test]
fn what_others_put_in_the_way_is_not_taken() {
    let (project, mallory) = (project(), User::new("/bin/sh"));
    let trap = mallory.home.join("trap");
    fs::create_dir(&trap).expect("a folder");
    must("chown", &[&mallory.name, trap.to_str().expect("a path")]);
    for name in [".ansible_async", ".ansible", ".cache"] {
        symlink(&trap, project.path(name)).expect("a link");
        must("chown", &["-h", &mallory.name, project.path(name).to_str().expect("a path")]);
    }
    let play = "- hosts: h\n  gather_facts: false\n  tasks:\n    - {command: echo done, async: 20, poll: 1}\n    - {command: echo done}\n";
    let ran = project.write("site.yml", play).run(&["site.yml"]);
    for file in files(&trap) {
        let found = fs::metadata(&file).expect("a file");
        assert_eq!(found.mode() & 0o077, 0, "{}: {}", file.display(), ran.stdout);
    }
    assert!(ran.stdout.contains("PLAY RECAP"), "{}{}", ran.stdout, ran.stderr);
}

/// CVE-2018-10874, CVE-2018-10875: configuration of whoever may write to the current folder was taken.
#[test]
fn a_configuration_that_anybody_may_write_is_not_taken() {
    let project = project();
    project.write("ansible.cfg", "[defaults]\nlibrary = elsewhere\nroles_path = elsewhere\ninventory = elsewhere\n");
    project.write("elsewhere/ping.sh", "#!/bin/sh\ntouch MARKER\necho '{}'\n");
    project.write("elsewhere/r/tasks/main.yml", "- command: touch MARKER\n");
    fs::set_permissions(project.folder.path(), fs::Permissions::from_mode(0o777)).expect("chmod");
    project.write("site.yml", "- hosts: h\n  gather_facts: false\n  roles: [r]\n");
    let mut command = project.command(&["site.yml"]);
    command.env_remove("ANSIBLE_CONFIG");
    let ran = project.wait(command);
    assert!(!project.path("MARKER").exists(), "{}", ran.stdout);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    fs::set_permissions(project.folder.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    let mut command = project.command(&["site.yml"]);
    command.env_remove("ANSIBLE_CONFIG");
    assert_eq!(project.wait(command).code, 0, "a configuration of one's own is taken");
}

/// CVE-2020-10729: passwords that were drawn in one template were all the same.
#[test]
fn every_drawn_password_is_another() {
    let project = project();
    let task = "    - {copy: {content: \"{{ lookup('password', '/dev/null') }} {{ lookup('password', '/dev/null') }}\", dest: '{{ playbook_dir }}/told', mode: '0600'}}\n";
    rendered_nothing(&project, task);
    let told = project.read("told");
    let (one, two) = told.split_once(' ').expect("two passwords");
    assert!(one.len() >= 20 && one != two, "{told}");
}

/// CVE-2016-8614: a key was taken for another one that ends in the same digits.
#[test]
fn a_key_is_not_known_by_the_end_of_its_fingerprint() {
    let project = project();
    let home = project.path("gnupg");
    fs::create_dir(&home).expect("a writable folder");
    must("chmod", &["700", home.to_str().expect("UTF-8")]);
    let gpg = |words: &[&str]| must("gpg", &[&["--homedir", home.to_str().expect("UTF-8"), "--batch"], words].concat());
    gpg(&["--passphrase", "", "--quick-gen-key", "lab", "rsa2048", "sign", "never"]);
    project.write("key.asc", &gpg(&["--armor", "--export"]));
    let listed = gpg(&["--with-colons", "--list-keys"]);
    let right = listed.lines().find_map(|line| line.strip_prefix("fpr:::::::::")).expect("a fingerprint");
    let right = right.trim_end_matches(':');
    let wrong = format!("{}{}", if right.starts_with('0') { '1' } else { '0' }, &right[1..]);
    let keyring = project.path("ring.gpg");
    let add = |id: &str| {
        let (file, keyring) = (project.path("key.asc"), keyring.display());
        let task = format!("    - apt_key: {{id: '{id}', file: '{}', keyring: '{keyring}'}}\n", file.display());
        rendered_nothing(&project, &task)
    };
    let refused = add(&wrong);
    assert!(refused.code == 2 && !keyring.exists(), "{}", refused.stdout);
    let taken = add(right);
    assert!(taken.code == 0 && keyring.exists(), "{}", taken.stdout);
}
