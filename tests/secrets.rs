//! No secret is found anywhere after a run: not in output, records, process arguments, remote files or logs. Adds users,
//! so it runs as root.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use common::program::{Project, files};
use common::secrets::Secrets;
use common::sshd::{Sshd, User};

const VAULT_PASSWORD: &str = "vault-Pass-7Hq2";
const VAULTED: &str = "vaulted-S3cr3t-Zx81";
const UNLOGGED: &str = "unlogged-S3cr3t-Ab42";
const BECOME_PASSWORD: &str = "become-Pass-Qr55";
/// Written in no vault: the arguments that take it make it a secret.
const URL_PASSWORD: &str = "url-Pass-Vb18";

/// [`VAULTED`] under [`VAULT_PASSWORD`].
const VARIABLES: &str = "
vaulted: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  65393339613336656132316337316432313062633065353431343439646538643338376332373630
  6431656463613766313562323366373766383531643765630a356635346164326165393066383332
  37646536626536643866306536396636363936396633323836333235306632643561313536373336
  3434643137633630340a343538623361393436616538306666663436396334313936646264643061
  38393764343632376465663661316666373839353764363737616161346134636431
";

const PLAYBOOK: &str = "
- hosts: all
  gather_facts: false
  become: true
  vars_files: [secret.yml]
  tasks:
    - {name: a secret on stdin, command: {cmd: cat, stdin: '{{ vaulted }}'}, register: said}
    - {name: what it said, debug: {var: said}}
    - {name: a secret in a message, debug: {msg: 'it is {{ vaulted }} and {{ vaulted | b64encode }}'}}
    - {name: 'a name with {{ vaulted }}', ping: {data: '{{ vaulted }}'}}
    - {name: not logged, command: {cmd: cat, stdin: '{{ unlogged }}'}, no_log: true, register: hidden}
    - {name: not logged in a loop, command: {cmd: cat, stdin: '{{ item }}'}, loop: ['{{ unlogged }}'], no_log: true}
    - {name: not logged and failing, fail: {msg: '{{ unlogged }}'}, no_log: true, ignore_errors: true}
    - {name: not logged file, copy: {content: '{{ unlogged }}', dest: '{{ keep }}-unlogged'}, no_log: true, diff: true}
    - {name: logged file, copy: {content: '{{ vaulted }}', dest: '{{ keep }}'}, diff: true}
    - {name: takes a moment, command: sleep 0.4}
    - {name: a wrong argument, file: {path: '{{ vaulted }}', state: directory}, ignore_errors: true}
    - name: fetched
      get_url: {url: '{{ site }}/file', dest: '{{ keep }}-fetched', url_username: me, url_password: '{{ url_password }}'}
    - {name: asked, uri: {url: '{{ site }}/file', user: me, password: '{{ url_password }}', force_basic_auth: true}}
    - name: not there
      get_url: {url: '{{ site }}/nothing', dest: '{{ keep }}-nothing', username: me, password: '{{ url_password }}'}
      ignore_errors: true
    - {name: in the address, uri: {url: 'http://me:{{ vaulted }}@{{ site[7:] }}/nothing'}, ignore_errors: true}
    - {name: apart, command: {cmd: cat, stdin: '{{ vaulted }}'}, async: 20, poll: 1}
    - {name: not logged apart, command: {cmd: cat, stdin: '{{ unlogged }}'}, async: 20, poll: 1, no_log: true}
    - {name: fails, fail: {msg: 'because of {{ vaulted }}'}}
";

fn secrets() -> Secrets {
    // The last ones are the vaulted one and `me:URL_PASSWORD` in base64.
    let encoded = ["dmF1bHRlZC1TM2NyM3QtWng4MQ", "bWU6dXJsLVBhc3MtVmIxO"];
    Secrets::new(&[VAULT_PASSWORD, VAULTED, UNLOGGED, BECOME_PASSWORD, URL_PASSWORD, encoded[0], encoded[1]])
}

/// A site that has one file, and returns the address of it.
fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().expect("a clone")).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
    let (status, body) = if first.contains("/file") { ("200 OK", "content") } else { ("404 Not Found", "") };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").ok();
}

/// Runs the playbook in several forms and looks for secrets in everything that is left.
fn run(project: &Project, places: &[std::path::PathBuf]) {
    let secrets = secrets();
    project.write("secret.yml", VARIABLES).write("site.yml", PLAYBOOK);
    project.write("vault-password", &format!("{VAULT_PASSWORD}\n"));
    project.write("become-password", &format!("{BECOME_PASSWORD}\n"));
    let keep = project.path("kept");
    let extra = serde_json::json!({"unlogged": UNLOGGED, "keep": keep, "url_password": URL_PASSWORD, "site": site()});
    project.write("extra.json", &extra.to_string());
    let options =
        ["--vault-password-file", "vault-password", "--become-password-file", "become-password", "-e", "@extra.json"];
    for form in [["--output", "lines"], ["--output", "json"], ["--output", "junit"]] {
        let watch = secrets.watch();
        let mut command = project.command(&["site.yml", "-vvvv"]);
        command.args(options).args(form).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child: Child = command.spawn().expect("the program starts");
        let output = child.wait_with_output().expect("its output");
        watch.end();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{stdout}{stderr}");
        assert!(stdout.contains("********"), "nothing was hidden in {stdout}");
        secrets.none_in("stdout", &stdout);
        secrets.none_in("stderr", &stderr);
        let folder = project.record();
        for file in files(&folder) {
            secrets.none_in(&file.display().to_string(), &std::fs::read_to_string(&file).expect("a record"));
        }
        // The last run wrote it: the tasks did their work.
        assert_eq!(std::fs::read_to_string(&keep).expect("a file"), VAULTED);
        std::fs::remove_file(&keep).expect("a file");
        std::fs::remove_file(project.path("kept-unlogged")).expect("a file");
        assert_eq!(std::fs::read_to_string(project.path("kept-fetched")).expect("a file"), "content");
    }
    for place in places {
        for file in files(place) {
            let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default()).into_owned();
            secrets.none_in(&file.display().to_string(), &text);
        }
    }
}

#[test]
fn none_over_a_local_connection() {
    let project = Project::new("h ansible_connection=local\n");
    run(&project, &[project.path(".cache"), project.path(".local")]);
}

#[test]
fn none_over_ssh_with_a_password_for_sudo() {
    let (sshd, user) = (Sshd::start(""), User::new("/bin/sh"));
    user.set_password(BECOME_PASSWORD);
    let sudoers = std::path::PathBuf::from("/etc/sudoers.d").join(&user.name);
    let name = &user.name;
    let text = format!("{name} ALL=(ALL) ALL\nDefaults:{name} timestamp_timeout=0, logfile={}\n", log(&sshd).display());
    std::fs::write(&sudoers, text).expect("write");
    common::sshd::must("chmod", &["0440", sudoers.to_str().expect("a path")]);
    let project = Project::new(&format!(
        "h ansible_host=127.0.0.1 ansible_port={} ansible_user={name} ansible_ssh_private_key_file={}\n",
        sshd.port,
        sshd.path("id").display(),
    ));
    let known = std::fs::read_to_string(sshd.path("known_hosts")).expect("a file");
    project.write(".ssh/known_hosts", &known);
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(&project, &[user.home.clone(), project.path(".local")]);
        let secrets = secrets();
        secrets.none_in("sshd's log", &sshd.log());
        let sudo = std::fs::read_to_string(log(&sshd)).unwrap_or_default();
        assert!(sudo.contains(name), "sudo wrote no log: {sudo}");
        secrets.none_in("sudo's log", &sudo);
        let journal = Command::new("journalctl").args(["--since", "-5min", "--no-pager"]).output();
        if let Ok(journal) = journal {
            secrets.none_in("the journal", &String::from_utf8_lossy(&journal.stdout));
        }
    }));
    std::fs::remove_file(&sudoers).ok();
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}

fn log(sshd: &Sshd) -> std::path::PathBuf {
    sshd.path("sudo.log")
}
